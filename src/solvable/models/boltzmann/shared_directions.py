"""Stability of two units that learn different spikes or share one spike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.boltzmann.evolution import LARGEST_COUPLING, UnitState, nodes, unit_state


@dataclass(frozen=True)
class SharedState:
    """Fixed point at which two units have equal weights."""

    unit: UnitState
    V: float  # effective coupling of the difference between the two units
    replicon: float
    growth: float

    @property
    def stable(self) -> bool:
        """Return True if no other maximum is nearby and differences between the units decay."""
        return max(self.replicon, self.growth) < 1 and max(self.V, self.unit.V) < LARGEST_COUPLING


def apart_growth(one: UnitState, two: UnitState, sample_ratio: float) -> tuple[float, float]:
    """Growth per step of the direction shared by two units on two spikes, and of their rotation."""
    # State evolution is linearised in M_12, M_21, Q_12 and V_12   (boltzmann 12). Returned: the growth of
    # shared directions, then of a rotation within the plane of both, which keeps overlaps of the span.
    alpha = sample_ratio
    V1, V2 = one.V, two.V
    s1, s2 = np.sqrt(one.spike), np.sqrt(two.spike)
    b1, b2 = one.slope, two.slope  # mean slopes alpha E[g']
    own1, own2 = s1 * one.signal, s2 * two.signal  # overlap fields sqrt(lambda) alpha E[u g]

    def step(M12: float, M21: float, Q12: float, V12: float) -> list[float]:
        # g_1 changes by g_1' (sqrt(lambda_2) M_12 u_2 + V_12 g_2)   (boltzmann 12); Q_12 by Price's
        # theorem
        to12 = s2 * b1 * (s2 * M12 + V12 * two.signal / alpha)
        to21 = s1 * b2 * (s1 * M21 + V12 * one.signal / alpha)
        power = (
            Q12 * b1 * b2 / alpha
            + (b1 * (s2 * M12) * two.signal + b2 * (s1 * M21) * one.signal) / alpha
            + V12 * (b1 * two.power + b2 * one.power) / alpha
        )
        common = own1 * to21 + to12 * own2 + power
        slope = V12 * b1 * b2 / alpha
        # V_12' = -V_1 V_2 (alpha Q_12' - b_12)   (boltzmann 12), with Q' = V (M M^T + T) V
        width1, width2 = own1**2 + one.power, own2**2 + two.power
        gain = V1 * width1 + V2 * width2
        new_Q = (V1 * V2 * (common + gain * slope)) / (1 + V1 * V2 * gain * alpha)
        new_V = -V1 * V2 * (alpha * new_Q - slope)
        return [V1 * to12 + new_V * own2, V2 * to21 + new_V * own1, new_Q, new_V]

    # ignore negative eigenvalues, which are oscillations of the algorithm
    values, vectors = np.linalg.eig(np.column_stack([step(*row) for row in np.eye(4)]))
    mixed, joined = np.abs(vectors[:2]).max(axis=0), np.abs(vectors[2])
    turning = joined < 0.3 * mixed
    growths = [values.real[kind].max(initial=0.0) for kind in (~turning, turning)]
    return float(growths[0]), float(growths[1])


def shared_state(
    spike: float, sample_ratio: float, weight_decay: float, second: float = 0.0
) -> SharedState:
    """State of two units with equal weights on one spike, and the growth of their difference."""
    # the difference between the units can grow along the spike or along a second spike
    alpha, c = sample_ratio, 1 + weight_decay
    state = unit_state(spike, alpha, weight_decay, partner=True)
    repulsion = np.tanh(state.q)
    z, density, omega = nodes(np.sqrt(spike) * state.m, state.q, state.V)
    g = np.tanh(z)
    e = 1 - g * g
    # V_a = 1 / (alpha (1 - tanh q + l) - alpha E[e / (1 - V_a e)])
    V = 0.1 / c
    for _ in range(3_000):
        G = e / (1 - V * e)
        room = alpha * (c - repulsion) - alpha * (density @ G)
        new, V = V, min(1 / room, LARGEST_COUPLING) if room > 0 else LARGEST_COUPLING
        if abs(new - V) < 1e-12:
            break
    G = e / (1 - V * e)
    replicon = alpha * V**2 * (density @ (G * G))
    s = np.sqrt(spike)
    xi = omega - s * state.m
    # dG/d omega by the chain rule: de/dz = -2 g e, dz/d omega = 1 / (1 - V_s e)
    slope = -2 * g * e / (1 - V * e) ** 2 / (1 - state.V * e)
    own = s * state.signal
    rows = []
    for m, kappa, nu in np.eye(3):
        # omega_a = sqrt(lambda) m u + (kappa / q) xi + a free part; u = 1 by symmetry
        field = s * m + kappa / state.q * xi + nu * g
        signal = s * alpha * (density @ (G * field))
        common = alpha * (density @ (g * G * field))
        new_nu = state.V * V * alpha * (density @ (slope * field + G * nu * e / (1 - state.V * e)))
        width = own**2 + state.power
        new_kappa = state.V * V * (own * signal + common) + new_nu * state.V * width
        rows.append([V * signal + new_nu * own, new_kappa, new_nu])
    growth = np.linalg.eigvals(np.array(rows)).real.max()
    growth = max(float(growth), V * second * alpha * float(density @ G))
    return SharedState(state, V, max(state.replicon, replicon), growth)
