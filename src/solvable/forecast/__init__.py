"""Learning curves extrapolated, with intervals and a word on what the data cannot tell."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.forecast.curve import LearningCurve
    from solvable.forecast.forecasting import forecast
    from solvable.forecast.results import Diagnostics, Estimate, Forecast, Prediction, Score

_HOMES = {
    "Diagnostics": "results",
    "Estimate": "results",
    "Forecast": "results",
    "LearningCurve": "curve",
    "Prediction": "results",
    "Score": "results",
    "forecast": "forecasting",
}

__all__ = [
    "Diagnostics",
    "Estimate",
    "Forecast",
    "LearningCurve",
    "Prediction",
    "Score",
    "forecast",
]


def __getattr__(name: str) -> Any:
    """Import the parts on first use, because they load NumPy."""
    if name in _HOMES:
        return getattr(import_module(f"solvable.forecast.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
