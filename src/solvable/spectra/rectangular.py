"""Singular values of a product of Gaussian matrices with noise, and their optimal shrinkage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter
from solvable.hermite import panel_nodes
from solvable.spectra._rectangular_curve import Quartic, companion_roots, critical_places

NODES = 48
"""number of nodes per component: relative error 1e-8, or 5e-5 for rank ratios of 0.001"""


@dataclass(frozen=True)
class Components:
    """Intervals in sqrt(zeta) on which the density is positive, for several noise levels."""

    index: np.ndarray
    low: np.ndarray
    high: np.ndarray


def components(curve: Quartic) -> Components:
    """Select intervals between critical values whose midpoint has a positive density."""
    places = np.sqrt(critical_places(curve))
    low = np.concatenate([np.zeros((len(places), 1)), places[:, :-1]], axis=1)
    middle = (low + places) / 2
    whole = Quartic(
        curve.aspect, curve.rank_ratio, np.broadcast_to(curve.noise[:, None], low.shape)
    )
    # Next to a multiple edge, an interval as narrow as rounding may have a positive density.
    found = (whole.solve(middle**2).imag > 0) & (places - low > 1e-9 * places)
    index, _ = np.nonzero(found)
    return Components(index, low[found], places[found])


@dataclass(frozen=True)
class Nodes:
    """Quadrature over the singular values at several noise levels, one row per interval."""

    index: np.ndarray
    noise: np.ndarray
    s: np.ndarray
    weights: np.ndarray
    density: np.ndarray
    """Density of the singular values."""
    denoised: np.ndarray

    def integrate(self, values: np.ndarray, count: int) -> np.ndarray:
        """Integrals over the singular values, one for each noise level."""
        return np.bincount(self.index, np.sum(values * self.weights, axis=1), minlength=count)


def quadrature(curve: Quartic) -> Nodes:
    """Gauss-Legendre nodes in the angle of each interval; the edges are analytic in the angle."""
    parts = components(curve)
    angle, w = panel_nodes([0.0, np.pi], NODES)
    low, high = parts.low[:, None], parts.high[:, None]
    s = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    weights = (high - low) / 2 * np.sin(angle) * w
    unit = curve.aspect**0.25  # zeta = sqrt(beta) s²
    noise = np.broadcast_to(curve.noise[parts.index][:, None], s.shape)
    rows = Quartic(curve.aspect, curve.rank_ratio, noise)
    density, denoised = shrunk(rows, s / unit, rows.solve(s**2))
    return Nodes(parts.index, noise, s / unit, weights / unit, density, denoised)


def shrunk(curve: Quartic, s: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Density and optimal shrinkage of the singular values s, from the roots h."""
    beta, noise = curve.aspect, curve.noise
    with np.errstate(divide="ignore", invalid="ignore"):
        p = h + h / (h - curve.c) + noise
        # int mu(dx) / (s² - x²) = sqrt(beta) / ((beta - 1) h + p)
        density = np.where(
            h == 0, 0, -2 * s * np.imag(np.sqrt(beta) / ((beta - 1) * h + p)) / np.pi
        )
        # Shrinkage   (spectra 33): s - (2 Delta / sqrt(beta)) ((beta - 1) / (2 s) + v(s)), with
        # v(s) = s Re int mu(dx) / (s² - x²) = sqrt(beta) s Re(1 / p) - (beta - 1) / s
        denoised = s * (1 - 2 * noise * np.real(1 / p)) + noise * (beta - 1) / (np.sqrt(beta) * s)
    return density, np.where(h == 0, 0.0, denoised)


def check_shape(aspect: float, rank_ratio: float) -> None:
    """Raise if the shape is not allowed."""
    check_positive(aspect=aspect, rank_ratio=rank_ratio)
    if aspect < 1:
        raise InvalidParameter(
            f"aspect is {aspect}; allowed: at least 1. The aspect is the longer side over the shorter "
            "side: transpose the matrix."
        )


def rectangular_mmse(noise: np.ndarray | float, *, aspect: float, rank_ratio: float) -> np.ndarray:
    r"""Compute the least error :math:`\frac1{\sqrt{dL}}E\|\hat S-S\|_F^2` of a Gaussian product in noise.

    .. math::

        \mathrm{mmse}(\Delta)=\Delta-\frac{\Delta^2}{\sqrt\beta}\Big[\frac{(\beta-1)^2}\beta
        \int\frac{\tilde\mu(ds)}{s^2}+\frac{4\pi^2}{3\beta}\int\tilde\mu(s)^3ds\Big]

    for :math:`S=AB/\sqrt r/(dL)^{1/4}` observed as :math:`S+\sqrt\Delta Z/(dL)^{1/4}`, with
    :math:`\tilde\mu` the symmetrised density of the observation's singular values.

    Parameters
    ----------
    noise : array of any shape
        Noise variances :math:`\Delta`, at least 0; computed together.
    aspect : float
        Ratio :math:`\beta=L/d\ge1`.
    rank_ratio : float
        Rank ratio :math:`\rho=r/d`, above 0; it may exceed 1.

    Returns
    -------
    ndarray
        Errors in the shape of ``noise``, from 0 without noise to 1, the second moment of S.

    Raises
    ------
    InvalidParameter
        If the shape or a noise is out of range.

    Notes
    -----
    Time: 0.1 ms for each noise. Source: derivations/spectra (35). Backed by
    ``tests/spectra/test_rectangular.py`` (simulated matrices, both forms of the error, sample
    covariance by another route, limits).

    Examples
    --------
    >>> rectangular_mmse([0.1, 1.0], aspect=2.0, rank_ratio=0.2).round(5)
    array([0.02765, 0.24817])
    """
    check_shape(aspect, rank_ratio)
    given = np.asarray(noise, dtype=np.float64)
    if np.isnan(given).any() or (given < 0).any():
        raise InvalidParameter(
            "a noise is negative or not a number; allowed: variances of at least 0."
        )
    flat = given.ravel()
    # Below this range the error is proportional to the noise; above it no signal is visible.
    inside = np.clip(flat, 1e-11, 1e9)
    found = _errors(Quartic(float(aspect), float(rank_ratio), inside))
    found = np.where(flat < inside, found * flat / inside, found)
    return np.asarray(np.where(flat > inside, 1.0, found).reshape(given.shape))


def _errors(curve: Quartic) -> np.ndarray:
    nodes, count = quadrature(curve), curve.noise.size
    beta, noise = curve.aspect, curve.noise
    inverse = nodes.integrate(nodes.density / nodes.s**2, count)
    # Both integrals run over the whole axis; the symmetrised density is half the density of singular
    # values.
    cube = nodes.integrate(nodes.density**3 / 4, count)
    seen = (beta - 1) ** 2 / beta * inverse + 4 * np.pi**2 / (3 * beta) * cube
    small = noise - noise**2 / np.sqrt(beta) * seen
    # E|S|² minus the estimate's second moment: the same error, computed accurately near 1.
    large = 1 - nodes.integrate(nodes.density * nodes.denoised**2, count) / np.sqrt(beta)
    return np.where(noise < 1, small, large)


class RectangularLaw:
    r"""Singular-value law of :math:`Y=(AB/\sqrt r+\sqrt\Delta Z)/(dL)^{1/4}`, with the optimal shrinkage.

    A is d x r, B is r x L and Z is d x L, all with independent standard Gaussian entries, and
    :math:`d\le L`.

    Parameters
    ----------
    aspect : float
        Ratio :math:`\beta=L/d\ge1`.
    rank_ratio : float
        Rank ratio :math:`\rho=r/d`, above 0; it may exceed 1.
    noise : float
        Noise variance :math:`\Delta`, from 1e-11 to 1e9.

    Attributes
    ----------
    edges : ndarray of shape (k, 2)
        Components of the support, ascending.
    nodes, weights : ndarray of shape (N,)
        Quadrature rule: :math:`\int\varphi\,d\mu\approx\sum_i\text{weights}_i\varphi(\text{nodes}_i)`.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range.

    Notes
    -----
    Source: derivations/spectra (34), (35). Backed by ``tests/spectra/test_rectangular.py``.

    Examples
    --------
    >>> law = RectangularLaw(aspect=2.0, rank_ratio=0.2, noise=0.1)
    >>> len(law.edges), round(float(law.weights.sum()), 10)  # zero directions, and signal
    (2, 1.0)
    """

    def __init__(self, *, aspect: float, rank_ratio: float, noise: float) -> None:
        check_shape(aspect, rank_ratio)
        if not 1e-11 <= noise <= 1e9:
            raise InvalidParameter(f"noise is {noise}; allowed: a variance from 1e-11 to 1e9.")
        self.aspect, self.rank_ratio, self.noise = float(aspect), float(rank_ratio), float(noise)
        curve = Quartic(self.aspect, self.rank_ratio, np.array([self.noise]))
        nodes = quadrature(curve)
        self.nodes = nodes.s.ravel()
        self.weights = (nodes.weights * nodes.density).ravel()
        parts, unit = components(curve), self.aspect**0.25
        starts = np.append(True, parts.low[1:] > parts.high[:-1] * (1 + 1e-9))
        stops = np.append(starts[1:], True)
        self.edges = np.column_stack([parts.low[starts], parts.high[stops]]) / unit

    def _curve(self, s: np.ndarray) -> Quartic:
        return Quartic(self.aspect, self.rank_ratio, np.full(s.shape, self.noise))

    def density(self, s: np.ndarray | float) -> np.ndarray:
        """Density of the singular values at s, at least 0."""
        places = np.asarray(s, dtype=np.float64)
        curve = self._curve(places)
        return shrunk(curve, places, curve.solve(np.sqrt(self.aspect) * places**2))[0]

    def denoised(self, s: np.ndarray | float) -> np.ndarray:
        r"""Best shrinkage :math:`s-\frac{2\Delta}{\sqrt\beta}\big[\frac{\beta-1}{2s}+v(s)\big]`.

        v is the Hilbert transform of the symmetrised density. Singular vectors are kept. Singular
        values outside the support, which finite matrices have, are shrunk too.
        """
        places = np.maximum(np.asarray(s, dtype=np.float64), 1e-12)
        curve = self._curve(places)
        # Just above the axis exactly one root has Im p > 0, inside and outside the support.
        roots = companion_roots(curve.polynomial(np.sqrt(self.aspect) * places**2 * (1 + 1e-11j)))
        good = curve.at((..., None)).physical(roots)
        best = np.argmax(np.where(good, roots.imag, 0), axis=-1)[..., None]
        found = shrunk(curve, places, np.take_along_axis(roots, best, -1)[..., 0])[1]
        return np.clip(found, 0, places)


def rectangular_denoise(matrix: np.ndarray, law: RectangularLaw) -> np.ndarray:
    r"""Compute the posterior mean of :math:`AB/\sqrt r/(dL)^{1/4}`, given its sum with noise.

    Parameters
    ----------
    matrix : ndarray of shape (d, L)
        Observed matrix Y of :class:`RectangularLaw`.
    law : RectangularLaw
        Law of the singular values of Y.

    Returns
    -------
    ndarray of shape (d, L)
        Y with its singular values shrunk.

    Raises
    ------
    InvalidData
        If the matrix has more rows than columns.

    Notes
    -----
    The estimate uses the eigenvectors of :math:`YY^\top` and solves d quartics. Backed by
    ``tests/spectra/test_rectangular.py``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> S = rng.standard_normal((40, 8)) @ rng.standard_normal((8, 80)) / 8**0.5 / 3200**0.25
    >>> Y = S + rng.standard_normal(S.shape) / 3200**0.25
    >>> found = rectangular_denoise(Y, RectangularLaw(aspect=2.0, rank_ratio=0.2, noise=1.0))
    >>> bool(np.sum((found - S) ** 2) < 0.4 * np.sum((Y - S) ** 2))
    True
    """
    return shrink(matrix, law.denoised)


def prior_free_denoise(matrix: np.ndarray, noise: float) -> np.ndarray:
    r"""Denoise a matrix by its singular values alone, for any rotationally invariant signal.

    Parameters
    ----------
    matrix : ndarray of shape (d, L)
        :math:`Y=S+\sqrt\Delta Z/(dL)^{1/4}`, with at most as many rows as columns.
    noise : float
        Noise variance :math:`\Delta`.

    Returns
    -------
    ndarray of shape (d, L)
        Y with its singular values shrunk.

    Notes
    -----
    The Hilbert transform is taken of the observed singular values, smoothed over their spread by
    noise divided by :math:`\sqrt d`. Backed by ``tests/spectra/test_rectangular.py``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> S = rng.standard_normal((40, 8)) @ rng.standard_normal((8, 80)) / 8**0.5 / 3200**0.25
    >>> Y = S + rng.standard_normal(S.shape) / 3200**0.25
    >>> found = prior_free_denoise(Y, 1.0)
    >>> bool(np.sum((found - S) ** 2) < 0.4 * np.sum((Y - S) ** 2))
    True
    """
    check_positive(noise=noise)
    d, longer = matrix.shape
    beta = longer / d
    # smoothing width: half the width of pure noise's singular values, over sqrt(d); within 2 % of the
    # optimal error at d = 300.
    width = np.sqrt(noise / np.sqrt(beta) / d)

    def denoised(s: np.ndarray) -> np.ndarray:

        def transform(distance: np.ndarray) -> np.ndarray:
            return np.mean(distance / (distance**2 + width**2), axis=1)

        v = (transform(s[:, None] - s) + transform(s[:, None] + s)) / 2
        # Shrinkage   (spectra 33): s - (2 Delta / sqrt(beta)) ((beta - 1) / (2 s) + v(s))
        lost = (beta - 1) / (2 * np.maximum(s, 1e-12)) + v
        return np.clip(s - 2 * noise / np.sqrt(beta) * lost, 0, s)

    return shrink(matrix, denoised)


def shrink(matrix: np.ndarray, shrinkage: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the matrix with its singular values replaced."""
    if matrix.ndim != 2 or matrix.shape[0] > matrix.shape[1]:
        raise InvalidData(
            f"the matrix has shape {matrix.shape}; allowed: two axes, at most as many rows as columns. "
            "Transpose the matrix."
        )
    # Y = U s V^T: U f(s) / s U^T Y from the eigenvectors of Y Y^T, faster than a full decomposition
    values, vectors = np.linalg.eigh(matrix @ matrix.T)
    s = np.sqrt(np.maximum(values, 0))
    factor = shrinkage(s) / np.maximum(s, 1e-300)
    return np.asarray((vectors * factor) @ (vectors.T @ matrix))
