"""First order in 1/d of the predictions for quadratic networks."""

# Corrections of errors, rank and trace are derivatives of the correction of the minimum
# Phi(alpha, Delta, lambda) of the objective. The derivative in n is the gain T / (1 + V) of one more
# sample (T the test error, V its leverage), in Delta alpha / (1 + V), and in lambda Tr S / d. In the
# limit Phi depends on the spectrum through J(delta, b) = int_b (x - b)² mu_delta only. At finite d the
# mean spectrum of S* + delta Z has an additional mass T(x)/d above x. The resolvent obeys a Burgers
# equation with viscosity 1/2d, and J + J_1/d with J_1(delta, b) = 2 int_b (x - b) T(x) dx replaces J
# (quadratic 19). A random target adds the first order of its own mean spectrum. This is complete for
# Gaussian measurements; `sample_shape` computes the additional correction for samples.

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np

from solvable.models.quadratic.network.feature_groups import grouped
from solvable.models.quadratic.network.sample_shape import (
    Gain,
    SampleShape,
    rank_slopes,
    sample_shape,
)
from solvable.models.quadratic.network.theory import QuadraticState
from solvable.spectra.denoiser import feature_deviations, feature_errors, sides
from solvable.spectra.excess_mass import excess_mass, excess_moment
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule
from solvable.spectra.measures import second_moment
from solvable.spectra.product_measure import MarchenkoPasturMeasure


@dataclass(frozen=True)
class FiniteSize:
    """First-order coefficients in 1/d of the predicted quantities."""

    matrix_error: float
    train_error: float
    trace: float
    rank_fraction: float


@dataclass(frozen=True)
class _Functionals:
    """Integrals of a spectral law above a threshold."""

    law: SpectralLaw
    threshold: float
    slope: float
    """Degrees of freedom of the fit over d², A."""
    first: float
    second: float
    excess: float
    """J_1, the first order in 1/d of J (quadratic 19)."""
    shape: SampleShape | None

    def place(self, label_noise: float) -> _Place:
        """Solution in the limit with this law, threshold and label noise."""
        noise, b, energy = self.law.noise, self.threshold, second_moment(self.law.target)
        error = energy + 4 * noise**2 * self.slope - self.second - 2 * b * self.first
        alpha = (error + label_noise / 2) / (2 * noise**2)
        penalty = 4 * b * (alpha - self.slope)
        # (B / delta) (Q_1 - J_1)  (quadratic 19); E Tr S*² / d = 1 + k + 1/d gives Q_1 = 1.
        own = float(isinstance(self.law.target, MarchenkoPasturMeasure))
        gaussian = penalty / (2 * b) * (own - self.excess)
        gain = Gain(0.0, 0.0) if self.shape is None else self.shape.gain(alpha, label_noise)
        return _Place(np.array([alpha, label_noise, penalty, gaussian, gain.total]), gain.by_noise)

    def by_rank(self, place: _Place) -> np.ndarray:
        """Derivatives in eta of a solution's quantities, for a penalty b Tr S + eta rank S."""
        law, b = self.law, self.threshold
        # The penalty removes eigenvalues up to b + sqrt(2 eta), which changes R and A.
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
    """A solution in the limit, and the first order in 1/d of Phi, times d."""

    numbers: np.ndarray
    """alpha, Delta, lambda, the correction of Gaussian measurements, and the gain of samples."""
    by_noise: float
    """Derivative in Delta of the gain of samples."""


def finite_sizes(state: QuadraticState, *, samples: bool = True) -> tuple[FiniteSize, FiniteSize]:
    """First order in 1/d for Gaussian measurements and, with ``samples``, for samples."""
    noise, b, labels = state.effective_noise, state.threshold, state.label_noise
    alpha, penalty = state.sample_ratio, state.regularisation
    limited = state.width_limited

    def at(law: SpectralLaw, threshold: float) -> _Functionals:
        return _functionals(law, threshold, samples, state.cut_in(law, threshold))

    step = 1e-3  # relative step of central differences
    # Differences in noise and threshold together, in the threshold, and in the label noise.
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
        # The gain belongs to one sample more: the correction is alpha d(gain), not d(alpha gain).
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
    """Prediction at a finite dimension, for samples and for Gaussian matrices."""

    limit: float  # prediction for d -> oo
    order: float  # size of the first order in 1/d
    expected: float | None  # corrected prediction; None if the correction exceeds half of the limit
    control: float | None  # the same prediction for Gaussian matrices


FINITE = ("matrix_error", "train_error", "rank_fraction", "trace")
"""Metrics with a first order in 1/d."""


def at_dimension(
    state: QuadraticState, dimension: int, *, samples: bool = True
) -> dict[str, AtDimension]:
    """Predict error, training error, rank and trace at a finite dimension."""
    gaussian, full = finite_sizes(state, samples=samples)
    full = full if samples else gaussian
    lost = {"train_error": unreachable(state, dimension)} if samples else {}
    parts = {}
    for name in FINITE:
        limit, control, whole = (float(getattr(part, name)) for part in (state, gaussian, full))
        order = (abs(control) + abs(whole - control)) / dimension + lost.get(name, 0.0)
        pair = limit + whole / dimension, limit + control / dimension
        expected, other = pair if order <= 0.5 * abs(limit) else (None, None)
        parts[name] = AtDimension(limit, order, expected, other)
    return parts


def unreachable(state: QuadraticState, dimension: int) -> float:
    """Bound on the training error from labels that no positive matrix fits (quadratic 21)."""
    # As x^T S x >= 0, no fit lowers an output by more than sqrt(d) tau, tau = Tr S / d. The fit of a
    # residual r ~ N(0, E_test) would lower the output by r A / alpha. Bound: E ((r A / alpha - sqrt(d)
    # tau)_+)², 1 to 7 times the measured value. It is smaller than any power of 1/d.
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
    """Compute integrals of a spectral law above a cut, by default the threshold."""
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


STEP = 1e-3
"""Relative change of noise and threshold for a derivative."""

MOST = 0.25
"""Largest relative change of noise and threshold that gives the corrected mean."""


def finite_group_errors(
    state: QuadraticState, ends: list[int], matrix_error: float, *, samples: bool
) -> list[float]:
    """Mean error of each group of features, whose mean is the error R at this dimension."""
    law, b = state.law, state.threshold
    weights, (lean, errors) = law.target.node_weights, feature_deviations(law, b)
    if samples:
        errors = errors + noise_of_samples(state, ends[-1], lean, errors)
    below, above = (
        feature_errors(SpectralLaw(law.target, noise=law.noise * scale), b * scale)
        for scale in (1 - STEP, 1 + STEP)
    )
    slope, rest = (above - below) / (2 * STEP), matrix_error - float(weights @ errors)
    # R does not fall along S* + t (delta Z - b), as the cone of positive matrices is convex.
    if abs(rest) < MOST * float(weights @ slope):
        errors = errors + slope * (rest / float(weights @ slope))
    else:  # hardly anything is learned, and the energy of a random target differs from its limit
        errors = errors * (matrix_error / float(weights @ errors))
    return grouped(law.target, errors, ends)


def noise_of_samples(
    state: QuadraticState, dimension: int, m: np.ndarray, e: np.ndarray
) -> np.ndarray:
    """Change of the error of each node of the target by the uneven noise of samples (quadratic 39)."""
    # m and e are the means of E_ii and (E²)_ii at the nodes.
    law, t, b = state.law, state.law.variance, state.threshold
    s, weights = law.target.nodes, law.target.node_weights
    unit, scale = np.ones_like(s), 8 / (dimension * state.test_error)
    means = (weights * np.array([unit, e, m])).T
    # Over all x: delta² (1/d) sum_j w_ij, w_ij = 8 (e_i + e_j + m_i m_j) / (d E_test).
    found = np.zeros_like(s)
    for side in sides(law, b, s):
        u, height = side.points.u[:, None], side.points.height[:, None]
        G = 1 / (u - 1j * height - s)
        # h_i = (1/d) sum_j w_ij G_j
        g, eg, mg = (G @ means).T[:, :, None]
        h = scale * (e * g + eg + m * mg)
        # dG_i = delta² G_i² (h_i + dg), dg = delta² <G² h> / (1 - delta² <G²>)
        shared = t * ((G**2 * h) @ weights) / (1 - t * (G**2 @ weights))
        change = t * G[:, side.chosen] ** 2 * (h[:, side.chosen] + shared[:, None])
        # de_i = int_b f (f - 2 s_i) Im dG_i dx / pi, f = x - b; Im g = pi mu = v / delta²
        rise = side.points.x - b
        spread = side.weights * t / side.points.height * rise
        part = (spread * rise) @ change.imag - 2 * s[side.chosen] * (spread @ change.imag)
        if not side.above:
            every = e + weights @ e + m * (weights @ m)
            part = t * scale * every[side.chosen] - part
        found[side.chosen] = part
    return found
