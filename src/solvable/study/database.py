"""Tables of a study's store, and what its database raises in one line."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from solvable.errors import StorageFailed, StudyConflict, StudyTooNew

FORMAT = 1
"""Version of the tables; a store of a newer format is refused."""

STORE_NAME = "study.sqlite"

APPLICATION = 0x501FAB1E  # marks the file as a study of solvable in SQLite's header

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE points (
    identity TEXT PRIMARY KEY, position INTEGER NOT NULL, parameters TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE tasks (
    identity TEXT PRIMARY KEY, point TEXT NOT NULL REFERENCES points, replicate INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE results (task TEXT PRIMARY KEY REFERENCES tasks, metrics TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE predictions (
    point TEXT PRIMARY KEY REFERENCES points, metrics TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE arrays (
    task TEXT NOT NULL REFERENCES tasks, name TEXT NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (task, name)
);
CREATE TABLE provenance (
    identity TEXT PRIMARY KEY, library TEXT, numpy TEXT, dtype TEXT, seconds REAL,
    cpu_seconds REAL, peak_memory INTEGER
) WITHOUT ROWID;
CREATE TABLE failures (identity TEXT PRIMARY KEY, error TEXT, trace TEXT) WITHOUT ROWID;
"""

DETERMINISTIC_TABLES = ("meta", "points", "tasks", "results", "predictions", "arrays")
"""Tables whose rows do not depend on when, where and in how many sittings the study ran."""


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system raise into one line of :class:`StorageFailed`."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if isinstance(error, sqlite3.OperationalError):
            advice = (
                "Finished tasks are kept; free space or mend the permissions, then run the same "
                "command again to resume."
            )
        else:
            advice = "The file is damaged: restore a copy, or move it away and run again."
        raise StorageFailed(f"{path}: {text}. {advice}") from error
    except OSError as error:
        raise StorageFailed(
            f"{error.filename or path}: {error.strerror or error}. Finished tasks are kept; mend "
            "this, then run the same command again to resume."
        ) from error
    except (json.JSONDecodeError, EOFError) as error:
        raise StorageFailed(
            f"{path}: an entry cannot be read ({error}). The file is damaged: restore a copy, or "
            "move it away and run again."
        ) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything in the block, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After a full disk SQLite may have rolled back on its own.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether the file holds no table, as after a run that was killed while it made the store."""
    return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse the databases of other programs and of newer versions."""
    if is_empty(connection):
        return
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise StudyConflict(
            f"{path}: a database that is not a study of solvable. Use another directory."
        )
    if found > FORMAT:
        raise StudyTooNew(
            f"{path}: written in format {found}; this version of solvable reads up to {FORMAT}. "
            "Install a newer solvable (pip install --upgrade solvable)."
        )
