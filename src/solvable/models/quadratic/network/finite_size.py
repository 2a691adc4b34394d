"""First corrections in 1/d to the limit of quadratic networks."""

# All follow from the minimum Phi(alpha, Delta, lambda) of the objective by its derivatives: of n, the
# gain T / (1 + V) of one more sample (T the test error, V its leverage); of Delta, alpha / (1 + V); of
# lambda, Tr S / d. The limit knows a target's spectrum through J(delta, b) = int_b (x - b)² mu_delta
# alone. At finite d the mean spectrum of S* + delta Z has a mass T(x)/d above x that the limit lacks.
# Its resolvent obeys a Burgers equation with viscosity 1/2d, solved to first order along its
# characteristics, and J + J_1/d with J_1(delta, b) = 2 int_b (x - b) T(x) dx takes the place of J
# (derived). For a target that is itself random the same is added for the d-th part of its own mean
# spectrum. Gaussian measurements need nothing else; what samples add is in `sample_shape`.

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np

from solvable.models.quadratic.network.sample_shape import (
    Gain,
    SampleShape,
    rank_slopes,
    sample_shape,
)
from solvable.models.quadratic.network.theory import QuadraticState
from solvable.spectra.excess_mass import excess_mass, excess_moment
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule
from solvable.spectra.measures import second_moment
from solvable.spectra.product_measure import MarchenkoPasturMeasure


@dataclass(frozen=True)
class FiniteSize:
    """First order in 1/d of a prediction, times d."""

    matrix_error: float
    train_error: float
    trace: float
    rank_fraction: float


@dataclass(frozen=True)
class _Functionals:
    """Functionals of a law above a threshold."""

    law: SpectralLaw
    threshold: float
    slope: float
    """A."""
    first: float
    second: float
    excess: float
    """J_1."""
    shape: SampleShape | None

    def place(self, label_noise: float) -> _Place:
        """The solution of the limit that has this law, threshold and label noise."""
        noise, b, energy = self.law.noise, self.threshold, second_moment(self.law.target)
        error = energy + 4 * noise**2 * self.slope - self.second - 2 * b * self.first
        alpha = (error + label_noise / 2) / (2 * noise**2)
        penalty = 4 * b * (alpha - self.slope)
        # (B / delta) (Q_1 - J_1): a random target has its own 1/d, E tr S² / d being 1 + k + 1/d.
        own = float(isinstance(self.law.target, MarchenkoPasturMeasure))
        gaussian = penalty / (2 * b) * (own - self.excess)
        gain = Gain(0.0, 0.0) if self.shape is None else self.shape.gain(alpha, label_noise)
        return _Place(np.array([alpha, label_noise, penalty, gaussian, gain.total]), gain.by_noise)

    def by_rank(self, place: _Place) -> np.ndarray:
        """Derivatives of a place's numbers in eta, for a penalty eta of the rank next to b Tr S."""
        law, b = self.law, self.threshold
        # It keeps what is above b + sqrt(2 eta): R and A lose what is learned there.
        u, height = law.preimage(b)
        density, first = float(height) / (np.pi * law.variance), 2 * float(u) - b
        alpha = density * first / law.variance
        penalty = 4 * b * (alpha + density * (b - float(u)) / law.variance)
        mass = float(excess_mass(law, np.atleast_1d(u + 1j * height))[0])
        ratio, labels, before, gaussian, _ = place.numbers
        gaussian = gaussian * penalty / before + before / b * mass
        gain = 0.0
        if self.shape is not None:
            eta, slopes = 1e-4 * law.variance, astuple(rank_slopes(law, b))
            shapes = (
                [
                    value + sign * slope
                    for value, slope in zip(astuple(self.shape), slopes, strict=True)
                ]
                for sign in (-eta, eta)
            )
            low, high = (
                SampleShape(*shape).gain(ratio + sign * alpha, labels).total
                for sign, shape in zip((-eta, eta), shapes, strict=True)
            )
            gain = (high - low) / (2 * eta)
        return np.array([alpha, 0.0, penalty, gaussian, gain])


class _Place(NamedTuple):
    """A solution of the limit, and what it adds to Phi, times d."""

    numbers: np.ndarray
    """alpha, Delta and lambda; what Gaussian measurements add, and the gain of a sample's shape."""
    by_noise: float
    """Derivative of that gain in Delta."""


def finite_sizes(state: QuadraticState, *, samples: bool = True) -> tuple[FiniteSize, FiniteSize]:
    """First order in 1/d of Gaussian measurements and, if they are asked for, of samples."""
    noise, b, labels = state.effective_noise, state.threshold, state.label_noise
    alpha, penalty = state.sample_ratio, state.regularisation
    limited = state.width_limited

    def at(law: SpectralLaw, threshold: float) -> _Functionals:
        return _functionals(law, threshold, samples, state.cut_in(law, threshold))

    step = 1e-3  # relative, of central differences
    # Noise and threshold together, threshold, label noise (which may be zero): one law for each noise.
    test_error = 4 * alpha * noise**2
    push = step * test_error
    low, high = (
        SpectralLaw(state.law.target, noise=noise * scale) for scale in (1 - step, 1 + step)
    )
    here, *others = (
        at(law, place)
        for law, place in (
            (state.law, b), (low, b * (1 - step)), (high, b * (1 + step)),
            (state.law, b * (1 - step)), (state.law, b * (1 + step)),
        )
    )  # fmt: skip
    placed = [functionals.place(labels).numbers for functionals in others]
    (*_, control, gain), by_noise = middle = here.place(labels)
    ends = [
        *zip(placed[::2], placed[1::2], strict=True),
        (here.place(labels - push).numbers, here.place(labels + push).numbers),
    ]
    changes = np.array([after - before for before, after in ends])
    rank = np.zeros((3, 0))
    if not limited:
        # The rank is the derivative of Phi in tau, for a penalty tau rank(S) / d; eta = epsilon tau.
        changes = np.vstack([changes, here.by_rank(middle)])
        rank = np.array([[0.0], [0.0], [0.0], [penalty / b]])
    gaussian, shape = np.linalg.solve(np.hstack([changes[:, :3], rank]), changes[:, 3:]).T
    trains = [(control - penalty * gaussian[2]) / alpha, gain - penalty * shape[2]]
    kept = 1 - state.degrees_of_freedom / alpha  # 1 / (1 + V)

    def corrected(part: float) -> FiniteSize:
        # The gain of a sample is itself one order off its mean: alpha d(gain), not d(alpha gain).
        by_samples = gaussian[0] + part * alpha * shape[0]
        share = gaussian[1] / alpha + part * (shape[1] - by_noise)
        return FiniteSize(
            matrix_error=float((by_samples - test_error * share) / (2 * kept)),
            train_error=float(trains[0] + part * trains[1]),
            trace=float(gaussian[2] + part * alpha * shape[2]),
            rank_fraction=0.0 if limited else float(gaussian[3] + part * alpha * shape[3]),
        )

    return corrected(0.0), corrected(1.0)


@dataclass(frozen=True)
class AtDimension:
    """A prediction at a dimension, with its first order in 1/d: of samples, and of Gaussian matrices."""

    limit: float
    order: float  # size of what is added to the limit
    expected: float | None  # None where it is more than half of the limit: no expansion holds there
    control: float | None


def at_dimension(
    state: QuadraticState, dimension: int, *, samples: bool = True
) -> dict[str, AtDimension]:
    """Error, training error, rank and trace at a dimension."""
    gaussian, full = finite_sizes(state, samples=samples)
    full = full if samples else gaussian
    lost = {"train_error": unreachable(state, dimension)} if samples else {}
    parts = {}
    for name in ("matrix_error", "train_error", "rank_fraction", "trace"):
        limit, control, whole = (float(getattr(part, name)) for part in (state, gaussian, full))
        order = (abs(control) + abs(whole - control)) / dimension + lost.get(name, 0.0)
        pair = limit + whole / dimension, limit + control / dimension
        expected, other = pair if order <= 0.5 * abs(limit) else (None, None)
        parts[name] = AtDimension(limit, order, expected, other)
    return parts


def unreachable(state: QuadraticState, dimension: int) -> float:
    """Training error of labels below anything that a positive matrix can fit, in no order of 1/d."""
    # x^T S x >= 0: no fit lowers an output by more than sqrt(d) tau, tau = Tr S / d, where it would by
    # A / alpha of a residual r ~ N(0, E_test): E ((r A / alpha - sqrt(d) tau)_+)² (derived; 1 to 7
    # times what was measured in addition to the first order, see docs).
    spread = state.degrees_of_freedom / state.sample_ratio * math.sqrt(state.test_error)
    if spread <= 0:
        return 0.0
    c = math.sqrt(dimension) * state.trace / spread
    beyond, density = (
        math.erfc(c / math.sqrt(2)) / 2,
        math.exp(-(c**2) / 2) / math.sqrt(2 * math.pi),
    )
    return spread**2 * max((1 + c**2) * beyond - c * density, 0.0)


def _functionals(
    law: SpectralLaw, threshold: float, samples: bool = False, cut: float | None = None
) -> _Functionals:
    """Functionals of what is learned above a cut, the threshold if none is given."""
    _, points, weights = tail_rule(law, np.array([threshold if cut is None else cut]))
    rise = points.x - threshold
    return _Functionals(
        law=law,
        threshold=threshold,
        slope=float(weights @ ((points.x - points.u) / law.variance * rise)),
        first=float(weights @ rise),
        second=float(weights @ rise**2),
        excess=excess_moment(law, threshold, cut),
        shape=sample_shape(law, threshold, cut) if samples else None,
    )
