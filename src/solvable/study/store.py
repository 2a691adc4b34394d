"""Writer of a study's store: one process, one commit per task.

Results (``points``, ``tasks``, ``results``, ``predictions``, ``arrays``) and their provenance
(``provenance``, ``failures``) are in separate tables. Results are equal bit by bit for any number of
workers, kills and resumptions.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType

from solvable.errors import StorageFailed, StudyBusy, StudyConflict
from solvable.study.database import (
    APPLICATION,
    DIGESTS,
    FORMAT,
    SCHEMA,
    STORE_NAME,
    check_digests,
    check_format,
    is_empty,
    read_meta,
    reported,
    sign,
    transaction,
)
from solvable.study.execute import Outcome
from solvable.study.grid import Study
from solvable.study.toml import parse_study

_COPY = """
CREATE TEMP TABLE fresh AS
    SELECT task AS identity, 'result' AS kind FROM part.results
    WHERE task NOT IN (SELECT task FROM main.results)
    UNION ALL SELECT point, 'prediction' FROM part.predictions
    WHERE point NOT IN (SELECT point FROM main.predictions);
INSERT INTO main.results
    SELECT * FROM part.results WHERE task IN (SELECT identity FROM fresh);
INSERT INTO main.predictions
    SELECT * FROM part.predictions WHERE point IN (SELECT identity FROM fresh);
INSERT INTO main.arrays SELECT * FROM part.arrays WHERE task IN (SELECT identity FROM fresh);
INSERT OR REPLACE INTO main.provenance
    SELECT * FROM part.provenance WHERE identity IN (SELECT identity FROM fresh);
INSERT OR REPLACE INTO main.digests SELECT * FROM part.digests
    WHERE entry IN (SELECT kind || ' ' || identity FROM fresh);
INSERT OR REPLACE INTO main.digests SELECT * FROM part.digests WHERE entry IN (
    SELECT 'array ' || task || ' ' || name FROM part.arrays
    WHERE task IN (SELECT identity FROM fresh));
DELETE FROM main.failures WHERE identity IN (SELECT identity FROM fresh);
"""
"""Copies results that the main store lacks, with their predictions, arrays, provenance and digests."""


class Store:
    """Writer of a study's store; use it as a context manager.

    Parameters
    ----------
    directory : path
        Run directory; created if missing.
    study : Study
        Study to run. A store of the same study is resumed.

    Notes
    -----
    A commit is on the disk when :meth:`commit` returns, after a few milliseconds.
    """

    def __init__(self, directory: str | Path, study: Study) -> None:
        self.directory = Path(directory)
        self.path = self.directory / STORE_NAME
        with reported(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        self._lock = _acquire(self.directory)
        try:
            self._connection = self._open(study)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, study: Study) -> sqlite3.Connection:
        with reported(self.path):
            connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            with reported(self.path):
                check_format(connection, self.path)
                if is_empty(connection):
                    _refuse_leftovers(self.directory, study)
                    _create(connection, study)
                _check_whole(connection, self.path)
                check_same(read_meta(connection, self.path), self.directory, study)
                check_digests(connection, self.path)
                connection.execute(DIGESTS)  # a store of an older version lacks this table
                connection.execute("PRAGMA journal_mode = WAL")  # allows reading during a run
                connection.execute("PRAGMA synchronous = FULL")  # a commit survives a power cut
        except BaseException:
            connection.close()
            raise
        return connection

    def finished(self) -> set[str]:
        """Return the identities of the tasks and points whose result is stored."""
        with reported(self.path):
            rows = self._connection.execute(
                "SELECT task FROM results UNION SELECT point FROM predictions"
            )
            return {identity for (identity,) in rows}

    def commit(self, outcome: Outcome) -> None:
        """Write one outcome in one transaction.

        A result replaces an earlier failure of the same task. The database refuses a second result of a
        task, which would count twice.
        """
        execute = self._connection.execute
        with reported(self.path), transaction(self._connection):
            if outcome.metrics is None:
                execute(
                    "INSERT OR REPLACE INTO failures VALUES (?, ?, ?)",
                    (outcome.identity, outcome.error, outcome.trace),
                )
                return
            table = "results" if outcome.kind == "task" else "predictions"
            text = json.dumps(outcome.metrics, separators=(",", ":"), allow_nan=False)
            execute(f"INSERT INTO {table} VALUES (?, ?)", (outcome.identity, text))
            for name, content in sorted(outcome.arrays.items()):
                execute("INSERT INTO arrays VALUES (?, ?, ?)", (outcome.identity, name, content))
            names = ("library", "numpy", "dtype", "seconds", "cpu_seconds", "peak_memory")
            row = (outcome.identity, *(outcome.provenance.get(name) for name in names))
            execute("INSERT OR REPLACE INTO provenance VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            sign(self._connection, "result" if outcome.kind == "task" else "prediction", row[0])
            sign(self._connection, "array", row[0])
            execute("DELETE FROM failures WHERE identity = ?", (outcome.identity,))

    def absorb(self, directory: Path, study: Study) -> int:
        """Copy what this store lacks from another store of the same study; return the tasks copied.

        Digests are checked, then copied with their entries. All is copied, or nothing.
        """
        path = directory / STORE_NAME
        with closing(_acquire(directory)), reported(path):
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                check_format(other, path)
                if is_empty(other):  # killed before its first commit
                    return 0
                _check_whole(other, path)
                check_same(read_meta(other, path), directory, study)
                check_digests(other, path, ("meta", "result", "prediction", "array"))
                # merges the log that a killed process left
                other.execute("PRAGMA journal_mode = DELETE")
            self._connection.execute("ATTACH DATABASE ? AS part", (str(path),))
            try:
                with transaction(self._connection):
                    for statement in _COPY.split(";")[:-1]:
                        self._connection.execute(statement)
                    count = "SELECT count(*) FROM fresh WHERE kind = 'result'"
                    copied = int(self._connection.execute(count).fetchone()[0])
                    self._connection.execute("DROP TABLE fresh")
            finally:
                self._connection.execute("DETACH DATABASE part")
        return copied

    def close(self) -> None:
        """Merge the log into the database file, and release the directory."""
        try:
            # Refused during reads and on a full disk: the log then stays next to the file.
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.close()
        finally:
            self._lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _acquire(directory: Path) -> sqlite3.Connection:
    """Lock the directory for this process; the system frees the lock when the process ends."""
    path = directory / ".study.lock"
    with reported(path):
        lock = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise StudyBusy(
                    f"{directory}: another process is running a study there. Wait for it to end, "
                    "or use another directory."
                ) from None
            raise
    return lock


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StorageFailed(
            f"{path}: the file is damaged ({found.splitlines()[-1]}). Restore a copy, or move it "
            "away and run again."
        )


def _refuse_leftovers(directory: Path, study: Study) -> None:
    asked = directory / "study.toml"
    if asked.exists() and parse_study(asked.read_text("utf-8")) != parse_study(study.to_toml()):
        raise StudyConflict(
            f"{directory}: holds the study.toml of another study. Use another directory."
        )
    if (directory / "records.csv").exists():
        raise StudyConflict(
            f"{directory}: holds a records.csv but no {STORE_NAME}; it would be overwritten. Use "
            "another directory, or move the file away."
        )


def _create(connection: sqlite3.Connection, study: Study) -> None:
    """Write the tables and the plan of the study in one transaction."""
    with transaction(connection):
        for statement in SCHEMA.split(";")[:-1]:
            connection.execute(statement)
        meta = {
            "fingerprint": study.fingerprint,
            "study": study.to_toml(),
            "system": study.system.name,
            "version": study.system.version,
        }
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        connection.execute(DIGESTS)
        sign(connection, "meta")
        first = study.tasks[: len(study.points)]
        connection.executemany(
            "INSERT INTO points VALUES (?, ?, ?)",
            [(task.point, row, json.dumps(task.parameters)) for row, task in enumerate(first)],
        )
        connection.executemany(
            "INSERT INTO tasks VALUES (?, ?, ?)",
            [(task.identity, task.point, task.replicate) for task in study.tasks],
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def check_same(meta: Mapping[str, str], directory: Path, study: Study) -> None:
    """Refuse a directory that holds another study."""
    if meta["fingerprint"] == study.fingerprint:
        return
    old, new = parse_study(meta["study"]), parse_study(study.to_toml())
    differences = [
        f"{name} {getattr(old, name)} there, {getattr(new, name)} asked"
        for name in ("system", "version", "replicates", "seed")
        if getattr(old, name) != getattr(new, name)
    ]
    differences += [
        f"{name} {old.grid.get(name, 'default')} there, {new.grid.get(name, 'default')} asked"
        for name in sorted({*old.grid, *new.grid})
        if old.grid.get(name) != new.grid.get(name)
    ]
    raise StudyConflict(
        f"{directory}: holds another study ({'; '.join(differences) or 'other defaults'}). Use another "
        "directory, or ask for the same study to resume it."
    )
