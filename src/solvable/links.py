"""Link functions of one latent coordinate, by name or formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from solvable.errors import InvalidParameter, quoted
from solvable.formulas import parse_formula
from solvable.hermite import GAUSSIAN_RANGE, gaussian_quadrature, hermite_polynomials, panel_nodes

NAMED_LINKS = {
    # E[cos(w z) (z² - 1)] = -w² exp(-w² / 2), so the mixture has no Hermite part of degree two
    "cosmix": "cos(z) - exp(1.5)/4*cos(2*z)",
    # noise sensitivity exponents 3 and 4: the coefficients solve c_1 = c_2 = 0, and for cosmix4 c_3 = 0
    # too, with c_beta = E[sigma^beta (z² - 1)]; the last coefficient makes c_3 or c_4 large
    "cosmix3": "cos(z) - 1.1317322809116797*cos(2*z) + 0.12834270496232855*cos(3*z)"
    " - 1.25*cos(4*z)",
    "cosmix4": "cos(z) - 1.1959017222023336*cos(2*z) + 0.3718895137865605*cos(3*z)"
    " + 0.6549199182257508*cos(4*z) + 1.75*cos(5*z)",
    "identity": "z",
    "square": "z**2",
    # activations of torch that are no function of formulas
    "celu": "max(z, 0) + exp(min(z, 0)) - 1",
    "elu": "max(z, 0) + exp(min(z, 0)) - 1",
    "hardsigmoid": "min(max(z/6 + 0.5, 0), 1)",
    "hardswish": "z*min(max(z/6 + 0.5, 0), 1)",
    "hardtanh": "min(max(z, -1), 1)",
    "leaky_relu": "max(z, 0.01*z)",
    "logsigmoid": "-softplus(-z)",
    "mish": "z*tanh(softplus(z))",
    "relu6": "min(max(z, 0), 6)",
    "selu": "1.0507009873554805*max(z, 0) + 1.7580993408473766*(exp(min(z, 0)) - 1)",
    "softsign": "z/(1 + abs(z))",
    "tanhshrink": "z - tanh(z)",
}
"""Names of links that cannot occur inside a formula."""

Parity = Literal["even", "odd", "none"]

SMALLEST = 1e-60
"""Smallest scale of a link, and inverse of the largest, at which squares keep their digits."""

HIGHEST_SERIES = 80
"""Largest degree of the Hermite series of a correlation; the rest is assigned to the next."""


@dataclass(frozen=True)
class Link:
    r"""A function of one Gaussian latent coordinate, standardised by default.

    .. math:: \sigma(z)=\frac{f(z)-E f}{\sqrt{\mathrm{Var} f}},\qquad z\sim\mathcal N(0,1).

    Parameters
    ----------
    name : str
        Name or formula.
    function : callable
        :math:`f`, elementwise on float64 arrays.
    breakpoints : tuple of float
        Points where the function or its slope jumps.
    mean, scale : float
        Subtracted mean and divisor; 0 and 1 for a link that is not standardised.

    Notes
    -----
    Make one with :func:`make_link`. Backed by ``tests/test_links.py``.

    Examples
    --------
    >>> link = make_link("he2")
    >>> (link(np.array([0.0, 2.0])).round(4) + 0.0).tolist(), link.parity
    ([-0.7071, 2.1213], 'even')
    """

    name: str
    function: Callable[[np.ndarray], np.ndarray]
    breakpoints: tuple[float, ...] = ()
    mean: float = 0.0
    scale: float = 1.0

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Values at latent coordinates, float64, shape kept."""
        values = np.asarray(self.function(np.asarray(z, dtype=np.float64)), dtype=np.float64)
        return (values - self.mean) / self.scale

    def __hash__(self) -> int:
        return hash((self.name, self.mean, self.scale))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Link):
            return NotImplemented
        mine, theirs = ((x.name, x.function, x.breakpoints, x.mean, x.scale) for x in (self, other))
        return mine == theirs

    def __reduce__(self) -> tuple[object, tuple[str, bool]]:
        """Pickle by name, as closures cannot be pickled."""
        return _made, (self.name, self.scale != 1.0 or self.mean != 0.0)

    def nodes(self, per_panel: int = 64) -> tuple[np.ndarray, np.ndarray]:
        """Return quadrature nodes and weights of E[g(z)] for g smooth between the breakpoints."""
        return gaussian_quadrature(per_panel, self.breakpoints or (0.0,))

    def fine_nodes(self, panels: int = 1_400) -> tuple[np.ndarray, np.ndarray]:
        """Return quadrature nodes so dense that neighbours have nearly equal labels."""
        return _fine_nodes(self.breakpoints, panels)

    def hermite(self, degree: int) -> np.ndarray:
        """Orthonormal Hermite coefficients of degree 0 to ``degree``."""
        z, chance = self.nodes()
        return np.asarray(hermite_polynomials(z, degree) @ (chance * self(z)))

    @cached_property
    def parity(self) -> Parity:
        """Parity of the link minus its mean."""
        z, chance = self.nodes()
        values, mirrored = self(z), self(-z)
        centre = float(chance @ values)
        size = 1e-9 * (np.abs(values) + np.abs(mirrored) + np.sqrt(chance @ values**2))
        if (np.abs(values - mirrored) <= size).all():
            return "even"
        if (np.abs(values + mirrored - 2 * centre) <= size).all():
            return "odd"
        return "none"

    @cached_property
    def _series(self) -> np.ndarray:
        """Return squared Hermite coefficients up to HIGHEST_SERIES, and the remaining variance."""
        z, chance = self.nodes()
        values = self(z)
        power = self.hermite(HIGHEST_SERIES)[1:] ** 2
        whole = float(chance @ values**2 - (chance @ values) ** 2)
        return np.append(power, max(whole - float(power.sum()), 0.0))

    def correlation(self, overlap: np.ndarray | float) -> np.ndarray:
        """Share kappa(q) of the variance explained by a coordinate of squared overlap q."""
        # kappa(q) = sum_{k >= 1} mu_k² q^k; mu_k are orthonormal coefficients here
        q = np.asarray(overlap, dtype=np.float64)
        return np.asarray(np.polynomial.polynomial.polyval(q, np.append(0.0, self._series)))

    def correlation_slope(self, overlap: np.ndarray | float) -> np.ndarray:
        """Derivative kappa'(q)."""
        q = np.asarray(overlap, dtype=np.float64)
        series = self._series * np.arange(1, self._series.size + 1)
        return np.asarray(np.polynomial.polynomial.polyval(q, series))


@lru_cache(maxsize=16)
def _fine_nodes(breakpoints: tuple[float, ...], panels: int) -> tuple[np.ndarray, np.ndarray]:
    # the mass beyond 9.5 standard deviations is 2e-21
    reach = 9.5
    inner = [point for point in breakpoints if abs(point) < reach]
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, panels + 1), inner]))
    z, weights = panel_nodes(edges, 24)
    weights = weights * np.exp(-(z**2) / 2)
    weights /= weights.sum()
    z.setflags(write=False)
    weights.setflags(write=False)
    return z, weights


def make_link(name: str, *, standardised: bool = True) -> Link:
    r"""Make a link by name or formula.

    Parameters
    ----------
    name : str
        A formula in z with ``+ - * / **``, numbers, ``pi``, ``e`` and abs, cos, erf, exp, gelu, heK
        (Hermite polynomial of degree K up to 20), log, max, min, relu, sigmoid, sign, silu, sin,
        softplus, sqrt, step, tan, tanh. A bare function name stands for the function of z;
        ``cosmix``, ``cosmix3``, ``cosmix4``, ``square`` and ``identity`` are names too.
    standardised : bool
        Whether to subtract the mean and divide by the standard deviation.

    Returns
    -------
    Link
        The link.

    Raises
    ------
    InvalidParameter
        If the formula does not parse, is not finite, is constant, or has a variance that is infinite or
        too inaccurate by quadrature.

    Notes
    -----
    Python's parser makes a syntax tree, of which only arithmetic and the functions above are
    evaluated. Backed by ``tests/test_links.py``.

    Examples
    --------
    >>> link = make_link("cos(z) - 1.12*cos(2*z)")
    >>> link.hermite(4).round(3) + 0.0
    array([ 0.   ,  0.   ,  0.   ,  0.   , -0.682])
    """
    if not isinstance(name, str):
        raise InvalidParameter(
            f"the link is {quoted(name)}; allowed: a name or a formula, as text."
        )
    return _made(name, standardised)


@lru_cache(maxsize=256)
def _made(name: str, standardised: bool) -> Link:
    formula = parse_formula(NAMED_LINKS.get(name.strip().lower(), name))
    raw = Link(name, formula.function, formula.breakpoints)
    mean, variance = _moments(raw)
    if not standardised:
        return raw
    return Link(name, formula.function, formula.breakpoints, mean, float(np.sqrt(variance)))


def _moments(link: Link) -> tuple[float, float]:
    """Return mean and variance of a raw link; raise if quadrature is too inaccurate."""
    found = []
    with np.errstate(all="ignore"):
        for per_panel in (48, 96):
            z, chance = link.nodes(per_panel)
            values = link(z)
            if not np.isfinite(values).all():
                place = float(z[~np.isfinite(values)][np.argmin(np.abs(z[~np.isfinite(values)]))])
                raise InvalidParameter(
                    f"the link {quoted(link.name)} is not finite at z = {place:.4g}; allowed: finite for "
                    f"|z| up to {GAUSSIAN_RANGE:g}."
                )
            size = float(np.abs(values[np.abs(z) < 3]).max())
            if size and not SMALLEST < size < 1 / SMALLEST:
                raise InvalidParameter(
                    f"the largest value of the link {quoted(link.name)} is {size:.3g}; allowed: between "
                    f"{SMALLEST:g} and {1 / SMALLEST:g}. Multiply the link by a number."
                )
            mean = float(chance @ values)
            parts = chance * (values - mean) ** 2
            found.append((mean, float(parts.sum()), float(parts[np.abs(z) > 10].sum())))
    (mean, variance, _), (finer_mean, finer, tail) = found
    size = finer + finer_mean**2
    if not finer > 1e-20 * size:
        raise InvalidParameter(
            f"the link {quoted(link.name)} is constant, {finer_mean:.6g}; allowed: a function that "
            "varies."
        )
    off = max(abs(variance - finer), abs(mean - finer_mean) * np.sqrt(size)) / size
    if not np.isfinite(finer) or tail > 1e-6 * finer or off > 1e-5:
        raise InvalidParameter(
            f"the variance of the link {quoted(link.name)} is infinite or beyond quadrature (part of it "
            f"beyond |z| = 10: {tail / finer:.2g}; change on doubling the nodes: {off:.2g}); allowed: "
            "links that grow more slowly, without poles, and do not oscillate on scales below 0.02."
        )
    return finer_mean, finer
