"""Power of claims: the smallest error of a prediction with which each claim fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvable.frame.agreement import Agreement, Comparison, cells_of, compare, judge
from solvable.frame.claims import (
    EARLIER,
    LARGEST_ERROR,
    Claim,
    Finding,
    NotTestable,
    Raised,
    Status,
    Verdict,
    verdict_of,
)
from solvable.frame.curves import Axis
from solvable.frame.points import Metrics, Point
from solvable.frame.points_claim import PointsClaim
from solvable.paths import error_line

Chance = Callable[[Any, Metrics], Metrics]
"""Function that returns the metrics of a learner at chance level."""

FACTORS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, LARGEST_ERROR)
"""Relative errors of the prediction that are tried."""

NO_CHANCE = "no chance learner"

LITTLE_POWER = "too little power"
"""Beginning of the reason why a claim that holds is not testable."""


@dataclass(frozen=True)
class PowerRow:
    """Smallest errors of the prediction with which one claim fails on these records."""

    claim: str
    status: str  # of the verdict: "not testable" if a wrong prediction or chance would also hold
    stated: float  # relative error with which the claim should fail
    # smallest x, to a twentieth, with predictions times 1 + x; None up to 0.9
    fails_from_above: float | None
    fails_from_below: float | None  # the same with 1 - x
    chance: str  # verdict with a learner at chance level, or "no chance learner"
    error: str = ""  # exception that the claim raised, in one line
    powerless: bool = False  # the claim holds, but would also hold where it should fail

    @property
    def notices(self) -> float | None:
        """Smallest relative error of the prediction, in either direction, that makes the claim fail."""
        reached = [x for x in (self.fails_from_above, self.fails_from_below) if x is not None]
        return min(reached, default=None)

    @property
    def noticed(self) -> bool:
        """Return True if a prediction wrong by the stated power makes the claim fail."""
        return self.notices is not None and self.notices <= self.stated

    @property
    def passes(self) -> bool:
        """Return True unless the claim raised, or holds with a wrong prediction or at chance level."""
        return not self.error and not self.powerless

    def settled(self) -> PowerRow:
        """Return the row with the status of the verdict."""
        if self.status != "holds" or (self.noticed and self.chance != "holds"):
            return self
        return replace(self, status="not testable", powerless=True)


def power_row(
    claim: Claim | PointsClaim | Agreement,
    points: Sequence[Point],
    axis: Axis | None,
    chance: Chance,
) -> PowerRow:
    """Judge the same records with scaled predictions and with a learner at chance level."""
    try:
        if isinstance(claim, Agreement):
            return _agreement_power(claim, points, axis, chance).settled()
        return _claim_power(claim, points, chance).settled()
    except Exception as error:  # a claim may raise any exception; the others are judged
        line = error_line(error)
        return PowerRow(claim.name, "error", claim.power, None, None, "error", line)


def judged(
    claim: Claim | PointsClaim | Agreement,
    points: Sequence[Point],
    axis: Axis | None,
    chance: Chance,
) -> Verdict:
    """Return the verdict of a claim after the test of its power; "error" if its code raised."""
    try:
        verdict = (
            claim.verdict(points, axis) if isinstance(claim, Agreement) else claim.verdict(points)
        )
    except Exception as error:
        return verdict_of(claim, Raised(error_line(error)))
    lacking = verdict.measured is not None and not np.isfinite(verdict.measured)
    if lacking and all(point.former for point in points):
        return verdict_of(claim, NotTestable(EARLIER))
    if verdict.status != "holds":
        return verdict
    return with_power(verdict, power_row(claim, points, axis, chance))


def with_power(verdict: Verdict, row: PowerRow) -> Verdict:
    """Change "holds" to "not testable" if a wrong prediction or chance would also hold."""
    if verdict.status != "holds":
        return verdict
    if row.passes:
        return replace(verdict, notices=row.notices)
    if row.error:
        return _unmeasured(verdict, "error", f"{row.error} (in its power)")
    wrong = f"a prediction wrong by {100 * row.stated:.0f} %"
    other = "a learner at chance level" if row.noticed else wrong
    numbers = (verdict.measured, verdict.expected, verdict.tolerance)
    measured, expected, tolerance = (f"{0.0 if x is None else x:.3g}" for x in numbers)
    bound, hint = "", "; run more replicates, or at a larger size"
    if verdict.kind != "equal":
        bound, hint = f"{verdict.kind} ", ""
    reason = (
        f"{LITTLE_POWER}: {other} would also pass, with {measured} measured, {bound}"
        f"{expected} predicted and a tolerance of {tolerance}{hint}"
    )
    return _unmeasured(verdict, "not testable", reason)


def _unmeasured(verdict: Verdict, status: Status, reason: str) -> Verdict:
    return Verdict(verdict.claim, verdict.statement, status, reason=reason, source=verdict.source)


def _agreement_power(
    row: Agreement, points: Sequence[Point], axis: Axis | None, chance: Chance
) -> PowerRow:
    comparison = compare(row, points)
    if isinstance(comparison, NotTestable):
        return PowerRow(row.name, "not testable", row.power, None, None, "not testable")

    def fails(x: float) -> bool:
        status = _status(comparison.scaled(1 + x).finding(axis))
        # A metric that is a function may contain the prediction and expect 0.
        if callable(row.metric) and status != "fails":
            status = _status(judge(row, [_scaled(p, 1 + x) for p in points], axis))
        return status == "fails"

    guessed = _chance_comparison(row, comparison, chance)
    return PowerRow(
        row.name,
        _status(comparison.finding(axis)),
        row.power,
        _first(fails, 1),
        _first(fails, -1),
        NO_CHANCE if guessed is None else _status(guessed.finding(axis)),
    )


def _chance_comparison(row: Agreement, comparison: Comparison, chance: Chance) -> Comparison | None:
    """Return the cells with values of a chance learner; errors stay those of the records."""
    if isinstance(row.metric, str) and not any(
        row.metric in _by_chance(cell.point, chance) for cell in comparison.cells
    ):
        return None
    measured = []
    for cell, unit in zip(comparison.cells, comparison.units, strict=True):
        entries = cells_of(replace(row, where=None), [_guessed(cell.point, chance)])
        value = next((c.measured for c in entries if c.entry == cell.entry), np.nan)
        measured.append(value / unit)
    values = np.array(measured)
    kept = np.where(np.isfinite(values), values, comparison.measured)
    return None if np.array_equal(kept, comparison.measured) else replace(comparison, measured=kept)


def _guessed(point: Point, chance: Chance) -> Point:
    """Return a point whose measured values are those of a learner at chance level."""
    metrics = [{**own, **_by_chance(point, chance)} for own in point.metrics]
    other = None if point.other is None else _guessed(point.other, chance)
    return replace(point, metrics=metrics, other=other)


def _by_chance(point: Point, chance: Chance) -> Metrics:
    return dict(chance(point.setting, point.prediction))


def _claim_power(claim: Claim | PointsClaim, points: Sequence[Point], chance: Chance) -> PowerRow:
    finding = claim.check(points)

    def fails(x: float) -> bool:
        # A check may select by predictions, or expect other numbers: scale only those too.
        if isinstance(finding, Finding):
            scaled = replace(finding, expected=finding.expected * (1 + x))
            if _status(scaled) == "fails":
                return True
        return _status(claim.check([_scaled(point, 1 + x) for point in points])) == "fails"

    guessed = NO_CHANCE
    if any(_by_chance(point, chance) for point in points):
        guessed = _status(claim.check([_guessed(point, chance) for point in points]))
    above, below = _first(fails, 1), _first(fails, -1)
    return PowerRow(claim.name, _status(finding), claim.power, above, below, guessed)


def _scaled(point: Point, factor: float) -> Point:
    """Return a point with every predicted number multiplied."""
    return replace(
        point, prediction={name: _times(v, factor) for name, v in point.prediction.items()}
    )


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, list):
        return [_times(entry, factor) for entry in value]
    return value if value is None or isinstance(value, str) else float(value) * factor


def _status(finding: Finding | NotTestable) -> str:
    if isinstance(finding, NotTestable):
        return "not testable"
    return "holds" if finding.holds else "fails"


def _first(fails: Callable[[float], bool], sign: int) -> float | None:
    """Return, to 5 %, the smallest error of a prediction from which on all larger ones fail."""
    smallest, passes = None, None
    for size in reversed(FACTORS):
        if not fails(sign * size):
            passes = size
            break
        smallest = size
    if smallest is None or passes is None:
        return smallest
    while smallest > 1.05 * passes:  # bisection of the logarithm
        middle = float((smallest * passes) ** 0.5)
        if fails(sign * middle):
            smallest = middle
        else:
            passes = middle
    return smallest
