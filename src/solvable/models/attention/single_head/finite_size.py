"""First order in 1/d of a trained attention head (derivations/attention)."""

# All predictions are derivatives of Phi, the minimum of the objective over d². The derivative in lambda
# gives Tr S / d. The derivatives in the sources h_m and h_q, which add -h_m m / 2 + h_q q / 4 to the
# objective, give the overlap m and the norm q   (attention 17).
# The limit lacks two terms of order 1/d. (1) Spectrum: the eigenvalue density of S* + delta Z has a
# correction, so J becomes J + J_1/d. (2) Samples: they are not Gaussian matrices. Replacing the samples
# one at a time (Lindeberg) changes Phi d² by the mean of min_z |y - sigma(z)|² + C(z), where C is the
# Legendre dual of
#
#     W(g) = g omega + g V g / 2 + w_3(g) + w_4(g)   (attention 16)
#
# Here the indices are non-Gaussian, the leverages V differ between samples, and w_3 and w_4 are of third
# and fourth order in g. For one linear token `quadratic.sample_shape` has closed forms. Terms of first
# order in W are averaged over drawn samples of drawn targets; terms of second order are averaged over
# Gaussian variables. In the limit, sample_ratio and the sources are explicit functions of
# (q^, m^, Sigma^, lambda), so the derivatives need no new fixed point.

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solvable.errors import NotConverged
from solvable.models.attention.single_head.drawn import (
    drawn_target,
    entries_of,
    forms_of,
    learned_functions,
    products_of,
    sample_forms,
)
from solvable.models.attention.single_head.evolution import (
    Evolution,
    Learned,
    gaussian_points,
    kept,
)
from solvable.models.attention.single_head.outputs import (
    SoftmaxOutput,
    inverses,
    losses,
    proximal,
    responses,
    turn_of,
)
from solvable.models.attention.single_head.theory import SingleHeadState, fresh_error
from solvable.models.attention.single_head.two_tokens import Responses
from solvable.quasi_random import sobol_normals
from solvable.spectra.excess_mass import excess_moment
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule

STEP = 0.001
"""Step of the differences in logarithms of (q^, m^, Sigma^, lambda)."""

DIRECTIONS = np.array([[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [2, 1, 0, 1]])
"""Directions of the differences; delta changes along the first only, and epsilon along the second."""

POINTS = 4_096
"""Number of quadrature points for averages over Gaussian indices."""

DRAWS = 4
"""Number of drawn targets; the scatter between targets is a fifth of the first-order term."""


@dataclass(frozen=True)
class FiniteSize:
    """Coefficient of the order 1/d in each prediction (attention 17)."""

    overlap: float
    norm: float
    energy: float
    train_error: float
    trace: float
    """Order of Tr S / d, or of Tr S² / d with a penalty on the Frobenius norm."""
    test_shape: float
    noisy_test_shape: float

    @property
    def matrix_error(self) -> float:
        """Coefficient of the order 1/d in the matrix error E = Q - 2 m + q."""
        return self.energy - 2 * self.overlap + self.norm


class _Place(NamedTuple):
    """A solution in the limit, with the coefficients of the order 1/d in Phi."""

    coordinates: np.ndarray
    """Coordinates sample_ratio, h_m, h_q and log lambda."""
    gaussian: float
    shape: float
    learned: Learned


def finite_size(
    evolution: Evolution,
    state: SingleHeadState,
    rank_ratio: float,
    *,
    size: int,
    samples: int,
    exponent: float = 0.0,
) -> FiniteSize:
    """First order in 1/d for a Wishart target, from samples in `size` dimensions."""
    # With an exponent, the target is the power law in exactly `size` dimensions.
    # E Tr S*² / d = 1 + r/d + 1/d of a Wishart matrix; a power law has the sum of its squares
    energy = 0.0 if exponent else 1.0
    if state.rank_fraction == 0:
        return FiniteSize(0.0, 0.0, energy, 0.0, 0.0, 0.0, 0.0)
    if state.split:
        raise NotConverged(
            f"the first order in 1/d is not computed: {state.split:.2%} of the samples have two proximal "
            "minima, and their jumps between these hide it. Raise regularisation, or lower "
            "inverse_temperature or noise."
        )
    x = np.append(state.conjugates, np.log(evolution.regularisation))
    order = _Order(evolution, x, rank_ratio, size, samples, exponent)
    here = order.at((0, 0, 0, 0))
    tests = order.test_shapes(here)
    ends = [order.at(tuple(step)) for step in np.eye(4, dtype=int)]
    moved = np.array([end.coordinates - here.coordinates for end in ends])
    change = np.array([[end.gaussian - here.gaussian, end.shape - here.shape] for end in ends])
    # slopes of Phi in the sources and log lambda, at fixed sample_ratio   (attention 17)
    slopes = np.linalg.solve(moved, change).sum(axis=1)
    trace = slopes[3] / evolution.regularisation
    total = here.gaussian + here.shape
    return FiniteSize(
        overlap=float(-2 * slopes[1]),
        norm=float(4 * slopes[2]),
        energy=energy,
        train_error=float((total - slopes[3]) / evolution.sample_ratio),
        trace=float(trace),
        test_shape=tests[0],
        noisy_test_shape=tests[1],
    )


def test_errors(
    evolution: Evolution, state: SingleHeadState, extra: FiniteSize, dimension: int
) -> tuple[float, float]:
    """Test errors in a finite dimension, on noiseless and on noisy labels."""
    moved = replace(evolution)
    moved.energy += extra.energy / dimension
    learned = Learned(
        state.law, state.threshold, state.scale, state.overlap + extra.overlap / dimension,
        state.norm + extra.norm / dimension, state.response,
    )  # fmt: skip
    clean, noisy = (fresh_error(moved, learned, noise) for noise in (0.0, evolution.noise))
    return (
        float(clean + extra.test_shape / dimension),
        float(noisy + extra.noisy_test_shape / dimension),
    )


class _Samples(NamedTuple):
    """Drawn samples at one noise delta and threshold epsilon of the learned matrix."""

    target: np.ndarray
    omega: np.ndarray
    """Indices (n, k) of the learned matrix over its scale."""
    noise: np.ndarray
    labels: np.ndarray
    leverages: np.ndarray
    """Matrices V (n, k, k) over the response, so that the forces g have the leverage g V g / 2."""
    tilts: np.ndarray
    """Forms of the tilts in each pair of tokens, twice for two different tokens."""


class _Order:
    """First order of Phi near a fixed point."""

    def __init__(
        self,
        evolution: Evolution,
        place: np.ndarray,
        rank_ratio: float,
        size: int,
        samples: int,
        exponent: float,
    ) -> None:
        self.one = replace(evolution, sample_ratio=1.0)
        self.place, self.rank_ratio, self.exponent = place, rank_ratio, exponent
        self.size, self.count = size, samples
        self.laws: dict[int, SpectralLaw] = {}
        self.samples: dict[tuple[int, int], _Samples] = {}
        self.rows: dict[tuple[int, int], np.ndarray] = {}
        self.forces: dict[str, np.ndarray] = {}

    def at(self, steps: tuple[int, ...]) -> _Place:
        """Evaluate the solution some steps along each direction from the fixed point."""
        place = self.place + STEP * (np.array(steps) @ DIRECTIONS)
        conjugates, one = place[:3], self.one
        one.regularisation = float(np.exp(place[3]))
        learned = one.learn(conjugates, self.laws.get(steps[0]))
        self.laws[steps[0]] = learned.law
        q_hat, m_hat, response_hat = np.exp(conjugates)
        envelope, slope, seen = self._envelope(learned)
        # the conjugates of the solution and of its samples differ by the sources   (attention 11)
        alpha = q_hat / (2 * float(np.mean(np.sum(seen.forces**2, axis=1))))
        sources = (m_hat - 2 * alpha * seen.overlap, response_hat - 2 * alpha * seen.response)
        # correction -(eta m^ / 4) J_1 from the spectrum, and the effect of Tr S*² / d larger by 1/d
        gaussian = -m_hat * learned.scale / 4 * self._spectrum(learned)
        if not self.exponent:
            gaussian += alpha * slope
        key = (steps[0], steps[1])
        if key not in self.samples:
            self.samples[key] = self._drawn_samples(learned)
            self.rows[key] = row_means(learned)
        orders = _orders(learned, conjugates, self.size)
        gain = self._gain(self.samples[key], learned, orders) - envelope
        gain += self._second_order(learned, self.rows[key], orders[0])
        coordinates = np.array([alpha, *sources, place[3]])
        return _Place(coordinates, float(gaussian), float(alpha * self.size * gain), learned)

    def _spectrum(self, learned: Learned) -> float:
        """Coefficient J_1 of 1/d in the second moment of the kept eigenvalues."""
        if np.isfinite(learned.threshold):
            return excess_moment(learned.law, learned.threshold)
        # E Tr Z² / d = 1 + 1/d, and Tr S*² / d is larger by 1/d for a random target   (attention 23)
        return learned.law.variance + (0.0 if self.exponent else 1.0)

    def test_shapes(self, here: _Place) -> tuple[float, float]:
        """First orders of the two test errors because samples are not Gaussian matrices."""
        one, learned, drawn = self.one, here.learned, self.samples[0, 0]
        values = one.output.values(learned.scale * drawn.omega)

        def order(labels: np.ndarray, noise: float) -> float:
            error = float(np.mean(np.sum((labels - values) ** 2, axis=1)))
            return self.size * (error - fresh_error(one, learned, noise, POINTS))

        return order(one.labels(drawn.target), 0.0), order(drawn.labels, one.noise)

    def _drawn_samples(self, learned: Learned) -> _Samples:
        output: SoftmaxOutput = self.one.output  # type: ignore[assignment]
        parts = []
        for number in range(DRAWS):
            drawn = drawn_target(
                self.rank_ratio, self.exponent, self.size, output, self.count, number
            )
            functions = learned_functions(drawn, learned)
            sums, leverages = sample_forms(output, drawn, functions)
            traces = np.array([functions.kept.sum(), functions.tilts.sum()])
            sums_kept, tilts = np.moveaxis(sums - np.outer(output.variances == 2, traces), 2, 0)
            omega = sums_kept / np.sqrt(self.size) @ turn_of(output)
            whitened = _whitened(drawn.indices, omega, drawn.label_noise, self.one.energy, learned)
            parts.append((*whitened, leverages, tilts * (3 - output.variances)))
        target, omega, noise, leverages, tilts = map(np.concatenate, zip(*parts, strict=True))
        labels = self.one.labels(target + np.sqrt(self.one.noise / 2) * noise)
        return _Samples(target, omega, noise, labels, leverages, tilts)

    def _settled(
        self, name: str, labels: np.ndarray, omega: np.ndarray, response: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Proximal points and forces; the search starts from the forces of the last call."""
        last = self.forces.get(name)
        start = omega if last is None else omega + response * last
        s = proximal(self.one.output, labels, omega, response, start)
        self.forces[name] = (s - omega) / response
        return s, self.forces[name]

    def _gain(self, drawn: _Samples, learned: Learned, orders: tuple[float, float, float]) -> float:
        """Mean change of a sample's term in Phi to first order in W (attention 16)."""
        output: SoftmaxOutput = self.one.output  # type: ignore[assignment]
        omega, response = learned.scale * drawn.omega, learned.response
        s, g = self._settled("drawn", drawn.labels, omega, response)
        forms = forms_of(output, g @ turn_of(output).T)
        third, cubic, fourth = orders
        squares = products_of(forms, forms)
        cubes = products_of(squares, forms)
        w = response * np.einsum("ni,nij,nj->n", g, drawn.leverages, g)
        w -= np.sum(g**2, axis=1) * response / 2
        w += third * np.einsum("nii->n", cubes)
        w += cubic * np.sum(entries_of(output, cubes) * drawn.tilts, axis=1)
        w += fourth * np.sum(squares**2, axis=(1, 2))
        near = np.sum(g**2, axis=1) * response / 2
        return float(np.mean(losses(output, s, drawn.labels) + near - w))

    def _second_order(self, learned: Learned, means: np.ndarray, third: float) -> float:
        """Mean second-order term: half the curvature times the squared slope of W's non-Gaussian part."""
        one, d = self.one, self.size
        output: SoftmaxOutput = one.output  # type: ignore[assignment]
        k, root = output.size, np.sqrt(output.variances)
        # to this order, the noisy form x^T S* x and the centred x^T S x and x^T rho x are Gaussian
        m, q, (mean, with_target, with_kept, square) = learned.overlap, learned.norm, means
        with_learned = learned.scale * with_kept
        joint = np.array(
            [
                [one.energy + one.noise / 2, m, with_target],
                [m, q, with_learned],
                [with_target, with_learned, square],
            ]
        )
        values, vectors = np.linalg.eigh(joint)
        draws = _second_draws(output.variances.size, self.count)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        three = np.einsum("ij,jnk->ink", factor @ vectors.T, draws)
        labels, omega = one.labels(three[0] @ output.contrasts), three[1] @ output.contrasts
        s, g = self._settled("second", labels, omega, learned.response)
        curvature = output.hessian(s, labels, convex=False)
        bend = products_of(curvature, inverses(np.eye(k) + learned.response * curvature))
        turn = turn_of(output)
        forms = forms_of(output, g @ turn.T)
        # V g minus its mean is 2 Sigma (Gamma R + R Gamma) / (d <D>) with R = X diag(rho) X^T - Tr rho:
        # to first order in x x^T - 1 the leverages depend only on the row means rho of D
        uneven = np.sqrt(d) * forms_of(output, 2 * three[2] * root)
        uneven[:, range(output.tokens), range(output.tokens)] /= 2
        turned = products_of(uneven, forms)
        pulled = entries_of(output, turned + turned.transpose(0, 2, 1)) @ turn
        pulled *= 2 * learned.response / (d * mean)
        slope = pulled + 3 * third * (entries_of(output, products_of(forms, forms)) @ turn)
        return float(np.mean(np.einsum("ni,nij,nj->n", slope, bend, slope)) / 2)

    def _envelope(self, learned: Learned) -> tuple[float, float, Responses]:
        """Mean over Gaussian indices of the minimum over z of loss + (z - omega)² / (2 Sigma)."""
        # Also return the derivative of this mean in the variance Q + Delta / 2 of the noisy indices,
        # and the responses of the samples.
        one, output = self.one, self.one.output
        k, points = output.size, _whitened_points(2 * output.size, POINTS)
        total, m = one.energy + one.noise / 2, learned.overlap
        rest = np.sqrt(max(learned.norm - m**2 / total, 1e-12))
        seen, apart = np.sqrt(total) * points[:, :k], points[:, k:]
        omega = m / total * seen + rest * apart
        labels = one.labels(seen)
        s, g = self._settled("Gaussian", labels, omega, learned.response)
        error = labels - output.values(s)
        mean = np.sum(error**2, axis=1) + np.sum(g**2, axis=1) * learned.response / 2
        # d seen = seen / (2 total), d omega = -m seen / (2 total²) + m² apart / (2 total² rest)
        teacher = one.teacher or output
        pull = np.einsum("no,nok->nk", error, teacher.jacobian(seen))
        slope = pull * seen / total + g * (m * seen - m**2 / rest * apart) / (2 * total**2)
        found = responses(output, teacher, s, labels, seen, learned.response)
        return float(np.mean(mean)), float(np.mean(np.sum(slope, axis=1))), found


def row_means(learned: Learned) -> np.ndarray:
    """Mean divided difference of each eigenvalue, and its products with target, learned and itself."""
    x = learned.law.typical_places(400)
    f, u = kept(x, learned.threshold), np.interp(x, learned.law.x, learned.law.u)
    top, low = x[x > learned.threshold, None], x[x <= learned.threshold]
    divided = (top - learned.threshold) / (top - low)
    rows = np.concatenate([top.size + divided.sum(axis=1), divided.sum(axis=0)]) / x.size
    return np.array([rows.mean(), np.mean(rows * (2 * u - x)), np.mean(rows * f), np.mean(rows**2)])


@lru_cache(maxsize=4)
def _second_draws(columns: int, count: int) -> np.ndarray:
    """Three sets of standard normal variables, (3, count, columns)."""
    return sobol_normals(3 * columns, count).reshape(count, 3, columns).transpose(1, 0, 2).copy()


def _orders(learned: Learned, conjugates: np.ndarray, d: int) -> tuple[float, float, float]:
    """Coefficients in W of tr Gamma³, of the token-dependent cubic term, and of tr Gamma⁴."""
    if not np.isfinite(learned.threshold):
        # one sample changes Tr (S* + delta Z)² by terms of first and second order in g only
        return 0.0, 0.0, 0.0
    _, points, weights = tail_rule(learned.law, np.array([learned.threshold]))
    t = learned.law.variance
    # adding a spike theta to M changes Tr (M - b)_+² by the sum over p of theta^p tau_p, where
    # tau_p = int 2 (x - b) Im g^p dx / (p pi)
    g = (points.x - points.u) / t + 1j * points.height / t
    phases = weights * t / points.height * 2 * (points.x - learned.threshold)
    third, fourth = (float(phases @ np.imag(g**p)) / p for p in (3, 4))
    m_hat, response_hat = np.exp(conjugates[1:])
    # W is (d (m^)² / 4 Sigma^) times this change, for the spike theta = 2 Gamma / (d^(3/2) m^) x x^T
    unit, front = 2 / (d**1.5 * m_hat), d * m_hat**2 / (4 * response_hat)
    return front * unit**3 * d**3 * third, front * unit**3, front * unit**4 * d**4 * fourth


def _whitened(
    target: np.ndarray, omega: np.ndarray, noise: np.ndarray, energy: float, learned: Learned
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rescale drawn indices at scale 1 to the covariance of the limit: only higher cumulants differ."""
    k = target.shape[1]
    joint = np.concatenate([target, omega, noise], axis=1)
    joint = joint - joint.mean(axis=0)
    m, q = learned.overlap / learned.scale, learned.norm / learned.scale**2
    wanted = np.kron(np.array([[energy, m, 0.0], [m, q, 0.0], [0.0, 0.0, 1.0]]), np.eye(k))
    try:
        root = np.linalg.cholesky(joint.T @ joint / len(joint))
    except np.linalg.LinAlgError:
        raise NotConverged(
            "the first order in 1/d is not computed: the indices of target and learned head are linearly "
            "dependent in the drawn samples. Raise inverse_temperature or change sample_ratio."
        ) from None
    joint = joint @ np.linalg.inv(root).T @ np.linalg.cholesky(wanted).T
    return joint[:, :k], joint[:, k : 2 * k], joint[:, 2 * k :]


@lru_cache(maxsize=2)
def _whitened_points(columns: int, count: int) -> np.ndarray:
    points = gaussian_points(columns, count)
    return np.asarray(points @ np.linalg.inv(np.linalg.cholesky(points.T @ points / count)).T)
