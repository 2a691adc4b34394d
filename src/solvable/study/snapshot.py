"""Reader of a study's store, which never writes and works while a run is writing."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from solvable.errors import StorageFailed
from solvable.paths import check_path
from solvable.study import database


@dataclass(frozen=True)
class Snapshot:
    """Content of a store at one moment."""

    meta: Mapping[str, str]  # fingerprint, text of ``study.toml``, name and version of the system
    # (identity, parameters, prediction or None) in canonical order
    points: Sequence[tuple[str, dict[str, Any], dict[str, Any] | None]]
    # finished tasks by point, then replicate: identity, point, replicate, metrics, provenance
    tasks: Sequence[Mapping[str, Any]]
    # (point, replicate, error); the replicate is None if the prediction failed
    failures: Sequence[tuple[str, int | None, str]]
    planned: int  # number of tasks of the study


@contextmanager
def _reading(directory: str | Path) -> Iterator[sqlite3.Connection]:
    path = check_path(directory) / database.STORE_NAME
    if not path.is_file():
        raise StorageFailed(f"{path}: no such file. Give the directory of a run.")
    with database.reported(path):
        connection = _connect(path)
        try:
            database.check_format(connection, path)
            if database.is_empty(connection):
                raise StorageFailed(f"{path}: contains no study. Run one there first.")
            connection.execute("BEGIN")
            yield connection
        finally:
            connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        database.is_empty(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        # SQLite cannot make its shared-memory file in a read-only directory; without a log the
        # file is not needed.
        without_log = not path.with_name(f"{database.STORE_NAME}-wal").exists()
        if error.sqlite_errorcode != sqlite3.SQLITE_CANTOPEN or not without_log:
            raise
        connection = sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def read(directory: str | Path) -> Snapshot:
    """Read a store at one moment, also while a run writes to it."""
    with _reading(directory) as connection:
        query = connection.execute
        path = Path(directory) / database.STORE_NAME
        meta = database.read_meta(connection, path)
        database.check_digests(connection, path)
        points = [
            (identity, json.loads(parameters), None if metrics is None else json.loads(metrics))
            for identity, parameters, metrics in query(
                "SELECT p.identity, p.parameters, m.metrics FROM points p "
                "LEFT JOIN predictions m ON m.point = p.identity ORDER BY p.position"
            )
        ]
        rows = query(
            "SELECT t.identity, t.point, t.replicate, r.metrics, v.library, v.numpy, v.dtype, "
            "v.seconds, v.cpu_seconds, v.peak_memory FROM results r "
            "JOIN tasks t ON t.identity = r.task JOIN points p ON p.identity = t.point "
            "LEFT JOIN provenance v ON v.identity = r.task ORDER BY p.position, t.replicate"
        )
        names = [column[0] for column in rows.description]
        tasks = [dict(zip(names, row, strict=True)) for row in rows]
        for task in tasks:
            task["metrics"] = json.loads(task["metrics"])
        return Snapshot(
            meta=meta,
            points=points,
            tasks=tasks,
            failures=query(
                "SELECT p.identity, t.replicate, f.error FROM failures f "
                "LEFT JOIN tasks t ON t.identity = f.identity "
                "JOIN points p ON p.identity = coalesce(t.point, f.identity) "
                "ORDER BY p.position, t.replicate"
            ).fetchall(),
            planned=query("SELECT count(*) FROM tasks").fetchone()[0],
        )


def read_arrays(directory: str | Path, task: str) -> dict[str, np.ndarray]:
    """Read the teacher's arrays of one task by name; empty if the system stores none."""
    with _reading(directory) as connection:
        database.check_digests(connection, Path(directory) / database.STORE_NAME, ("array",), task)
        rows = connection.execute("SELECT name, content FROM arrays WHERE task = ?", (task,))
        try:
            return {
                name: np.load(io.BytesIO(content), allow_pickle=False) for name, content in rows
            }
        except ValueError as error:
            raise StorageFailed(
                f"{directory}: an array of task {task} is damaged ({error})."
            ) from error
