"""Online stochastic gradient descent on both layers of a 2-homogeneous network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.multi_index.emergence.link import (
    EvenLink,
    amplitudes,
    even_link,
    population_loss,
)
from solvable.models.multi_index.emergence.parameters import EmergenceParameters


@dataclass(frozen=True)
class Student:
    """Trained network f(x) = sum_j |v_j|² sigma(<v_j, x> / |v_j|) with students v_j."""

    weights: np.ndarray  # weights with rows v_j, (m, d)
    escape_times: np.ndarray  # time at which half of a feature was captured, or infinity, (P,)

    @property
    def norms(self) -> np.ndarray:
        """Squared norms of the students, shape (m,)."""
        return np.asarray(np.einsum("jd,jd->j", self.weights, self.weights))

    def squared_overlaps(self, features: int) -> np.ndarray:
        """Squared overlaps with the teacher's directions, the first P axes; shape (m, P)."""
        return np.asarray(self.weights[:, :features] ** 2 / self.norms[:, None])

    def loss(self, link: EvenLink, strengths: np.ndarray) -> float:
        """Population loss: half the mean squared distance to the teacher."""
        mutual = (self.weights @ self.weights.T) ** 2 / np.outer(self.norms, self.norms)
        overlaps = self.squared_overlaps(strengths.size)
        return population_loss(link, strengths, self.norms, overlaps, mutual)


def draw_student(parameters: EmergenceParameters, rng: np.random.Generator) -> np.ndarray:
    """Draw students with random directions and equal norms, shape (m, d)."""
    weights = rng.standard_normal((parameters.width, parameters.dimension))
    weights *= np.sqrt(parameters.initial_norm) / np.linalg.norm(weights, axis=1, keepdims=True)
    return weights


def captured(weights: np.ndarray, link: EvenLink, strengths: np.ndarray) -> np.ndarray:
    """Compute the captured share sum_j |v_j|² K(s_jp) / a_p of each feature."""
    n = np.einsum("jd,jd->j", weights, weights)
    kernel = link.kernel(weights[:, : strengths.size] ** 2 / n[:, None])
    return np.asarray(n @ kernel / strengths)


def train(
    start: np.ndarray, parameters: EmergenceParameters, rng: np.random.Generator
) -> Student | None:
    """Train on fresh samples in single precision; return None if the weights diverge."""
    link, features = even_link(parameters.link), parameters.features
    strengths = amplitudes(features, parameters.decay).astype(np.float32)
    weights = start.astype(np.float32)
    shape, rate = (parameters.batch, parameters.dimension), parameters.rate
    noise = np.float32(np.sqrt(parameters.noise))
    escapes, before = np.full(features, np.inf), captured(weights, link, strengths)
    for step in range(parameters.steps):
        X = rng.standard_normal(shape, dtype=np.float32)
        norms = np.sqrt(np.einsum("jd,jd->j", weights, weights))
        if not (norms < 100).all():
            return None  # diverged, since the teacher has norm 1; NaN also fails the test
        directions = weights / norms[:, None]
        U = X @ directions.T
        hidden, slopes = link.evaluate(U)
        residual = link.evaluate(X[:, :features])[0] @ strengths - hidden @ norms**2
        if noise:
            residual += noise * rng.standard_normal(parameters.batch, dtype=np.float32)
        slopes *= residual[:, None]
        # With the residual r and u = <v, x> / |v|, the negative gradient of a student v is
        # E r (|v| sigma'(u) (x - u v/|v|) + 2 v sigma(u)).
        radial = 2 * residual @ hidden - np.einsum("bj,bj->j", slopes, U)
        gradient = slopes.T @ X + radial[:, None] * directions
        weights += np.float32(rate / parameters.batch) * norms[:, None] * gradient
        after = captured(weights, link, strengths)
        crossed = np.isinf(escapes) & (after >= 0.5)
        if crossed.any():
            share = (0.5 - before[crossed]) / (after[crossed] - before[crossed])
            escapes[crossed] = (step + share) * rate
        before = after
    return Student(weights.astype(np.float64), escapes) if np.isfinite(weights).all() else None
