r"""Quadratic networks that learn few features, to first order in the share of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter
from solvable.spectra.measures import DiscreteMeasure
from solvable.spectra.roots import bracketed_root
from solvable.spectra.semicircle_tail import semicircle_tail


@dataclass(frozen=True)
class DiluteState:
    """Prediction to first order in the number of features over d."""

    effective_noise: float  # delta
    threshold: float  # b
    regularisation: float  # regularisation lambda at which delta and b solve the equations
    matrix_error: float  # R


def spike_error(strength: np.ndarray | float, *, shrinkage: float) -> tuple[np.ndarray, np.ndarray]:
    """Error over delta², and degrees of freedom, that one feature adds to a bulk (quadratic 11)."""
    # r = s / delta, a = b / delta, and g_1 = d/dz log(1 - s / omega) is the resolvent of one feature.
    # With x = 2 cos phi the feature moves C(x) eigenvalues across x,
    #     C = arg(1 - r e^(-i phi)) / pi up to 2, and 1 between 2 and r + 1/r where r > 1,
    # so that J changes by J_1 = int_a 2 (x - a) C(x) dx, and
    #     e = r² + J_1 - r dJ_1/dr,  4 A_1 = 2 J_1 - r dJ_1/dr - a dJ_1/da.
    # For a >= 2 the error is (1/r - a)² + (2/r) (r + 1/r - a)  (quadratic 10). For smaller a the feature
    # pushes the bulk down, which lowers the error.
    r = np.atleast_1d(np.asarray(strength, dtype=np.float64)).ravel()[:, None]
    a = float(shrinkage)
    angle, weights = _angles(a)
    rise = 2 * np.cos(angle) - a
    moved = np.arctan2(r * np.sin(angle), 1 - r * np.cos(angle)) / np.pi
    speed = r * np.sin(angle) / (np.pi * np.maximum(1 - 2 * r * np.cos(angle) + r**2, 1e-300))
    total = (2 * rise * moved) @ weights
    scaled = (2 * rise * speed) @ weights
    count = moved @ weights
    r = r[:, 0]
    inverse = 1 / np.maximum(r, 1e-300)
    start = max(a, 2.0)
    out = (r > 1) & (r + inverse > start)
    rise_out, free = np.where(out, r + inverse - a, 0.0), (start - a) ** 2
    # Strong features use (quadratic 10), as r² + J_1 - r dJ_1/dr would lose all digits.
    spike = np.where(out, (inverse - a) ** 2 + 2 * inverse * rise_out - free, r**2)
    error = spike + total - scaled
    total = total + np.where(out, rise_out**2 - free, 0.0)
    scaled = scaled + 2 * rise_out * (r - inverse)
    count = count + np.where(out, rise_out - (start - a), 0.0)
    freedom = (2 * total - scaled + 2 * a * count) / 4
    shape = np.shape(strength)
    return error.reshape(shape), freedom.reshape(shape)


def _angles(a: float) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature over the bulk above a, with angles that are dense near the edge."""
    if a >= 2:
        return np.zeros(1), np.zeros(1)
    nodes, rule = np.polynomial.legendre.leggauss(40)
    end = 2 * np.arcsin(np.sqrt((2 - a) / 4))
    place = (1 + nodes) / 2
    angle = end * place**3
    return angle, 2 * np.sin(angle) * end * 3 * place**2 * rule / 2


def dilute_state(
    target: DiscreteMeasure, *, sample_ratio: float, label_noise: float, shrinkage: float
) -> DiluteState:
    """Network with a given ratio b/delta; the bulk disappears at a ratio of 2."""
    # R = delta² j(a) + delta² int e(s/delta, a) mu(ds) = 2 alpha delta² - Delta/2 and
    # lambda = 4 a delta (alpha - A(a) - int A_1 mu(ds)), with e and A_1 of (quadratic 11). A negative
    # lambda means that no network has this ratio. The function of log(delta) below decreases.
    strengths, masses = target.nodes, target.node_weights
    bulk = semicircle_tail(shrinkage)
    energy = float(masses @ strengths**2)

    def excess(log_noise: float) -> float:
        variance = np.exp(2 * log_noise)
        errors, _ = spike_error(strengths / np.sqrt(variance), shrinkage=shrinkage)
        fitted = bulk.second + float(masses @ errors) - 2 * sample_ratio
        return float(fitted + label_noise / (2 * variance))

    start = 0.5 * np.log((energy + label_noise / 2) / (2 * sample_ratio))
    ends = (excess(start - 40), excess(start + 40))
    if not ends[0] > 0 > ends[1]:
        raise InvalidParameter(
            f"no solution for sample_ratio {sample_ratio}, label noise {label_noise} and shrinkage "
            f"{shrinkage}: the error vanishes, or the noise learned by the bulk exceeds the noise in the "
            "samples. Use label noise, fewer samples or a shrinkage closer to 2."
        )
    noise = float(np.exp(bracketed_root(excess, start - 40, start + 40, absolute=1e-13, ends=ends)))
    _, freedom = spike_error(strengths / noise, shrinkage=shrinkage)
    free = sample_ratio - bulk.slope - float(masses @ freedom)
    return DiluteState(
        effective_noise=noise,
        threshold=shrinkage * noise,
        regularisation=4 * shrinkage * noise * free,
        matrix_error=2 * sample_ratio * noise**2 - label_noise / 2,
    )
