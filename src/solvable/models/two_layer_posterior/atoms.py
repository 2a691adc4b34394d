r"""Alignment beyond the onset in the wide limit: penalised least squares over a grid of neuron types."""

from __future__ import annotations

from math import sqrt

import numpy as np

from solvable.errors import NotConverged
from solvable.models.two_layer_posterior.large_deviation import readout_scale
from solvable.models.two_layer_posterior.overlap import (
    hermite_modes,
    linear_gain,
    power_parts,
    profile,
)


def wide_limit_alignment(
    *,
    dimension: int,
    width: int,
    samples: float,
    kappa: float,
    degree: int = 3,
    activation: str = "erf",
    readout: str = "standard",
) -> float:
    """Compute the alignment in the wide limit, where neuron numbers do not fluctuate."""
    # F/S = min over b and beta of sum_j |b_j| omega_j (1 + P sigma_a² v_j / kappa chi N)^(1/2)
    #       + P / (2 kappa S) |sum_j b_j g_j + beta x_1 - y|² + d chi beta² / (2 sigma_a² S lambda_1),
    # S = sqrt(chi N d) / sigma_a   (two-layer-posterior 15). g_j is the function of x_1 of a neuron
    # (u_j, r_j), omega² = u² + r - 1 - ln r is its weight decay, v is its mixing power, and beta is
    # the lazy linear mode (plus a constant mode if the activation has one). At d near 10 the
    # alignment is wrong by 0.1.
    scale = 1 / readout_scale(readout, width)
    size = sqrt(width * dimension / scale)
    u, r = _grid(activation)
    highest = 31
    shapes = hermite_modes(activation, range(highest + 1), u, r)
    mixing = power_parts(activation, u, r)[2]
    # Modes that mix directions raise the cost of a readout weight.
    price = np.sqrt((u * u + r - 1 - np.log(r)) * (1 + samples * scale * mixing / (kappa * width)))
    target = np.zeros(highest + 1)
    target[degree] = 1.0
    # beta² chi / (2 sigma_a² lambda S), with lambda the eigenvalues of a constant and of x_1
    constant = float(hermite_modes(activation, [0], 0.0, 1.0)[0]) ** 2
    lambdas = np.array([constant, linear_gain(activation) / dimension])
    lazy_price = 1 / (scale * size * np.maximum(lambdas, 1e-12))
    amplitude, lazy = _active_set(shapes, price, target, samples / (kappa * size), lazy_price)
    modes = shapes @ amplitude
    modes[:2] += lazy
    return float(modes[degree])


def _grid(activation: str) -> tuple[np.ndarray, np.ndarray]:
    """Grid of neurons: u from 0.05 to 6 (to 60, with both signs, unless odd), r from 0.02 to 1."""
    points = np.array([0.3, 1.1, 2.7])
    link = profile(activation).link
    odd = np.allclose(link(points), -link(-points), rtol=1e-9, atol=1e-12)
    reach = 6.0 if odd else 60.0
    u, r = np.repeat(np.geomspace(0.05, reach, 120), 60), np.tile(np.geomspace(0.02, 1.0, 60), 120)
    if odd:
        return u, r
    return np.append(u, -u), np.append(r, r)


def _active_set(
    shapes: np.ndarray, price: np.ndarray, target: np.ndarray, load: float, lazy_price: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise price.|b| + load/2 |shapes b + (beta, 0) - y|² + lazy.beta²/2 over b and beta."""
    # Active-set method of Lawson and Hanson, with signs: an atom enters if its pull exceeds its price,
    # and leaves if its amplitude would change sign. It reaches the exact minimum in finitely many steps.
    free = np.eye(target.size)[:, : lazy_price.size]
    active: list[int] = []
    signs = np.zeros(price.size)
    amplitude = np.zeros(price.size)
    lazy: np.ndarray = np.zeros(lazy_price.size)
    for _ in range(2_000):
        left = target - shapes @ amplitude - free @ lazy
        pull = load * (shapes.T @ left) / price
        pull[active] = 0.0
        entering = int(np.argmax(np.abs(pull)))
        residual = float(np.abs(pull[entering])) - 1
        if residual <= 1e-9:
            return amplitude, lazy
        active.append(entering)
        signs[entering] = np.sign(pull[entering])
        while True:
            columns = np.column_stack([shapes[:, active], free])
            hessian = load * columns.T @ columns
            count = len(active)
            # a small ridge keeps the system regular if two atoms are nearly equal
            hessian += np.diag(np.append(np.full(count, 1e-11 * load), lazy_price))
            slope = load * columns.T @ target
            slope[:count] -= price[active] * signs[active]
            solved = np.linalg.solve(hessian, slope)
            wanted = solved[:count]
            now = amplitude[active]
            turning = wanted * signs[active] <= 0
            if not turning.any():
                amplitude[active], lazy = wanted, solved[count:]
                break
            share = now[turning] / (now[turning] - wanted[turning])
            step = float(share.min())
            moved = now + step * (wanted - now)
            lazy = lazy + step * (solved[count:] - lazy)
            gone = turning & (np.abs(moved) <= 1e-14 * (1 + np.abs(now)))
            gone[np.flatnonzero(turning)[int(np.argmin(share))]] = True
            amplitude[active] = np.where(gone, 0.0, moved)
            active = [atom for atom, out in zip(active, gone, strict=True) if not out]
    raise NotConverged(
        f"the active-set method of the wide limit did not converge in 2000 exchanges at a load of "
        f"{load:.3g}; take fewer samples, or a larger kappa.",
        {"residual": residual},
    )
