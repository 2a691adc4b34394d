"""Studies: a system over a grid of parameters and replicates, run, stored and judged."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.study.grid import Study, Task
    from solvable.study.parameters import validate_parameters
    from solvable.study.results import Failure, StudyResult, load
    from solvable.study.run import run_study
    from solvable.study.store import Store

_HOMES = {
    "Failure": "results",
    "Store": "store",
    "Study": "grid",
    "StudyResult": "results",
    "Task": "grid",
    "load": "results",
    "run_study": "run",
    "validate_parameters": "parameters",
}

__all__ = [
    "Failure",
    "Store",
    "Study",
    "StudyResult",
    "Task",
    "load",
    "run_study",
    "validate_parameters",
]


def __getattr__(name: str) -> Any:
    """Import the parts on first use, because they load NumPy."""
    if name in _HOMES:
        return getattr(import_module(f"solvable.study.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
