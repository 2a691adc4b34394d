"""Tables of a study's store, and errors of its database in one line."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from solvable.errors import StorageFailed, StudyConflict, StudyTooNew

FORMAT = 1
"""Version of the tables; a store of a newer format is refused."""

STORE_NAME = "study.sqlite"

APPLICATION = 0x501FAB1E  # identifies the file as a study of solvable in SQLite's header

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

DIGESTS = "CREATE TABLE IF NOT EXISTS digests (entry TEXT PRIMARY KEY, digest TEXT) WITHOUT ROWID"
"""Digest of each entry when it was written. Older stores have none, and older programs may write to
the same file."""

_ENTRIES = {
    "result": (
        "SELECT r.task, r.metrics, t.point, t.replicate, p.position, p.parameters, v.library, "
        "v.numpy, v.dtype, v.seconds, v.cpu_seconds, v.peak_memory FROM results r "
        "LEFT JOIN tasks t ON t.identity = r.task LEFT JOIN points p ON p.identity = t.point "
        "LEFT JOIN provenance v ON v.identity = r.task",
        "r.task",
    ),
    "prediction": (
        "SELECT m.point, m.metrics, p.position, p.parameters FROM predictions m "
        "LEFT JOIN points p ON p.identity = m.point",
        "m.point",
    ),
    "array": ("SELECT task || ' ' || name, content FROM arrays", "task"),
    "meta": ("SELECT key, value FROM meta", "key"),
}
"""Query of the content of each kind of entry, and the column that identifies it."""

DETERMINISTIC_TABLES = ("meta", "points", "tasks", "results", "predictions", "arrays")
"""Tables whose rows do not depend on when and where the study ran, or how often it was resumed."""


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the file system into one line of :class:`StorageFailed`."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if isinstance(error, sqlite3.OperationalError) and "decode" not in text:
            advice = (
                "Finished tasks are kept; free space or correct the permissions, then run the same "
                "command again to resume."
            )
        else:
            advice = "The file is damaged: restore a copy, or move it away and run again."
        raise StorageFailed(f"{path}: {text}. {advice}") from error
    except OSError as error:
        raise StorageFailed(
            f"{error.filename or path}: {error.strerror or error}. Finished tasks are kept; "
            "correct this, then run the same command again to resume."
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
        # SQLite may already have rolled back, as after a full disk.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def sign(connection: sqlite3.Connection, kind: str, identity: str | None = None) -> None:
    """Write the digests of an entry, or of all entries of a kind."""
    for entry, digest in _digests(connection, kind, identity):
        connection.execute("INSERT OR REPLACE INTO digests VALUES (?, ?)", (entry, digest))


def check_digests(
    connection: sqlite3.Connection,
    path: Path,
    kinds: Sequence[str] = ("meta", "result", "prediction"),
    identity: str | None = None,
) -> None:
    """Refuse entries that changed or vanished since they were written."""
    held = "SELECT count(*) FROM sqlite_master WHERE name = 'digests'"
    if not connection.execute(held).fetchone()[0]:
        return
    signed = dict(connection.execute("SELECT entry, digest FROM digests"))
    for kind in kinds:
        start = f"{kind} {identity or ''}"
        left = {entry: signed[entry] for entry in signed if entry.startswith(start)}
        for entry, digest in _digests(connection, kind, identity):
            if left.pop(entry, digest) != digest:
                raise _changed(path, entry)
        if left:
            raise _changed(path, next(iter(left)))


def _digests(
    connection: sqlite3.Connection, kind: str, identity: str | None
) -> Iterator[tuple[str, str]]:
    query, column = _ENTRIES[kind]
    found = (
        connection.execute(query)
        if identity is None
        else connection.execute(f"{query} WHERE {column} = ?", (identity,))
    )
    for row in found:
        # Digest of the values as they are read back, so that the type of a number does not matter.
        parts = [part if isinstance(part, bytes) else repr(part).encode() for part in row]
        yield f"{kind} {row[0]}", hashlib.sha256(b"\x1f".join(parts)).hexdigest()


def _changed(path: Path, entry: str) -> StorageFailed:
    return StorageFailed(
        f"{path}: the entry {entry} has changed since it was written: its digest does not match. The "
        "file is damaged: restore a copy, or move it away and run again."
    )


def read_meta(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Read the description of a store; refuse a store that lacks a part of it."""
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    missing = [key for key in ("fingerprint", "study", "system", "version") if key not in meta]
    if missing:
        raise StorageFailed(
            f"{path}: does not name its study (table meta lacks {', '.join(missing)}). "
            "The file is damaged: restore a copy, or move it away and run again."
        )
    return meta


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return True if the file has no table, as after a kill during the creation of the store."""
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
            "Install solvable from a newer checkout (pip install . in it)."
        )
