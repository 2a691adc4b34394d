"""Filter after a lift (a layer of random features); the lift's nonlinear part acts as a label map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter, NotConverged
from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.operators.activations import dual_kernel, evaluate, kernel_diagonal
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import SpectrumEnd, spectrum_end
from solvable.spectra.roots import bracketed_root


def activation_energies(activation: str) -> tuple[float, float, float]:
    """Energies of an activation in Hermite degree 0, in degree 1, and in all higher degrees together."""
    # c_0² = (E sigma)², c_1² = (E sigma(z) z)², c_*² = E sigma² - c_0² - c_1²   (lofi 10)
    nodes, chance = gaussian_quadrature(128, (0.0,))
    values = evaluate(activation, nodes)
    constant, linear = float(chance @ values) ** 2, float(chance @ (values * nodes)) ** 2
    total = float(kernel_diagonal(activation, np.ones(1))[0])
    return constant, linear, max(total - constant - linear, 0.0)


@dataclass(frozen=True)
class LiftedPrediction:
    """Prediction for a filter after an infinitely wide lift; eigenvalues are multiplied by n."""

    edge: float  # upper edge of the bulk
    # outlier in the limit, or NaN; at a finite dimension the mean of the largest eigenvalue
    eigenvalue: float
    # bulk edge in the limit; at a finite dimension the mean of the second eigenvalue
    next_eigenvalue: float
    # overlap with the eigenfunction's linear part, the only part that generalises to fresh samples
    squared_overlap: float
    emergence_ratio: float  # threshold alpha_c on the sample ratio


def predict_lifted_filter(
    law: LabelLaw, *, ratio: float, activation: str = "relu", dimension: int | None = None
) -> LiftedPrediction:
    """Predict the upper spectral end of a filter after an infinite lift, for n = O(d) and even labels."""
    check_positive(ratio=ratio)
    _, linear, tail = activation_energies(activation)
    if linear <= 1e-6 * (linear + tail):
        raise InvalidParameter(
            f"the activation {activation} has no linear part, so a filter after it learns nothing about "
            "the inputs from n of order d samples; allowed: one with E[sigma(z) z] != 0, such as relu."
        )
    if abs(law.mean_weight) > 1e-6 * np.sqrt(law.weight_power):
        raise InvalidParameter(
            f"the labels have mean {law.mean_weight:.3g}; allowed: 0. Centre the label map."
        )
    if dimension is None:
        law.check_bounded()
    else:
        law = law.clipped(ratio * dimension)
    top = float(law.weights[-1])

    def end(place: float, *, rounded: bool = False) -> SpectrumEnd:
        # G = c_0² 1 1^T + c_1² X X^T / d + c_*² I   (lofi 10): n lambda is an eigenvalue where the
        # filter of the inputs with weights w = alpha c_1² T / (n lambda - c_*² T) has the eigenvalue 1
        # (lofi 11). The constant adds two outliers near +-c_0 sqrt(n (c_1² + c_*²) tau_2).
        w = ratio * linear * law.weights / (place - tail * law.weights)
        found = LabelLaw(w, law.probabilities, law.second_moments)
        return spectrum_end(found, ratio, dimension, rounded=rounded)

    def where(quantity: Callable[[SpectrumEnd], float]) -> float:
        """Return the value of n lambda at which a decreasing function of n lambda is 1."""
        # The largest weight diverges at c_*² max T, the lower bound of the search.
        base, low = tail * top, max(1.0, ratio) * linear * top
        high = low
        while quantity(end(base + high)) > 1:
            high = 2 * high
        while quantity(end(base + low)) < 1:
            low = low / 2
        return bracketed_root(
            lambda place: 1 - quantity(end(place)), base + low, base + high, relative=1e-9
        )

    edge = where(lambda found: found.edge)
    threshold = _threshold(law, tail / linear)
    if dimension is None and not end(edge).outlying[0]:
        return LiftedPrediction(edge, np.nan, edge, 0.0, threshold)
    outlier = where(lambda found: float(found.eigenvalues[0]))
    following = edge if dimension is None else where(lambda found: float(found.following[0]))
    overlap = float(end(outlier, rounded=True).squared_overlap[0])
    return LiftedPrediction(edge, outlier, following, overlap, threshold)


def _threshold(law: LabelLaw, r: float) -> float:
    if law.strengths[0] <= 1e-9 * np.sqrt(law.weight_power):
        return float("inf")
    moments = _Moments(law)

    def condition(q: float) -> float:
        A = moments.A(q)
        # (D / A - 1) (1 + B / A) = r = c_*² / c_1²   (lofi 12); if A <= 0, the direction is in the bulk.
        return np.inf if A <= 0 else (moments.D(q) / A - 1) * (1 + moments.B(q) / A) - r

    q = moments.root(condition)
    return float(moments.D(q) / moments.A(q) ** 2)  # alpha_c = D / A²   (lofi 12)


class _Moments:
    """Averages over the label distribution, for a parameter q above the largest weight."""

    def __init__(self, law: LabelLaw) -> None:
        self.T, self.chance = law.weights, law.probabilities
        self.square = law.second_moments[:, 0]

    def A(self, q: float) -> float:  # mean E[T (s² - 1) / (q - T)]
        return float((self.chance * self.T / (q - self.T)) @ (self.square - 1))

    def B(self, q: float) -> float:  # mean E[T / (q - T)]
        return float(np.sum(self.chance * self.T / (q - self.T)))

    def D(self, q: float) -> float:  # mean E[T² / (q - T)²]
        return float(np.sum(self.chance * (self.T / (q - self.T)) ** 2))

    def root(self, condition: Callable[[float], float]) -> float:
        """Root q of a function that decreases through 0."""
        base = float(self.T[-1])
        grid = base * (1 + np.geomspace(1e-9, 1e9, 181))
        values = np.array([condition(float(q)) for q in grid])
        below = np.flatnonzero(values <= 0)
        if not below.size or below[0] == 0:
            raise NotConverged(
                f"no root was found above {base:.4g}: the condition goes from {values[0]:.3g} to "
                f"{values[-1]:.3g}. Check the label distribution for extreme values.",
                {"above": base},
            )
        k = int(below[0])
        low = float(grid[k - 1])
        if np.isinf(values[k - 1]):
            low = bracketed_root(lambda q: self.A(q) - 1e-12, low, float(grid[k]))
        return bracketed_root(condition, low, float(grid[k]))


def fourth_moment_kernel(
    activation: str, inner: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Compute kappa_4 = E[sigma(u)² sigma(v)²] from variances and inner products, shape (n, m)."""
    scale = np.sqrt(np.multiply.outer(left, right))
    cosine = np.clip(inner / scale, -1.0, 1.0)
    if activation == "relu":
        # arc-cosine kernel of order 2: q_aa q_bb (3 sin cos + (pi - theta) (1 + 2 cos²)) / 2 pi
        angle, sine = np.arccos(cosine), np.sqrt((1 - cosine) * (1 + cosine))
        total = 3 * sine * cosine + (np.pi - angle) * (1 + 2 * cosine**2)
        return np.asarray(scale**2 * total / (2 * np.pi))
    nodes = np.linspace(-12.0, 12.0, 1921)
    chance = np.exp(-(nodes**2) / 2)
    degrees = 48  # largest Hermite degree used for the squared activation
    polynomials = hermite_polynomials(nodes, degrees) * (chance / chance.sum())

    def coefficients(variances: np.ndarray) -> np.ndarray:
        values = evaluate(activation, np.sqrt(variances)[:, None] * nodes) ** 2
        return np.asarray(values @ polynomials.T)

    rows, columns = coefficients(np.asarray(left)), coefficients(np.asarray(right))
    # Mehler: kappa_4 = sum_j m_j(q_aa) m_j(q_bb) cos^j theta
    total, power = np.zeros_like(cosine), np.ones_like(cosine)
    for j in range(degrees + 1):
        total += np.multiply.outer(rows[:, j], columns[:, j]) * power
        power *= cosine
    return total


def gram_deviation(X: np.ndarray, activation: str) -> float:
    """Root mean square Frobenius distance of a P-feature Gram matrix from its kernel, times sqrt(P)."""
    # A lift scales its inputs to mean square norm 1.
    inner = X @ X.T / np.mean(np.sum(X**2, axis=1))
    power = np.diag(inner).copy()
    kernel = dual_kernel(activation, inner, power, power)
    # P Var(G_ab) = kappa_4(a, b) - kappa(a, b)²   (lofi 28)
    variance = fourth_moment_kernel(activation, inner, power, power) - kernel**2
    return float(np.sqrt(np.sum(np.maximum(variance, 0.0))))
