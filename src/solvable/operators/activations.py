r"""Activations of random lifts, their derivatives, and their dual kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi, sqrt

import numpy as np

from solvable.errors import InvalidParameter, NotConverged, unknown_choice
from solvable.hermite import hermite_polynomials

Elementwise = Callable[[np.ndarray], np.ndarray]

ACTIVATIONS = (
    "relu",
    "sigmoid",
    "tanh",
    "erf",
    "gelu",
    "step",
    "identity",
    "square",
    "cube",
    "cos",
    "sin",
    "fourier",
)
"""Names of the activations."""


def evaluate(name: str, t: np.ndarray) -> np.ndarray:
    """Activation sigma(t), entry by entry, of the type of t."""
    return _function(name)(t)


def derivative(name: str, t: np.ndarray) -> np.ndarray:
    """Derivative sigma'(t), entry by entry; of relu 0 at 0, of step 0 everywhere."""
    _function(name)
    return _derivatives()[name](t)


def check_activation(name: str) -> None:
    """Raise :class:`InvalidParameter` unless the activation exists."""
    if name not in ACTIVATIONS:
        raise InvalidParameter(unknown_choice("activation", name, ACTIVATIONS))


def dual_kernel(name: str, inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    r"""Kernel of an infinitely wide random lift.

    .. math:: \kappa(a, b) = E[\sigma(u)\,\sigma(v)], \qquad
        (u, v) \sim \mathcal N\Big(0, \begin{pmatrix} q_{aa} & q_{ab} \\ q_{ab} & q_{bb}
        \end{pmatrix}\Big).

    Parameters
    ----------
    name : str
        One of :data:`ACTIVATIONS`.
    inner : ndarray of shape (n, m)
        :math:`q_{ab}`.
    left : ndarray of shape (n,)
        :math:`q_{aa} \ge 0`.
    right : ndarray of shape (m,)
        :math:`q_{bb} \ge 0`.

    Returns
    -------
    ndarray of float64, shape (n, m)
        :math:`\kappa`.

    Raises
    ------
    InvalidParameter
        If the name is unknown or a variance is negative.
    NotConverged
        If the series of an activation without closed form misses more than 1e-8 of the diagonal.

    Notes
    -----
    Closed forms for all but sigmoid, tanh and gelu; of ReLU the arc-cosine kernel
    :math:`\sqrt{q_{aa} q_{bb}}\,(\sin\theta + (\pi - \theta)\cos\theta) / 2\pi`. The other three by
    Mehler's series :math:`\sum_j c_j(q_{aa})\,c_j(q_{bb})\,\rho^j` with the Hermite coefficients
    :math:`c_j(q) = E[\sigma(\sqrt q\,\xi)\,h_j(\xi)]`, which keeps the small signal of the sigmoid
    apart from its large constant. Cost :math:`O(nm)` for the closed forms and
    :math:`O(nmJ)`, :math:`J` about 32 to 64, for the series. Derived;
    ``tests/operators/test_activations.py`` compares with two-dimensional quadrature and with random
    features.

    Examples
    --------
    >>> dual_kernel("relu", np.array([[1.0]]), np.ones(1), np.ones(1))
    array([[0.5]])
    """
    check_activation(name)
    inner = np.asarray(inner, dtype=np.float64)
    left, right = (np.asarray(part, dtype=np.float64) for part in (left, right))
    if min(left.min(initial=0.0), right.min(initial=0.0)) < 0:
        raise InvalidParameter(
            f"a variance is {min(left.min(), right.min()):.3g}; allowed: at least 0."
        )
    if name in _KERNELS:
        return _KERNELS[name](inner, left[:, None], right[None, :])
    return _mehler(name, inner, left, right)


def kernel_diagonal(name: str, variances: np.ndarray) -> np.ndarray:
    r"""Diagonal of the dual kernel.

    .. math:: \kappa(a, a) = E[\sigma(\sqrt{q_{aa}}\,\xi)^2] .

    Parameters
    ----------
    name : str
        One of :data:`ACTIVATIONS`.
    variances : ndarray of shape (n,)
        :math:`q_{aa} \ge 0`.

    Returns
    -------
    ndarray of float64, shape (n,)
        :math:`\kappa(a, a)`.

    Examples
    --------
    >>> kernel_diagonal("erf", np.array([0.5])).round(6)
    array([0.333333])
    """
    check_activation(name)
    variances = np.asarray(variances, dtype=np.float64)
    if name in _KERNELS:
        # Each pair of a point with itself is a row of its own: nothing of size (n, n).
        column = variances[:, None]
        return _KERNELS[name](column, column, column)[:, 0]
    nodes, weights = _nodes()
    squares = _function(name)(np.sqrt(variances)[:, None] * nodes) ** 2
    return np.asarray(squares @ weights)


def _function(name: str) -> Elementwise:
    check_activation(name)
    return _functions()[name]


def _functions() -> dict[str, Elementwise]:
    from scipy.special import erf, expit, ndtr

    return {
        "relu": lambda t: np.maximum(t, 0),
        "sigmoid": expit,
        "tanh": np.tanh,
        "erf": erf,
        "gelu": lambda t: t * ndtr(t),
        "step": lambda t: (t > 0).astype(t.dtype),
        "identity": lambda t: t,
        "square": np.square,
        "cube": lambda t: t * t * t,
        "cos": np.cos,
        "sin": np.sin,
        # Its dual kernel is exp(-|x - y|^2).
        "fourier": lambda t: sqrt(2) * np.sin(sqrt(2) * t + pi / 4),
    }


def _derivatives() -> dict[str, Elementwise]:
    from scipy.special import expit, ndtr

    def density(t: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-t * t / 2) / sqrt(2 * pi))

    return {
        "relu": lambda t: (t > 0).astype(t.dtype),
        "sigmoid": lambda t: expit(t) * expit(-t),
        # Beyond 40 the square would overflow float32; there the slope is below 1e-34.
        "tanh": lambda t: 1 / np.cosh(np.clip(t, -40, 40)) ** 2,
        "erf": lambda t: 2 / sqrt(pi) * np.exp(-t * t),
        "gelu": lambda t: ndtr(t) + t * density(t),
        "step": np.zeros_like,
        "identity": np.ones_like,
        "square": lambda t: 2 * t,
        "cube": lambda t: 3 * t * t,
        "cos": lambda t: -np.sin(t),
        "sin": np.cos,
        "fourier": lambda t: 2 * np.cos(sqrt(2) * t + pi / 4),
    }


def _cosine(inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Correlation, 0 where a variance is 0."""
    scale = np.sqrt(left * right)
    cosine = np.divide(inner, scale, out=np.zeros_like(inner), where=scale > 0)
    return np.clip(cosine, -1.0, 1.0)


def _relu(inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    cosine = _cosine(inner, left, right)
    sine = np.sqrt((1 - cosine) * (1 + cosine))
    # sqrt(q_aa q_bb) (sin(theta) + (pi - theta) cos(theta)) / 2 pi: the arc-cosine kernel of degree 1.
    kernel = sine + (pi - np.arccos(cosine)) * cosine
    return np.asarray(kernel * (np.sqrt(left * right) / (2 * pi)))


def _step(inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    # (pi - theta) / 2 pi: the arc-cosine kernel of degree 0.
    kernel = (pi - np.arccos(_cosine(inner, left, right))) / (2 * pi)
    # A lift of the zero vector is zero.
    return np.asarray(np.where(left * right > 0, kernel, 0.0))


def _erf(inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    # (2 / pi) arcsin(2 q_ab / sqrt((1 + 2 q_aa)(1 + 2 q_bb))): Williams, 1997.
    ratio = 2 * inner / np.sqrt((1 + 2 * left) * (1 + 2 * right))
    return np.asarray(2 / pi * np.arcsin(np.clip(ratio, -1.0, 1.0)))


def _wave(inner: np.ndarray, left: np.ndarray, right: np.ndarray, *, even: bool) -> np.ndarray:
    # cos u cos v and sin u sin v from E cos(u -+ v) = exp(-(q_aa + q_bb -+ 2 q_ab) / 2).
    difference = np.exp(inner - (left + right) / 2)
    total = np.exp(-inner - (left + right) / 2)
    return np.asarray((difference + total) / 2 if even else (difference - total) / 2)


_KERNELS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "relu": _relu,
    "step": _step,
    "erf": _erf,
    "identity": lambda inner, left, right: inner + 0.0,
    "square": lambda inner, left, right: left * right + 2 * inner**2,
    "cube": lambda inner, left, right: 9 * left * right * inner + 6 * inner**3,
    "cos": partial(_wave, even=True),
    "sin": partial(_wave, even=False),
    "fourier": lambda inner, left, right: np.exp(2 * inner - left - right),
}


def _nodes() -> tuple[np.ndarray, np.ndarray]:
    """Trapezoidal rule under the Gaussian: exponentially accurate for analytic functions."""
    nodes = np.linspace(-12.0, 12.0, 961)
    weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


def _coefficients(name: str, variances: np.ndarray, degree: int) -> np.ndarray:
    """Hermite coefficients of the activation at each variance, shape (n, degree + 1)."""
    nodes, weights = _nodes()
    values = _function(name)(np.sqrt(variances)[:, None] * nodes)
    return np.asarray(values @ (hermite_polynomials(nodes, degree) * weights).T)


def _missed(coefficients: np.ndarray, diagonal: np.ndarray) -> float:
    """Largest part of a diagonal entry that the series misses; a zero entry misses nothing."""
    summed = np.sum(coefficients**2, axis=1)
    part = np.divide(diagonal - summed, diagonal, out=np.zeros_like(summed), where=diagonal > 0)
    return float(np.max(part, initial=0.0))


def _mehler(name: str, inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    tolerance, degrees = 1e-8, (32, 64, 128, 256)
    rows, columns = (_coefficients(name, variances, degrees[-1]) for variances in (left, right))
    exact = [kernel_diagonal(name, variances) for variances in (left, right)]
    for degree in degrees:
        missed = max(
            _missed(c[:, : degree + 1], diagonal)
            for c, diagonal in zip((rows, columns), exact, strict=True)
        )
        if missed <= tolerance:
            break
    else:
        raise NotConverged(
            f"the series of the {name} kernel misses {missed:.1e} of its diagonal at degree "
            f"{degree}; allowed {tolerance:.0e}. Pre-activations of variance "
            f"{max(left.max(), right.max()):.3g} are too large: scale the inputs to variance 1.",
            {"missed": missed, "degree": degree},
        )
    cosine = _cosine(inner, left[:, None], right[None, :])
    # kappa = sum_j c_j(q_aa) c_j(q_bb) rho^j, with c_j(q) = E[sigma(sqrt(q) z) h_j(z)].
    power, kernel = np.ones_like(cosine), np.zeros_like(cosine)
    for j in range(degree + 1):
        if j:
            power *= cosine
        if min(np.abs(rows[:, j]).max(), np.abs(columns[:, j]).max()) > 1e-12:
            kernel += np.multiply.outer(rows[:, j], columns[:, j]) * power
    return kernel
