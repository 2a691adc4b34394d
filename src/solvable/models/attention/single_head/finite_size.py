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

from solvable.arrays import random_stream
from solvable.errors import NotConverged
from solvable.models.attention.single_head.evolution import Evolution, Learned, gaussian_points
from solvable.models.attention.single_head.outputs import (
    Output,
    SoftmaxOutput,
    forces,
    inverses,
    losses,
    proximal,
)
from solvable.models.attention.single_head.theory import SingleHeadState, fresh_error
from solvable.spectra.excess_mass import excess_moment
from solvable.spectra.functionals import tail_rule
from solvable.spectra.measures import power_law

STEP = 0.02
"""Step of the central differences in the logarithms of (q^, m^, Sigma^, lambda)."""

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
    test_shape: float
    noisy_test_shape: float

    @property
    def matrix_error(self) -> float:
        """Coefficient of the order 1/d in the matrix error E = Q - 2 m + q."""
        return self.energy - 2 * self.overlap + self.norm


class _Drawn(NamedTuple):
    """A drawn target with noise and samples, the same for every evaluation."""

    target: np.ndarray
    noise: np.ndarray
    tokens: np.ndarray
    indices: np.ndarray
    label_noise: np.ndarray


class _Place(NamedTuple):
    """A solution in the limit, with the coefficients of the order 1/d in Phi."""

    coordinates: np.ndarray
    """Coordinates sample_ratio, h_m, h_q and log lambda."""
    gaussian: float
    shape: float
    test_shapes: tuple[float, float]


@lru_cache(maxsize=8)
def _drawn(
    rank_ratio: float, exponent: float, size: int, output: SoftmaxOutput, samples: int, number: int
) -> _Drawn:
    # fixed seeds, so that equal parameters give equal predictions
    rng = random_stream(number, "finite size of a head")
    rank = max(1, round(rank_ratio * size))
    W = rng.standard_normal((size, rank))
    Z = rng.standard_normal((size, size))
    target = W @ W.T / np.sqrt(rank * size)
    if exponent:
        target = np.diag(power_law(dimension=size, exponent=exponent).nodes)
    tokens = rng.standard_normal((samples, output.tokens, size))
    return _Drawn(
        target=target,
        noise=(Z + Z.T) / np.sqrt(2 * size),
        tokens=tokens,
        indices=_contrasts(output, tokens @ target @ tokens.transpose(0, 2, 1), target),
        label_noise=rng.standard_normal((samples, output.size)),
    )


def _contrasts(output: SoftmaxOutput, products: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Contrasts of the samples, computed from the products x_a^T S x_b."""
    rows, columns = output.pairs
    h = products[:, rows, columns] - np.where(rows == columns, np.trace(matrix), 0.0)
    return np.asarray(h / np.sqrt(len(matrix) * output.variances) @ output.contrasts)


def finite_size(
    evolution: Evolution,
    state: SingleHeadState,
    rank_ratio: float,
    *,
    size: int,
    samples: int,
    exponent: float = 0.0,
) -> FiniteSize:
    """First order in 1/d for a Wishart target, from samples in `size` dimensions.

    With an exponent, the target is the power law in exactly `size` dimensions.
    """
    # E Tr S*² / d = 1 + r/d + 1/d of a Wishart matrix; a power law has the sum of its squares
    energy = 0.0 if exponent else 1.0
    if state.rank_fraction == 0:
        return FiniteSize(0.0, 0.0, energy, 0.0, 0.0, 0.0, 0.0)
    order = _Order(evolution, rank_ratio, size, samples, exponent)
    x = np.append(state.conjugates, np.log(evolution.regularisation))
    here = order.at(x)
    ends = [(order.at(x - step), order.at(x + step)) for step in STEP * np.eye(4)]
    moved = np.array([b.coordinates - a.coordinates for a, b in ends])
    change = np.array([[b.gaussian - a.gaussian, b.shape - a.shape] for a, b in ends])
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
        test_shape=here.test_shapes[0],
        noisy_test_shape=here.test_shapes[1],
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


@dataclass
class _Order:
    evolution: Evolution
    rank_ratio: float
    size: int
    samples: int
    exponent: float

    def at(self, place: np.ndarray) -> _Place:
        """Evaluate the solution at the given logarithms of (q^, m^, Sigma^, lambda)."""
        conjugates, regularisation = place[:3], float(np.exp(place[3]))
        one = replace(self.evolution, sample_ratio=1.0, regularisation=regularisation)
        learned = one.learn(conjugates)
        count = 4_096
        seen = one.look(learned, count)
        q_hat, m_hat, response_hat = np.exp(conjugates)
        alpha = q_hat / seen.norm
        sources = (m_hat - alpha * seen.overlap, response_hat - alpha * seen.response)
        # correction -((m^)² / 4 Sigma^) J_1 from the spectrum, and the effect of Tr S*² / d larger by 1/d
        gaussian = -(m_hat**2) / (4 * response_hat) * excess_moment(learned.law, learned.threshold)
        if not self.exponent:
            gaussian += alpha * _by_energy(one, learned, count)
        parts = np.mean(
            [self._gain(one, learned, conjugates, number) for number in range(DRAWS)], axis=0
        )
        third = _orders(learned, conjugates, self.size)[0]
        gaussian_gain = _envelope(one, learned, count) - _second_order(
            one, learned, third, self.size, DRAWS * self.samples
        )
        clean, noisy = (fresh_error(one, learned, noise, count) for noise in (0.0, one.noise))
        gain, *tests = self.size * (parts - [gaussian_gain, clean, noisy])
        coordinates = np.array([alpha, *sources, place[3]])
        return _Place(coordinates, float(gaussian), float(alpha * gain), (tests[0], tests[1]))

    def _gain(
        self, one: Evolution, learned: Learned, conjugates: np.ndarray, number: int
    ) -> tuple[float, float, float]:
        """Mean change of a sample's term in Phi to first order in W (attention 16), and test errors."""
        output: SoftmaxOutput = one.output  # type: ignore[assignment]
        d = self.size
        drawn = _drawn(self.rank_ratio, self.exponent, d, output, self.samples, number)
        functions = _learned_functions(drawn, learned)
        rotated = drawn.tokens @ functions.vectors

        def products(values: np.ndarray) -> np.ndarray:
            return np.asarray((rotated * values) @ rotated.transpose(0, 2, 1))

        kept = functions.kept * learned.scale
        omega = _contrasts(output, products(kept), np.diag(kept))
        target, omega, noise = _whitened(
            drawn.indices, omega, drawn.label_noise, one.energy, learned
        )
        labels = one.labels(target + np.sqrt(one.noise / 2) * noise)
        unit = np.eye(output.tokens)
        s = proximal(output, labels, omega, learned.response)
        g = forces(output, s, labels)
        turn = output.contrasts / np.sqrt(output.variances)[:, None]
        forms = _forms(output, g @ turn.T)
        third, cubic, fourth = _orders(learned, conjugates, d)
        squares = forms @ forms
        cubes = squares @ forms
        tilt = products(functions.tilts) - functions.tilts.sum() * unit
        w = _leverages(rotated, forms, functions.divided, learned.response)
        w -= np.sum(g**2, axis=1) * learned.response / 2
        w += third * np.einsum("nii->n", cubes) + cubic * np.einsum("nab,nab->n", cubes, tilt)
        w += fourth * np.sum(squares**2, axis=(1, 2))
        gains = (
            losses(output, s, labels) + np.sum((s - omega) ** 2, axis=1) / 2 / learned.response - w
        )
        clean, noisy = (
            float(np.mean(np.sum((one.labels(y) - output.values(omega)) ** 2, axis=1)))
            for y in (target, target + np.sqrt(one.noise / 2) * noise)
        )
        return float(gains.mean()), clean, noisy


class _Functions(NamedTuple):
    """Functions of the eigenvalues y of a drawn target matrix plus noise matrix."""

    vectors: np.ndarray
    kept: np.ndarray
    divided: np.ndarray
    """Divided differences D_ij = (f_i - f_j) / (y_i - y_j) of f = (y - epsilon)_+."""
    tilts: np.ndarray
    """For each i, the sum over j and k of the second divided differences of 2 f at y_i, y_j, y_k."""


def _learned_functions(drawn: _Drawn, learned: Learned) -> _Functions:
    y, vectors = np.linalg.eigh(drawn.target + learned.law.noise * drawn.noise)
    kept = np.maximum(y - learned.threshold, 0.0)
    gaps = y[:, None] - y[None]
    np.fill_diagonal(gaps, 1.0)
    divided = (kept[:, None] - kept[None]) / gaps
    np.fill_diagonal(divided, (kept > 0).astype(float))
    rows = divided.sum(axis=1)
    # sum_jk f[i, j, k] = sum_k (sum_j D_ij - sum_j D_jk) / (y_i - y_k); the term k = i uses the
    # difference in j instead
    differences = (rows[:, None] - rows[None]) / gaps
    np.fill_diagonal(differences, 0.0)
    same = (np.diag(divided)[:, None] - divided) / gaps
    np.fill_diagonal(same, 0.0)
    tilts = 2 * (differences.sum(axis=1) + same.sum(axis=1))
    return _Functions(vectors, kept, divided, tilts)


def _leverages(
    rotated: np.ndarray, forms: np.ndarray, divided: np.ndarray, response: float
) -> np.ndarray:
    """Second-order term g V g / 2 of W."""
    # g V g = <P, D P> 2 / (d Sigma^) with P = X^T Gamma X / sqrt(d), divided by the sum of the D_ij off
    # the diagonal
    off = divided - np.diag(np.diag(divided))
    mean = float(off.sum())
    quadratic, T = np.empty(len(forms)), forms.shape[1]
    for start in range(0, len(forms), 1_024):
        rows = slice(start, start + 1_024)
        x = rotated[rows]
        # sum_ij D_ij P_ij² = sum Gamma_ab Gamma_ce <x_a x_c, D x_b x_e>
        pairs = (x[:, :, None] * x[:, None]).reshape(-1, T * T, x.shape[2])
        inner = (pairs @ off) @ pairs.transpose(0, 2, 1)
        gamma = forms[rows]
        quadratic[rows] = np.einsum(
            "nab,nce,nacbe->n", gamma, gamma, inner.reshape(-1, T, T, T, T), optimize=True
        )
    # E P_ij² = tr Gamma² = sum v g² / 2 for i different from j
    return quadratic * response / mean


def _second_order(one: Evolution, learned: Learned, third: float, d: int, samples: int) -> float:
    """Mean second-order term: half the curvature times the squared slope of W's non-Gaussian part."""
    output: SoftmaxOutput = one.output  # type: ignore[assignment]
    k, root = output.size, np.sqrt(output.variances)
    x = learned.law.typical_places(400)
    f, (u, _) = np.maximum(x - learned.threshold, 0.0), learned.law.preimage(x)
    gaps = x[:, None] - x[None]
    np.fill_diagonal(gaps, 1.0)
    divided = (f[:, None] - f[None]) / gaps
    np.fill_diagonal(divided, (f > 0).astype(float))
    rows = divided.mean(axis=1)
    # to this order, the centred forms x^T S* x, x^T S x and x^T rho x are Gaussian
    m, q = learned.overlap, learned.norm
    with_target, with_learned = np.mean(rows * (2 * u - x)), learned.scale * np.mean(rows * f)
    joint = np.array(
        [
            [one.energy, m, with_target],
            [m, q, with_learned],
            [with_target, with_learned, np.mean(rows**2)],
        ]
    )
    values, vectors = np.linalg.eigh(joint)
    draws = _second_draws(output, samples)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    three = np.einsum("ij,jnk->ink", factor @ vectors.T, draws[0])
    target, omega = three[0] @ output.contrasts, three[1] @ output.contrasts
    labels = one.labels(target + np.sqrt(one.noise / 2) * draws[1])
    s = proximal(output, labels, omega, learned.response)
    g = forces(output, s, labels)
    curvature = output.hessian(s, labels, convex=False)
    bend = curvature @ inverses(np.eye(k) + learned.response * curvature)
    turn = output.contrasts / root[:, None]
    forms = _forms(output, g @ turn.T)
    # V g minus its mean is 2 Sigma (Gamma R + R Gamma) / (d <D>) with R = X diag(rho) X^T - Tr rho; to
    # first order in x x^T - 1 the leverages depend only on the row means rho of D
    uneven = np.sqrt(d) * _forms(output, 2 * three[2] * root)
    uneven[:, range(output.tokens), range(output.tokens)] /= 2
    turned = uneven @ forms
    pulled = _pairs(output, turned + turned.transpose(0, 2, 1)) @ turn
    pulled *= 2 * learned.response / (d * rows.mean())
    slope = pulled + 3 * third * (_pairs(output, forms @ forms) @ turn)
    return float(np.mean(np.einsum("ni,nij,nj->n", slope, bend, slope)) / 2)


@lru_cache(maxsize=4)
def _second_draws(output: SoftmaxOutput, samples: int) -> tuple[np.ndarray, np.ndarray]:
    rng = random_stream(0, "second order of a head")
    indices = rng.standard_normal((3, samples, output.variances.size))
    return indices, rng.standard_normal((samples, output.size))


def _forms(output: SoftmaxOutput, messages: np.ndarray) -> np.ndarray:
    """Symmetric matrices Gamma such that X^T Gamma X / sqrt(d) is the sum of messages times sensors."""
    rows, columns = output.pairs
    forms = np.zeros((len(messages), output.tokens, output.tokens))
    forms[:, rows, columns] += messages / 2
    forms[:, columns, rows] += messages / 2
    return forms


def _pairs(output: SoftmaxOutput, matrices: np.ndarray) -> np.ndarray:
    """Entries (a, b) with a <= b of symmetric matrices."""
    rows, columns = output.pairs
    return np.asarray(matrices[:, rows, columns])


def _orders(learned: Learned, conjugates: np.ndarray, d: int) -> tuple[float, float, float]:
    """Coefficients in W of tr Gamma³, of the token-dependent cubic term, and of tr Gamma⁴."""
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
    """Rescale drawn indices to the covariance of the limit, so that only higher cumulants differ."""
    k = target.shape[1]
    joint = np.concatenate([target, omega, noise], axis=1)
    joint = joint - joint.mean(axis=0)
    m, q = learned.overlap, learned.norm
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


def _envelope(one: Evolution, learned: Learned, count: int, excess: float = 0.0) -> float:
    """Mean over Gaussian indices of the minimum over z of loss + (z - omega)² / (2 Sigma)."""
    output: Output = one.output
    points, k = gaussian_points(2 * output.size, count), output.size
    points = points @ np.linalg.inv(np.linalg.cholesky(points.T @ points / count)).T
    total = (one.energy + one.noise / 2) * (1 + excess)
    seen = np.sqrt(total) * points[:, :k]
    rest = np.sqrt(max(learned.norm - learned.overlap**2 / total, 0.0))
    omega = learned.overlap / total * seen + rest * points[:, k:]
    labels = one.labels(seen)
    s = proximal(output, labels, omega, learned.response)
    near = np.sum((s - omega) ** 2, axis=1) / 2 / learned.response
    return float(np.mean(losses(output, s, labels) + near))


def _by_energy(one: Evolution, learned: Learned, count: int) -> float:
    """Derivative of `_envelope` in the variance Q + Delta / 2 of the noisy indices."""
    step = 0.01
    low, high = (_envelope(one, learned, count, sign * step) for sign in (-1, 1))
    return (high - low) / (2 * step * (one.energy + one.noise / 2))
