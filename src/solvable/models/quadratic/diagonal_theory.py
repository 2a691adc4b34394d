r"""Diagonal linear network with weight decay, the vector twin of the quadratic network: LASSO."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.models.quadratic.network.saddle import check_not_negative
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True)
class DiagonalTarget:
    r"""Independent coefficients :math:`\theta^\star_i\sim N(m_i,\tau_i^2)`.

    Parameters
    ----------
    means : ndarray of shape (d,)
        :math:`m_i`; with spreads 0 the coefficients themselves.
    spreads : ndarray of shape (d,)
        :math:`\tau_i\ge0`.

    Examples
    --------
    >>> DiagonalTarget.power_law(dimension=3, exponent=1.0).energy
    1.3611111111111112
    """

    means: np.ndarray
    spreads: np.ndarray

    def __post_init__(self) -> None:
        means = np.asarray(self.means, dtype=np.float64)
        spreads = np.asarray(self.spreads, dtype=np.float64)
        if means.ndim != 1 or means.size == 0 or means.shape != spreads.shape:
            raise InvalidData(
                f"the means have shape {means.shape} and the spreads {spreads.shape}; allowed: "
                "vectors of the same size, at least 1."
            )
        if not (np.isfinite(means).all() and np.isfinite(spreads).all()) or (spreads < 0).any():
            raise InvalidData("means and spreads must be finite, and spreads at least 0.")
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "spreads", spreads)

    @classmethod
    def fixed(cls, coefficients: np.ndarray) -> DiagonalTarget:
        r"""Given coefficients :math:`\theta^\star`."""
        values = np.asarray(coefficients, dtype=np.float64)
        return cls(values, np.zeros(values.shape))

    @classmethod
    def power_law(cls, *, dimension: int, exponent: float) -> DiagonalTarget:
        """Gaussian coefficients of spread i^-gamma."""
        check_positive(dimension=dimension, exponent=exponent)
        spreads = np.arange(1, int(dimension) + 1, dtype=np.float64) ** -exponent
        return cls(np.zeros(spreads.size), spreads)

    @property
    def energy(self) -> float:
        """Mean squared norm."""
        return float(np.sum(self.means**2 + self.spreads**2))


@dataclass(frozen=True)
class DiagonalState:
    r"""What the theory says of the minimiser: :math:`\hat\theta\approx\eta_b(\theta^\star+\delta z)`.

    Parameters
    ----------
    effective_noise, threshold : float
        :math:`\delta` and b.
    error : float
        :math:`R=E\|\hat\theta-\theta^\star\|^2`.
    test_error, train_error : float
        :math:`\Delta+R`, and :math:`(\Delta+R)(1-\mathrm{df}/n)^2` per sample.
    degrees_of_freedom : float
        df, the expected number of coefficients that are not 0.
    """

    effective_noise: float
    threshold: float
    error: float
    test_error: float
    train_error: float
    degrees_of_freedom: float


def lasso_penalty(*, weight_decay: float, dimension: int) -> float:
    """Penalty of the LASSO that a diagonal network of this weight decay solves."""
    # sum of (y - a^T (w x) / sqrt(d))^2 + lambda (|w|^2 + |a|^2) is, at theta = a w / sqrt(d),
    # |y - X theta|^2 / 2 + lambda sqrt(d) |theta|_1. 2509.24882 prints the penalty without the root; its
    # phase boundaries need it. Over n it is `alpha` of scikit-learn's Lasso.
    check_positive(dimension=dimension)
    check_not_negative(weight_decay=weight_decay)
    return float(weight_decay * np.sqrt(dimension))


def threshold_risk(
    target: DiagonalTarget, *, effective_noise: float, threshold: float
) -> tuple[float, float]:
    """Error and degrees of freedom of soft thresholding in Gaussian noise."""
    from scipy.special import ndtr

    # R = sum of E min(M^2, b^2) + delta^2 (2 P - 1) by Stein's identity and df = sum of P, where
    # M = theta + delta z ~ N(m, tau^2 + delta^2) and P = P(|M| > b).
    variance = effective_noise**2
    spread = np.sqrt(target.spreads**2 + variance)
    high = (threshold - target.means) / spread
    low = (threshold + target.means) / spread
    beyond = ndtr(-high) + ndtr(-low)
    edge = np.exp(-(high**2) / 2) * (threshold + target.means)
    edge += np.exp(-(low**2) / 2) * (threshold - target.means)
    inside = (target.means**2 + spread**2) * (1 - beyond) - spread * edge / np.sqrt(2 * np.pi)
    capped = inside + threshold**2 * beyond
    risk = np.maximum(capped + variance * (2 * beyond - 1), 0.0)
    return float(risk.sum()), float(beyond.sum())


def solve_diagonal(
    target: DiagonalTarget, *, n_samples: float, label_noise: float, penalty: float
) -> DiagonalState:
    r"""Minimiser of :math:`\frac12\|y-X\theta\|^2+\lambda\|\theta\|_1` for Gaussian X of unit variance.

    .. math:: \delta^2=\frac{\Delta+R}n,\qquad
        R=\sum_iE\big[(\eta_b(\theta^\star_i+\delta z)-\theta^\star_i)^2\big],\qquad
        b=\frac{\lambda}{n-\mathrm{df}},\qquad \mathrm{df}=\sum_iP(|\theta^\star_i+\delta z|>b).

    Parameters
    ----------
    target : DiagonalTarget
        :math:`\theta^\star`.
    n_samples : float
        n.
    label_noise : float
        :math:`\Delta`, a variance.
    penalty : float
        :math:`\lambda\ge0`, that is :func:`lasso_penalty` of the network's weight decay, or n times
        ``alpha`` of scikit-learn's ``Lasso``.

    Returns
    -------
    DiagonalState
        The prediction.

    Raises
    ------
    InvalidParameter
        If nothing is left of the error, or a parameter is out of range.
    NotConverged
        If there is no finite solution: n = d without a penalty.

    Notes
    -----
    At fixed :math:`b/\delta` the noise is the root of a decreasing function, and the penalty
    crosses its value once: both bracketed. Source: Bayati and Montanari, arXiv:1008.2581; phases of
    arXiv:2509.24882. Backed by ``tests/models/quadratic/test_diagonal_theory.py`` (scikit-learn's Lasso).

    Examples
    --------
    >>> target = DiagonalTarget.power_law(dimension=400, exponent=1.0)
    >>> state = solve_diagonal(target, n_samples=200, label_noise=0.5, penalty=20.0)
    >>> round(state.error, 3)
    0.192
    """
    check_positive(n_samples=n_samples)
    if penalty == 0 and abs(n_samples / target.means.size - 1) < 1e-9:
        raise NotConverged(
            "the error has no finite limit with as many samples as coefficients and no penalty; use "
            "a penalty above 0.",
            {"n_samples": n_samples},
        )
    check_not_negative(label_noise=label_noise, penalty=penalty)

    def excess(shrinkage: float) -> float:
        noise = _noise_at(target, n_samples, label_noise, shrinkage)
        if noise == np.inf:
            return -np.inf
        if noise == 0:
            return -penalty
        _, freedom = threshold_risk(target, effective_noise=noise, threshold=shrinkage * noise)
        return shrinkage * noise * (n_samples - freedom) - penalty

    shrinkage = 0.0
    if penalty > 0 or n_samples <= target.means.size:
        low, high = 1e-12, 1.0
        while excess(high) <= 0:
            low, high = high, 2 * high
            if high > 1e100:
                raise _recovered(n_samples)
        while excess(low) == -np.inf and high - low > 1e-15 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) <= 0 else (low, middle)
        shrinkage = bracketed_root(excess, low, high, absolute=1e-14) if excess(low) < 0 else low
    noise = _noise_at(target, n_samples, label_noise, shrinkage)
    if penalty > 0:
        noise = _noise_of(target, n_samples, label_noise, shrinkage, penalty, noise)
    if noise == 0:
        raise _recovered(n_samples)
    risk, freedom = threshold_risk(target, effective_noise=noise, threshold=shrinkage * noise)
    return DiagonalState(
        effective_noise=noise,
        threshold=shrinkage * noise,
        error=risk,
        test_error=label_noise + risk,
        train_error=(label_noise + risk) * (1 - freedom / n_samples) ** 2,
        degrees_of_freedom=freedom,
    )


def _noise_at(target: DiagonalTarget, n: float, label_noise: float, a: float) -> float:
    """Noise at fixed b/delta: infinite or 0 where the decreasing ratio has no root."""

    def imbalance(log_noise: float) -> float:
        noise = float(np.exp(log_noise))
        risk, _ = threshold_risk(target, effective_noise=noise, threshold=a * noise)
        return (label_noise + risk) / (n * noise**2) - 1

    start = 0.5 * float(np.log((target.energy + label_noise) / n + 1e-300))
    low = high = start
    while imbalance(high) > 0:
        high += 1.0
        if high > start + 30:
            return np.inf
    while imbalance(low) < 0:
        low -= 1.0
        if low < start - 30:
            return 0.0
    return float(
        np.exp(bracketed_root(imbalance, low, high, absolute=1e-14) if low < high else low)
    )


def _noise_of(
    target: DiagonalTarget, n: float, label_noise: float, a: float, penalty: float, noise: float
) -> float:
    """Noise from the penalty, where sparse coefficients without label noise fix only its ratio."""
    # There R / delta^2 does not depend on delta to rounding, and one b/delta belongs to a range of
    # penalties.
    scale = noise if 0 < noise < np.inf else penalty / (a * n)
    for _ in range(100):
        risk, freedom = threshold_risk(target, effective_noise=scale, threshold=a * scale)
        after = penalty / (a * max(n - freedom, 1e-9 * n))
        if abs(after - scale) <= 1e-12 * scale:
            break
        scale = after
    mismatch = (label_noise + risk) / (n * scale**2) - 1
    return scale if abs(mismatch) < 1e-9 else noise


def _recovered(n: float) -> InvalidParameter:
    return InvalidParameter(
        f"with {n} samples, no label noise and this penalty the target is recovered, and no "
        "effective noise is left. Use a larger penalty."
    )
