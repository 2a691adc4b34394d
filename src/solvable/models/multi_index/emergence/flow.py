"""Gradient flow on the population loss: every student with every feature and every other student."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.multi_index.emergence.link import EvenLink, population_loss


@dataclass(frozen=True)
class FlowState:
    """Cosines with the features, shape (m, P), and squared norms of the students."""

    cosines: np.ndarray
    norms: np.ndarray

    def loss(self, link: EvenLink, strengths: np.ndarray) -> float:
        """Half the mean squared distance to the teacher over all inputs."""
        mutual = (self.cosines @ self.cosines.T) ** 2
        np.fill_diagonal(mutual, 1.0)
        return population_loss(link, strengths, self.norms, self.cosines**2, mutual)


def population_flow(
    strengths: np.ndarray,
    cosines: np.ndarray,
    link: EvenLink,
    time: float,
    *,
    initial_norm: float,
    dimension: int = 2,
    gradient_noise: float = 0.0,
    label_noise: float = 0.0,
) -> FlowState:
    """Integrate by Runge-Kutta; cosines of students outside the span of the features count as 0."""
    state = (cosines.astype(float), np.full(len(cosines), float(initial_norm)))
    # The fastest relaxation is that of the first overlap, 2 a K'(1).
    count = max(1, int(np.ceil(time * strengths[0] * link.activity / 0.4)))
    h = time / count

    def slope(s: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mutual, toward = _kernels(link, s @ s.T)
        own, pulls = _kernels(link, s)
        # ds/dt = P_perp (sum_p a_p K'(s_p) w_p - sum_{i != j} n_i K'(g_ij) v_i)
        np.fill_diagonal(toward, 0.0)
        np.fill_diagonal(mutual, link.kernel(np.array(1.0)))
        force = strengths * pulls - (n * toward) @ s
        found, others = own @ strengths, mutual @ n
        loss = 0.5 * (strengths @ strengths - 2 * n @ found + n @ others)
        kappa = gradient_noise * link.activity * (2 * loss + label_noise)
        radial = np.einsum("jp,jp->j", force, s) + 0.5 * kappa * (dimension - 1)
        # dn/dt = 4 n (sum_p a_p K(s_p) - sum_i n_i K(g_ij)) + kappa (d - 1) n
        growth = 4 * (found - others) + kappa * (dimension - 1)
        return force - radial[:, None] * s, n * growth

    for _ in range(count):
        s, n = state
        k1 = slope(s, n)
        k2 = slope(s + h / 2 * k1[0], n + h / 2 * k1[1])
        k3 = slope(s + h / 2 * k2[0], n + h / 2 * k2[1])
        k4 = slope(s + h * k3[0], n + h * k3[1])
        state = tuple(
            x + h / 6 * (w1 + 2 * w2 + 2 * w3 + w4)
            for x, w1, w2, w3, w4 in zip(state, k1, k2, k3, k4, strict=True)
        )
    return FlowState(*state)


def _kernels(link: EvenLink, cosines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kernel K(s) and its derivative K'(s) = (s K'(s)) / s of cosines."""
    squares = cosines**2
    safe = np.where(np.abs(cosines) < 1e-12, 1.0, cosines)
    return link.kernel(squares), link.pull(squares) / safe
