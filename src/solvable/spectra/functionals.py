"""Functionals of a spectrum above a threshold: mass, moments and derivatives of moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import Array, namespace
from solvable.errors import InvalidData
from solvable.spectra._biane import Points
from solvable.spectra._panels import PANEL_NODES
from solvable.spectra.free_convolution import SpectralLaw


@dataclass(frozen=True)
class TruncatedMoments:
    """Integrals of the spectral law mu above each threshold b."""

    threshold: np.ndarray  # thresholds b, shape (k,)
    mass: np.ndarray  # mass above b, 1 - F(b)
    first: np.ndarray  # first moment int_b (x - b) mu(dx)
    second: np.ndarray  # second moment J(delta, b) = int_b (x - b)² mu(dx)
    slope: np.ndarray  # A = int_b h(x) (x - b) mu(dx) with the Hilbert transform h
    noise: float  # noise delta

    @property
    def noise_derivative(self) -> np.ndarray:
        r"""Derivative :math:`\partial_1J=4\delta A` in the noise."""
        return 4 * self.noise * self.slope


def truncated_moments(law: SpectralLaw, threshold: np.ndarray | float) -> TruncatedMoments:
    r"""Compute moments of a spectrum above thresholds, with the derivatives of :math:`J(\delta,b)`.

    From :math:`\partial_t\mu_t=-\partial_x(h\mu_t)` in :math:`t=\delta^2`,
    :math:`\partial_\delta J=4\delta\int_b^\infty\mu_\delta(dx)\,h(x)(x-b)`.

    Parameters
    ----------
    law : SpectralLaw
        Spectral law :math:`\mu_\delta`.
    threshold : float or array of shape (k,)
        Thresholds b, of any sign.

    Returns
    -------
    TruncatedMoments
        Moments, one entry for each threshold.

    Raises
    ------
    InvalidData
        If a threshold is not finite.

    Notes
    -----
    All panels that thresholds cut are integrated again above the cut, in one call. Source:
    derivations/spectra (25); backed by ``tests/spectra/test_functionals.py`` (closed forms, finite
    differences, simulated matrices).

    Examples
    --------
    >>> moments = truncated_moments(SpectralLaw([0.0], noise=2.0), 0.0)
    >>> moments.second.round(10), moments.slope.round(10)  # delta² / 2 and 1/4
    (array([2.]), array([0.25]))
    """
    places = np.atleast_1d(np.asarray(threshold, dtype=np.float64))
    if places.ndim != 1 or not np.isfinite(places).all():
        raise InvalidData("the thresholds must be a vector of finite numbers.")
    return _moments(law, places, *_cuts(law, places))


def truncated_moments_near(
    law: SpectralLaw, threshold: float, anchor: tuple[float, float, float] | None = None
) -> tuple[TruncatedMoments, tuple[float, float, float] | None]:
    """Compute moments above a threshold close to the requested threshold, at a fraction of the cost."""
    # The angle of the cut is extrapolated from the anchor (threshold, angle, ratio of their
    # changes) of an earlier call, and the threshold of that angle is returned. Its distance from
    # the requested threshold is of second order in the distance to the anchor. This suffices for a Newton
    # iteration on the threshold, which ends at an exact pair. Outside the support the result is
    # exact without an anchor.
    slot = int(np.searchsorted(law.edges.ravel(), threshold))
    if slot % 2 == 0:
        return truncated_moments(law, threshold), None
    component = slot // 2
    inside = law.panel_components == component
    angle = np.nan
    if anchor is not None:
        angle = anchor[1] + (threshold - anchor[0]) / anchor[2]
    if not 0 < angle < np.pi:
        rows = np.repeat(inside, PANEL_NODES)
        low, high = law.edges[component]
        x = np.concatenate([[low], law.x[rows], [high]])
        known = np.concatenate([[0.0], law.angles(component, law.u[rows]), [np.pi]])
        angle = float(np.interp(threshold, x, known))
    place, speed = law.place_at(component, angle)
    found = _moments(law, np.array([place]), np.array([component]), np.array([angle]))
    return found, (place, angle, speed)


def _moments(
    law: SpectralLaw, places: np.ndarray, component: np.ndarray, angle: np.ndarray
) -> TruncatedMoments:
    index, points, weights = _rule_above(law, component, angle)
    rise = points.x - places[index]
    # Mass, first and second moment above b, and A = int_b h (x - b) mu_delta   (spectra 23)
    hilbert = (points.x - points.u) / law.variance

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(index, weights=values, minlength=places.size)

    return TruncatedMoments(
        threshold=places,
        mass=total(weights),
        first=total(weights * rise),
        second=total(weights * rise**2),
        slope=total(weights * hilbert * rise),
        noise=law.noise,
    )


def tail_rule(law: SpectralLaw, thresholds: np.ndarray) -> tuple[np.ndarray, Points, np.ndarray]:
    """For each node above several thresholds: index of the threshold, curve point and weight."""
    return _rule_above(law, *_cuts(law, thresholds))


def _cuts(law: SpectralLaw, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First component that reaches above each threshold, and the angle of the threshold on it."""
    slot = np.searchsorted(law.edges.ravel(), thresholds)
    component, cut = slot // 2, slot % 2 == 1
    angle = np.zeros(thresholds.size)
    if cut.any():
        angle[cut] = _cut_angles(law, thresholds[cut], component[cut])
    return component, angle


def _rule_above(
    law: SpectralLaw, cut_component: np.ndarray, angle: np.ndarray
) -> tuple[np.ndarray, Points, np.ndarray]:
    """Quadrature above each cut; a cut is given as an angle of a component."""
    component, stop = law.panel_components, law.panel_ends[:, 1]
    nodes = np.stack([*law.points, law.weights]).reshape(5, -1, PANEL_NODES)
    whole = component > cut_component[:, None]
    whole |= (component == cut_component[:, None]) & (law.panel_ends[:, 0] >= angle[:, None])
    rows, chosen = np.nonzero(whole)
    index = [np.repeat(rows, PANEL_NODES)]
    parts = [nodes[:, chosen].reshape(5, -1)]
    split = (component == cut_component[:, None]) & (law.panel_ends[:, 0] < angle[:, None])
    split &= stop > angle[:, None]
    rows, chosen = np.nonzero(split)
    if rows.size:
        points, shares = law.panels(component[chosen], angle[rows], stop[chosen])
        index.append(np.repeat(rows, PANEL_NODES))
        parts.append(np.stack([*points, shares]))
    columns = np.concatenate(parts, axis=1)
    return np.concatenate(index), Points(*columns[:4]), columns[4]


def tail_ends(law: SpectralLaw, threshold: float) -> np.ndarray:
    """Angle in each component above which x exceeds the threshold: 0 if all x do, pi if none."""
    angles = np.where(law.edges[:, 0] >= threshold, 0.0, np.pi)
    cut = (law.edges[:, 0] < threshold) & (law.edges[:, 1] > threshold)
    if cut.any():
        angles[cut] = _cut_angles(law, np.array([threshold]), np.flatnonzero(cut))
    return angles


def _cut_angles(law: SpectralLaw, thresholds: np.ndarray, component: np.ndarray) -> np.ndarray:
    return law.angles(component, law.preimage(thresholds)[0])


def energy_above(moments: TruncatedMoments) -> float:
    """Energy of the noisy target above the threshold, minus the threshold's energy."""
    # int_b (x² - b²) mu_delta = J - b d_2 J, with d_2 J = -2 int_b (x - b) mu_delta
    return float(moments.second[0] + 2 * moments.threshold[0] * moments.first[0])


def thresholded_error(energy: float, moments: TruncatedMoments) -> float:
    """Error of the soft-thresholded noisy target, at least 0."""
    # R = Q* + 4 delta² A - int_b (x² - b²) mu_delta   (spectra 23)
    return max(float(energy + 4 * moments.noise**2 * moments.slope[0] - energy_above(moments)), 0.0)


def degrees_of_freedom(strengths: Array, shrunk: Array) -> float:
    """Divergence of soft thresholding on symmetric matrices with the given descending eigenvalues."""
    # df = #{f_i > 0} + sum_{i<j} (f_i - f_j) / (nu_i - nu_j), f = nu - b if positive, else 0
    # (spectra 24). A pair of kept eigenvalues contributes exactly 1, also if the eigenvalues are equal.
    kept = shrunk.shape[0]
    gaps = strengths[:kept, None] - strengths[None, kept:]
    return kept * (kept + 1) / 2 + float(namespace(gaps).sum(shrunk[:, None] / gaps))
