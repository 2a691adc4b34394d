r"""Label maps: convert labels to centred weights of the moment operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.arrays import Array, to_numpy
from solvable.errors import InvalidData, InvalidParameter, unknown_choice

LabelMap: TypeAlias = Literal["identity", "tanh", "clip", "square"] | Callable[[np.ndarray], Any]
"""Name of a label map, or a function that acts on the standardised labels entry by entry."""

_MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda y: y,
    "tanh": np.tanh,
    "clip": lambda y: np.clip(y, -2.0, 2.0),
    # The cut at 3 standard deviations raises the needed samples by 1 % for Gaussian labels.
    "square": lambda y: np.minimum(y * y, 9.0),
}


def label_function(label_map: LabelMap | str) -> Callable[[np.ndarray], Any]:
    """Return the function of standardised labels that belongs to a label map's name."""
    if not isinstance(label_map, str):
        return label_map
    if label_map not in _MAPS:
        raise InvalidParameter(unknown_choice("label_map", label_map, [*_MAPS, "a function"]))
    return _MAPS[label_map]


def map_of_law(y: np.ndarray, chance: np.ndarray, label_map: LabelMap | str) -> np.ndarray:
    """Apply a label map to labels with given probabilities: standardise, map and centre the labels."""
    mean = float(chance @ y)
    deviation = float(np.sqrt(chance @ (y - mean) ** 2))
    if deviation <= 1e-12 * max(1.0, abs(mean)):
        raise InvalidData(f"all labels equal {mean:.6g}; labels must vary with the direction.")
    T = np.asarray(label_function(label_map)((y - mean) / deviation), dtype=np.float64)
    return np.asarray(T - chance @ T)


def standardise(y: Array) -> tuple[np.ndarray, float, float]:
    r"""Standardise labels to mean 0 and standard deviation 1.

    .. math:: \tilde y_\mu = (y_\mu - \bar y) / \sigma, \qquad
        \sigma^2 = \tfrac1n \textstyle\sum_\mu (y_\mu - \bar y)^2 .

    Parameters
    ----------
    y : array of shape (n,)
        Labels, finite, not all equal.

    Returns
    -------
    standardised : ndarray of float64, shape (n,)
        :math:`\tilde y`.
    mean, scale : float
        :math:`\bar y` and :math:`\sigma`.

    Raises
    ------
    InvalidData
        If the labels are not finite, not one-dimensional, fewer than two, or all equal.

    Notes
    -----
    arXiv:2605.14567, Algorithm 1 (step 1); tested in ``tests/operators/test_labels.py``.

    Examples
    --------
    >>> standardise([1.0, 3.0])
    (array([-1.,  1.]), 2.0, 1.0)
    """
    try:
        labels = np.asarray(to_numpy(y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"labels are not numbers ({error}); allowed: real numbers.") from error
    if labels.ndim != 1:
        raise InvalidData(
            f"labels have shape {labels.shape}; allowed: (n,). Use y.ravel() for one output."
        )
    if labels.size < 2:
        raise InvalidData(f"there are {labels.size} labels; at least 2 are needed.")
    if not np.isfinite(labels).all():
        raise InvalidData(
            f"{np.count_nonzero(~np.isfinite(labels))} of {labels.size} labels are NaN or "
            "infinite; allowed: finite numbers. Drop or impute them."
        )
    # Dividing first keeps the squares of very large or very small labels in range.
    magnitude = float(np.max(np.abs(labels))) or 1.0
    scaled = labels / magnitude
    mean = float(scaled.mean())
    centred = scaled - mean
    scale = float(np.sqrt(np.mean(centred**2)))
    if scale <= 4 * np.finfo(np.float64).eps:
        raise InvalidData(
            f"all {labels.size} labels equal {labels[0]:.6g} to rounding; labels must vary to carry "
            "information on features."
        )
    return centred / scale, mean * magnitude, scale * magnitude


def apply_label_map(y: Array, label_map: LabelMap) -> np.ndarray:
    r"""Compute centred weights :math:`T_\mu = t(\tilde y_\mu) - \overline{t(\tilde y)}` from labels.

    A bounded map lowers :math:`E[T^2 \|F\|^4]`, so that a feature emerges at fewer samples. A
    nonzero mean of T would add its square times :math:`D/n` to the noise.

    Parameters
    ----------
    y : array of shape (n,)
        Labels, finite, not all equal; this function standardises them.
    label_map : {"identity", "tanh", "clip", "square"} or callable
        Function :math:`t` of the standardised labels; "clip" cuts at 2 standard deviations, "square" is
        :math:`\min(\tilde y^2, 9)`, for labels whose sign carries no information.

    Returns
    -------
    ndarray of float64, shape (n,)
        Weights :math:`T` of mean zero.

    Raises
    ------
    InvalidParameter
        If the map is unknown, or does not act entry by entry with finite values.
    InvalidData
        If the labels, or the mapped labels, are constant or not finite.

    Notes
    -----
    arXiv:2605.14567 uses the identity. Effect on the threshold: (lofi 7). Tested in
    ``tests/operators/test_labels.py``.

    Examples
    --------
    >>> apply_label_map([0.0, 1.0, 2.0], "tanh").round(3)
    array([-0.841,  0.   ,  0.841])
    """
    standardised, _, _ = standardise(y)
    function = label_function(label_map)
    name = (
        label_map if isinstance(label_map, str) else getattr(label_map, "__name__", repr(label_map))
    )
    mapped = np.asarray(function(standardised.copy()), dtype=np.float64)
    if mapped.shape != standardised.shape or not np.isfinite(mapped).all():
        raise InvalidParameter(
            f"label_map {name} gave shape {mapped.shape} with "
            f"{np.count_nonzero(~np.isfinite(mapped))} values not finite for labels of shape "
            f"{standardised.shape}; it must act entry by entry with finite values."
        )
    weights = mapped - mapped.mean()
    if np.max(np.abs(weights)) <= 1e-12 * max(1.0, float(np.max(np.abs(mapped)))):
        raise InvalidData(
            f"label_map {name} sends all labels to {mapped[0]:.6g}; it must keep some of their "
            "variation."
        )
    weights -= weights.mean()
    return weights
