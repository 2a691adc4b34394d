"""Gradient flow on the population loss, for the overlaps of all student-feature pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.multi_index.emergence.link import EvenLink


@dataclass(frozen=True)
class FlowCourse:
    """Time courses averaged over starts, and the final state reached from each start."""

    times: np.ndarray
    loss: np.ndarray  # half the mean squared distance to the teacher, (T,)
    captured: np.ndarray  # captured share of each feature, (T, P)
    squared_overlap: np.ndarray  # largest squared overlap of a student with each feature, (T, P)
    cosines: np.ndarray  # final cosines of students and features, (starts, m, P)
    norms: np.ndarray  # final squared norms of students, (starts, m)


def flow_step(strengths: np.ndarray, link: EvenLink) -> float:
    """Return the integration step, set by the fastest rate 2 a K'(1): that of the first feature."""
    return float(0.8 / (strengths[0] * link.activity))


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
    step: float | None = None,
) -> FlowCourse:
    """Integrate the flow by Runge-Kutta from cosines of shape (starts, m, P)."""

    def slope(s: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, pulls, toward, excess, loss = fits(strengths, link, s, n)
        # The unit vector v_j of a student follows   (multi-index 31)
        # dv_j/dt = P_perp (sum_p a_p K'(s_p) w_p - sum_{i != j} n_i K'(g_ij) v_i).
        force = strengths * pulls - (toward * n[:, None, :]) @ s
        kappa = gradient_noise * link.activity * (2 * loss + label_noise)[:, None] * (dimension - 1)
        radial = np.einsum("rjp,rjp->rj", force, s) + 0.5 * kappa
        # squared norm of a student: dn/dt = 4 n (sum_p a_p K(s_p) - sum_i n_i K(g_ij)) + kappa (d - 1) n
        return force - radial[:, :, None] * s, n * (4 * excess + kappa)

    def row(t: float, s: np.ndarray, n: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
        own, *_, loss = fits(strengths, link, s, n)
        shares = np.einsum("rj,rjp->rp", n, own).mean(axis=0) / strengths
        return t, float(loss.mean()), shares, (s * s).max(axis=1).mean(axis=0)

    s, n, t = cosines.astype(float), np.full(cosines.shape[:2], float(initial_norm)), 0.0
    rows, full = [row(t, s, n)], flow_step(strengths, link) if step is None else step
    while t < time * (1 - 1e-12):
        h = min(full, time - t)
        k1 = slope(s, n)
        k2 = slope(s + h / 2 * k1[0], n + h / 2 * k1[1])
        k3 = slope(s + h / 2 * k2[0], n + h / 2 * k2[1])
        k4 = slope(s + h * k3[0], n + h * k3[1])
        s, n = (
            x + h / 6 * (w1 + 2 * w2 + 2 * w3 + w4)
            for x, w1, w2, w3, w4 in zip((s, n), k1, k2, k3, k4, strict=True)
        )
        t += h
        rows.append(row(t, s, n))
    times, loss, captured, overlap = (np.array(column) for column in zip(*rows, strict=True))
    return FlowCourse(times, loss, captured, overlap, s, n)


def fits(
    strengths: np.ndarray, link: EvenLink, s: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Compute kernels and derivatives of cosines (..., m, P), each student's net fit, and the loss."""
    # Components of students outside the features' span count as orthogonal, since the kernel of two
    # random students is of order d^(-k/2).
    diagonal = np.arange(s.shape[-2])
    own, pulls = kernels(link, s)
    mutual, toward = kernels(link, s @ s.swapaxes(-2, -1))
    mutual[..., diagonal, diagonal], toward[..., diagonal, diagonal] = 1.0, 0.0
    taught, others = own @ strengths, np.einsum("...ij,...j->...i", mutual, n)
    # loss 1/2 (sum a² - 2 sum n a K + sum n n K)
    loss = 0.5 * (strengths @ strengths + np.sum(n * (others - 2 * taught), axis=-1))
    return own, pulls, toward, taught - others, loss


def kernels(link: EvenLink, cosines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the kernel K(s) and the derivative K'(s) at cosines s."""
    squares = cosines**2
    safe = np.where(np.abs(cosines) < 1e-12, 1.0, cosines)
    return link.kernel(squares), link.pull(squares) / safe
