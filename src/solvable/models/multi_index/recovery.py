r"""Which directions of a channel first-order methods find, from when, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.message_passing.outputs import GaussianOutput

LEAST = 2e-3
"""Information below which a moment counts as zero: ten standard errors of the estimate."""


@dataclass(frozen=True)
class RecoveryStep:
    r"""What is found next, once some directions are known.

    Attributes
    ----------
    kind : {"trivial", "easy", "hard"}
        Found from any positive ratio; from a definite one; or not at all at n of order d.
    threshold_ratio : float
        :math:`\alpha_c`: 0, positive, or infinite.
    directions : ndarray of shape (p, k)
        Orthonormal directions that are found, in the coordinates of the channel; empty if "hard".
    """

    kind: Literal["trivial", "easy", "hard"]
    threshold_ratio: float
    directions: np.ndarray


def weak_recovery(output: GaussianOutput, known: np.ndarray | None = None) -> RecoveryStep:
    r"""Next directions that a channel lets first-order methods find, and their threshold.

    With :math:`m(y)=E[z\mid y]` and :math:`G(y)=E[zz^\top-I\mid y]` on what is not known yet, given
    the label and the known coordinates,

    .. math:: \alpha_c=0\ \text{if}\ m\not\equiv0,\qquad
        \alpha_c^{-1}=\sup_{M\succeq0,\ \|M\|_F=1}\big\|E_y[G(y)\,M\,G(y)]\big\|_F .

    Notes
    -----
    A second: conditional means over cells of 2 million quasi-random samples, products of two
    halves of each cell, so that they are not biased; a threshold to about half a percent, five
    given known directions. The supremum is the largest eigenvalue of :math:`M\mapsto E[GMG]`, which
    maps positive matrices to positive ones. What is below 0.002 counts as zero.
    arXiv:2405.15480 (note 3.1); ``tests/models/multi_index/test_recovery.py`` (closed forms,
    additive channels).
    """
    p = output.n_directions
    held = np.zeros((p, 0)) if known is None else np.asarray(known, dtype=np.float64)
    k = held.shape[1] if held.ndim == 2 else -1
    if held.shape != (p, k) or k >= p or not np.allclose(held.T @ held, np.eye(k), atol=1e-8):
        raise InvalidParameter(
            f"known directions have shape {held.shape}; allowed: (p, k) = ({p}, k) orthonormal "
            f"columns, k below {p}."
        )
    # The rest of an orthonormal basis
    rest = np.linalg.svd(held, full_matrices=True)[0][:, k:] if k else np.eye(p)
    first, second = _information(output, held, rest)
    values, vectors = np.linalg.eigh(first)
    if values[-1] > LEAST:
        return RecoveryStep("trivial", 0.0, rest @ vectors[:, values > LEAST])
    size, M = _supremum(second, p - k)
    if size <= LEAST:
        return RecoveryStep("hard", float("inf"), np.zeros((p, 0)))
    values, vectors = np.linalg.eigh(M)
    found = np.abs(values) > 0.05 * np.abs(values).max()
    return RecoveryStep("easy", 1 / size, rest @ vectors[:, found])


def recovery_sequence(output: GaussianOutput) -> list[RecoveryStep]:
    """Steps in which directions are found, each given those before, until all are or none can be.

    Notes
    -----
    Known directions are taken as known exactly: the classification of arXiv:2405.15480 (note 3.1).
    As :func:`weak_recovery`, a step each.
    """
    steps: list[RecoveryStep] = []
    known = np.zeros((output.n_directions, 0))
    while known.shape[1] < output.n_directions:
        step = weak_recovery(output, known)
        steps.append(step)
        if step.kind == "hard":
            break
        known = np.concatenate([known, step.directions], axis=1)
    return steps


def _information(
    output: GaussianOutput, held: np.ndarray, rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E[m m^T] (r, r) and E[G (x) G] (r^2, r^2) of the directions that are not known."""
    r = rest.shape[1]
    z, xi = _quasi_random(output.n_directions, output.noise > 0)
    y = np.asarray(output.function(z), dtype=np.float64) + np.sqrt(output.noise) * xi
    cells, count = _cells(y, z @ held)
    coordinates = z @ rest
    # Neighbours of a quasi-random sequence are not independent: halves are drawn.
    half = random_stream("weak recovery", "halves").integers(0, 2, y.size)
    means = []
    for side in (0, 1):
        chosen = half == side
        group, part = cells[chosen], coordinates[chosen]
        number = np.bincount(group, minlength=count).astype(np.float64)
        columns = [part[:, i] for i in range(r)]
        columns += [part[:, i] * part[:, j] - (i == j) for i in range(r) for j in range(r)]
        with np.errstate(invalid="ignore"):
            table = np.stack([np.bincount(group, c, count) / number for c in columns], axis=1)
        means.append((table, number))
    both = (means[0][1] > 0) & (means[1][1] > 0)
    weight = (means[0][1] + means[1][1])[both]
    weight /= weight.sum()
    a, b = means[0][0][both], means[1][0][both]
    first = np.einsum("c,ci,cj->ij", weight, a[:, :r], b[:, :r])
    G, H = (side[:, r:].reshape(-1, r, r) for side in (a, b))
    second = np.einsum("c,cij,ckl->ikjl", weight, G, H).reshape(r * r, r * r)
    return (first + first.T) / 2, (second + second.T) / 2


def _quasi_random(p: int, noisy: bool) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian points of a scrambled Sobol sequence, (m, p) and (m,)."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    rng = random_stream("weak recovery", p)
    points = qmc.Sobol(p + int(noisy), seed=rng).random_base2(21)
    normal = ndtri(np.clip(points, 1e-12, 1 - 1e-12))
    return normal[:, :p], normal[:, p] if noisy else np.zeros(len(normal))


def _cells(y: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, int]:
    """Cells of labels, and of known coordinates beside them, of about equal numbers of samples."""
    k = held.shape[1]
    values = np.unique(y[:4096])
    discrete = values.size < 64
    per_axis = {0: 1, 1: 160, 2: 48}[k]
    total = 8_192
    parts = total // per_axis**k if not discrete else values.size
    cells, count = np.zeros(y.size, dtype=np.int64), 1
    # Sorting within cells keeps their numbers equal: first the known coordinates, then the label.
    for column in held.T:
        cells, count = _split(cells, count, column, per_axis)
    if discrete:
        # A label that the first samples did not show joins its neighbour.
        middle = (values[1:] + values[:-1]) / 2
        return cells * values.size + np.searchsorted(middle, y), count * values.size
    return _split(cells, count, y, max(parts, 16))


def _split(cells: np.ndarray, count: int, values: np.ndarray, parts: int) -> tuple[np.ndarray, int]:
    """Split every cell into so many of equal numbers, by the rank of a value."""
    order = np.lexsort((values, cells))
    number = np.bincount(cells, minlength=count)
    start = np.concatenate([[0], np.cumsum(number)[:-1]])
    rank = np.empty(cells.size, dtype=np.int64)
    rank[order] = np.arange(cells.size) - start[cells[order]]
    return cells * parts + rank * parts // np.maximum(number[cells], 1), count * parts


def _supremum(second: np.ndarray, r: int) -> tuple[float, np.ndarray]:
    """Largest eigenvalue of M -> E[G M G] on symmetric matrices, and M."""
    # Swapping the indices of M commutes with the map: its symmetric part alone.
    swap = np.eye(r * r).reshape(r, r, r, r).transpose(1, 0, 2, 3).reshape(r * r, r * r)
    projector = (np.eye(r * r) + swap) / 2
    values, vectors = np.linalg.eigh(projector @ second @ projector)
    # Of equal eigenvalues the identity's share: the positive eigenvector of largest rank.
    top = vectors[:, values > values[-1] - 0.01 * abs(values[-1])]
    M = (top @ (top.T @ np.eye(r).ravel())).reshape(r, r)
    return float(values[-1]), (M + M.T) / 2
