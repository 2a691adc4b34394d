"""Base class of claims about a number computed from several points, with jackknife errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from solvable.errors import InvalidParameter
from solvable.frame.claims import Finding, NotTestable, Verdict, check_power, verdict_of
from solvable.frame.conditions import Where, advice_of, covers
from solvable.frame.points import Point, remembered
from solvable.frame.statistics import ALLOWANCE, SPREAD, jackknife_errors, too_noisy

MOST_BLOCKS = 24
"""Number of blocks of replicates that the jackknife leaves out in turn."""


@dataclass(frozen=True)
class PointsClaim:
    r"""A claim about one number per group of points; base class of `Estimate` and `MetricClaim`.

    A subclass defines which points form a group and how their numbers are combined. The measured number
    comes from means over replicates, the expected one from predictions. The standard error is
    the jackknife over replicates, point by point. The claim holds if :math:`|m-e|\le w+q\,s` in
    every group, with the Student quantile :math:`q` of Welch's degrees of freedom at which a right
    theory fails in one of a hundred claims; where :math:`q\,s>2w` the group is not testable.

    Raises
    ------
    InvalidParameter
        If the tolerance is not above 0, or the power not between 0 and 0.9.
    """

    name: str
    """Short identifier, words joined by hyphens."""
    statement: str
    """The claim in one sentence."""
    source: str
    """Place in a paper, or equation of a derivation page."""
    _: KW_ONLY
    within: float
    """Stated tolerance above 0; multiplied by the modulus of the expected number if ``relative``."""
    because: str
    """Reason of the tolerance."""
    relative: bool = False
    """True for a relative tolerance."""
    where: Where | None = None
    """Points that are used, as in :class:`~solvable.frame.agreement.Agreement`."""
    missing: str = ""
    """Advice shown when no group is complete, such as "run with --preset recovery"; without it, a
    sentence with the conditions of ``where``."""
    power: float = 0.1
    """Relative error of the prediction that this claim is meant to notice."""

    def __post_init__(self) -> None:
        check_power(self.name, self.power)
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
        groups, numbers = self._numbers(points)
        return self._judge(groups, numbers) if groups else self._nothing(points)

    def check_against(
        self, points: Sequence[Point], truth: Mapping[str, float]
    ) -> Finding | NotTestable:
        """Judge with other expected numbers, given by the name of each group."""
        groups, numbers = self._numbers(points)
        expected = [
            truth.get(_name_of(group), pair[1]) for group, pair in zip(groups, numbers, strict=True)
        ]
        if not groups:
            return self._nothing(points)
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

    def _used(self, points: Sequence[Point]) -> list[Point]:
        return [p for p in points if not p.refused and covers(self.where, p)]

    def _numbers(
        self, points: Sequence[Point]
    ) -> tuple[list[list[Point]], list[tuple[float, float]]]:
        """Return the groups with their measured and expected numbers."""
        chosen = self._used(points)
        groups, numbers = [], []
        for group in self.groups(chosen):
            pair = self.combined(group)
            if pair is not None and np.isfinite(pair).all():
                groups.append(group)
                numbers.append(pair)
        return groups, numbers

    def _nothing(self, points: Sequence[Point]) -> NotTestable:
        """Return why no group is complete."""
        advice = self.missing or ("" if self._used(points) else advice_of(self, points))
        return NotTestable(advice or "the claim covers no group of points of this study")

    def _judge(
        self, groups: list[list[Point]], numbers: list[tuple[float, float]]
    ) -> Finding | NotTestable:
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
        # One point changes at a time; the numbers of the others are computed once.
        others = [remembered(point) for point in group]
        return [
            np.array([self._changed(others, k, reduced) for reduced in without_blocks(point)])
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
