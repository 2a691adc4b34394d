"""Checks of the hyper-parameters of BackLoFi, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, unknown_choice
from solvable.networks.backlofi_network import Column, CoupledLayer
from solvable.networks.backlofi_signals import SIGNALS
from solvable.networks.backlofi_steps import DROPS
from solvable.operators.activations import check_activation

SCALINGS = ("columns", "global", "none")
"""How inputs are standardised."""

MOST_REPLACED = 0.5
"""Largest part of a filter that is replaced on one side of a boundary."""


def checked_sizes(estimator: Any) -> tuple[list[int], list[int]]:
    """Raise unless every hyper-parameter is in its documented range.

    Parameters
    ----------
    estimator : BackLoFiClassifier or BackLoFiRegressor
        What is about to be fitted.

    Returns
    -------
    reduce, widths : list of int
        Of each layer.

    Raises
    ------
    InvalidParameter
        For the first value that is out of range.
    """
    for name, allowed in (("signal", SIGNALS), ("drop", DROPS), ("scaling", SCALINGS)):
        value = getattr(estimator, name)
        if not isinstance(value, str) or value not in allowed:
            raise InvalidParameter(unknown_choice(name, value, allowed))
    check_activation(estimator.activation)
    if estimator.activation == "step":
        raise InvalidParameter(
            "activation is 'step', through which no backward signal passes; allowed here: any other "
            "activation."
        )
    _check_integer("depth", estimator.depth, 2)
    _check_integer("n_passes", estimator.n_passes, 0)
    _check_real("fraction", estimator.fraction, 0, MOST_REPLACED)
    _check_real("amplitude", estimator.amplitude, 0, np.inf, open_below=True)
    _check_real("damping", estimator.damping, 0, 1, open_below=True)
    if isinstance(estimator.held_back, (float, np.floating)):
        _check_real("held_back", estimator.held_back, 0, 0.9)
    else:
        _check_integer("held_back", estimator.held_back, 0)
    if not isinstance(estimator.first_moment, (bool, np.bool_)):
        raise InvalidParameter(f"first_moment is {estimator.first_moment!r}; allowed: True, False.")
    reduce = _per_layer("reduce", estimator.reduce, estimator.depth)
    return reduce, _per_layer("width", estimator.width, estimator.depth)


def replaced_columns(layers: Sequence[CoupledLayer], fraction: float) -> tuple[int, ...]:
    """Columns replaced on either side of each boundary, from the lowest up.

    Parameters
    ----------
    layers : sequence of CoupledLayer
        The forward fit.
    fraction : float
        Of the eigenvectors of the smaller filter beside the boundary; at least one, unless it is 0.

    Returns
    -------
    tuple of int
        One entry fewer than layers.
    """
    kept = [int(np.count_nonzero(one.kinds == Column.FORWARD)) for one in layers]
    return tuple(max(1, round(fraction * min(pair))) if fraction else 0 for pair in pairwise(kept))


def split_rows(
    groups: np.ndarray, held_back: float | int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit, and rows to watch the passes with.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Class of each row, or one number throughout.
    held_back : float or int
        A fraction is drawn from each group alike, rounded down; a number means the last rows.
    seed : int
        For the draw.

    Returns
    -------
    kept, apart : ndarray of int
        Sorted.

    Raises
    ------
    InvalidParameter
        If fewer than two rows would be left.

    Examples
    --------
    >>> split_rows(np.zeros(5), 2, seed=0)
    (array([0, 1, 2]), array([3, 4]))
    """
    n = len(groups)
    if not isinstance(held_back, (float, np.floating)):
        if held_back > n - 2:
            raise InvalidParameter(f"held_back is {held_back} rows of {n}; allowed: up to {n - 2}.")
        return np.arange(n - held_back), np.arange(n - held_back, n)
    order = random_stream(seed, "held back").permutation(n)
    parts = [order[groups[order] == group] for group in np.unique(groups)]
    apart = np.sort(np.concatenate([part[: int(held_back * len(part))] for part in parts]))
    return np.setdiff1d(np.arange(n), apart), apart


def _per_layer(name: str, value: Any, depth: int) -> list[int]:
    entries = list(value) if isinstance(value, (tuple, list, np.ndarray)) else [value] * depth
    if len(entries) != depth:
        raise InvalidParameter(
            f"{name} has {len(entries)} entries; allowed: one for each of the {depth} layers of "
            "depth, or one number for all."
        )
    for entry in entries:
        _check_integer(name, entry, 1)
    return [int(entry) for entry in entries]


def _check_integer(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or value < least:
        raise InvalidParameter(f"{name} is {value!r}; allowed: an integer of at least {least}.")


def _check_real(
    name: str, value: Any, least: float, most: float, *, open_below: bool = False
) -> None:
    real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if (
        not real
        or not least <= value <= most
        or not np.isfinite(value)
        or (open_below and value == least)
    ):
        below = "above" if open_below else "from"
        raise InvalidParameter(f"{name} is {value!r}; allowed: a number {below} {least} to {most}.")
