"""Learning features from a data set, measured honestly, and told to a person."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.analysis.learning import Request, fingerprint_of, learn
    from solvable.analysis.results import Learned, MethodScore, Outlook

_HOMES = {
    "Learned": "results",
    "MethodScore": "results",
    "Outlook": "results",
    "Request": "learning",
    "fingerprint_of": "learning",
    "learn": "learning",
}

__all__ = ["Learned", "MethodScore", "Outlook", "Request", "fingerprint_of", "learn"]


def __getattr__(name: str) -> Any:
    """Import the parts on first use, because they load scikit-learn."""
    if name in _HOMES:
        return getattr(import_module(f"solvable.analysis.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
