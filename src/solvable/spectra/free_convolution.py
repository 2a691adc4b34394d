r"""Spectrum of :math:`S^\star+\delta Z`: the free convolution of a spectrum with a semicircle."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra._biane import Points, components, curve, invert
from solvable.spectra._panels import MASS_TOLERANCE, Panels, adaptive_panels, arc, integrate_arcs
from solvable.spectra.measures import Measure, discrete


class SpectralLaw:
    r"""Spectral law :math:`\mu_\delta` of :math:`S^\star+\delta Z`; Z is GOE with edges :math:`\pm2`.

    For real :math:`u` let :math:`v(u)\ge0` solve

    .. math::

        \int\frac{\mu^\star(ds)}{(u-s)^2+v^2}=\frac1{\delta^2},

    or be 0 where the integral at :math:`v=0` is smaller. Then
    :math:`x=\psi(u)=u+\delta^2\int\frac{(u-s)\mu^\star(ds)}{(u-s)^2+v^2}` increases with u, the
    density at x is :math:`v/(\pi\delta^2)` and the Hilbert transform
    :math:`h(x)=\mathrm{PV}\!\int\frac{\mu_\delta(dy)}{x-y}` is :math:`(x-u)/\delta^2`. Integrals
    run over the angle :math:`\theta` of :math:`u=c-r\cos\theta` on each component, in which
    square-root edges are analytic. Panels are halved until the component has its mass, which is
    known exactly.

    Parameters
    ----------
    target : Measure or array of shape (m,)
        Spectrum :math:`\mu^\star`: :func:`~solvable.spectra.marchenko_pastur`,
        :func:`~solvable.spectra.discrete`, or an array of eigenvalues of equal weight.
    noise : float
        Standard deviation :math:`\delta` of the semicircle, above 0.
    tolerance : float
        Relative error of a component's mass at which its panels are not halved further.

    Attributes
    ----------
    target : Measure
        :math:`\mu^\star`.
    noise, variance : float
        :math:`\delta` and :math:`\delta^2`.
    intervals : ndarray of shape (k, 2)
        Components of the support in :math:`u`.
    edges : ndarray of shape (k, 2)
        Components of the support in :math:`x`.
    masses : ndarray of shape (k,)
        Mass of each component, which is exactly the mass of the target inside the component.
    u, height, x, weights : ndarray of shape (N,)
        Ascending quadrature nodes with weights: :math:`\int\varphi\,d\mu_\delta\approx
        \sum_i\text{weights}_i\varphi(x_i)`.

    Raises
    ------
    InvalidParameter
        If ``noise`` is not a finite number above 0.
    InvalidData
        If the eigenvalues are not a finite, non-empty vector.
    NotConverged
        If the quadrature misses more than 1e-7, or ``tolerance``, of a component's mass.

    Notes
    -----
    Time O(N m) for m atoms. Source: derivations/spectra (17). Backed by
    ``tests/spectra/test_free_convolution.py`` (semicircle, the cubic
    of Marchenko-Pastur, simulated matrices, free cumulants).

    Examples
    --------
    >>> law = SpectralLaw(np.array([-3.0, 3.0]), noise=1.0)
    >>> law.masses
    array([0.5, 0.5])
    >>> round(law.integrate(law.x**2), 10)
    10.0
    """

    def __init__(
        self,
        target: Measure | np.ndarray | Sequence[float],
        *,
        noise: float,
        tolerance: float = MASS_TOLERANCE,
    ) -> None:
        check_positive(noise=noise)
        if isinstance(target, np.ndarray | Sequence):
            target = discrete(np.asarray(target, dtype=np.float64))
        self.target: Measure = target
        self.noise = float(noise)
        self.tolerance = tolerance
        self.variance = self.noise**2
        if not 0 < self.variance < np.inf:
            raise InvalidParameter(
                f"noise is {noise}; its square must neither vanish nor overflow. Rescale the spectrum."
            )
        # half-width in u of the narrowest bump, compared with the spacing of floating-point numbers
        # there.
        narrowest = self.noise * float(np.sqrt(self.target.masses.min()))
        largest = float(np.abs(self.target.pieces).max())
        if narrowest < 1e-12 * largest:
            raise InvalidParameter(
                f"noise is {noise}, below what double precision resolves next to eigenvalues of "
                f"modulus up to {largest:.3g}; use a larger noise."
            )
        self.intervals, self.masses, self._pieces = components(self.target, self.variance)
        self.edges = self._image(self.intervals.ravel()).reshape(-1, 2)
        self._known: dict[float, tuple[np.ndarray, np.ndarray]] = {}

    def _image(self, u: np.ndarray) -> np.ndarray:
        outside = np.zeros(u.size, dtype=bool)
        return curve(self.target, u, self.variance, outside).x

    def angles(self, component: np.ndarray | int, u: np.ndarray) -> np.ndarray:
        r"""Angles of points u on their components, from 0 at the lower edge to :math:`\pi`."""
        low, high = self.intervals[component].T
        below = np.sqrt(np.clip((u - low) / (high - low), 0, 1))
        above = np.sqrt(np.clip((high - u) / (high - low), 0, 1))
        # arctan2 keeps the digits of the angle at both edges.
        return np.asarray(2 * np.arctan2(below, above))

    def place_at(self, component: int, angle: float) -> tuple[float, float]:
        r"""Point x at an angle of a component, inside :math:`(0,\pi)`, and :math:`dx/d\theta`."""
        u = arc(self.intervals, np.array([component]), np.array([angle]))
        point = curve(self.target, u, self.variance, np.ones(1, dtype=bool))
        low, high = self.intervals[component]
        return float(point.x[0]), float(point.slope[0] * (high - low) / 2 * np.sin(angle))

    def panels(
        self, component: np.ndarray, start: np.ndarray, stop: np.ndarray
    ) -> tuple[Points, np.ndarray]:
        """Nodes and weights on arcs of the components: 16 nodes per arc, between two angles."""
        ends = np.column_stack([start, stop])
        return integrate_arcs(self.target, self.variance, self.intervals, component, ends)

    @cached_property
    def _quadrature(self) -> Panels:
        return adaptive_panels(
            self.target,
            self.variance,
            self.intervals,
            self.masses,
            self._pieces,
            self.tolerance,
        )

    @property
    def panel_components(self) -> np.ndarray:
        """Number of the component to which each quadrature panel belongs."""
        return self._quadrature.component

    @property
    def panel_ends(self) -> np.ndarray:
        """Angles at which each panel starts and ends, shape (p, 2)."""
        return self._quadrature.ends

    @property
    def points(self) -> Points:
        """Curve at the nodes: real part u, height, x and slope."""
        return self._quadrature.points

    @property
    def u(self) -> np.ndarray:
        """Real parts u of the curve at the nodes."""
        return self._quadrature.points.u

    @property
    def height(self) -> np.ndarray:
        """Imaginary parts (heights) of the curve at the nodes."""
        return self._quadrature.points.height

    @property
    def x(self) -> np.ndarray:
        """Eigenvalues x of the nodes."""
        return self._quadrature.points.x

    @property
    def weights(self) -> np.ndarray:
        """Quadrature weights of the nodes for integrals against the spectral law."""
        return self._quadrature.weights

    def integrate(self, values: np.ndarray) -> float:
        r"""Integral :math:`\int\varphi\,d\mu_\delta` of a smooth function given at :attr:`x`."""
        return float(np.asarray(values) @ self.weights)

    def typical_places(self, count: int) -> np.ndarray:
        """Typical positions of ``count`` eigenvalues, descending: quantiles at (k - 1/2) / count."""
        # From the masses between the nodes of the quadrature: accurate to a few hundredths of the
        # spacing of eigenvalues, and many times faster than exact quantiles.
        mass = np.cumsum(self.weights) - self.weights / 2
        levels = 1 - (np.arange(1, count + 1) - 0.5) / count
        return np.interp(levels, mass, self.x)

    def preimage(self, x: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """Point :math:`u+iv` of the curve for each finite x; v is 0 outside the support."""
        places = np.asarray(x, dtype=np.float64)
        flat = places.ravel()
        if flat.size != 1:
            u, height = self._preimage(flat)
        else:
            # The last point is cached, because several functionals need the same threshold.
            place = float(flat[0])
            if place not in self._known:
                self._known[place] = self._preimage(flat)
            u, height = (values.copy() for values in self._known[place])
        return u.reshape(places.shape), height.reshape(places.shape)

    def _preimage(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not np.isfinite(flat).all():
            raise InvalidData("some values `x` are NaN or infinite; remove them.")
        left = np.searchsorted(self.edges[:, 0], flat, side="right")
        right = np.searchsorted(self.edges[:, 1], flat, side="left")
        inside = left > right
        # The bracket is exact: |psi(u) - u| <= delta everywhere, and edges map to edges.
        low, high = flat - self.noise, flat + self.noise
        bounds = np.concatenate([[-np.inf], self.intervals.ravel(), [np.inf]])
        slot = np.where(inside, 2 * right + 1, 2 * left)
        low, high = np.maximum(low, bounds[slot]), np.minimum(high, bounds[slot + 1])
        guess = (low + high) / 2
        if "_quadrature" in self.__dict__:
            near = np.interp(flat, self.x, self.u)
            guess = np.where((near > low) & (near < high), near, guess)
        return invert(self.target, self.noise, flat, (low, guess, high), inside)

    def density(self, x: np.ndarray | float) -> np.ndarray:
        r"""Density :math:`\mu_\delta(x)`, 0 outside the support."""
        # density v / (pi delta²)
        return np.asarray(self.preimage(x)[1] / (np.pi * self.variance))

    def hilbert(self, x: np.ndarray | float) -> np.ndarray:
        r"""Hilbert transform :math:`h(x)=\mathrm{PV}\!\int\frac{\mu_\delta(dy)}{x-y}` at any x."""
        # h = (x - u) / delta²; outside the support h is the resolvent
        return np.asarray((np.asarray(x) - self.preimage(x)[0]) / self.variance)

    def outlier(self, strength: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """Position and squared overlap of an added target eigenvalue's outlier; NaN inside the bulk."""
        strengths = np.asarray(strength, dtype=np.float64)
        flat = strengths.ravel()
        slot = np.searchsorted(self.intervals.ravel(), flat)
        free = (slot % 2 == 0) & ~np.isin(flat, self.intervals)
        position, overlap = np.full(flat.size, np.nan), np.zeros(flat.size)
        if free.any():
            points = curve(
                self.target, flat[free], self.variance, np.zeros(np.count_nonzero(free), dtype=bool)
            )
            # x = s + delta² G*(s) and overlap 1 - delta² int mu*(ds') / (s - s')²   (spectra 16):
            # the curve and its slope off the support. For mu* = delta_0 these are s + delta²/s and 1 -
            # delta²/s².
            position[free], overlap[free] = points.x, points.slope
        return position.reshape(strengths.shape), overlap.reshape(strengths.shape)
