"""Pair of eigenvalues that an activation's constant part adds to a filter of lifted features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from solvable.arrays import check_integer, check_positive
from solvable.hermite import gaussian_quadrature
from solvable.models.lofi.lift import LiftedPrediction, activation_energies, predict_lifted_filter
from solvable.operators.activations import evaluate
from solvable.spectra.edge_levels import FIRST, SECOND
from solvable.spectra.label_law import LabelLaw


def predict_lifted_null(
    law: LabelLaw,
    *,
    ratio: float,
    dimension: int,
    activation: str = "relu",
    centred: bool = False,
    raw_labels: bool = False,
) -> float:
    """Mean of the largest eigenvalue modulus, times n, of a lifted filter with shuffled labels."""
    check_positive(ratio=ratio)
    check_integer("dimension", dimension, 3)
    # With shuffled labels every coordinate has variance 1 given the label.
    blind = LabelLaw(law.weights, law.probabilities, np.ones((law.weights.size, 1)))
    ends = [
        predict_lifted_filter(facing, ratio=ratio, activation=activation, dimension=dimension)
        for facing in (blind, blind.mirrored())
    ]
    # standard deviation 1.268 of the Tracy-Widom law, over the mean gap between the first two levels
    scatter = [1.268 / (FIRST - SECOND) * (end.eigenvalue - end.next_eigenvalue) for end in ends]
    edge = _mean_of_larger([end.eigenvalue for end in ends], scatter)
    if centred or activation_energies(activation)[0] < 1e-9:
        return edge
    # The constant c_0 adds a pair of eigenvalues, lambda² - a lambda - B² = 0, near
    # +-c_0 sqrt(n (c_1² + c_*²) tau_2); a direction of strength theta is near n c_1² theta / d (lofi 14)
    pair = _pair(blind, ratio, dimension, activation, raw_labels=raw_labels)
    # Larger modulus of the pair: |lambda| = |a| / 2 + sqrt(a² / 4 + B²), not smooth at a = 0
    corner = (-pair.mean / pair.deviation,) if pair.deviation > 1e-12 else ()
    z, chance = gaussian_quadrature(48, corner)
    a = np.abs(pair.mean + pair.deviation * z)
    return max(edge, float(chance @ (a / 2 + np.sqrt(a**2 / 4 + pair.square))))


def predict_published_filter(
    law: LabelLaw,
    *,
    ratio: float,
    dimension: int,
    activation: str = "relu",
    raw_labels: bool = False,
) -> LiftedPrediction:
    """Predict a lifted filter of uncentred features, without the eigenvalue of their constant part."""
    found = predict_lifted_filter(law, ratio=ratio, activation=activation, dimension=dimension)
    constant, linear, _ = activation_energies(activation)
    if constant < 1e-9:
        return found
    pair = _pair(law, ratio, dimension, activation, raw_labels=raw_labels)
    clipped = law.clipped(ratio * dimension)
    own = float((clipped.probabilities * clipped.weights**2) @ clipped.second_moments[:, 0])
    z, chance = gaussian_quadrature(16, (0.0,))
    u, share = gaussian_quadrature(12)
    # matrix [[a, h, B], [h, n lambda, 0], [B, 0, 0]] in the basis of the constant, the direction, and the
    # first moment of the other features (lofi 16)
    matrix = np.zeros((z.size, u.size, 3, 3))
    matrix[..., 0, 0] = pair.mean + pair.deviation * u
    # h² = c_0² c_1² alpha E[T² s²] xi², xi ~ N(0, 1)   (lofi 16)
    matrix[..., 1, 0] = (math.sqrt(constant * linear * ratio * own) * z)[:, None]
    matrix[..., 1, 1] = found.eigenvalue
    matrix[..., 2, 0] = math.sqrt(pair.square)
    values, vectors = np.linalg.eigh(matrix)
    direction, rest = vectors[..., 1, 1] ** 2, vectors[..., 2, 1] ** 2
    kept = direction / (direction + pair.linear_share * rest)
    return replace(
        found,
        eigenvalue=float(chance @ values[..., 1] @ share),
        squared_overlap=found.squared_overlap * float(chance @ kept @ share),
    )


def kept_by_deflation(
    law: LabelLaw,
    *,
    ratio: float,
    dimension: int,
    activation: str,
    first_moment: tuple[float, float],
) -> float:
    """Fraction of the squared overlap that remains after the first moment is projected out."""
    mean, overlap = (
        first_moment  # E[T s], and the squared overlap of the first moment's linear part
    )
    _, linear, tail = activation_energies(activation)
    n, power = ratio * dimension, law.weight_power
    _, second = _hermite_coefficients(activation)
    # s: fraction of the first moment's squared length in its linear part (lofi 18)
    ours = linear * n * (power + ratio * mean**2)
    s = ours / (ours + tail * n * power + (second * ratio * float(law.strengths[0])) ** 2)
    # theta - v (v.theta) with v.theta = sqrt(s) c, c² the overlap, has the linear part theta - s c u:
    # (1 - s c²)² / ((1 - s c²)² + s² c² (1 - c²))   (lofi 18)
    along, across = (1 - s * overlap) ** 2, s**2 * overlap * (1 - overlap)
    return along / (along + across)


def _hermite_coefficients(activation: str) -> tuple[float, float]:
    """Coefficients c_0 and c_2 of an activation in normalised Hermite polynomials."""
    nodes, chance = gaussian_quadrature(128, (0.0,))
    values = evaluate(activation, nodes)
    return float(chance @ values), float(chance @ (values * (nodes**2 - 1))) / math.sqrt(2)


@dataclass(frozen=True)
class _Pair:
    """Eigenvalues of the constant part: lambda² - a lambda - B² = 0 (lofi 14)."""

    mean: float  # E[a]
    deviation: float  # standard deviation of a between samples
    square: float  # B²
    linear_share: float  # fraction of B² from the noise of the linear features


def _pair(
    law: LabelLaw, ratio: float, dimension: int, activation: str, *, raw_labels: bool
) -> _Pair:
    n = ratio * dimension
    law = law.clipped(n)
    T = law.weights - law.mean_weight
    power, third, fourth = (float(law.probabilities @ T**q) for q in (2, 3, 4))
    constant, linear, tail = activation_energies(activation)
    # C = c_0² + c_2² / d: the mean over features of degree 2 adds to the constant (lofi 13)
    first, second = _hermite_coefficients(activation)
    whole = constant + second**2 / dimension
    # 1 = C sum_mu T / (lambda - k T), k = c_1² / (1 - c_1² / (C d)) + c_*²   (lofi 13), expanded to the
    # fourth moment of T: B² = C n k tau_2 + k² tau_4 / tau_2, E[a] = k tau_3 / tau_2   (lofi 14)
    k = linear / (1 - min(linear / (whole * dimension), 0.5)) + tail
    signal = ratio * float(law.strengths[0])  # n E[T (s² - 1)] / d
    square = whole * n * k * power + k**2 * fourth / power + constant * (second * signal) ** 2
    # a = sum_mu T_mu (c_0² + sqrt(2) c_0 c_2 (|x_mu|² / d - 1)), Var |x|² = 2 d: Var a (lofi 14)
    spread = 4 * constant * second**2 / dimension + (whole**2 if raw_labels else 0.0)
    return _Pair(
        mean=k * third / power + math.sqrt(2) * first * second * signal,
        deviation=math.sqrt(n * power * spread),
        square=square,
        linear_share=constant * linear * n * power / square,
    )


def _mean_of_larger(means: list[float], deviations: list[float]) -> float:
    """Mean of the larger of two independent Gaussians."""
    # E max = m_1 Phi(t) + m_2 Phi(-t) + s phi(t), t = (m_1 - m_2) / s, s² = s_1² + s_2²
    s = math.hypot(*deviations)
    t = (means[0] - means[1]) / s
    share = 0.5 * (1 + math.erf(t / math.sqrt(2)))
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return means[0] * share + means[1] * (1 - share) + s * density
