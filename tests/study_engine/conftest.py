from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from solvable.study.database import DETERMINISTIC_TABLES

TOYS = str(Path(__file__).parent / "toys")


@pytest.fixture(autouse=True)
def toys_on_the_path(monkeypatch):
    """Make the toy systems importable here and in every worker process."""
    monkeypatch.syspath_prepend(TOYS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([TOYS, os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def toy():
    import toy_systems

    return toy_systems.system


@pytest.fixture
def content():
    """Everything in a store that must not depend on how it came about."""

    def read(directory):
        connection = sqlite3.connect(Path(directory) / "study.sqlite")
        try:
            return {
                table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall())
                for table in DETERMINISTIC_TABLES
            }
        finally:
            connection.close()

    return read
