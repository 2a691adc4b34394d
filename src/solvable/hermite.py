r"""Orthonormal Hermite polynomials, Hermite coefficients of functions, and dual kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import factorial, sqrt
from typing import Any

import numpy as np

from solvable.arrays import Array
from solvable.errors import InvalidParameter, NotConverged

Function = Callable[[np.ndarray], Any]
"""Function of one real variable that acts entry by entry on a float64 array."""

GAUSSIAN_RANGE = 14.0
"""Half-width of the quadrature range in standard deviations; the mass outside is below 1e-43."""


def hermite_polynomials(z: Array, max_degree: int) -> np.ndarray:
    r"""Compute the orthonormal Hermite polynomials of degree 0 to ``max_degree``.

    .. math:: h_k(z) = \mathrm{He}_k(z) / \sqrt{k!}, \qquad E[h_j(z) h_k(z)] = \delta_{jk},
        \quad z \sim \mathcal N(0, 1).

    Parameters
    ----------
    z : array_like of float, any shape
        Points.
    max_degree : int
        Largest degree, at least 0.

    Returns
    -------
    ndarray of float64, shape (max_degree + 1, \*z.shape)
        Values of the polynomials, one row per degree.

    Raises
    ------
    InvalidParameter
        If ``max_degree`` is negative.

    Notes
    -----
    The three-term recurrence is stable at every degree; ``tests/test_hermite.py`` compares with NumPy's
    unnormalised polynomials.

    Examples
    --------
    >>> hermite_polynomials(2.0, 2).round(4)
    array([1.    , 2.    , 2.1213])
    """
    if max_degree < 0:
        raise InvalidParameter(f"max_degree is {max_degree}; allowed: an integer of at least 0.")
    points = np.asarray(z, dtype=np.float64)
    values = np.empty((max_degree + 1, *points.shape))
    values[0] = 1.0
    if max_degree >= 1:
        values[1] = points
    for k in range(1, max_degree):
        values[k + 1] = (points * values[k] - sqrt(k) * values[k - 1]) / sqrt(k + 1)
    return values


def panel_nodes(edges: Sequence[float] | np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Compute Gauss-Legendre nodes and weights on adjoining intervals (panels).

    .. math:: \int_{e_0}^{e_m}f(x)\,dx\approx\sum_iw_if(x_i).

    Parameters
    ----------
    edges : array_like of shape (m + 1,)
        Ends of the panels, ascending.
    order : int
        Number of nodes per panel, at least 1.

    Returns
    -------
    nodes, weights : ndarray of shape (m * order,)
        Nodes in ascending order, and their weights.

    Notes
    -----
    The rule is exact for polynomials of degree 2 ``order`` - 1 on each panel (``tests/test_hermite.py``).

    Examples
    --------
    >>> x, w = panel_nodes([0.0, 1.0, 3.0], 2)
    >>> round(float(w @ x**3), 10)
    20.25
    """
    unit, unit_weights = gauss_legendre(order)
    start = np.asarray(edges, dtype=np.float64)
    half = np.diff(start)[:, None] / 2
    return (start[:-1, None] + half * (unit + 1)).ravel(), (half * unit_weights).ravel()


@lru_cache(maxsize=64)
def gauss_legendre(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on (-1, 1), read-only: an eigenvalue problem, solved once."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


@lru_cache(maxsize=32)
def gaussian_quadrature(
    n_nodes: int, breakpoints: tuple[float, ...] = ()
) -> tuple[np.ndarray, np.ndarray]:
    r"""Nodes and weights with :math:`\sum_j w_j f(z_j) \simeq E[f(z)]` for Gaussian z.

    Notes
    -----
    The rule uses Gauss-Legendre panels between breakpoints; ``tests/test_hermite.py`` checks moments.
    """
    if n_nodes < 1:
        raise InvalidParameter(f"n_nodes is {n_nodes}; allowed: an integer of at least 1.")
    if breakpoints:
        inner = [point for point in breakpoints if abs(point) < GAUSSIAN_RANGE]
        grid = np.linspace(-GAUSSIAN_RANGE, GAUSSIAN_RANGE, int(GAUSSIAN_RANGE) + 1)
        edges = np.unique(np.concatenate([grid, inner]))
        nodes, weights = panel_nodes(edges, n_nodes)
        weights = weights * np.exp(-(nodes**2) / 2)
    else:
        from scipy.special import roots_hermitenorm

        nodes, weights = roots_hermitenorm(n_nodes)
    weights = weights / weights.sum()
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def _evaluate(function: Function, nodes: np.ndarray) -> np.ndarray:
    values = np.asarray(function(nodes.copy()), dtype=np.float64)
    if values.shape != nodes.shape:
        values = np.broadcast_to(values, nodes.shape) if values.ndim == 0 else values
    if values.shape != nodes.shape:
        raise InvalidParameter(
            f"the function returned shape {values.shape} for {nodes.shape[0]} points; it must act "
            "entry by entry on a NumPy array."
        )
    if not np.isfinite(values).all():
        where = float(nodes[~np.isfinite(values)][0])
        raise InvalidParameter(
            f"the function is not finite at z = {where:.4g}; it must be finite on the real line."
        )
    return values


def _converged(
    compute: Callable[[int], np.ndarray], scale: Callable[[int], float], what: str, tolerance: float
) -> np.ndarray:
    """Double the number of nodes until two rules agree; at most 512 nodes."""
    n_nodes, difference = 32, np.inf
    previous = compute(n_nodes)
    while n_nodes < 512:
        n_nodes *= 2
        current = compute(n_nodes)
        difference = float(np.max(np.abs(current - previous))) / max(scale(n_nodes), 1e-300)
        if difference <= tolerance:
            return current
        previous = current
    raise NotConverged(
        f"{what}: {n_nodes // 2} and {n_nodes} quadrature nodes differ by {difference:.2e} of the "
        f"function's norm, above the tolerance {tolerance:.2e}. If the function has kinks or "
        "jumps, pass them as `breakpoints`; otherwise raise `tolerance`.",
        {"difference": difference, "nodes": n_nodes, "tolerance": tolerance},
    )


def gaussian_moment(
    function: Function, *, breakpoints: Sequence[float] = (), tolerance: float = 1e-9
) -> float:
    r"""Compute the Gaussian expectation :math:`E[g(z)]`, :math:`z \sim \mathcal N(0,1)`.

    Parameters
    ----------
    function : callable
        Function :math:`g`, which acts entry by entry on a float64 array.
    breakpoints : sequence of float
        Points where :math:`g` or a derivative jumps.
    tolerance : float
        Allowed difference between the rules with N and 2 N nodes, relative to :math:`E|g|`.

    Returns
    -------
    float
        Expectation.

    Raises
    ------
    NotConverged
        If 256 and 512 nodes disagree.
    InvalidParameter
        If the function is not finite or does not act entry by entry.

    Notes
    -----
    ``tests/test_hermite.py`` compares with closed forms.

    Examples
    --------
    >>> round(gaussian_moment(np.cos), 10) == round(float(np.exp(-0.5)), 10)
    True
    """
    points = tuple(float(point) for point in breakpoints)

    def compute(n_nodes: int) -> np.ndarray:
        nodes, weights = gaussian_quadrature(n_nodes, points)
        return np.atleast_1d(weights @ _evaluate(function, nodes))

    def scale(n_nodes: int) -> float:
        nodes, weights = gaussian_quadrature(n_nodes, points)
        return float(weights @ np.abs(_evaluate(function, nodes)))

    return float(_converged(compute, scale, "Gaussian expectation", tolerance)[0])


def second_moment(
    function: Function, *, breakpoints: Sequence[float] = (), tolerance: float = 1e-9
) -> float:
    r"""Compute the second moment :math:`E[g(z)^2]`, :math:`z \sim \mathcal N(0,1)`.

    Parameters
    ----------
    function : callable
        Function :math:`g`, which acts entry by entry on a float64 array.
    breakpoints, tolerance
        As in :func:`gaussian_moment`.

    Returns
    -------
    float
        Second moment.

    Examples
    --------
    >>> round(second_moment(np.tanh), 4)
    0.3943
    """
    return gaussian_moment(
        lambda z: np.square(np.asarray(function(z), dtype=np.float64)),
        breakpoints=breakpoints,
        tolerance=tolerance,
    )


def hermite_coefficients(
    function: Function,
    max_degree: int = 10,
    *,
    breakpoints: Sequence[float] = (),
    tolerance: float = 1e-8,
) -> np.ndarray:
    r"""Compute the coefficients of a function in the orthonormal Hermite basis.

    .. math::
        g_k = E[g(z) h_k(z)], \qquad g = \sum_k g_k h_k, \qquad \sum_k g_k^2 = E[g^2].

    In particular :math:`g_0` is the mean and :math:`g_1 = E[g'(z)] = \nu_1`.

    Parameters
    ----------
    function : callable
        Function :math:`g`, which acts entry by entry on a float64 array.
    max_degree : int
        Largest degree :math:`k`.
    breakpoints : sequence of float
        Points where :math:`g` or a derivative jumps.
    tolerance : float
        Allowed change of any coefficient when the number of nodes is doubled, relative to
        :math:`\sqrt{E[g^2]}`.

    Returns
    -------
    ndarray of float64, shape (max_degree + 1,)
        Coefficients :math:`g_0, \dots, g_{k_{\max}}`.

    Raises
    ------
    NotConverged
        If 256 and 512 nodes disagree.
    InvalidParameter
        If the function is not finite or does not act entry by entry.

    Notes
    -----
    ``tests/test_hermite.py`` compares with closed forms (ReLU, exponential, sine).

    Examples
    --------
    >>> hermite_coefficients(lambda z: z**2, 3).round(6) + 0.0
    array([1.      , 0.      , 1.414214, 0.      ])
    """
    points = tuple(float(point) for point in breakpoints)

    def compute(n_nodes: int) -> np.ndarray:
        nodes, weights = gaussian_quadrature(n_nodes, points)
        # A rule of N nodes is exact below degree 2 N, so too few nodes would alias high degrees.
        return hermite_polynomials(nodes, max_degree) @ (weights * _evaluate(function, nodes))

    def scale(n_nodes: int) -> float:
        nodes, weights = gaussian_quadrature(n_nodes, points)
        values = np.abs(_evaluate(function, nodes))
        peak = float(values.max()) or 1.0
        # Dividing by the norm first keeps squares of very small or very large functions in range.
        return peak * sqrt(float(weights @ (values / peak) ** 2))

    return _converged(compute, scale, "Hermite coefficients", tolerance)


def hermite_kernel(
    inner: Array, squared_norm_x: Array, squared_norm_y: Array, dimension: int, degree: int
) -> Array:
    r"""Compute the dual kernel of the orthonormal degree-q Hermite features.

    .. math::
        \langle F(x), F(x')\rangle = \begin{cases} x\cdot x' & q = 1\\
        \tfrac12[(x\cdot x')^2 - \|x\|^2 - \|x'\|^2 + d] & q = 2\\
        \tfrac16[(x\cdot x')^3 - 3 (x\cdot x')(\|x\|^2 + \|x'\|^2) + 3 (d + 2)\, x\cdot x'] & q = 3
        \end{cases}

    Parameters
    ----------
    inner : array
        Inner products :math:`x \cdot x'`, any shape.
    squared_norm_x, squared_norm_y : array
        Squared norms :math:`\|x\|^2` and :math:`\|x'\|^2`, broadcast against ``inner``.
    dimension : int
        Dimension :math:`d`.
    degree : int
        Degree :math:`q \in \{1, 2, 3\}`.

    Returns
    -------
    array
        Kernel, in the shape of ``inner``.

    Raises
    ------
    InvalidParameter
        If the degree is not 1, 2 or 3.

    Notes
    -----
    Features of arXiv:2605.14567, Equation 2.1; ``tests/operators/test_features.py`` compares the
    kernels with explicit features.

    Examples
    --------
    >>> hermite_kernel(2.0, 4.0, 4.0, 1, 2)
    -1.5
    """
    if degree == 1:
        return inner
    norms = squared_norm_x + squared_norm_y
    if degree == 2:
        return (inner**2 - norms + dimension) / factorial(2)
    if degree == 3:
        return (inner**3 - 3 * inner * norms + 3 * (dimension + 2) * inner) / factorial(3)
    raise InvalidParameter(f"degree is {degree}; allowed: 1, 2, 3.")
