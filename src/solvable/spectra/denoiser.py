r"""Best rotationally invariant estimate of a spectrum seen through noise, and overlaps."""

from __future__ import annotations

import numpy as np

from solvable.spectra._biane import Points
from solvable.spectra._panels import PANEL_NODES
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_ends, tail_rule

MAX_PIECES = 200
"""Most parts that a panel is cut into to resolve the overlap with one direction."""


def overlaps(law: SpectralLaw, x: np.ndarray | float, strength: np.ndarray | float) -> np.ndarray:
    r"""Overlaps :math:`O(x,s)` between eigenvectors of :math:`S^\star+\delta Z` and of :math:`S^\star`.

    .. math:: O(x,s)=\frac{\delta^2}{(u-s)^2+v^2},\qquad u=x-\delta^2h(x),\ v=\pi\delta^2\mu_\delta(x);

    the squared overlap of one pair of eigenvectors is :math:`O/d` on average, so that
    :math:`\int\mu_\delta(dx)O(x,s)=\int\mu^\star(ds)O(x,s)=1`.

    Parameters
    ----------
    law : SpectralLaw
        The law of the sum.
    x : array of any shape
        Eigenvalues of the sum, inside the support.
    strength : array of any shape
        Eigenvalues of the target.

    Returns
    -------
    ndarray
        Of the shape of x followed by that of ``strength``.

    Notes
    -----
    Source: derived in the additive model; backed by ``tests/spectra/test_denoiser.py``.

    Examples
    --------
    >>> float(overlaps(SpectralLaw([0.0], noise=1.0), 0.5, 0.0).round(12))
    1.0
    """
    u, height = law.preimage(x)
    values = np.asarray(strength, dtype=np.float64)
    distance = np.subtract.outer(u, values)
    lift = np.reshape(height, height.shape + (1,) * values.ndim)
    return np.asarray(law.variance / (distance**2 + lift**2))


def denoised(law: SpectralLaw, x: np.ndarray | float) -> np.ndarray:
    r"""Rotationally invariant denoiser :math:`f(x)=x-2\delta^2h(x)` of an eigenvalue x.

    Parameters
    ----------
    law : SpectralLaw
        The law of the sum.
    x : array of any shape
        Eigenvalues of the sum.

    Returns
    -------
    ndarray
        :math:`E[v^\top S^\star v]` for the eigenvector v at x.

    Notes
    -----
    For an outlier at :math:`s+\delta^2/s` it gives :math:`s-\delta^2/s`, the strength times the
    squared overlap. Source: arXiv:2408.03733.

    Examples
    --------
    >>> float(denoised(SpectralLaw([0.0], noise=1.0), 1.3).round(12))  # nothing to see
    0.0
    """
    places = np.asarray(x, dtype=np.float64)
    return np.asarray(2 * law.preimage(places)[0] - places)


def denoising_error(law: SpectralLaw) -> float:
    r"""Error :math:`\frac1d\|f(M)-S^\star\|_F^2=\delta^2-\frac{4\pi^2}3\delta^4\int\mu_\delta^3`.

    Parameters
    ----------
    law : SpectralLaw
        The law of the sum.

    Returns
    -------
    float
        Least mean squared error of any estimate from :math:`S^\star+\delta Z` when the eigenvectors
        of :math:`S^\star` are uniform.

    Notes
    -----
    Source: arXiv:2408.03733. Backed by ``tests/spectra/test_denoiser.py`` (second form
    :math:`Q^\star-\int f^2d\mu_\delta`, simulated matrices).

    Examples
    --------
    >>> abs(denoising_error(SpectralLaw([2.0], noise=1.0))) < 1e-12  # the multiple of I is known
    True
    """
    density = law.height / (np.pi * law.variance)
    return float(law.variance - 4 * np.pi**2 / 3 * law.variance**2 * law.integrate(density**2))


def feature_errors(
    law: SpectralLaw, threshold: float, strength: np.ndarray | float | None = None
) -> np.ndarray:
    r"""Error of each feature after soft thresholding, :math:`\hat S=(S^\star+\delta Z-b)_+`.

    .. math:: e(s)=s^2-2s\int_b^\infty(x-b)\,O(x,s)\,\mu_\delta(dx)
              +\int_b^\infty(x-b)^2O(x,s)\,\mu_\delta(dx),

    so that :math:`\int\mu^\star(ds)\,e(s)=\frac1d\|\hat S-S^\star\|_F^2` exactly.

    Parameters
    ----------
    law : SpectralLaw
        The law of the sum.
    threshold : float
        :math:`b`.
    strength : array of any shape, optional
        Eigenvalues s, among those of the target; all its nodes by default.

    Returns
    -------
    ndarray
        :math:`e(s)`.

    Notes
    -----
    O(N k) time and memory for k strengths; panels are cut to the width of the Lorentzian
    :math:`O(x,s)`. For an isolated spike the energy that its estimate puts on other directions is
    in their :math:`e`, not in its own. Derived; backed by ``tests/spectra/test_denoiser.py``.

    Examples
    --------
    >>> law = SpectralLaw([0.0], noise=1.0)  # the target is 0: the error is J(1, 0) = 1/2
    >>> feature_errors(law, 0.0).round(10)
    array([0.5])
    """
    values = law.target.nodes if strength is None else np.asarray(strength, dtype=np.float64)
    points, weights = _resolving_rule(law, float(threshold))
    rise = points.x - threshold
    flat = values.ravel()
    lorentz = law.variance / ((points.u[:, None] - flat) ** 2 + points.height[:, None] ** 2)
    captured = (weights * rise) @ lorentz
    energy = (weights * rise**2) @ lorentz
    return np.asarray(flat**2 - 2 * flat * captured + energy).reshape(values.shape)


def _resolving_rule(law: SpectralLaw, threshold: float) -> tuple[Points, np.ndarray]:
    """Nodes above the threshold, on panels not much wider than the curve is high."""
    _, points, weights = tail_rule(law, np.array([threshold]))
    if weights.size == 0:
        return points, weights
    component, ends = law.panel_components, law.panel_ends
    places = law.u.reshape(-1, PANEL_NODES)
    height = np.median(law.height.reshape(places.shape), axis=1)
    pieces = np.ceil((places[:, -1] - places[:, 0]) / (4 * height)).astype(int)
    if (pieces <= 1).all():
        return points, weights
    # The cut panel starts at the threshold: every node above it lies on one arc per component.
    pieces = np.minimum(pieces, MAX_PIECES)
    cut = tail_ends(law, threshold)
    low = np.maximum(ends[:, 0], cut[component])
    some = low < ends[:, 1]
    which = np.repeat(np.flatnonzero(some), pieces[some])
    count = pieces[which]
    first = np.cumsum(pieces[some]) - pieces[some]
    place = np.arange(which.size) - np.repeat(first, pieces[some])
    step = (ends[which, 1] - low[which]) / count
    start = low[which] + place * step
    return law.panels(component[which], start, start + step)
