"""First corrections in 1/d to the limit of quadratic networks."""

# The limit knows a target's spectrum through J(delta, b) = int_b (x - b)^2 mu_delta alone. At finite d
# the mean spectrum of S* + delta Z has a mass T(x)/d above x that the limit lacks. Its resolvent obeys
# a Burgers equation with viscosity 1/2d, solved to first order along its characteristics, and
# J + J_1/d with J_1(delta, b) = 2 int_b (x - b) T(x) dx takes the place of J (derived). For a target
# that is itself random the same is added for the d-th part of its own mean spectrum.
# Gaussian measurements need nothing else. Samples have norms of variance 8/d relative to those of
# Gaussian matrices, and so leverages that differ; the shape of their noise is not included: that of n
# matrices x x^T has a fourth free cumulant of order d/n, so that terms of order 1/(alpha d) remain.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.quadratic.saddle import second_moment
from solvable.models.quadratic.theory import QuadraticState
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule
from solvable.spectra.measures import Measure
from solvable.spectra.product_measure import MarchenkoPasturMeasure

NORM_VARIANCE = 8.0
"""Variance of |x|^4 / d^2, times d: of the squared norm of a measurement by a sample."""


@dataclass(frozen=True)
class FiniteSize:
    """What the first order in 1/d adds to a prediction, times d."""

    matrix_error: float
    train_error: float
    trace: float
    rank_fraction: float


@dataclass(frozen=True)
class _Functionals:
    """Functionals of a law above a threshold, and what the order 1/d adds to them."""

    second: float
    slope: float
    first: float
    mass: float
    freedom: float
    extra_second: float
    extra_first: float

    @property
    def row(self) -> np.ndarray:
        return np.array([self.slope, self.first, self.mass, self.freedom, self.extra_second])


def finite_size(state: QuadraticState, *, samples: bool) -> FiniteSize:
    """First order in 1/d of a quadratic network with a regularisation above 0."""
    noise, b, penalty = state.effective_noise, state.threshold, state.regularisation
    here = _functionals(state.law, b)
    step = 1e-3  # relative, of central differences in the effective noise
    low, high = (
        _functionals(SpectralLaw(state.law.target, noise=noise * scale), b * scale)
        for scale in (1 - step, 1 + step)
    )
    along = (high.row - low.row) / (2 * step * noise)
    changes = _effective_changes(state) if samples else np.zeros(3)
    size = penalty * noise / (2 * b)
    moved = _shift(state, here, along, size, changes)
    rise = b * (changes[2] / penalty + moved[1] / noise - moved[0] / size)
    # Derivatives were taken at a fixed ratio of threshold and noise; this is what is left.
    across = rise - b / noise * moved[1]
    mixed = -2 * along[1] - 2 * b / noise * here.mass
    extra_slope = along[4] + 2 * b / noise * here.extra_first
    freedom = along[3] * moved[1] + (mixed * across + extra_slope) / (4 * noise)
    error = 2 * changes[0] * noise**2 + 4 * state.sample_ratio * noise * moved[1] - changes[1] / 2
    leverage = 4 * here.freedom * b / penalty
    growth = 4 / penalty * (b * freedom + here.freedom * rise)
    train = 2 * error / (1 + leverage) ** 2 - 2 * state.test_error * growth / (1 + leverage) ** 3
    if samples:
        uneven = 3 * leverage * state.test_error / (1 + leverage) - 4 * state.matrix_error
        train += NORM_VARIANCE * leverage * uneven / (1 + leverage) ** 3
    density = float(state.law.density(b))
    return FiniteSize(
        matrix_error=float(error),
        train_error=float(train),
        trace=float(along[1] * moved[1] - here.mass * across + here.extra_first),
        rank_fraction=float(along[2] * moved[1] - density * across + _mass_at(state.law, b)),
    )


def _effective_changes(state: QuadraticState) -> np.ndarray:
    r"""Changes of :math:`(\alpha,\Delta,\tilde\lambda)` that act like uneven norms, times d."""
    share = 1 - state.degrees_of_freedom / state.sample_ratio
    # The leverage V of a sample is 1 / share - 1, and this (V - 1) / (V + 1).
    tilt = 1 - 2 * share
    ratios = np.array([-(share**2), tilt, tilt])
    return NORM_VARIANCE * ratios * [state.sample_ratio, state.label_noise, state.regularisation]


def _shift(
    state: QuadraticState,
    here: _Functionals,
    along: np.ndarray,
    size: float,
    changes: np.ndarray,
) -> np.ndarray:
    """Move of the saddle point in residual norm and effective noise."""
    noise, b, target = state.effective_noise, state.threshold, state.law.target
    ratio, tension = b / noise, 2 * here.mass
    bend = -2 * along[1]
    radial = here.slope - 2 * ratio * here.first
    spread = state.label_noise + 2 * (second_moment(target) - here.second)
    stiff = spread / noise**3 + 2 * radial / noise**2 - (along[0] + ratio * bend) / noise
    cross = ratio * bend
    curvature = np.array([[-2 - b * ratio / size * tension, cross], [cross, size * stiff]])
    # A random target has its own 1/d: E tr S^2 / d is 1 + k + 1/d.
    left = float(isinstance(target, MarchenkoPasturMeasure)) - here.extra_second
    force = np.array([left / noise - 2 * ratio * here.extra_first, -size * left / noise**2])
    force[1] -= size / noise * along[4]
    leaning = np.array(
        [
            [2 * noise, 1 / (2 * noise), b / state.regularisation * ratio * tension],
            [2 * size, -size / (2 * noise**2), -ratio * size / state.regularisation * bend],
        ]
    )
    return np.asarray(-np.linalg.solve(curvature, force + leaning @ changes))


def _functionals(law: SpectralLaw, threshold: float) -> _Functionals:
    _, points, weights = tail_rule(law, np.array([threshold]))
    rise = points.x - threshold
    slope = float(weights @ ((points.x - points.u) / law.variance * rise))
    excess = _mass(law, points.u + 1j * points.height)
    # Weights without the density: an integral over x alone.
    lengths = weights * np.pi * law.variance / points.height
    return _Functionals(
        second=float(weights @ rise**2),
        slope=4 * law.noise * slope,
        first=float(weights @ rise),
        mass=float(weights.sum()),
        freedom=slope,
        # J_1
        extra_second=float(2 * lengths @ (excess * rise)),
        extra_first=float(lengths @ excess),
    )


def _mass_at(law: SpectralLaw, place: float) -> float:
    u, height = law.preimage(place)
    return float(_mass(law, np.atleast_1d(u + 1j * height))[0])


def _mass(law: SpectralLaw, z: np.ndarray) -> np.ndarray:
    """Mass above a place, times d, that the limit lacks."""
    # T(x) = arg(dz/du) / 2 pi along z = u + delta^2 g(u)
    target = law.target
    mass = np.angle(1 + law.variance * _resolvent_slope(target, z)) / (2 * np.pi)
    if isinstance(target, MarchenkoPasturMeasure):
        mass = mass + _random_mass(target, z)
    return np.asarray(mass)


def _resolvent_slope(target: Measure, z: np.ndarray) -> np.ndarray:
    if isinstance(target, MarchenkoPasturMeasure):
        return np.asarray(target.resolvent(z)[1])
    slope = np.empty(z.shape, dtype=np.complex128)
    for start in range(0, z.size, 2_000):
        block = z[start : start + 2_000, None] - target.nodes
        slope[start : start + 2_000] = -(1 / block**2) @ target.node_weights
    return slope


def _random_mass(target: MarchenkoPasturMeasure, z: np.ndarray) -> np.ndarray:
    """The same for the random matrix of a Marchenko-Pastur target, seen through the noise."""
    # Its spectrum has a quarter of an eigenvalue too many at either edge, and half of one too few
    # spread between them by the arcsine law.
    low, high = target.bulk
    root = np.sqrt(z - low) * np.sqrt(z - high)
    ends = np.log(z - low) + np.log(z - high)
    return np.asarray(np.imag(ends / 4 - np.log((z - (low + high) / 2 + root) / 2) / 2) / np.pi)
