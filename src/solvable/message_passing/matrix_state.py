"""State evolution of Bayes message passing in two or three directions, by quasi-Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter, NotConverged
from solvable.message_passing.outputs import GaussianOutput, output_message
from solvable.message_passing.posterior import posterior_given


@dataclass(frozen=True)
class MatrixOverlap:
    """Fixed point of state evolution.

    Attributes
    ----------
    overlap : ndarray of shape (p, p)
        Q, between the true directions and their posterior means.
    steps : int
        Steps that were made.
    residual : float
        Largest change of an entry in the last step.
    """

    overlap: np.ndarray
    steps: int
    residual: float


def matrix_evolution(
    output: GaussianOutput,
    sample_ratio: float,
    start: np.ndarray,
    *,
    points: int = 2**11,
    damping: float = 0.3,
    tolerance: float = 1e-5,
    max_steps: int = 400,
) -> MatrixOverlap:
    r"""Overlaps that message passing reaches in p directions.

    .. math::
        \hat Q=\alpha E[g_{\rm out}g_{\rm out}^\top],\qquad Q=\hat Q(I+\hat Q)^{-1},\qquad
        \omega=Q^{1/2}\zeta,\ z=\omega+(I-Q)^{1/2}\zeta' .

    Notes
    -----
    The same draws at every step, so that the map is deterministic; two scramblings agree to about
    half a per cent. A step of two directions takes a second. arXiv:2405.15480; backed by
    ``tests/message_passing/test_matrix_evolution.py`` (independent directions, message passing).
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    check_positive(sample_ratio=sample_ratio)
    p = output.n_directions
    Q = np.asarray(start, dtype=np.float64)
    if Q.shape != (p, p) or not np.allclose(Q, Q.T) or not _inside(Q):
        raise InvalidParameter(
            f"start is {Q.tolist()}; allowed: a symmetric matrix of shape ({p}, {p}) with "
            "eigenvalues in [0, 1)."
        )
    half = ndtri(qmc.Sobol(2 * p + 1, seed=0).random(points))
    draws = np.concatenate([half, -half])
    change = np.inf
    for step in range(1, max_steps + 1):
        V = np.eye(p) - Q
        omega = draws[:, :p] @ _root(Q)
        z = omega + draws[:, p : 2 * p] @ _root(V)
        clean = np.asarray(output.function(z), dtype=np.float64)
        posterior = posterior_given(output, clean + np.sqrt(output.noise) * draws[:, -1])
        g = output_message(posterior(omega, V), omega, V).values
        # Q^ = alpha E[g g^T],  Q = Q^ (I + Q^)^-1
        precision = sample_ratio * g.T @ g / len(g)
        new = precision @ np.linalg.inv(np.eye(p) + precision)
        values, vectors = np.linalg.eigh((1 - damping) * (new + new.T) / 2 + damping * Q)
        moved = (vectors * np.clip(values, 0.0, 0.999)) @ vectors.T
        change = float(np.abs(moved - Q).max())
        Q = moved
        if change <= tolerance:
            return MatrixOverlap(Q, step, change)
    raise NotConverged(
        f"state evolution still changes overlaps by {change:.2g} after {max_steps} steps; allowed: "
        f"{tolerance:.2g}. Raise max_steps, or start closer to the fixed point.",
        {"overlap": Q, "residual": change, "steps": max_steps},
    )


def _inside(Q: np.ndarray) -> bool:
    values = np.linalg.eigvalsh(Q)
    return bool(values[0] >= -1e-12 and values[-1] < 1)


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
