"""Checks of the hyper-parameters of the layer-wise learner, when it is fitted."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.operators import Correction

CHOICES: dict[str, tuple[str, ...]] = {
    "correction": ("auto", "wick", "none"),
    "second_layer": ("least-squares", "in-sample", "shrinkage"),
    "readout": ("spline", "none"),
    "selection": ("outliers", "forced"),
    "solver": ("auto", "lanczos", "dense", "gram"),
}
"""Allowed values of the parameters that are names."""


def check_settings(estimator: Any) -> None:
    """Raise unless every hyper-parameter is in its documented range.

    Parameters
    ----------
    estimator : LayerwiseSpectralRegressor
        What is about to be fitted.

    Raises
    ------
    InvalidParameter
        For the first value that is out of range.
    """
    for name, allowed in CHOICES.items():
        value = getattr(estimator, name)
        if not isinstance(value, str) or value not in allowed:
            raise InvalidParameter(unknown_choice(name, value, allowed))
    if estimator.degree not in (1, 2, 3) or isinstance(estimator.degree, bool):
        raise InvalidParameter(f"degree is {estimator.degree!r}; allowed: 1, 2, 3.")
    if not _is_real(estimator.regularisation) or not 0 <= estimator.regularisation < np.inf:
        raise InvalidParameter(
            f"regularisation is {estimator.regularisation!r}; allowed: a finite number of at least "
            "0."
        )
    if not _is_real(estimator.tolerance) or not 0 <= estimator.tolerance < 1:
        raise InvalidParameter(
            f"tolerance is {estimator.tolerance!r}; allowed: at least 0 and below 1."
        )
    for name in ("shuffle", "linear_terms", "cross_terms"):
        value = getattr(estimator, name)
        automatic = name == "cross_terms" and isinstance(value, str) and value == "auto"
        if not automatic and not isinstance(value, (bool, np.bool_)):
            choice = "'auto', True, False" if name == "cross_terms" else "True, False"
            raise InvalidParameter(f"{name} is {value!r}; allowed: {choice}.")


def directions_per_layer(
    n_directions: Any, selection: Literal["outliers", "forced"]
) -> list[int | Literal["auto"]]:
    """Number of directions asked for in each layer.

    Parameters
    ----------
    n_directions : "auto", int, or sequence of these
        As the user gave it.
    selection : {"outliers", "forced"}
        Numbers are needed to force directions.

    Returns
    -------
    list
        One entry per spectral layer.

    Raises
    ------
    InvalidParameter
        If an entry is neither "auto" nor an integer of at least 1.

    Examples
    --------
    >>> directions_per_layer((12, "auto"), "outliers")
    [12, 'auto']
    """
    entries = list(n_directions) if isinstance(n_directions, (tuple, list)) else [n_directions]
    if not entries:
        raise InvalidParameter("n_directions is empty; allowed: one entry per spectral layer.")
    checked: list[int | Literal["auto"]] = []
    for entry in entries:
        whole = isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_))
        if whole and entry >= 1:
            checked.append(int(entry))
        elif not (isinstance(entry, str) and entry == "auto"):
            raise InvalidParameter(
                f"n_directions is {n_directions!r}; allowed: 'auto', an integer of at least 1, or "
                "a tuple of these, one per spectral layer."
            )
        elif selection == "forced":
            raise InvalidParameter(
                "n_directions is 'auto' with selection='forced'; allowed there: integers of at "
                "least 1. Say how many directions to force, or use selection='outliers'."
            )
        else:
            checked.append("auto")
    return checked


def correction_for(correction: str, degree: int) -> Correction:
    """Correction of a layer: nothing is to be corrected at degree 1, too much is lost at degree 3.

    Parameters
    ----------
    correction : {"auto", "wick", "none"}
        As the user gave it.
    degree : {1, 2, 3}
        Of the features of the layer.

    Returns
    -------
    {"none", "wick"}
        What the operator is told.
    """
    if correction == "auto":
        return "wick" if degree == 2 else "none"
    return "wick" if correction == "wick" and degree > 1 else "none"


def _is_real(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating))
    return number and not isinstance(value, (bool, np.bool_))
