"""Edges of the bulk spectrum: weighted sample covariance matrices and the semicircle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True)
class BulkEdges:
    """Both edges of a bulk, and the scales of the edges' fluctuations."""

    # A scale is kappa in lambda_max = z + kappa D^(-2/3) TW_1   (spectra 22); 0 at an edge
    # without fluctuations.

    lower: float
    upper: float
    lower_scale: float
    upper_scale: float

    def with_margin(self, *, dimension: int, probability: float = 0.99) -> tuple[float, float]:
        """Move each edge outwards so that noise alone stays inside with the given probability."""
        check_positive(dimension=dimension)
        # z +- kappa D^(-2/3) q, where q is the Tracy-Widom quantile
        step = tracy_widom_quantile(probability) * dimension ** (-2 / 3)
        return self.lower - self.lower_scale * step, self.upper + self.upper_scale * step


def tracy_widom_quantile(probability: float) -> float:
    """Quantile of the Tracy-Widom law TW_1 of real symmetric matrices."""
    if not 0 < probability < 1:
        raise InvalidParameter(
            f"probability is {probability}; allowed: strictly between 0 and 1, for example 0.99."
        )
    from scipy.special import gammaincinv

    # Shifted gamma distribution with the same three moments (Chiani, arXiv:1209.3394): accurate to
    # 0.01 up to 0.99, and to 0.03 at 0.999.
    return float(0.186054 * gammaincinv(46.446, probability) - 9.84801)


def semicircle(*, scale: float) -> BulkEdges:
    r"""Return the edges :math:`\pm2s` of a semicircle with standard deviation :math:`s`.

    Parameters
    ----------
    scale : float
        Standard deviation :math:`s`, above 0; the moment matrix has :math:`s^2=D\,\tau_2/n`.

    Returns
    -------
    BulkEdges
        Edges with fluctuation scale :math:`\kappa=s`.

    Notes
    -----
    Source: derivations/spectra (6); backed by ``tests/spectra/test_edges.py``.

    Examples
    --------
    >>> semicircle(scale=0.5).upper
    1.0
    """
    check_positive(scale=scale)
    return BulkEdges(-2 * scale, 2 * scale, scale, scale)


def weighted_bulk(*, weights: np.ndarray, aspect_ratio: float, centre: bool = True) -> BulkEdges:
    """Bulk edges of a label-weighted sample covariance matrix, with their fluctuation scales."""
    check_positive(aspect_ratio=aspect_ratio)
    values = np.asarray(weights, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise InvalidData(f"weights must have shape (n,) with n >= 1; got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise InvalidData("some weights are NaN or infinite; remove these samples first.")
    if not values.any():
        raise InvalidData("all weights are zero: the matrix has no spectrum to bound.")
    shift = float(values.mean()) if centre else 0.0
    # The upper edge is the minimum over 0 < a < 1 / max w of L(a) = 1 / (delta a) + (1/n) sum w /
    # (1 - w a); kappa³ = L''(a*) / (2 delta²)   (spectra 22). The lower edge follows from w -> -w.
    upper, upper_scale, _ = upper_edge(values, aspect_ratio)
    lower, lower_scale, _ = upper_edge(-values, aspect_ratio)
    return BulkEdges(-lower - shift, upper - shift, lower_scale, upper_scale)


def upper_edge(
    weights: np.ndarray, aspect_ratio: float, probabilities: np.ndarray | None = None
) -> tuple[float, float, float]:
    """Upper edge, fluctuation scale and critical point; by default all weights are equally likely."""
    # The critical point is infinite if the bulk ends at 0 because fewer than D weights differ from
    # zero and none is positive.
    chance = np.full(weights.size, 1 / weights.size) if probabilities is None else probabilities
    largest = float(weights.max())
    # With a = a_max / (1 + exp(-t)) (or exp(t) if no weight is positive), log of delta a² E[w² / (1
    # - w a)²] increases with t and is nearly linear: few steps suffice.
    positive = largest > 0
    reference = largest if positive else float(np.abs(weights).max())
    ratio = weights / reference
    nonzero_share = float(chance[ratio != 0].sum())
    if not positive and aspect_ratio * nonzero_share <= 1:
        return 0.0, 0.0, float("inf")

    def fraction(t: float) -> np.ndarray:
        """Ratio w a / (1 - w a), computed without cancellation if w is the largest weight."""
        if not positive:
            return ratio * np.exp(t) / (1 - ratio * np.exp(t))
        part, rest = 1 / (1 + np.exp(-t)), 1 / (1 + np.exp(t))
        return ratio * part / ((1 - ratio) + ratio * rest)

    def excess(t: float) -> float:
        return float(np.log(aspect_ratio * np.dot(chance, fraction(t) ** 2)))

    t = _increasing_root(excess)
    scaled = fraction(t)
    point = (1 / (1 + np.exp(-t)) if positive else np.exp(t)) / reference
    # L(a) = 1/(delta a) + E[w / (1 - w a)] at its minimum, and kappa³ = L'' / (2 delta²).
    edge = (1 / aspect_ratio + np.dot(chance, scaled)) / point
    curvature = 2 * (1 / aspect_ratio + np.dot(chance, scaled**3)) / point**3
    scale = np.cbrt(max(curvature, 0.0) / (2 * aspect_ratio**2))
    return float(edge), float(scale), float(point)


def _increasing_root(function: Callable[[float], float]) -> float:
    """Root of an increasing function of one variable; a bracket is found by doubling."""
    low, high = -1.0, 1.0
    for _ in range(12):
        at_low, at_high = function(low), function(high)
        if at_low <= 0 <= at_high:
            return bracketed_root(function, low, high, ends=(at_low, at_high))
        low, high = (2 * low if at_low > 0 else low), (2 * high if at_high < 0 else high)
    raise NotConverged(
        f"the bulk edge could not be bracketed: the condition is {at_low:.3g} and {at_high:.3g} at "
        f"the ends of t in [{low:.3g}, {high:.3g}]. Check the weights for extreme values.",
        {"bracket": (low, high), "values": (at_low, at_high)},
    )
