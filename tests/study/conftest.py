from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from solvable.study.database import DETERMINISTIC_TABLES, STORE_NAME

collect_ignore = ["toy_package"]

PACKAGE = Path(__file__).parent / "toy_package"


@pytest.fixture(autouse=True)
def logs(tmp_path_factory, monkeypatch) -> Path:
    """Make the toy system importable, here and in processes that start here; return its logs."""
    monkeypatch.setattr(sys, "path", [str(PACKAGE), *sys.path])
    path = os.pathsep.join(filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", path)
    directory = tmp_path_factory.mktemp("logs")
    monkeypatch.setenv("TOY_DIRECTORY", str(directory))
    return directory


@pytest.fixture
def toys(logs):
    """Return the module of the toy system."""
    return import_module("toy_system")


@pytest.fixture
def toy(toys, logs):
    """Return the toy system."""
    return toys.Toy(logs)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Restore the handler of SIGINT of a terminal: background jobs of a shell inherit "ignore"."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture(scope="session")
def rows_of_tables():
    """Return a function that reads the rows of all tables that a rerun must repeat."""

    def content(directory: Path) -> dict[str, list[tuple]]:
        connection = sqlite3.connect(Path(directory) / STORE_NAME)
        try:
            return {
                name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)
                for name in DETERMINISTIC_TABLES
            }
        finally:
            connection.close()

    return content
