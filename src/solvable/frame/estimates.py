"""Claims about a number computed from several points: contrasts, leads, slopes, other estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from solvable.errors import InvalidParameter
from solvable.frame.claims import Finding, NotTestable, Verdict, verdict_of
from solvable.frame.points import Point
from solvable.frame.statistics import ALLOWANCE, SPREAD, jackknife_errors, too_noisy

Number = Callable[[Point], Any]
"""Function of a point that returns one number, or one number per replicate."""

MOST_BLOCKS = 24
"""Number of blocks of replicates that the jackknife leaves out in turn."""


@dataclass(frozen=True)
class PointsClaim:
    r"""A claim about one number per group of points; base class of the claims below.

    A subclass defines which points form a group and how their numbers are combined. The measured number
    comes from means over replicates, the expected one from predictions. The standard error is
    the jackknife over replicates, point by point. The claim holds if :math:`|m-e|\le w+q\,s` in
    every group, with the Student quantile :math:`q` of Welch's degrees of freedom at which a right
    theory fails in one of a hundred claims; where :math:`q\,s>2w` the group is not testable.

    Parameters
    ----------
    name : str
        Short identifier, words joined by hyphens.
    statement : str
        The claim in one sentence.
    source : str
        Place in a paper, or equation of a derivation page.
    within : float
        Stated tolerance above 0; multiplied by the modulus of the expected number if ``relative``.
    because : str
        Reason of the tolerance.
    relative : bool
        Whether the tolerance is relative.
    where : callable, optional
        ``where(point) -> bool``: True for the points that are used.
    missing : str
        Advice shown when no group is complete, such as "run with --preset recovery".
    power : float
        Relative error of the prediction that this claim is meant to notice.

    Raises
    ------
    InvalidParameter
        If the tolerance is not above 0.
    """

    name: str
    statement: str
    source: str
    _: KW_ONLY
    within: float
    because: str
    relative: bool = False
    where: Callable[[Point], bool] | None = None
    missing: str = "the claim covers no group of points of this study"
    power: float = 0.1

    def __post_init__(self) -> None:
        if not self.within > 0:
            raise InvalidParameter(
                f"within of claim {self.name!r} is {self.within}; allowed: a number above 0. A "
                "tolerance of 0 is all statistics, which no number of replicates can test."
            )

    @property
    def tolerance_reason(self) -> str:
        """Reason of the tolerance, with the statistical part."""
        return f"{self.because} {ALLOWANCE}"

    def groups(self, points: Sequence[Point]) -> list[list[Point]]:
        """Split the points into groups; here one group of all points."""
        return [list(points)]

    def combined(self, group: Sequence[Point]) -> tuple[float, float] | None:
        """Return the measured and expected number of a group, or None."""
        raise NotImplementedError

    def check(self, points: Sequence[Point]) -> Finding | NotTestable:
        """Judge the group that is closest to failing."""
        return self._judge(*self._numbers(points))

    def check_against(
        self, points: Sequence[Point], truth: Mapping[str, float]
    ) -> Finding | NotTestable:
        """Judge with other expected numbers, given by the name of each group."""
        groups, numbers = self._numbers(points)
        expected = [
            truth.get(_name_of(group), pair[1]) for group, pair in zip(groups, numbers, strict=True)
        ]
        return self._judge(
            groups, [(pair[0], e) for pair, e in zip(numbers, expected, strict=True)]
        )

    def groups_used(self, points: Sequence[Point]) -> list[list[Point]]:
        """Return the groups for which a number can be computed."""
        return self._numbers(points)[0]

    def measured(self, points: Sequence[Point]) -> dict[str, float]:
        """Measured number of each group."""
        groups, numbers = self._numbers(points)
        return {_name_of(g): pair[0] for g, pair in zip(groups, numbers, strict=True)}

    def _numbers(
        self, points: Sequence[Point]
    ) -> tuple[list[list[Point]], list[tuple[float, float]]]:
        """Return the groups with their measured and expected numbers."""
        chosen = [p for p in points if not p.refused and (self.where is None or self.where(p))]
        groups, numbers = [], []
        for group in self.groups(chosen):
            pair = self.combined(group)
            if pair is not None and np.isfinite(pair).all():
                groups.append(group)
                numbers.append(pair)
        return groups, numbers

    def _judge(
        self, groups: list[list[Point]], numbers: list[tuple[float, float]]
    ) -> Finding | NotTestable:
        if not groups:
            return NotTestable(self.missing)
        measured, expected = (np.array(column) for column in zip(*numbers, strict=True))
        within = self.within * (np.abs(expected) if self.relative else np.ones(len(groups)))
        errors = [jackknife_errors(self._without_one(group)) for group in groups]
        allowance = np.array([e.allowance(2 * len(groups)) for e in errors])
        deviation = np.abs(measured - expected)
        # A group that is too noisy to hold may still fail.
        judged = (allowance <= SPREAD * within) | (deviation > within + allowance)
        if not judged.any():
            return NotTestable(self._more_replicates(groups, errors, within))
        margin = np.where(judged, deviation / (within + allowance), -np.inf)
        worst = int(np.argmax(margin))
        return Finding(
            float(measured[worst]), float(expected[worst]), float((within + allowance)[worst]),
            errors[worst].standard_error, min(p.replicates for p in groups[worst]),
            detail=self._detail(groups, worst, judged),
        )  # fmt: skip

    def verdict(self, points: Sequence[Point]) -> Verdict:
        """Evaluate the claim on the points of a study."""
        return verdict_of(self, self.check(points))

    def _without_one(self, group: Sequence[Point]) -> list[np.ndarray]:
        """Measured number without each replicate in turn, one array for each point."""
        return [
            np.array([self._changed(group, k, reduced) for reduced in without_blocks(point)])
            for k, point in enumerate(group)
        ]

    def _changed(self, group: Sequence[Point], k: int, reduced: Point) -> float:
        """Return the measured number with one point replaced; NaN if undefined."""
        pair = self.combined([*group[:k], reduced, *group[k + 1 :]])
        return np.nan if pair is None else pair[0]

    def _more_replicates(
        self, groups: Sequence[Sequence[Point]], errors: Sequence[Any], within: np.ndarray
    ) -> str:
        if not any(np.isfinite(error.standard_error) for error in errors):
            return "one replicate does not show its scatter: run at least 1 more replicate"
        # The group with the smallest scatter is small by chance: the median group is typical.
        ratio = np.array([e.allowance(2 * len(groups)) for e in errors]) / within
        middle = int(np.argsort(ratio)[ratio.size // 2])
        replicates = min(point.replicates for point in groups[middle])
        needed = errors[middle].replicates_needed(
            SPREAD * float(within[middle]), 2 * len(groups), replicates
        )
        return too_noisy(float(within[middle]), needed - replicates)

    def _detail(self, groups: Sequence[Sequence[Point]], worst: int, judged: np.ndarray) -> str:
        count = len(groups[worst])
        points = f"{count} point{'s' if count > 1 else ''}"
        if len(groups) == 1:
            return f"From {points}."
        firsts = [group[0].parameters for group in groups]
        names = [n for n in firsts[0] if len({str(first.get(n)) for first in firsts}) > 1]
        words = ", ".join(f"{name} = {firsts[worst][name]}" for name in names)
        text = f"Closest to failing of {len(groups)}: {words}, {points}."
        if not judged.all():
            text += f" {int((~judged).sum())} scatter too much to be judged."
        return text


def _name_of(group: Sequence[Point]) -> str:
    """Parameters of the points of a group."""
    return "; ".join(str(dict(point.parameters)) for point in group)


def without_blocks(point: Point) -> list[Point]:
    """Return the point without each replicate in turn, or without each block of many replicates."""
    count = point.replicates
    blocks = np.array_split(np.arange(count), min(count, MOST_BLOCKS)) if count > 1 else []
    return [
        replace(point, metrics=[m for r, m in enumerate(point.metrics) if not b[0] <= r <= b[-1]])
        for b in blocks
    ]


def grouped_but(points: Sequence[Point], apart: Sequence[str]) -> list[list[Point]]:
    """Group points that are equal in all parameters but some."""
    groups: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        key = tuple(str(v) for name, v in point.parameters.items() if name not in apart)
        groups.setdefault(key, []).append(point)
    return list(groups.values())


@dataclass(frozen=True)
class Estimate(PointsClaim):
    """A claim about a number that a function computes from the points of a group.

    Parameters
    ----------
    estimate : callable
        ``estimate(points) -> (measured, expected) or None``. The jackknife calls it again without each
        replicate, so selections that depend on measured values belong into ``where``.
    apart : tuple of str
        Parameters in which the points of one group differ; () for one group of all points.
    fewest : int
        Smallest number of points of a group.
    """

    estimate: Callable[[Sequence[Point]], tuple[float, float] | None] = field(kw_only=True)
    apart: tuple[str, ...] = field(default=(), kw_only=True)
    fewest: int = field(default=1, kw_only=True)

    def groups(self, points: Sequence[Point]) -> list[list[Point]]:
        """Group the points that are equal in all other parameters."""
        groups = grouped_but(points, self.apart) if self.apart else [list(points)]
        return [group for group in groups if len(group) >= self.fewest]

    def combined(self, group: Sequence[Point]) -> tuple[float, float] | None:
        """Return the numbers that the function computes from the group."""
        return self.estimate(group)


@dataclass(frozen=True)
class MetricClaim(PointsClaim):
    """A claim about a combination of one metric at several points.

    Parameters
    ----------
    metric : str or callable
        Name of a metric with one number, or ``metric(point)`` giving one number for each replicate.
    expected : str or callable, optional
        Name of a predicted quantity or ``expected(point)``; default the prediction of the same name.
    """

    metric: str | Number = field(kw_only=True)
    expected: str | Number | None = field(default=None, kw_only=True)

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

    Parameters
    ----------
    across : str
        Predicted quantity: the threshold.
    along : str
        Attribute of the setting that is compared with the threshold, such as "sample_ratio".
    below, above : tuple of float
        Open intervals of :math:`\rho` that define the two sides.

    Examples
    --------
    >>> row = Contrast("recovery", "The error falls at the threshold.", "derived", metric="error",
    ...     across="threshold_ratio", along="sample_ratio", within=0.1, because="Finite size.")
    >>> row.check([])
    NotTestable(reason='the claim covers no group of points of this study')
    """

    across: str = field(kw_only=True)
    along: str = field(kw_only=True)
    below: tuple[float, float] = field(default=(0.0, 0.85), kw_only=True)
    above: tuple[float, float] = field(default=(1.15, np.inf), kw_only=True)

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

    Parameters
    ----------
    of, over : mapping
        The parameter with each of its two values, such as ``{"estimator": "bayes"}`` and
        ``{"estimator": "nuclear-norm"}``.
    least : float
        Pairs with a smaller modulus of the predicted difference are left out.
    """

    of: Mapping[str, Any] = field(kw_only=True)
    over: Mapping[str, Any] = field(kw_only=True)
    least: float = field(default=0.0, kw_only=True)

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

    Parameters
    ----------
    along : str
        The parameter.
    ignore : tuple of str
        Further parameters in which the points of one curve may differ.
    fewest : int
        Smallest number of points of a curve.
    span : float
        Smallest ratio of the largest to the smallest value of the parameter on a curve.
    """

    along: str = field(kw_only=True)
    ignore: tuple[str, ...] = field(default=(), kw_only=True)
    fewest: int = field(default=3, kw_only=True)
    span: float = field(default=2.0, kw_only=True)

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
