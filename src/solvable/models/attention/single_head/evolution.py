"""State evolution of a trained head: overlap m, norm q, response Sigma, and their conjugates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solvable.errors import NotConverged
from solvable.inference.fixed_point import Anderson, fixed_point
from solvable.models.attention.single_head.outputs import Output, proximal, responses
from solvable.quasi_random import sobol_normals
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule
from solvable.spectra.measures import Measure

COARSE = 1_024
"""Number of quadrature points for the first, coarse solution."""


def fine_points(contrasts: int) -> int:
    """Number of quadrature points for the final solution, which gives errors of a few parts in 1,000."""
    # for two contrasts, results from different scramblings agree to 0.1 %; more contrasts need fewer
    # points
    return {1: 16_384, 2: 16_384, 5: 8_192}.get(contrasts, 4_096)


@lru_cache(maxsize=8)
def gaussian_points(columns: int, count: int) -> np.ndarray:
    """Fixed scrambled Sobol points and their reflections, as standard Gaussian variables."""
    half = sobol_normals(columns, count // 2)
    points = np.concatenate([half, -half])
    points.setflags(write=False)
    return points


def kept(x: np.ndarray, threshold: float) -> np.ndarray:
    """Eigenvalues that S over its scale keeps of the eigenvalues x of S* + noise Z."""
    return np.maximum(x - threshold, 0.0) if np.isfinite(threshold) else x


class Learned(NamedTuple):
    """Learned matrix S = scale (S* + noise Z - threshold)_+ (attention 9, attention 10)."""

    law: SpectralLaw
    threshold: float
    """Threshold on the eigenvalues; minus infinity if S = scale (S* + noise Z) (attention 23)."""
    scale: float
    overlap: float
    """Overlap m = Tr S S* / d."""
    norm: float
    """Norm q = Tr S² / d."""
    response: float
    """Response Sigma of an output to its message."""


class Seen(NamedTuple):
    """Conjugates of norm, overlap and response, computed as means over samples (attention 11)."""

    norm: float
    overlap: float
    response: float
    growth: float
    """Mean squared norm of the derivative dg/domega, times 2 alpha; the replicon uses this value."""
    train_error: float


@dataclass
class Evolution:
    """Maps from learned matrix to conjugates and back, and the joint fixed point of these two maps."""

    output: Output
    target: Measure
    sample_ratio: float
    noise: float
    regularisation: float
    teacher: Output | None = None
    """Output of the target; default the output of the learner."""
    ridge: bool = False
    """Penalty on the squared Frobenius norm of S instead of on its trace."""
    energy: float = field(init=False)
    _messages: dict[int, np.ndarray] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.energy = float(self.target.node_weights @ self.target.nodes**2)

    def labels(self, indices: np.ndarray) -> np.ndarray:
        """Labels (n, o) of the target for noisy indices (n, k)."""
        return (self.teacher or self.output).values(indices)

    def learn(
        self, conjugates: np.ndarray, law: SpectralLaw | None = None, *, rough: bool = False
    ) -> Learned:
        """Compute the learned matrix from the logarithms of the conjugates (norm, overlap, response)."""
        q_hat, m_hat, response_hat = np.exp(conjugates)
        if self.ridge:
            return self._shrunk(q_hat, m_hat, response_hat, law)
        # scale eta = m^ / Sigma^, noise delta = sqrt(q^) / m^, threshold epsilon = 2 lambda / m^
        # (attention 9)
        eta, delta, epsilon = (
            m_hat / response_hat,
            np.sqrt(q_hat) / m_hat,
            2 * self.regularisation / m_hat,
        )
        tolerance = 1e-2 if rough else 1e-8
        law = law or SpectralLaw(self.target, noise=float(delta), tolerance=tolerance)
        if rough:
            points, weights = law.points, law.weights
        else:
            _, points, weights = tail_rule(law, np.array([epsilon]))
        f = np.maximum(points.x - epsilon, 0.0)
        # q = eta² <f²>, m = eta <f (x - 2 delta² h)>, Sigma = 2 <f h> / Sigma^, delta² h = x - u
        # (attention 10)
        return Learned(
            law=law,
            threshold=float(epsilon),
            scale=float(eta),
            overlap=float(eta * weights @ (f * (2 * points.u - points.x))),
            norm=float(eta**2 * weights @ f**2),
            response=float(2 / response_hat * weights @ (f * (points.x - points.u)) / delta**2),
        )

    def _shrunk(
        self, q_hat: float, m_hat: float, response_hat: float, law: SpectralLaw | None
    ) -> Learned:
        """Compute the learned matrix of a penalty on its squared Frobenius norm."""
        # S = eta (S* + delta Z), eta = m^ / (Sigma^ + 4 lambda), delta = sqrt(q^) / m^
        # q = eta² (Q + delta²), m = eta Q, Sigma = 1 / (Sigma^ + 4 lambda)   (attention 23)
        response = 1 / (response_hat + 4 * self.regularisation)
        eta, delta = m_hat * response, float(np.sqrt(q_hat) / m_hat)
        return Learned(
            law=law or SpectralLaw(self.target, noise=delta),
            threshold=-np.inf,
            scale=float(eta),
            overlap=float(eta * self.energy),
            norm=float(eta**2 * (self.energy + delta**2)),
            response=float(response),
        )

    def indices(self, learned: Learned, count: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
        """Draw noisy indices of the target and, jointly, indices of the learned matrix."""
        points, k = gaussian_points(2 * self.output.size, count), self.output.size
        m, q, total = learned.overlap, learned.norm, self.energy + noise / 2
        seen = np.sqrt(total) * points[:, :k]
        rest = np.sqrt(max(q - m**2 / total, 0.0))
        return seen, m / total * seen + rest * points[:, k:]

    def look(self, learned: Learned, count: int) -> Seen:
        """Compute the conjugates of a learned matrix by averages over samples (attention 11)."""
        output, variance = self.output, learned.response
        seen, omega = self.indices(learned, count, self.noise)
        labels = self.labels(seen)
        # start from the messages of the previous call
        last = self._messages.get(count)
        start = omega if last is None else omega + variance * last
        s = proximal(output, labels, omega, variance, start)
        found = responses(output, self.teacher or output, s, labels, seen, variance)
        self._messages[count] = found.forces
        twice = 2 * self.sample_ratio
        # q^ = 2 alpha E|g|², m^ = 2 alpha E tr dg/ds*, Sigma^ = -2 alpha E tr dg/domega   (attention 11)
        return Seen(
            norm=twice * float(np.mean(np.sum(found.forces**2, axis=1))),
            overlap=twice * found.overlap,
            response=twice * found.response,
            growth=twice * found.growth,
            train_error=found.loss,
        )

    def fixed_point(
        self,
        count: int,
        start: np.ndarray | None = None,
        *,
        within: float = 1e-7,
        history: Anderson | None = None,
    ) -> tuple[np.ndarray, Learned, Seen, float]:
        """Fixed point of `learn` and `look`: conjugates, learned matrix, sample averages, residual."""
        if start is None:
            half = 0.5 * self.energy
            law = SpectralLaw(self.target, noise=1.0)
            start = _logarithms(self.look(Learned(law, 0.0, 1.0, half, half, 1.0), count))
        last: list[tuple[Learned, Seen]] = []

        def step(x: np.ndarray) -> np.ndarray:
            learned = self.learn(x, rough=within > 1e-6)
            last[:] = [(learned, self.look(learned, count))]
            return _logarithms(last[0][1])

        x, residual = fixed_point(
            step, start, within=within, history=history,
            what="state evolution of the attention head",
            remedy="Raise regularisation, or move sample_ratio away from interpolation_ratio.",
        )  # fmt: skip
        return x, *last[0], residual

    def solve(
        self, start: np.ndarray | None = None, count: int | None = None
    ) -> tuple[np.ndarray, Learned, Seen, float]:
        """Solve with few quadrature points, then refine the fixed point with many points."""
        count = fine_points(self.output.size) if count is None else count
        history = Anderson()
        if start is None:
            start = self.fixed_point(COARSE, within=1e-4, history=history)[0]
            # the changes of the coarse map with its argument are also those of the fine map
            history.last = None
        return self.fixed_point(count, start, history=history)

    def split(self, learned: Learned, count: int = 4_096) -> float:
        """Fraction of samples whose proximal problem has two local minima."""
        seen, omega = self.indices(learned, count, self.noise)
        labels = self.labels(seen)
        ends = [
            proximal(self.output, labels, omega, learned.response, place)
            for place in (omega, seen, np.zeros_like(seen))
        ]
        apart = [np.abs(end - ends[0]).max(axis=1) > 1e-4 for end in ends[1:]]
        return float(np.mean(apart[0] | apart[1]))


def _logarithms(seen: Seen) -> np.ndarray:
    values = np.array([seen.norm, seen.overlap, seen.response])
    if not (np.isfinite(values) & (values > 0)).all():
        raise NotConverged(
            f"state evolution of the attention head left its domain: the conjugates are "
            f"{values.tolist()}; allowed: positive numbers. Raise regularisation or lower "
            "inverse_temperature.",
            {"conjugates": values.tolist()},
        )
    return np.asarray(np.log(values))
