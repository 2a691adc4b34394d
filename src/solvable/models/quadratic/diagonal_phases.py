"""Phases of diagonal networks over samples and weight decay, with their laws, claims and figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from solvable.frame.agreement import Agreement
from solvable.frame.curves import Curve
from solvable.frame.points import Point
from solvable.models.quadratic.diagonal_theory import lasso_penalty, solve_diagonal
from solvable.models.quadratic.phase_diagram import diagram, exponent_claim, settings_by_phase
from solvable.plots.figure import Figure, Series

PAPER = "arXiv:2509.24882, Result 1"
PHASES = ("Ia", "Ib", "II", "III", "IV", "V", "VI")


class Located(NamedTuple):
    """Phase at a point, the leading law of its error, and the exponent of n; None without a power law."""

    phase: str
    error: float
    exponent: float | None


@dataclass(frozen=True)
class DiagonalPhases:
    """Phases and laws of a diagonal network on coefficients theta_i = c i^-gamma of unit norm."""

    dimension: int
    exponent: float
    label_noise: float

    @property
    def scale(self) -> float:
        """Largest coefficient c, with c² sum_i i^(-2 gamma) = 1."""
        ranks = np.arange(1, self.dimension + 1.0)
        return float(np.sum(ranks ** (-2 * self.exponent)) ** -0.5)

    def locate(self, samples: float, penalty: float) -> Located:
        """Phase and law at a number of samples and a LASSO penalty."""
        d, n, gamma = self.dimension, samples, self.exponent
        tail = 2 - 1 / gamma
        # Largest of d noisy correlations in units of sqrt(n): sqrt(2 log d).
        largest = float(np.sqrt(2 * np.log(d)))
        if penalty >= n * self.scale + largest * np.sqrt(n * (1 + self.label_noise)):
            return Located("Ib", 1.0, 0.0)
        null = self._noise_only(n, penalty, 1 + self.label_noise)
        if self.scale < null.threshold and null.threshold < largest * null.effective_noise:
            return Located("Ia", 1 + null.error, 0.0)
        noise = self._noise_only(n, penalty, self.label_noise)
        delta, b = noise.effective_noise, noise.threshold
        kept = (self.scale / b) ** (1 / gamma) if b > 0 else np.inf
        if kept >= d and n > d:
            # Every coefficient is learned with its noise and shrunk: R = d (b² + delta²),
            # b = lambda / (n - d), delta² = (Delta + R) / n  (quadratic 38).
            shift = penalty / (n - d)
            variance = (self.label_noise + d * shift**2) / (n - d)
            error = d * (shift**2 + variance)
            return (
                Located("III", error, -2.0) if shift**2 > variance else Located("VI", error, -1.0)
            )
        # (quadratic 38): K b² from learned coefficients, K b² / (2 gamma - 1) from sum_(i > K) theta_i²
        kept = min(kept, float(d))
        features = kept * b**2 * 2 * gamma / (2 * gamma - 1)
        if b >= largest * delta:
            return Located("II", features, -tail)
        if noise.error > features:
            return Located("VI", noise.error, -1.0) if n > d else Located("V", noise.error, None)
        return Located("IV", features + kept * delta**2, -tail / 2)

    def _noise_only(self, samples: float, penalty: float, label_noise: float) -> Noise:
        """Effective noise, threshold and error for labels of pure noise."""
        # A small value replaces 0, as no finite limit exists at n = d.
        state = solve_diagonal(
            np.zeros(self.dimension), n_samples=samples, label_noise=label_noise,
            penalty=max(penalty, 1e-9),
        )  # fmt: skip
        return Noise(state.effective_noise, state.threshold, state.error)


class Noise(NamedTuple):
    """State of a network on labels of pure noise."""

    effective_noise: float
    threshold: float
    error: float


_exponent = partial(
    exponent_claim, source=f"{PAPER}; derivations/quadratic (38)", metric="error", along="samples",
    expected=lambda point: float(point.setting.samples ** point.predicted("phase_exponent")),
)  # fmt: skip

PHASE_CLAIMS = (
    Agreement(
        "phase-law", "The error equals the leading law of its phase, with its constant.",
        metric="error", expected="scaling_law_error", relative=True, within=0.35, power=0.8,
        source=f"{PAPER}; derivations/quadratic (38)",
        because="A law is drawn where it is within 30 % of the predicted error.",
        missing="no point lies deep inside a phase; run with --preset phases",
    ),
    _exponent("II", "In phase II the error falls as n^-(2 - 1/gamma)."),
    _exponent("III", "In phase III the error falls as n^-2."),
    _exponent("VI", "In phase VI the error falls as 1/n."),
)  # fmt: skip


def phase_diagram(curves: Sequence[Curve]) -> list[Figure]:
    """Draw samples and weight decay as points in the colours of their phases."""
    groups: dict[tuple[int, float, float], list[Point]] = {}
    for curve in curves:
        for point in curve.points:
            setting = point.setting
            if "scaling_phase" in point.prediction:
                key = (setting.dimension, setting.exponent, setting.noise)
                groups.setdefault(key, []).append(point)
    figures = []
    for key, points in groups.items():
        if len({point.setting.weight_decay for point in points}) < 2:
            continue
        words = f"exponent {key[1]:g}" if len({other[1] for other in groups}) > 1 else ""
        figures.append(_diagram(key, points, words))
    return figures


def _diagram(key: tuple[int, float, float], points: Sequence[Point], words: str) -> Figure:
    phases = DiagonalPhases(*key)
    n = np.geomspace(
        min(p.setting.samples for p in points) / 1.5,
        max(p.setting.samples for p in points) * 1.5,
        50,
    )
    series = settings_by_phase(
        points, PHASES, lambda p: (p.setting.samples, p.setting.weight_decay), error="error"
    )
    unit = lasso_penalty(weight_decay=1.0, dimension=key[0])
    largest = np.sqrt(2 * np.log(key[0]))
    noise, weakest = key[2], phases.scale * key[0] ** -key[1]
    lines = (
        ("nothing is learned above", n * phases.scale + largest * np.sqrt(n * (1 + noise))),
        ("noise is cut above", largest * np.sqrt(n * noise)),
        ("every coefficient is kept below", n * weakest),
    )
    for label, values in lines:
        series.append(Series(label, n, values / unit, "line", None, len(series) + 1))
    return diagram("samples and weight decay", words, series, x="samples n", y="weight decay λ")
