r"""Scalar readouts :math:`y = g(h^{(2)})`, centred, with an information exponent of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from solvable.errors import DegenerateReadout, InvalidParameter, NotConverged, unknown_choice
from solvable.hermite import gaussian_quadrature, hermite_coefficients

ReadoutFunction = Callable[[np.ndarray], np.ndarray]


def _identity(index: np.ndarray) -> np.ndarray:
    return index


NAMED_READOUTS: dict[str, ReadoutFunction] = {
    "identity": _identity,
    "tanh": np.tanh,
}
"""Readouts that can be named in a saved target and on the command line."""

MINIMAL_SLOPE = 1e-6
"""Smallest allowed size of ``E[g'] / sqrt(E[g²])``; smaller values are quadrature error."""

EXPANSION_DEGREE = 12
"""Highest Hermite degree in the expansion of a readout."""

QUADRATURE_NODES = 512
"""Number of quadrature nodes per panel of width two, for the second moment."""

ROUGH_TOLERANCE = 1e-2
"""Relative quadrature error allowed for a readout with jumps or kinks away from zero."""


@dataclass(frozen=True, eq=False)
class Readout:
    """A readout, centred under z ~ N(0, 1), with its Hermite coefficients."""

    # g(z) = sum_(k >= 1) g_k He_k(z) / sqrt(k!)
    name: str | None  # one of `NAMED_READOUTS`; None for a user's callable
    function: ReadoutFunction  # maps an array to an array of the same shape
    coefficients: np.ndarray  # Hermite coefficients g_0, g_1, ... of the function before centring
    second_moment: float  # second moment E[g(z)²] after centring

    @property
    def mean(self) -> float:
        """Mean of the function, which centring subtracts."""
        return float(self.coefficients[0])

    @property
    def slope(self) -> float:
        r"""Slope :math:`\nu_1 = E[g'(z)]`, the covariance of index and label."""
        return float(self.coefficients[1])

    @property
    def cost(self) -> float:
        r"""Factor :math:`E[g^2]/\nu_1^2 \ge 1` by which the readout raises the number of samples."""
        return self.second_moment / self.slope**2

    def __call__(self, index: np.ndarray) -> np.ndarray:
        """Compute the label of an index, float64, of the same shape."""
        return evaluate(self.function, index) - self.mean


def evaluate(function: ReadoutFunction, index: np.ndarray) -> np.ndarray:
    """Apply a readout elementwise in float64, and check shape and finiteness of the result."""
    index = np.asarray(index, dtype=np.float64)
    values = np.asarray(function(index), dtype=np.float64)
    if values.shape != index.shape:
        raise InvalidParameter(
            f"the readout returned shape {values.shape} for an input of shape {index.shape}; it "
            "must work elementwise. Wrap a scalar function in numpy.vectorize."
        )
    if not np.isfinite(values).all():
        worst = float(index[~np.isfinite(values)].flat[0])
        raise InvalidParameter(
            f"the readout is not finite at index {worst:.4g}; it must be finite on the whole line. "
            "Clip its argument."
        )
    return values


def resolve_readout(readout: str | ReadoutFunction) -> Readout:
    r"""Return the centred readout of a name or a callable."""
    if isinstance(readout, str):
        if readout not in NAMED_READOUTS:
            raise InvalidParameter(
                unknown_choice("readout", readout, NAMED_READOUTS) + " Or pass a callable."
            )
        name, function = readout, NAMED_READOUTS[readout]
    elif callable(readout):
        name, function = None, readout
    else:
        raise InvalidParameter(
            unknown_choice("readout", readout, NAMED_READOUTS) + " Or pass a callable."
        )
    return _expand(name, function)


def _expand(name: str | None, function: ReadoutFunction) -> Readout:
    coefficients, tolerance = _coefficients(partial(evaluate, function))
    mean = float(coefficients[0])
    nodes, weights = gaussian_quadrature(QUADRATURE_NODES, (0.0,))
    second_moment = float(weights @ (evaluate(function, nodes) - mean) ** 2)
    coefficients.setflags(write=False)
    size = np.sqrt(second_moment)
    if size <= tolerance * max(1.0, abs(mean)):
        raise DegenerateReadout(
            f"the readout is constant ({mean:.4g}) under N(0, 1), so that labels do not depend on "
            "the index. Choose a readout that varies, for example 'identity' or 'tanh'."
        )
    if abs(coefficients[1]) <= max(MINIMAL_SLOPE, tolerance) * size:
        raise DegenerateReadout(_why_degenerate(coefficients, size, tolerance))
    return Readout(name, function, coefficients, second_moment)


def _coefficients(function: ReadoutFunction) -> tuple[np.ndarray, float]:
    """Hermite coefficients, and the tolerance that the quadrature reached."""
    try:
        return hermite_coefficients(function, EXPANSION_DEGREE, breakpoints=(0.0,)), 1e-8
    except NotConverged:
        # With jumps or kinks anywhere the quadrature has two digits, enough to centre the readout.
        tolerance = ROUGH_TOLERANCE
    coefficients = hermite_coefficients(
        function, EXPANSION_DEGREE, breakpoints=(0.0,), tolerance=tolerance
    )
    return coefficients, tolerance


def _why_degenerate(coefficients: np.ndarray, size: float, tolerance: float) -> str:
    large = np.abs(coefficients) > max(MINIMAL_SLOPE, tolerance) * size
    odd_part = large[1::2].any()
    exponent = int(np.flatnonzero(large[1:])[0]) + 1 if large[1:].any() else None
    known = f"is {exponent}" if exponent else f"is above {EXPANSION_DEGREE}"
    message = (
        f"the readout has E[g'(z)] = {coefficients[1]:.2e} against a standard deviation of "
        f"{size:.3g}: its information exponent {known}, and the population matrix E[y (F F^T - I)] "
        "has no spike, so no number of samples recovers the features. Allowed: E[g'(z)] != 0. "
    )
    if odd_part:
        return message + (
            "Compose it with a label map T for which E[T(g(z)) z] != 0, for example "
            "readout=lambda z: np.tanh(g(z)), or add a linear part."
        )
    return message + (
        "An even readout has E[T(g(z)) z] = 0 for every label map T, so that none can help: add a "
        "linear part (g(z) + c z), or choose an odd or monotone readout such as 'tanh'."
    )
