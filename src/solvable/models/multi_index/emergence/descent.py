"""Gradient descent on the population loss in steps of the learning rate, for all pairs of overlaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.multi_index.emergence.flow import fits
from solvable.models.multi_index.emergence.link import EvenLink


@dataclass(frozen=True)
class Descent:
    """Result of gradient descent from one start."""

    loss: float  # half the mean squared distance to the teacher at the end
    escape_times: np.ndarray  # time at which half of a feature was captured, or infinity, (P,)


def population_descent(
    strengths: np.ndarray,
    cosines: np.ndarray,
    link: EvenLink,
    steps: int,
    *,
    learning_rate: float,
    initial_norm: float,
    dimension: int,
    gradient_noise: float = 0.0,
    label_noise: float = 0.0,
) -> Descent:
    """Take steps of gradient descent from cosines of students and features, shape (m, P)."""
    s, n = cosines.astype(float), np.full(len(cosines), float(initial_norm))
    escapes = np.full(strengths.size, np.inf)
    before, loss = np.zeros(strengths.size), np.array(0.0)
    for step in range(steps + 1):
        own, pulls, toward, excess, loss = fits(strengths, link, s, n)
        shares = n @ own / strengths
        crossed = np.isinf(escapes) & (shares >= 0.5) & (step > 0)
        part = (0.5 - before[crossed]) / (shares[crossed] - before[crossed])
        escapes[crossed] = (step - 1 + part) * learning_rate
        before = shares
        # A step moves the weights |v| u to |v| ((1 + 2 eta e) u + eta F), with the tangential force F and
        # the excess e = sum_p a_p K(s_p) - sum_i n_i K(g_i)   (multi-index 37).
        force = strengths * pulls - (toward * n) @ s
        along = np.einsum("jp,jp->j", force, s)
        tangent = np.einsum("jp,jp->j", force, force) - along**2
        radial = 1 + 2 * learning_rate * excess
        growth = radial**2 + learning_rate**2 * np.maximum(tangent, 0.0)
        moved = radial[:, None] * s + learning_rate * (force - along[:, None] * s)
        noise = gradient_noise * link.activity * (2 * loss + label_noise) * (dimension - 1)
        s = moved * ((1 - 0.5 * learning_rate * noise) / np.sqrt(growth))[:, None]
        n = n * growth * (1 + learning_rate * noise)
    return Descent(float(loss), escapes)
