"""Data sets, tables of one's own, and sources larger than memory.

Nothing heavy is imported until it is used: scikit-learn and pyarrow load with the data that need
them.
"""

from __future__ import annotations

from solvable.data.dataset import load, load_new
from solvable.data.preparation import Preparation
from solvable.data.stream import from_arrays, open_stream
from solvable.data.table import Table
from solvable.data.target import Target

__all__ = [
    "Preparation",
    "Table",
    "Target",
    "from_arrays",
    "load",
    "load_new",
    "open_stream",
]
