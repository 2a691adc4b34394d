"""Optimal rotationally invariant estimate of a matrix from a noisy matrix, and overlaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.spectra._biane import Points
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_ends

CHUNK_ENTRIES = 500_000  # largest number of (node, strength) pairs in one array


def overlaps(law: SpectralLaw, x: np.ndarray | float, strength: np.ndarray | float) -> np.ndarray:
    r"""Compute overlaps :math:`O(x,s)` of eigenvectors of :math:`S^\star+\delta Z` and :math:`S^\star`.

    .. math::

        O(x,s)=\frac{\delta^2}{(u-s)^2+v^2},\qquad u=x-\delta^2h(x),\ v=\pi\delta^2\mu_\delta(x);

    the squared overlap of one pair of eigenvectors is :math:`O/d` on average, so that
    :math:`\int\mu_\delta(dx)O(x,s)=\int\mu^\star(ds)O(x,s)=1`.

    Parameters
    ----------
    law : SpectralLaw
        Spectral law of :math:`S^\star+\delta Z`.
    x : array of any shape
        Eigenvalues of :math:`S^\star+\delta Z`, inside the support.
    strength : array of any shape
        Eigenvalues of :math:`S^\star`.

    Returns
    -------
    ndarray
        Overlaps; the shape of ``x`` is followed by the shape of ``strength``.

    Notes
    -----
    Source: derivations/spectra (18); backed by ``tests/spectra/test_denoiser.py``.

    Examples
    --------
    >>> float(overlaps(SpectralLaw([0.0], noise=1.0), 0.5, 0.0).round(12))
    1.0
    """
    u, height = law.preimage(x)
    values = np.asarray(strength, dtype=np.float64)
    distance = np.subtract.outer(u, values)
    lift = np.reshape(height, height.shape + (1,) * values.ndim)
    # O(x, s) = delta² / ((u - s)² + v²)   (spectra 16)
    return np.asarray(law.variance / (distance**2 + lift**2))


def denoised(law: SpectralLaw, x: np.ndarray | float) -> np.ndarray:
    r"""Return the rotationally invariant denoiser :math:`f(x)=x-2\delta^2h(x)` at an eigenvalue x.

    Parameters
    ----------
    law : SpectralLaw
        Spectral law of :math:`S^\star+\delta Z`.
    x : array of any shape
        Eigenvalues of :math:`S^\star+\delta Z`.

    Returns
    -------
    ndarray
        :math:`E[v^\top S^\star v]` for the eigenvector v at x.

    Notes
    -----
    An outlier at :math:`s+\delta^2/s` is mapped to :math:`s-\delta^2/s`, the strength times the
    squared overlap. Source: derivations/spectra (19), from arXiv:2408.03733.

    Examples
    --------
    >>> float(denoised(SpectralLaw([0.0], noise=1.0), 1.3).round(12))  # no signal
    0.0
    """
    places = np.asarray(x, dtype=np.float64)
    # f(x) = x - 2 delta² h(x) = 2 u - x   (spectra 17)
    return np.asarray(2 * law.preimage(places)[0] - places)


def empirical_denoised(eigenvalues: np.ndarray, noise: float) -> np.ndarray:
    """Optimal denoiser estimated from observed eigenvalues alone; the target's spectrum is not needed."""
    # f(x) = x - (2 delta² / d) sum_j (x - l_j) / ((x - l_j)² + eta²), eta = delta d^(-1/2); at d =
    # 300 its error is within 4 % of the error with the known spectrum   (spectra 17).
    values = np.asarray(eigenvalues, dtype=np.float64)
    hilbert = smoothed_hilbert(values, values, noise**2 / values.size)
    return np.asarray(values - 2 * noise**2 * hilbert)


def smoothed_hilbert(places: np.ndarray, eigenvalues: np.ndarray, square: float) -> np.ndarray:
    """Hilbert transform of smoothed eigenvalues, in blocks; the argument is the squared width."""
    found = np.empty(places.size)
    for start in range(0, places.size, 1_000):
        gaps = places[start : start + 1_000, None] - eigenvalues
        found[start : start + 1_000] = np.mean(gaps / (gaps**2 + square), axis=1)
    return found


def denoising_error(law: SpectralLaw) -> float:
    r"""Error :math:`\frac1d\|f(M)-S^\star\|_F^2=\delta^2-\frac{4\pi^2}3\delta^4\int\mu_\delta^3`.

    Parameters
    ----------
    law : SpectralLaw
        Spectral law of :math:`S^\star+\delta Z`.

    Returns
    -------
    float
        Smallest mean squared error of any estimate from :math:`S^\star+\delta Z` when the eigenvectors
        of :math:`S^\star` are uniform.

    Notes
    -----
    Source: derivations/spectra (19). Backed by ``tests/spectra/test_denoiser.py`` (second form
    :math:`Q^\star-\int f^2d\mu_\delta`, simulated matrices).

    Examples
    --------
    >>> abs(denoising_error(SpectralLaw([2.0], noise=1.0))) < 1e-12  # the multiple of I is known
    True
    """
    density = law.height / (np.pi * law.variance)
    # E(t) = t - (4 pi² / 3) t² int mu_t(x)³ dx   (spectra 17; arXiv:2503.14121, Equation 8)
    return float(law.variance - 4 * np.pi**2 / 3 * law.variance**2 * law.integrate(density**2))


def feature_errors(
    law: SpectralLaw, threshold: float, strength: np.ndarray | float | None = None
) -> np.ndarray:
    r"""Compute each feature's error after soft thresholding, :math:`\hat S=(S^\star+\delta Z-b)_+`.

    .. math::

        e(s)=s^2-2s\int_b^\infty(x-b)\,O(x,s)\,\mu_\delta(dx)
        +\int_b^\infty(x-b)^2O(x,s)\,\mu_\delta(dx),

    so that :math:`\int\mu^\star(ds)\,e(s)=\frac1d\|\hat S-S^\star\|_F^2` exactly.

    Parameters
    ----------
    law : SpectralLaw
        Spectral law of :math:`S^\star+\delta Z`.
    threshold : float
        :math:`b`.
    strength : array of any shape, optional
        Eigenvalues s of the target; by default all of the target's nodes.

    Returns
    -------
    ndarray
        :math:`e(s)`.

    Notes
    -----
    O(x, s) has a peak at the point :math:`x_s` with :math:`u=s`. The width of the peak is the
    height of the curve. Its moments in x are 1, s and :math:`s^2+\delta^2`, so that for :math:`x_s>b`

    .. math::

        e(s)=b^2+\delta^2-\int_{-\infty}^b(x-b)(x-b-2s)\,O(x,s)\,\mu_\delta(dx):

    the integral is taken on the side of b without the peak, on panels that are halved towards b.
    O(N k) time for k strengths. For an isolated spike the energy that its estimate puts on other
    directions counts in the error of these directions, not in the error of the spike.
    Source: derivations/spectra (22); backed by ``tests/spectra/test_denoiser.py``.

    Examples
    --------
    >>> law = SpectralLaw([0.0], noise=1.0)  # the target is 0: the error is J(1, 0) = 1/2
    >>> feature_errors(law, 0.0).round(10)
    array([0.5])
    """
    return feature_deviations(law, threshold, strength)[1]


def feature_deviations(
    law: SpectralLaw, threshold: float, strength: np.ndarray | float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Means of E_ii and of (E²)_ii, with E = S* - S, for each feature after soft thresholding."""
    values = law.target.nodes if strength is None else np.asarray(strength, dtype=np.float64)
    flat, b = values.ravel(), float(threshold)
    mean, square = flat.copy(), flat**2
    # The integrals of m(s) and e(s)   (spectra 20), of which those over all x are known.
    for side in sides(law, b, flat):
        some = flat[side.chosen]
        first, second = _moments(law, b, some, side)
        if not side.above:
            mean[side.chosen], square[side.chosen] = b, b**2 + law.variance
        mean[side.chosen] -= first
        square[side.chosen] += second - 2 * some * first
    shape = values.shape
    return np.asarray(mean.reshape(shape)), np.asarray(square.reshape(shape))


class Side(NamedTuple):
    """One side of a threshold, and the strengths whose overlaps O(x, s) have no peak there."""

    above: bool
    chosen: np.ndarray
    points: Points
    weights: np.ndarray


def sides(law: SpectralLaw, threshold: float, strengths: np.ndarray) -> list[Side]:
    """Rules on the two sides of the threshold; each strength belongs to the side without its peak."""
    # For s off the curve O has no peak, and other moments over all x.
    peaked = np.searchsorted(law.intervals.ravel(), strengths) % 2 == 1
    beyond = peaked & (strengths > float(law.preimage(threshold)[0]))
    return [
        Side(above, chosen, *_graded_rule(law, threshold, above=above))
        for chosen, above in ((~beyond, True), (beyond, False))
        if chosen.any()
    ]


def _moments(
    law: SpectralLaw, threshold: float, strengths: np.ndarray, side: Side
) -> tuple[np.ndarray, np.ndarray]:
    """Integrals of (x - b)^k O(x, s), k = 1 and 2, above the threshold, or minus those below."""
    points = side.points
    rise = points.x - threshold
    factors = (side.weights if side.above else -side.weights) * np.stack([rise, rise**2])
    found = np.empty((2, strengths.size))
    step = max(1, CHUNK_ENTRIES // max(1, rise.size))
    for start in range(0, strengths.size, step):
        some = strengths[start : start + step]
        distance = points.u[:, None] - some
        lines = law.variance / (distance**2 + points.height[:, None] ** 2)
        found[:, start : start + step] = factors @ lines
    return found[0], found[1]


def _graded_rule(law: SpectralLaw, threshold: float, *, above: bool) -> tuple[Points, np.ndarray]:
    """Nodes on one side of the threshold; panels are halved towards it down to the curve's height."""
    ends, component = law.panel_ends, law.panel_components
    cut = tail_ends(law, threshold)[component]
    clipped = np.maximum(ends, cut[:, None]) if above else np.minimum(ends, cut[:, None])
    kept = clipped[:, 0] < clipped[:, 1]
    component, clipped = component[kept], clipped[kept]
    touching = np.flatnonzero(clipped[:, 0 if above else 1] == cut[kept])
    touching = touching[(cut[kept][touching] > 0) & (cut[kept][touching] < np.pi)]
    if touching.size == 0:
        return law.panels(component, *clipped.T)
    cut_panel = int(touching[0])
    start, stop = clipped[cut_panel]
    low, high = law.intervals[component[cut_panel]]
    resolved = float(law.preimage(threshold)[1]) / ((high - low) / 2 * (stop - start))
    halvings = int(np.clip(np.ceil(-np.log2(max(resolved, 1e-30))), 0, 40))
    parts = (stop - start) * np.append(0.0, 2.0 ** np.arange(-halvings, 1))
    inner = start + parts if above else (stop - parts)[::-1]
    arcs = np.concatenate(
        [clipped[:cut_panel], np.column_stack([inner[:-1], inner[1:]]), clipped[cut_panel + 1 :]]
    )
    repeats = np.ones(component.size, dtype=int)
    repeats[cut_panel] = inner.size - 1
    return law.panels(np.repeat(component, repeats), *arcs.T)
