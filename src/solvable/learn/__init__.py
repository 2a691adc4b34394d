"""Learning features from a data set, measured honestly, and told to a person."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.analysis.diagnosing import (
        diagnose_file,
        diagnose_matrix,
    )
    from solvable.analysis.diagnosis import (
        MatrixDiagnosis,
    )
    from solvable.analysis.learning import (
        Request,
        fingerprint_of,
        learn,
    )
    from solvable.analysis.results import (
        Learned,
        MethodScore,
        Outlook,
    )
    from solvable.analysis.weights import (
        StoredArray,
        iter_weights,
    )

_HOMES = {
    "Learned": "results",
    "MatrixDiagnosis": "diagnosis",
    "MethodScore": "results",
    "Outlook": "results",
    "Request": "learning",
    "StoredArray": "weights",
    "diagnose_file": "diagnosing",
    "diagnose_matrix": "diagnosing",
    "fingerprint_of": "learning",
    "iter_weights": "weights",
    "learn": "learning",
}

__all__ = [
    "Learned",
    "MatrixDiagnosis",
    "MethodScore",
    "Outlook",
    "Request",
    "StoredArray",
    "diagnose_file",
    "diagnose_matrix",
    "fingerprint_of",
    "iter_weights",
    "learn",
]


def __getattr__(name: str) -> Any:
    """Import the parts on first use, because they load scikit-learn."""
    if name in _HOMES:
        return getattr(import_module(f"solvable.analysis.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
