"""Claims about a number computed from several points: contrasts, leads, slopes, other estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from solvable.frame.points import Point
from solvable.frame.points_claim import PointsClaim, without_blocks

Number = Callable[[Point], Any]
"""Function of a point that returns one number, or one number per replicate."""


def grouped_but(points: Sequence[Point], apart: Sequence[str]) -> list[list[Point]]:
    """Group points that are equal in all parameters but some."""
    groups: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        key = tuple(str(v) for name, v in point.parameters.items() if name not in apart)
        groups.setdefault(key, []).append(point)
    return list(groups.values())


@dataclass(frozen=True)
class Estimate(PointsClaim):
    """A claim about a number that a function computes from the points of a group."""

    estimate: Callable[[Sequence[Point]], tuple[float, float] | None] = field(kw_only=True)
    """``estimate(points) -> (measured, expected) or None``. The jackknife calls it again without each
    replicate, so selections that depend on measured values belong into ``where``."""
    apart: tuple[str, ...] = field(default=(), kw_only=True)
    """Parameters in which the points of one group differ; () for one group of all points."""
    fewest: int = field(default=1, kw_only=True)
    """Smallest number of points of a group."""

    def groups(self, points: Sequence[Point]) -> list[list[Point]]:
        """Group the points that are equal in all other parameters."""
        groups = grouped_but(points, self.apart) if self.apart else [list(points)]
        return [group for group in groups if len(group) >= self.fewest]

    def combined(self, group: Sequence[Point]) -> tuple[float, float] | None:
        """Return the numbers that the function computes from the group."""
        return self.estimate(group)


@dataclass(frozen=True)
class MetricClaim(PointsClaim):
    """A claim about a combination of one metric at several points."""

    metric: str | Number = field(kw_only=True)
    """Name of a metric with one number, or ``metric(point)`` giving one number for each replicate."""
    expected: str | Number | None = field(default=None, kw_only=True)
    """Name of a predicted quantity or ``expected(point)``; default the prediction of the same name."""

    def combine(self, group: Sequence[Point], numbers: np.ndarray) -> tuple[float, float] | None:
        """Combine numbers of shape (points, 2), measured and expected, into one."""
        raise NotImplementedError

    def combined(self, group: Sequence[Point]) -> tuple[float, float] | None:
        """Measured and expected number of a group."""
        return self.combine(group, np.array([self.number(point) for point in group]))

    def number(self, point: Point) -> tuple[float, float]:
        """Return the measured mean and the expected value at a point; NaN if missing."""
        source = self.metric if self.expected is None else self.expected
        if callable(self.metric):
            values = np.asarray(self.metric(point), dtype=float)
        elif all(self.metric in metrics for metrics in point.metrics):
            values = point.values(self.metric)
        else:
            return np.nan, np.nan
        if callable(source):
            theory = float(source(point))
        else:
            theory = float(point.predicted(source)) if source in point.prediction else np.nan
        return float(values.mean()) if values.size else np.nan, theory

    def known(self, points: Sequence[Point]) -> list[Point]:
        """Keep the points at which measured and expected value are numbers."""
        return [point for point in points if np.isfinite(self.number(point)).all()]

    def _without_one(self, group: Sequence[Point]) -> list[np.ndarray]:
        numbers = np.array([self.number(point) for point in group])
        rows = []
        for k, point in enumerate(group):
            left = []
            for reduced in without_blocks(point):
                changed = numbers.copy()
                changed[k, 0] = self.number(reduced)[0]
                pair = self.combine(group, changed)
                left.append(np.nan if pair is None else pair[0])
            rows.append(np.array(left))
        return rows


@dataclass(frozen=True)
class Contrast(MetricClaim):
    r"""A claim about the mean of a metric above a threshold minus the mean below.

    The side of a point follows from :math:`\rho`, the value of a parameter divided by its predicted
    threshold. The sign is chosen such that the predicted contrast is positive.

    Examples
    --------
    >>> row = Contrast("recovery", "The error falls at the threshold.", "derived", metric="error",
    ...     across="threshold_ratio", along="sample_ratio", within=0.1, because="Finite size.")
    >>> row.check([])
    NotTestable(reason='the claim covers no group of points of this study')
    """

    across: str = field(kw_only=True)
    """Predicted quantity: the threshold."""
    along: str = field(kw_only=True)
    """Attribute of the setting that is compared with the threshold, such as "sample_ratio"."""
    below: tuple[float, float] = field(default=(0.0, 0.85), kw_only=True)
    above: tuple[float, float] = field(default=(1.15, np.inf), kw_only=True)
    r"""Open intervals of :math:`\rho` that define the two sides."""

    def groups(self, points: Sequence[Point]) -> list[list[Point]]:
        """Return all points on either side as one group, if both sides have points."""
        sided = [point for point in self.known(points) if self._side(point)]
        return [sided] if {self._side(point) for point in sided} == {-1, 1} else []

    def combine(self, group: Sequence[Point], numbers: np.ndarray) -> tuple[float, float] | None:
        """Return the difference of the means of both sides."""
        side = np.array([self._side(point) for point in group])
        measured, expected = numbers[side > 0].mean(axis=0) - numbers[side < 0].mean(axis=0)
        sign = np.sign(expected)
        return float(sign * measured), float(sign * expected)

    def _side(self, point: Point) -> int:
        """Return -1 below the threshold, 1 above, and 0 outside both intervals."""
        if point.prediction.get(self.across) is None:
            return 0
        place = float(getattr(point.setting, self.along)) / float(point.predicted(self.across))
        ranges = ((-1, self.below), (1, self.above))
        return next((side for side, (low, high) in ranges if low < place < high), 0)


@dataclass(frozen=True)
class Lead(MetricClaim):
    """A claim about the mean difference between two choices at otherwise equal settings.

    The sign is chosen such that the predicted mean difference is positive.
    """

    of: Mapping[str, Any] = field(kw_only=True)
    over: Mapping[str, Any] = field(kw_only=True)
    """The parameter with each of its two values, such as ``{"estimator": "bayes"}`` and
    ``{"estimator": "nuclear-norm"}``."""
    least: float = field(default=0.0, kw_only=True)
    """Pairs with a smaller modulus of the predicted difference are left out."""

    def groups(self, points: Sequence[Point]) -> list[list[Point]]:
        """Return all pairs as one group, the two points of each pair in succession."""
        pairs: list[Point] = []
        for group in grouped_but(self.known(points), tuple(self.of)):
            sides = [
                next((p for p in group if p.parameters.items() >= choice.items()), None)
                for choice in (self.of, self.over)
            ]
            one, other = sides
            if one is not None and other is not None:
                lead = self.number(one)[1] - self.number(other)[1]
                pairs += [one, other] if abs(lead) > self.least else []
        return [pairs] if pairs else []

    def combine(self, group: Sequence[Point], numbers: np.ndarray) -> tuple[float, float] | None:
        """Return the mean difference over the pairs."""
        measured, expected = (numbers[::2] - numbers[1::2]).mean(axis=0)
        sign = np.sign(expected)
        return float(sign * measured), float(sign * expected)


@dataclass(frozen=True)
class Slope(MetricClaim):
    r"""A claim about the exponent of a metric along a parameter: the slope of its logarithm.

    The slope is that of least squares, :math:`\sum_i w_i\log y_i` with
    :math:`w_i=(x_i-\bar x)/\sum_j(x_j-\bar x)^2` and :math:`x` the logarithm of the parameter;
    predictions get the same weights.
    """

    along: str = field(kw_only=True)
    """The parameter."""
    ignore: tuple[str, ...] = field(default=(), kw_only=True)
    """Further parameters in which the points of one curve may differ."""
    fewest: int = field(default=3, kw_only=True)
    """Smallest number of points of a curve."""
    span: float = field(default=2.0, kw_only=True)
    """Smallest ratio of the largest to the smallest value of the parameter on a curve."""

    def groups(self, points: Sequence[Point]) -> list[list[Point]]:
        """Group points that differ only in the parameter."""
        positive = [p for p in self.known(points) if min(self.number(p)) > 0]
        groups = grouped_but(positive, (self.along, *self.ignore))
        return [
            group
            for group in groups
            if len(group) >= self.fewest and np.ptp(self._x(group)) >= np.log(0.999 * self.span)
        ]

    def combine(self, group: Sequence[Point], numbers: np.ndarray) -> tuple[float, float] | None:
        """Return the slopes of measured and predicted logarithms."""
        x = self._x(group)
        weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
        if not (numbers > 0).all():
            return None
        measured, expected = weights @ np.log(numbers)
        return float(measured), float(expected)

    def _x(self, group: Sequence[Point]) -> np.ndarray:
        return np.log([float(getattr(point.setting, self.along)) for point in group])
