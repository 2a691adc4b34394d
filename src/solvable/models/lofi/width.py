r"""How fast random features of finite width approach their kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData
from solvable.hermite import hermite_polynomials
from solvable.operators.activations import dual_kernel, evaluate


@dataclass(frozen=True)
class WidthConvergence:
    r"""Error of the Gram matrix of P random features, in units of :math:`P^{-1/2}`.

    Attributes
    ----------
    entry_deviation : ndarray of shape (n, n)
        Standard deviation of each entry times :math:`\sqrt P`.
    frobenius_error : float
        Root mean square Frobenius norm of the error times :math:`\sqrt P`.
    largest_error : float
        Median of the largest error of an entry times :math:`\sqrt P`, entries as if independent; a
        little above the true median, since they are not.
    eigenvalue_error : float
        Relative standard deviation of an eigenvalue of the filter times :math:`\sqrt P` where its
        eigenfunction is a Gaussian function of the weights of a neuron: :math:`\sqrt2`.
    """

    entry_deviation: np.ndarray
    frobenius_error: float
    largest_error: float
    eigenvalue_error: float


def fourth_moment_kernel(
    activation: str, inner: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    r"""Dual kernel of the squared activation.

    .. math:: \kappa_4(a,b)=E\big[\sigma(u)^2\sigma(v)^2\big],\qquad
        (u,v)\sim\mathcal N\Big(0,\begin{pmatrix}q_{aa}&q_{ab}\\q_{ab}&q_{bb}\end{pmatrix}\Big);

    for ReLU :math:`\frac{q_{aa}q_{bb}}{2\pi}\big(3\sin\theta\cos\theta+(\pi-\theta)
    (1+2\cos^2\theta)\big)`, for others Mehler's series to degree 48.

    Notes
    -----
    O(n m), or 48 times that. Derived (arc-cosine kernel of order 2 of Cho and Saul); backed by
    ``tests/models/lofi/test_width.py``.
    """
    scale = np.sqrt(np.multiply.outer(left, right))
    cosine = np.clip(inner / scale, -1.0, 1.0)
    if activation == "relu":
        # q_aa q_bb / (2 pi) (3 sin cos + (pi - theta) (1 + 2 cos^2)): arc-cosine kernel of order 2
        angle, sine = np.arccos(cosine), np.sqrt((1 - cosine) * (1 + cosine))
        total = 3 * sine * cosine + (np.pi - angle) * (1 + 2 * cosine**2)
        return np.asarray(scale**2 * total / (2 * np.pi))
    nodes = np.linspace(-12.0, 12.0, 1921)
    chance = np.exp(-(nodes**2) / 2)
    degrees = 48  # of the squared activation
    polynomials = hermite_polynomials(nodes, degrees) * (chance / chance.sum())

    def coefficients(variances: np.ndarray) -> np.ndarray:
        values = evaluate(activation, np.sqrt(variances)[:, None] * nodes) ** 2
        return np.asarray(values @ polynomials.T)

    rows, columns = coefficients(np.asarray(left)), coefficients(np.asarray(right))
    # Mehler: kappa_4 = sum_j m_j(q_aa) m_j(q_bb) cos^j theta
    total, power = np.zeros_like(cosine), np.ones_like(cosine)
    for j in range(degrees + 1):
        total += np.multiply.outer(rows[:, j], columns[:, j]) * power
        power *= cosine
    return total


def width_convergence(
    inputs: np.ndarray, *, activation: str = "relu", scale: float | None = None
) -> WidthConvergence:
    r"""Predicted error of the Gram matrix of random features, entry by entry.

    .. math::
        \hat G_{ab}-\kappa(a,b)\approx\mathcal N\Big(0,\frac{\kappa_4(a,b)-\kappa(a,b)^2}P\Big),
        \qquad \frac{\delta\lambda}\lambda=\frac1P\sum_p\frac{g_p^2}{E g^2}-1,

    g an eigenfunction as a function of the weights of one neuron; for Gaussian g the deviation of an
    eigenvalue is :math:`\lambda\sqrt{2/P}`.

    Notes
    -----
    O(n^2 d). Derived; backed by ``tests/models/lofi/test_width.py`` (random features of many
    seeds).
    """
    X = np.asarray(inputs, dtype=np.float64)
    if X.ndim != 2 or not np.isfinite(X).all() or not np.square(X).sum(axis=-1).all():
        raise InvalidData(f"inputs have shape {X.shape}; allowed: (n, d), finite, no row of zeros.")
    norm = float(np.sqrt(np.mean(np.sum(X**2, axis=1)))) if scale is None else scale
    check_positive(scale=norm)
    inner = X @ X.T / norm**2
    power = np.diag(inner).copy()
    kernel = dual_kernel(activation, inner, power, power)
    # P Var(G_ab) = kappa_4(a, b) - kappa(a, b)^2
    variance = fourth_moment_kernel(activation, inner, power, power) - kernel**2
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return WidthConvergence(
        entry_deviation=deviation,
        frobenius_error=float(np.sqrt(np.sum(deviation**2))),
        largest_error=_median_of_largest(deviation[np.triu_indices(len(X))]),
        eigenvalue_error=float(np.sqrt(2)),
    )


def _median_of_largest(deviations: np.ndarray) -> float:
    """Level that the largest of independent Gaussians exceeds half of the time."""
    from scipy.optimize import brentq
    from scipy.special import erf

    used = deviations[deviations > 0]
    if not used.size:
        return 0.0

    def log_chance(level: float) -> float:
        shares = np.maximum(erf(level / (np.sqrt(2) * used)), 1e-300)
        return float(np.log(shares).sum()) - np.log(0.5)

    top = float(used.max())
    return float(brentq(log_chance, 1e-3 * top, 12 * top))
