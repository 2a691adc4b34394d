r"""Activations of random features, their derivatives, and their dual kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi, sqrt
from typing import Any

import numpy as np

from solvable.arrays import Array, as_on, clipped, namespace, to_numpy
from solvable.errors import InvalidParameter, NotConverged, unknown_choice
from solvable.hermite import hermite_polynomials

Elementwise = Callable[[Array], Array]

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
"""Names of the allowed activations."""


def evaluate(name: str, t: Array) -> Array:
    """Apply the activation sigma(t) entry by entry, in the type and on the device of t."""
    check_activation(name)
    return _functions(namespace(t))[name](t)


def derivative(name: str, t: Array) -> Array:
    """Compute the derivative sigma'(t) entry by entry; it is 0 for relu at 0 and for step everywhere."""
    check_activation(name)
    return _derivatives(namespace(t))[name](t)


def check_activation(name: str) -> None:
    """Raise :class:`InvalidParameter` for an unknown activation."""
    if name not in ACTIVATIONS:
        raise InvalidParameter(unknown_choice("activation", name, ACTIVATIONS))


def dual_kernel(name: str, inner: Array, left: Array, right: Array) -> Array:
    r"""Compute the dual kernel, the kernel of infinitely many random features.

    .. math:: \kappa(a, b) = E[\sigma(u)\,\sigma(v)], \qquad
        (u, v) \sim \mathcal N\Big(0, \begin{pmatrix} q_{aa} & q_{ab} \\ q_{ab} & q_{bb}
        \end{pmatrix}\Big).

    Parameters
    ----------
    name : str
        One of :data:`ACTIVATIONS`.
    inner : ndarray of shape (n, m)
        Covariances :math:`q_{ab}`.
    left : ndarray of shape (n,)
        Variances :math:`q_{aa} \ge 0`.
    right : ndarray of shape (m,)
        Variances :math:`q_{bb} \ge 0`.

    Returns
    -------
    ndarray of float64, shape (n, m)
        Kernel :math:`\kappa`.

    Raises
    ------
    InvalidParameter
        If the name is unknown or a variance is negative.
    NotConverged
        If the truncated series of an activation without closed form misses more than 1e-8 of the
        diagonal.

    Notes
    -----
    Closed forms exist for all activations except sigmoid, tanh and gelu; for ReLU it is the arc-cosine
    kernel :math:`\sqrt{q_{aa} q_{bb}}\,(\sin\theta + (\pi - \theta)\cos\theta) / 2\pi`. The exceptions
    use Mehler's series :math:`\sum_j c_j(q_{aa})\,c_j(q_{bb})\,\rho^j` with the Hermite coefficients
    :math:`c_j(q) = E[\sigma(\sqrt q\,\xi)\,h_j(\xi)]`, which separates the small signal of the sigmoid
    from its large constant. Cost :math:`O(nm)` for the closed forms and
    :math:`O(nmJ)`, :math:`J` about 32 to 64, for the series. Equation 2 of
    ``docs/derivations/lofi.md`` (lofi 2); ``tests/operators/test_activations.py`` compares with
    two-dimensional quadrature and with random features.

    Examples
    --------
    >>> dual_kernel("relu", np.array([[1.0]]), np.ones(1), np.ones(1))
    array([[0.5]])
    """
    check_activation(name)
    xp = namespace(inner, left, right)
    inner, left, right = (xp.astype(part, xp.float64, copy=False) for part in (inner, left, right))
    least = min((float(xp.min(part)) for part in (left, right) if len(part)), default=0.0)
    if least < 0:
        raise InvalidParameter(f"a variance is {least:.3g}; allowed: at least 0.")
    if name in _KERNELS:
        return _KERNELS[name](inner, left[:, None], right[None, :])
    return _mehler(name, inner, left, right)


def kernel_diagonal(name: str, variances: Array) -> Array:
    r"""Compute the diagonal of the dual kernel.

    .. math:: \kappa(a, a) = E[\sigma(\sqrt{q_{aa}}\,\xi)^2] .
    """
    check_activation(name)
    xp = namespace(variances)
    variances = xp.astype(variances, xp.float64, copy=False)
    if name in _KERNELS:
        # The kernel of each point with itself is a separate row, which avoids an array (n, n).
        column = variances[:, None]
        return _KERNELS[name](column, column, column)[:, 0]
    nodes, weights = (as_on(part, variances) for part in _nodes())
    return evaluate(name, xp.sqrt(variances)[:, None] * nodes) ** 2 @ weights


def _special(xp: Any) -> Any:
    """Special functions for arrays of this namespace: of torch or of SciPy."""
    from array_api_compat import is_torch_namespace

    special: Any
    if is_torch_namespace(xp):
        import torch

        special = torch.special
    else:
        import scipy.special

        special = scipy.special
    return special


def _functions(xp: Any) -> dict[str, Elementwise]:
    special = _special(xp)
    return {
        "relu": lambda t: clipped(t, 0),
        "sigmoid": special.expit,
        "tanh": xp.tanh,
        "erf": special.erf,
        "gelu": lambda t: t * special.ndtr(t),
        "step": lambda t: xp.astype(t > 0, t.dtype),
        "identity": lambda t: t,
        "square": xp.square,
        "cube": lambda t: t * t * t,
        "cos": xp.cos,
        "sin": xp.sin,
        # The dual kernel of this activation is exp(-|x - y|²).
        "fourier": lambda t: sqrt(2) * xp.sin(sqrt(2) * t + pi / 4),
    }


def _derivatives(xp: Any) -> dict[str, Elementwise]:
    special = _special(xp)
    return {
        "relu": lambda t: xp.astype(t > 0, t.dtype),
        "sigmoid": lambda t: special.expit(t) * special.expit(-t),
        # Above 40 the square would overflow float32, and the slope is below 1e-34.
        "tanh": lambda t: 1 / xp.cosh(clipped(t, -40, 40)) ** 2,
        "erf": lambda t: 2 / sqrt(pi) * xp.exp(-t * t),
        "gelu": lambda t: special.ndtr(t) + t * xp.exp(-t * t / 2) / sqrt(2 * pi),
        "step": xp.zeros_like,
        "identity": xp.ones_like,
        "square": lambda t: 2 * t,
        "cube": lambda t: 3 * t * t,
        "cos": lambda t: -xp.sin(t),
        "sin": xp.cos,
        "fourier": lambda t: 2 * xp.cos(sqrt(2) * t + pi / 4),
    }


def _cosine(inner: Array, left: Array, right: Array) -> Array:
    """Correlation of the two Gaussian variables; 0 if a variance is 0."""
    xp = namespace(inner)
    scale = xp.sqrt(left * right)
    if float(xp.min(left * right)) > 0:
        return clipped(inner / scale, -1.0, 1.0)
    cosine = inner / xp.where(scale > 0, scale, 1.0)
    return clipped(xp.where(scale > 0, cosine, 0.0), -1.0, 1.0)


def _relu(inner: Array, left: Array, right: Array) -> Array:
    xp = namespace(inner)
    cosine = _cosine(inner, left, right)
    sine = xp.sqrt((1 - cosine) * (1 + cosine))
    # arc-cosine kernel of degree 1: sqrt(q_aa q_bb) (sin(theta) + (pi - theta) cos(theta)) / 2 pi
    kernel = sine + (pi - xp.acos(cosine)) * cosine
    return kernel * (xp.sqrt(left * right) / (2 * pi))


def _step(inner: Array, left: Array, right: Array) -> Array:
    xp = namespace(inner)
    # arc-cosine kernel of degree 0: (pi - theta) / 2 pi
    kernel = (pi - xp.acos(_cosine(inner, left, right))) / (2 * pi)
    # The step feature of the zero vector is 0.
    return xp.where(left * right > 0, kernel, 0.0)


def _erf(inner: Array, left: Array, right: Array) -> Array:
    xp = namespace(inner)
    # kernel (2 / pi) arcsin(2 q_ab / sqrt((1 + 2 q_aa)(1 + 2 q_bb))) of Williams, 1997
    ratio = 2 * inner / xp.sqrt((1 + 2 * left) * (1 + 2 * right))
    return 2 / pi * xp.asin(clipped(ratio, -1.0, 1.0))


def _wave(inner: Array, left: Array, right: Array, *, even: bool) -> Array:
    xp = namespace(inner)
    # E cos(u -+ v) = exp(-(q_aa + q_bb -+ 2 q_ab) / 2) gives E cos u cos v and E sin u sin v.
    difference = xp.exp(inner - (left + right) / 2)
    total = xp.exp(-inner - (left + right) / 2)
    return (difference + total) / 2 if even else (difference - total) / 2


def _fourier(inner: Array, left: Array, right: Array) -> Array:
    return namespace(inner).exp(2 * inner - left - right)


_KERNELS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "relu": _relu,
    "step": _step,
    "erf": _erf,
    "identity": lambda inner, left, right: inner + 0.0,
    "square": lambda inner, left, right: left * right + 2 * inner**2,
    "cube": lambda inner, left, right: 9 * left * right * inner + 6 * inner**3,
    "cos": partial(_wave, even=True),
    "sin": partial(_wave, even=False),
    "fourier": _fourier,
}


def _nodes() -> tuple[np.ndarray, np.ndarray]:
    """Trapezoidal rule for Gaussian means; its error is exponentially small for analytic functions."""
    nodes = np.linspace(-12.0, 12.0, 961)
    weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


def _coefficients(name: str, variances: Array, degree: int) -> Array:
    """Hermite coefficients c_j(q) of the activation at each variance q, shape (n, degree + 1)."""
    nodes, weights = _nodes()
    values = evaluate(name, namespace(variances).sqrt(variances)[:, None] * as_on(nodes, variances))
    return values @ as_on((hermite_polynomials(nodes, degree) * weights).T, variances)


def _missed(coefficients: Array, diagonal: Array) -> float:
    """Largest share of a diagonal entry that the truncated series misses; 0 for a zero entry."""
    xp = namespace(coefficients)
    if not len(diagonal):
        return 0.0
    left = diagonal - xp.sum(coefficients**2, axis=1)
    part = xp.where(diagonal > 0, left / xp.where(diagonal > 0, diagonal, 1.0), 0.0)
    return max(float(xp.max(part)), 0.0)


def _mehler(name: str, inner: Array, left: Array, right: Array) -> Array:
    tolerance, degrees = 1e-8, (32, 64, 128, 256)
    xp = namespace(inner)
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
        largest = max(float(xp.max(variances)) for variances in (left, right))
        raise NotConverged(
            f"the series of the {name} kernel misses {missed:.1e} of its diagonal at degree "
            f"{degree}; allowed {tolerance:.0e}. Pre-activations of variance "
            f"{largest:.3g} are too large: scale the inputs to variance 1.",
            {"missed": missed, "degree": degree},
        )
    cosine = _cosine(inner, left[:, None], right[None, :])
    sizes = [to_numpy(xp.max(xp.abs(c), axis=0)) for c in (rows, columns)]
    # kappa = sum_j c_j(q_aa) c_j(q_bb) rho^j, with c_j(q) = E[sigma(sqrt(q) z) h_j(z)].
    power, kernel = xp.ones_like(cosine), xp.zeros_like(cosine)
    for j in range(degree + 1):
        if j:
            power *= cosine
        if min(sizes[0][j], sizes[1][j]) > 1e-12:
            kernel += rows[:, j, None] * columns[None, :, j] * power
    return kernel
