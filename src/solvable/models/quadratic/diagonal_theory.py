"""Diagonal networks with weight decay as the LASSO: soft thresholding of the target in noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.models.quadratic.network.saddle import check_not_negative
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True)
class DiagonalState:
    """Prediction of the minimiser, distributed as eta_b(theta* + delta z) (quadratic 32, 33)."""

    effective_noise: float  # delta
    threshold: float  # b
    error: float  # R = E |theta - theta*|²
    test_error: float  # Delta + R
    train_error: float  # (Delta + R) (1 - df / n)² per sample
    degrees_of_freedom: float  # df, the expected number of non-zero coefficients


def lasso_penalty(*, weight_decay: float, dimension: int) -> float:
    """Penalty of the LASSO equivalent to the weight decay of a diagonal network (quadratic 31)."""
    # At theta = a w / sqrt(d), half of sum of (y - a^T (w x) / sqrt(d))² + lambda (|w|² + |a|²) has the
    # minimum |y - X theta|² / 2 + lambda sqrt(d) |theta|_1 over the layers. Divided by n the penalty is
    # `alpha` of scikit-learn's Lasso.
    return float(weight_decay * np.sqrt(dimension))


def threshold_risk(
    coefficients: np.ndarray, *, effective_noise: float, threshold: float
) -> tuple[float, float]:
    """Error and degrees of freedom of soft thresholding in Gaussian noise (quadratic 32)."""
    from scipy.special import ndtr

    # With M = theta + delta z and P = P(|M| > b): df is the sum of P, and R is the sum of
    # E min(M², b²) + delta² (2 P - 1) by Stein's identity.
    variance = effective_noise**2
    high = (threshold - coefficients) / effective_noise
    low = (threshold + coefficients) / effective_noise
    beyond = ndtr(-high) + ndtr(-low)
    edge = np.exp(-(high**2) / 2) * (threshold + coefficients)
    edge += np.exp(-(low**2) / 2) * (threshold - coefficients)
    inside = (coefficients**2 + variance) * (1 - beyond)
    inside -= effective_noise * edge / np.sqrt(2 * np.pi)
    capped = inside + threshold**2 * beyond
    risk = np.maximum(capped + variance * (2 * beyond - 1), 0.0)
    return float(risk.sum()), float(beyond.sum())


def solve_diagonal(
    coefficients: np.ndarray, *, n_samples: float, label_noise: float, penalty: float
) -> DiagonalState:
    r"""Predict the LASSO, :math:`\frac12\|y-X\theta\|^2+\lambda\|\theta\|_1`, for standard Gaussian X.

    .. math:: \delta^2=\frac{\Delta+R}n,\qquad
        R=\sum_iE\big[(\eta_b(\theta^\star_i+\delta z)-\theta^\star_i)^2\big],\qquad
        b=\frac{\lambda}{n-\mathrm{df}},\qquad \mathrm{df}=\sum_iP(|\theta^\star_i+\delta z|>b).

    Two bracketed searches. arXiv:1008.2581, Theorem 1.5 (quadratic 32).

    Parameters
    ----------
    coefficients : array of shape (d,)
        :math:`\theta^\star`.
    n_samples, label_noise : float
        n, and the variance :math:`\Delta>0`.
    penalty : float
        :math:`\lambda\ge0`: the weight decay of the network times :math:`\sqrt d`, and n times the
        ``alpha`` of scikit-learn's ``Lasso``.

    Returns
    -------
    DiagonalState
        The prediction.

    Examples
    --------
    >>> state = solve_diagonal(1 / np.arange(1, 401), n_samples=200, label_noise=0.5, penalty=20.0)
    >>> round(state.error, 3)
    0.246
    """
    check_positive(n_samples=n_samples, label_noise=label_noise)
    target = np.asarray(coefficients, dtype=np.float64)
    if target.ndim != 1 or target.size == 0 or not np.isfinite(target).all():
        raise InvalidData(
            f"the coefficients have shape {target.shape}; allowed: a vector of finite numbers."
        )
    if penalty == 0 and abs(n_samples / target.size - 1) < 1e-9:
        raise NotConverged(
            "the error is infinite for n = d without a penalty; use a penalty above 0.",
            {"n_samples": n_samples},
        )
    check_not_negative(penalty=penalty)

    energy, n = float(target @ target), n_samples

    def best_threshold(noise: float) -> float:
        """Solve n - df = lambda / b for b; the difference increases in b."""

        def excess(b: float) -> float:
            freedom = threshold_risk(target, effective_noise=noise, threshold=b)[1]
            return n - freedom - (penalty / b if penalty else 0.0)

        low, high = penalty / (2 * n), float(np.abs(target).max()) + 40 * noise + 2 * penalty / n
        at_low = excess(low)
        return low if at_low >= 0 else bracketed_root(excess, low, high, absolute=1e-15 * noise)

    def imbalance(log_noise: float) -> float:
        noise = float(np.exp(log_noise))
        risk, _ = threshold_risk(target, effective_noise=noise, threshold=best_threshold(noise))
        return float(np.log((label_noise + risk) / (n * noise**2)))

    # The search starts at Delta / n, the smallest possible delta².
    floor, null = (float(np.log(size / n)) / 2 for size in (label_noise, label_noise + energy))
    noise = float(np.exp(bracketed_root(imbalance, floor - 1e-6, null + 30, absolute=1e-14)))
    threshold = best_threshold(noise)
    risk, freedom = threshold_risk(target, effective_noise=noise, threshold=threshold)
    if label_noise + risk < 1e-12 * energy:
        raise InvalidParameter(
            f"with {n} samples, this label noise and this penalty the target is recovered up to "
            "rounding, so that the effective noise vanishes. Use a larger penalty or label noise."
        )
    return DiagonalState(
        effective_noise=noise,
        threshold=threshold,
        error=risk,
        test_error=label_noise + risk,
        train_error=(label_noise + risk) * (1 - freedom / n) ** 2,
        degrees_of_freedom=freedom,
    )
