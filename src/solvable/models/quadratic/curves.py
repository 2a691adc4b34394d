"""Curves of a study of quadratic networks: points of one setting, and the theory between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.frame.points import Point
from solvable.models.quadratic.checks import model_of, setting_of
from solvable.models.quadratic.finite_size import FiniteSize, finite_size
from solvable.models.quadratic.parameters import QuadraticParameters
from solvable.models.quadratic.predict import bayes_error, measure_of
from solvable.models.quadratic.theory import QuadraticState, quadratic_curve
from solvable.plots.figure import Series

CURVE_POINTS = 25
"""Sample ratios at which a predicted curve is evaluated."""

BAYES_POINTS = 12
"""The same for the Bayes-optimal error."""

LARGEST_DRAWN = 0.5
"""First correction in 1/d, relative to the limit, that is drawn."""

VARYING = ("sample_ratio", "samples", "sensing", "network_samples", "network_ratio")
"""Parameters in which the points of one curve may differ."""

UNUSED = {"marchenko-pastur": "exponent", "power-law": "width_ratio"}
"""Parameter that each target ignores."""

WORDS = {
    "target": "{}",
    "dimension": "d = {}",
    "width_ratio": "width ratio {:g}",
    "exponent": "exponent {:g}",
    "noise": "noise {:g}",
    "regularisation": "regularisation {:.3g}",
}
"""How a parameter is told."""


@dataclass(frozen=True)
class Curve:
    """Points of one setting against the sample ratio, by kind of sensing.

    Parameters
    ----------
    name : str
        What tells this curve from the others.
    points : list of Point
        Of any sensing, ascending in the sample ratio.
    """

    name: str
    points: list[Point]

    @property
    def first(self) -> QuadraticParameters:
        """Parameters of the first point."""
        return model_of(self.points[0])

    @cached_property
    def ratios(self) -> np.ndarray:
        """Grid of sample ratios around those that were measured, with the measured ones in it."""
        own = np.array([setting_of(one)[0] for one in self.points])
        low, high = own.min() / 1.15, own.max() * 1.15
        return np.unique(np.concatenate([np.geomspace(low, high, CURVE_POINTS), own]))

    @cached_property
    def states(self) -> Sequence[QuadraticState]:
        """The saddle point along the grid."""
        setting = self.first
        return quadratic_curve(
            measure_of(setting),
            sample_ratios=self.ratios,
            label_noise=setting.noise,
            regularisation=setting.regularisation,
        )

    def line(self, name: str) -> np.ndarray:
        """A quantity of the limit along the grid."""
        return np.array([getattr(one, name) for one in self.states])

    @cached_property
    def corrections(self) -> Sequence[FiniteSize]:
        """First order in 1/d for samples along the grid."""
        return [finite_size(one, samples=True) for one in self.states]

    def corrected(self, name: str) -> np.ndarray:
        """A quantity with its first order in 1/d; NaN where that is no correction."""
        limit = self.line(name)
        extra = np.array([getattr(one, name) for one in self.corrections]) / self.first.dimension
        return np.where(np.abs(extra) < LARGEST_DRAWN * np.abs(limit), limit + extra, np.nan)

    def bayes(self) -> tuple[np.ndarray, np.ndarray]:
        """Sample ratios, and the least error of any estimator there."""
        grid = np.geomspace(self.ratios[0], self.ratios[-1], BAYES_POINTS)
        return grid, np.array([bayes_error(self.first, float(one)) for one in grid])

    def of(self, sensing: str) -> list[Point]:
        """Points of one kind of sensing."""
        return [one for one in self.points if one.parameters["sensing"] == sensing]

    def measured(
        self, label: str, name: str, colour: int, sensing: str = "network"
    ) -> list[Series]:
        """Measured means with their errors; nothing if there are none."""
        chosen = [one for one in self.of(sensing) if np.isfinite(one.mean(name)).all()]
        if not chosen:
            return []
        places = [setting_of(one)[0] for one in chosen]
        values = [float(one.mean(name)) for one in chosen]
        errors = [float(one.standard_error(name)) for one in chosen]
        return [Series(label, places, values, "points", errors, colour)]


def curves_of(points: Sequence[Point]) -> list[Curve]:
    """Curves of a study, named by what tells them apart."""
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        skipped = (*VARYING, UNUSED[point.parameters["target"]])
        key = tuple(value for name, value in point.parameters.items() if name not in skipped)
        groups.setdefault(key, []).append(point)
    settings = [group[0].parameters for group in groups.values()]
    varying = [name for name in WORDS if len({str(one[name]) for one in settings}) > 1]
    found = []
    for setting, group in zip(settings, groups.values(), strict=True):
        told = [one for one in varying if one != UNUSED[setting["target"]]]
        name = ", ".join(WORDS[one].format(setting[one]) for one in told)
        found.append(Curve(name, sorted(group, key=setting_of)))
    return found


def families(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Curves that share a figure: of one target, dimension and noise."""
    groups: dict[tuple[object, ...], list[Curve]] = {}
    for curve in curves:
        one = curve.first
        key = (one.target, one.dimension, one.noise)
        groups.setdefault(key, []).append(curve)
    return list(groups.values())
