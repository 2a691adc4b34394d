"""Learning curves extrapolated, with intervals and a word on what the data cannot tell."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.forecast.curve import LearningCurve

_HOMES = {
    "LearningCurve": "curve",
}

__all__ = [
    "LearningCurve",
]


def __getattr__(name: str) -> Any:
    """Import the parts on first use, because they load NumPy."""
    if name in _HOMES:
        return getattr(import_module(f"solvable.forecast.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
