"""Correlations between two tokens of a sequence at a distance, without the bias of sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidData, InvalidParameter


@dataclass(frozen=True)
class TokenCorrelations:
    """Correlations of pairs of tokens, one entry for each distance."""

    distances: np.ndarray  # distances t
    # root mean square of the V² entries of C, without the contribution of sampling; 0 if the measured
    # mean square is below that contribution
    rms: np.ndarray
    operator_norm: (
        np.ndarray
    )  # largest singular value of the measured C, with the noise of sampling
    floor: np.ndarray  # root mean square that independent pairs cause if C = 0
    pairs: np.ndarray  # numbers P of pairs


def token_correlations(
    tokens: np.ndarray, distances: int | Sequence[int], vocabulary: int
) -> TokenCorrelations:
    r"""Measure correlations between tokens at given distances.

    .. math:: C_t(\mu,\nu)=P(x_i=\mu,x_{i+t}=\nu)-P(x_i=\mu)P(x_{i+t}=\nu),\qquad
        \mathrm{rms}^2=\frac1{V^2}\sum_{\mu\nu}C_t(\mu,\nu)^2 .

    From P independent pairs the measured mean square exceeds the true one by
    :math:`E\|(e_{x_i}-p)(e_{x_{i+t}}-p')^\top\|^2/(V^2P)`, about :math:`1/(V^2P)` for many equally
    frequent tokens, which is subtracted.

    Parameters
    ----------
    tokens : ndarray of shape (n,) or (texts, n)
        Numbers from 0 to V - 1. Pairs with a -1, which separates two texts, and pairs of different rows
        are left out.
    distances : int or sequence of int
        Distances t, at least 1.
    vocabulary : int
        Number V of tokens.

    Returns
    -------
    TokenCorrelations
        Arrays with one entry per distance.

    Raises
    ------
    InvalidData
        If a token is not allowed, or a distance has fewer than two pairs.
    InvalidParameter
        If a distance or the vocabulary is not allowed.

    Notes
    -----
    Pairs of one text depend on each other, so that the noise of a real text exceeds ``floor``. Source:
    arXiv:2602.07488; the subtraction is derived here. Backed by
    ``tests/data/test_token_statistics.py``.

    Examples
    --------
    >>> tokens = np.tile([0, 1], 5_000)
    >>> token_correlations(tokens, [1, 2], 2).rms.round(3).tolist()
    [0.25, 0.25]
    """
    check_integer("vocabulary", vocabulary, 2)
    lags = list(distances) if np.iterable(distances) else [distances]
    if not lags:
        raise InvalidParameter("distances is empty; allowed: one or more integers of at least 1.")
    try:
        rows = np.atleast_2d(np.asarray(tokens))
    except ValueError as error:
        raise InvalidData(
            "tokens have rows of different lengths; allowed: equal lengths."
        ) from error
    if rows.dtype.kind not in "iu" or rows.ndim != 2:
        raise InvalidData(
            f"tokens have shape {rows.shape} and type {rows.dtype}; allowed: whole numbers in one "
            "sequence, or one sequence per row."
        )
    if rows.size and not -1 <= rows.min() <= rows.max() < vocabulary:
        raise InvalidData(
            f"tokens reach from {rows.min()} to {rows.max()}; allowed: 0 to {vocabulary - 1}, or -1 "
            "between texts."
        )
    results = []
    for t in lags:
        check_integer("distance", t, 1)
        joint = _counts(rows[:, :-t], rows[:, t:], vocabulary)
        if joint.sum() < 2:
            raise InvalidData(
                f"fewer than two pairs of tokens are {t} apart; allowed: smaller distances."
            )
        results.append(_estimates(joint))
    columns = (np.array(column) for column in zip(*results, strict=True))
    return TokenCorrelations(np.asarray(lags), *columns)


def _counts(first: np.ndarray, second: np.ndarray, vocabulary: int) -> np.ndarray:
    """Count the pairs of tokens, shape (V, V)."""
    known = (first >= 0) & (second >= 0)
    numbers = first[known].astype(np.int64) * vocabulary + second[known]
    return np.bincount(numbers, minlength=vocabulary**2).reshape(vocabulary, vocabulary)


def _estimates(counts: np.ndarray) -> tuple[float, float, float, float]:
    """Return rms without bias, operator norm, sampling floor and number of pairs."""
    pairs, vocabulary = float(counts.sum()), len(counts)
    joint = counts / pairs
    p, q = joint.sum(axis=1), joint.sum(axis=0)
    C = joint - np.outer(p, q)
    # E|e_x - p|²|e_y - q|², with |e_x - p|² = 1 - 2 p_x + |p|²
    single = (1 - 2 * p + p @ p) @ joint @ (1 - 2 * q + q @ q)
    # without correlation: (1 - |p|²)(1 - |q|²) / P
    floor = (1 - p @ p) * (1 - q @ q) / pairs
    # E|C_measured|² = |C|² + (single - |C|²) / P
    square = (pairs * np.sum(C**2) - single) / (pairs - 1)
    rms, norm = float(np.sqrt(max(square, 0.0))), float(np.linalg.norm(C, 2))
    return rms / vocabulary, norm, float(np.sqrt(floor)) / vocabulary, pairs
