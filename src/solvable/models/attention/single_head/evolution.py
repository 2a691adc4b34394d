"""State evolution of a trained head: overlap m, norm q, response Sigma, and their conjugates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solvable.errors import NotConverged
from solvable.models.attention.single_head.outputs import (
    Output,
    forces,
    inverses,
    losses,
    proximal,
)
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
    from scipy.special import ndtri
    from scipy.stats import qmc

    half = ndtri(qmc.Sobol(columns, seed=0).random(count // 2))
    points = np.concatenate([half, -half])
    points.setflags(write=False)
    return points


class Learned(NamedTuple):
    """Learned matrix S = scale (S* + noise Z - threshold)_+ (attention 9, attention 10)."""

    law: SpectralLaw
    threshold: float
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
    energy: float = field(init=False)
    _messages: dict[int, np.ndarray] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.energy = float(self.target.node_weights @ self.target.nodes**2)

    def labels(self, indices: np.ndarray) -> np.ndarray:
        """Labels (n, o) of the target for noisy indices (n, k)."""
        return (self.teacher or self.output).values(indices)

    def learn(self, conjugates: np.ndarray) -> Learned:
        """Compute the learned matrix from the logarithms of the conjugates (norm, overlap, response)."""
        q_hat, m_hat, response_hat = np.exp(conjugates)
        # scale eta = m^ / Sigma^, noise delta = sqrt(q^) / m^, threshold epsilon = 2 lambda / m^
        # (attention 9)
        eta, delta, epsilon = (
            m_hat / response_hat,
            np.sqrt(q_hat) / m_hat,
            2 * self.regularisation / m_hat,
        )
        law = SpectralLaw(self.target, noise=float(delta))
        _, points, weights = tail_rule(law, np.array([epsilon]))
        f = points.x - epsilon
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
        g = forces(output, s, labels)
        self._messages[count] = g
        curvature = output.hessian(s, labels, convex=False)
        # s = omega + Sigma g(s): ds/domega = P = (1 + Sigma H)^-1, dg/domega = -H P
        step = inverses(np.eye(output.size) + variance * curvature)
        change = curvature @ step
        cross = output.jacobian(s).transpose(0, 2, 1) @ (self.teacher or output).jacobian(seen)
        twice = 2 * self.sample_ratio
        # q^ = 2 alpha E|g|², m^ = 2 alpha E tr dg/ds*, Sigma^ = -2 alpha E tr dg/domega   (attention 11)
        return Seen(
            norm=twice * float(np.mean(np.sum(g**2, axis=1))),
            overlap=twice * 2 * float(np.mean(np.einsum("nij,nji->n", step, cross))),
            response=twice * float(np.mean(np.einsum("nii->n", change))),
            growth=twice * float(np.mean(np.sum(change**2, axis=(1, 2)))),
            train_error=float(np.mean(losses(output, s, labels))),
        )

    def fixed_point(
        self, count: int, start: np.ndarray | None = None
    ) -> tuple[np.ndarray, Learned, Seen, float]:
        """Fixed point of `learn` and `look`: conjugates, learned matrix, sample averages, residual."""
        if start is None:
            half = 0.5 * self.energy
            law = SpectralLaw(self.target, noise=1.0)
            start = _logarithms(self.look(Learned(law, 0.0, 1.0, half, half, 1.0), count))
        x, history = start, _History()
        residual = np.inf
        for _ in range(500):
            learned = self.learn(x)
            seen = self.look(learned, count)
            image = _logarithms(seen)
            residual = float(np.abs(image - x).max())
            if residual < 1e-7:
                return x, learned, seen, residual
            x = history.next(x, image)
        raise NotConverged(
            f"state evolution of the attention head did not converge: the residual is {residual:.2g} "
            "after 500 steps; allowed: below 1e-7. Raise regularisation, or move sample_ratio away from "
            "interpolation_ratio.",
            {"residual": residual, "conjugates": np.exp(x).tolist()},
        )

    def solve(
        self, start: np.ndarray | None = None, count: int | None = None
    ) -> tuple[np.ndarray, Learned, Seen, float]:
        """Solve with few quadrature points, then refine the fixed point with many points."""
        count = fine_points(self.output.size) if count is None else count
        if start is None:
            start = self.fixed_point(COARSE)[0]
        return self.fixed_point(count, start)

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


class _History:
    """Anderson extrapolation of a fixed-point iteration with three unknowns."""

    def __init__(self) -> None:
        self.places: list[np.ndarray] = []
        self.steps: list[np.ndarray] = []

    def next(self, x: np.ndarray, image: np.ndarray) -> np.ndarray:
        """Return the next point: the map's image, or the extrapolation if the last steps were small."""
        step = image - x
        if np.abs(step).max() > 0.3:
            self.places, self.steps = [], []
            return image
        self.places, self.steps = [*self.places, x][-4:], [*self.steps, step][-4:]
        if len(self.steps) < 2:
            return image
        change, moved = np.diff(self.steps, axis=0).T, np.diff(self.places, axis=0).T
        share = np.linalg.lstsq(change, step, rcond=1e-10)[0]
        ahead = step - (moved + change) @ share
        return np.asarray(x + ahead) if np.abs(ahead).max() < 0.5 else image
