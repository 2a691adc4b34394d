"""Claims that measured numbers equal predicted ones within a tolerance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.frame.claims import EARLIER, Finding, NotTestable, Verdict, check_power, verdict_of
from solvable.frame.conditions import Where, advice_of, covers
from solvable.frame.curves import Axis, place
from solvable.frame.points import Point, paired
from solvable.frame.statistics import ALLOWANCE, SPREAD, Errors, pooled_errors, too_noisy

Kind = Literal["equal", "at least", "at most"]


@dataclass(frozen=True)
class Cell:
    """One number that a claim compares: a metric of a point, or one entry of a list."""

    point: Point
    """The records and the prediction that it comes from."""
    setting: Any
    """Parameters of the point, as the system's own model."""
    entry: int | None
    """Position in a list metric."""
    values: np.ndarray
    """Measured values; shape (replicates,)."""
    expected: float
    """Number with which the row compares them."""

    @property
    def measured(self) -> float:
        """Mean over replicates."""
        return float(self.values.mean())

    def predicted(self, name: str) -> float:
        """Another predicted quantity of the point, its entry here if it is a list."""
        return self._at(self.point.predicted(name))

    def mean(self, name: str) -> float:
        """Mean of another metric of the point, its entry here if it is a list."""
        return self._at(self.point.mean(name))

    def _at(self, value: np.ndarray) -> float:
        return float(value if value.ndim == 0 or self.entry is None else value[self.entry])


@dataclass(frozen=True)
class Agreement:
    r"""A claim that measured numbers are the expected ones, as one row.

    Every entry of the metric at every point is a cell; the cell closest to failing decides. It
    holds if :math:`|m-e|\le w+q\,s`: stated tolerance :math:`w`, standard error :math:`s` with the
    scatter pooled over all cells, and Student quantile :math:`q` such that a right theory fails in
    one of a hundred claims. Cells with :math:`q\,s>2w` can make it fail, but not hold; if there is
    no other, the verdict says how many replicates are missing.

    Examples
    --------
    >>> row = Agreement("mean", "The mean is predicted.", metric="mean", source="derived",
    ...                 within=0.1, because="Terms of order 1/n.", missing="raise samples")
    >>> points = [Point({"samples": 9}, [{"mean": 1.0}, {"mean": 1.02}], {"mean": 1.05})]
    >>> row.verdict(points).status
    'not testable'
    """

    name: str
    """Short identifier, words joined by hyphens."""
    statement: str
    """The claim in one sentence."""
    metric: str | Callable[[Point], np.ndarray | None]
    """Name of a metric, or ``metric(point)`` giving an array of shape (replicates,) or (replicates,
    length); None where the claim is not made."""
    source: str
    """Place in a paper, or equation of a derivation page, such as "arXiv:2503.14121, Theorem 2"."""
    within: float | Callable[[Cell], float]
    """Stated tolerance above 0, or ``within(cell)``; relative to the expected value if ``relative``."""
    because: str
    """Why the tolerance is what it is."""
    expected: str | float | Callable[[Point], Any] | None = None
    """Name of a predicted quantity, a number, or ``expected(point)``; default the prediction of the
    same name."""
    relative: bool = False
    """True to compare the ratio of measured to expected with 1; cells with expected 0 are left
    out."""
    kind: Kind = "equal"
    """How measured and expected numbers are compared."""
    where: Where | None = None
    """Cells that the claim covers: names with values or conditions, such as
    ``{"dimension": at_least(20), "expected": above(0.2)}``, or ``where(cell) -> bool``."""
    missing: str = ""
    """Advice shown when the claim covers no cell, such as "run with --preset recovery"; after a
    sentence with the conditions if ``where`` is a mapping."""
    entry: str | Callable[[Any], Sequence[str]] = "entry"
    """Name of an entry of the list, such as "feature"; or ``entry(setting)``, which returns a name for
    each entry."""
    scatter: Callable[[Cell], float] | None = None
    """``scatter(cell)``: expected standard deviation of replicates up to a common factor; default the
    compared number. See :func:`overlap_scatter`."""
    pairs: str | None = None
    """Parameter that defines pairs: ``point.other`` is the point with the next larger value of this
    parameter."""
    power: float = 0.1
    """Relative error of the prediction that this claim is meant to notice."""

    def __post_init__(self) -> None:
        check_power(self.name, self.power)
        if self.kind not in get_args(Kind):
            raise InvalidParameter(unknown_choice("kind", self.kind, get_args(Kind)))
        if not callable(self.within) and not self.within > 0:
            raise InvalidParameter(
                f"within of claim {self.name!r} is {self.within}; allowed: a number above 0. A "
                "tolerance of 0 is all statistics, which no number of replicates can test."
            )
        if callable(self.metric) and self.expected is None:
            raise InvalidParameter(
                f"claim {self.name!r} measures a function of the point but has no expected value; "
                "allowed: the name of a prediction, a number or a function of the point."
            )

    @property
    def tolerance_reason(self) -> str:
        """Reason of the tolerance, with the statistical part."""
        return f"{self.because} {ALLOWANCE}"

    def verdict(self, points: Sequence[Point], axis: Axis | None = None) -> Verdict:
        """Judge the points of a study; the axis formats where the largest deviation is."""
        return verdict_of(self, judge(self, points, axis))


def cells_of(row: Agreement, points: Sequence[Point]) -> list[Cell]:
    """Cells that the claim covers: measured in every replicate, with an expected value."""
    cells: list[Cell] = []
    for point in points:
        values, source = _measured(row, point), _expected(row, point)
        if values is None or source is None:
            continue
        if not (np.isfinite(values).any() and np.isfinite(source).any()):
            continue  # None may stand for a whole list
        if source.ndim and source.shape != values.shape[1:]:
            raise InvalidParameter(
                f"claim {row.name!r} compares {values[0].size} measured numbers with {source.size} "
                "expected ones; allowed: equally many, or one expected number. Correct the claim's row."
            )
        expected = np.broadcast_to(source, values.shape[1:])
        for index in np.ndindex(values.shape[1:]):
            entry = index[0] if index else None
            cell = Cell(
                point, point.setting, entry, values[(slice(None), *index)], float(expected[index])
            )
            known = np.isfinite(cell.values).all() and np.isfinite(cell.expected)
            known &= not row.relative or cell.expected != 0  # a ratio to zero is undefined
            if known and covers(row.where, cell):
                cells.append(cell)
    return cells


def _unknown_name(row: Agreement, points: Sequence[Point]) -> str:
    """Raise if no point has a quantity that the row names."""
    source = row.metric if row.expected is None else row.expected
    rows = (
        (row.metric, "measure", [metrics for point in points for metrics in point.metrics]),
        (source, "predict", [point.prediction for point in points]),
    )
    for name, function, metrics in rows:
        if isinstance(name, str) and metrics and not any(name in found for found in metrics):
            allowed = ", ".join(sorted(set().union(*metrics)))
            return f"the metric {name!r}, which {function} does not return; allowed: {allowed}"
    return ""


def _partly_known(row: Agreement, points: Sequence[Point]) -> str:
    """Return the metric in words if some points have no measured or no expected number."""
    if not isinstance(row.metric, str) or not isinstance(row.where, Mapping):
        return ""
    known = {id(cell.point) for cell in cells_of(replace(row, where=None), points)}
    return "" if len(known) == len(points) else f"a measured and expected {row.metric}"


def _measured(row: Agreement, point: Point) -> np.ndarray | None:
    if callable(row.metric):
        values = row.metric(point)
        return None if values is None else np.atleast_1d(np.asarray(values, dtype=float))
    known = all(row.metric in metrics for metrics in point.metrics)
    return point.values(row.metric) if known else None


def _expected(row: Agreement, point: Point) -> np.ndarray | None:
    source = row.metric if row.expected is None else row.expected
    if isinstance(source, str):
        return point.predicted(source) if source in point.prediction else None
    return np.asarray(source(point) if callable(source) else source, dtype=float)


@dataclass(frozen=True)
class Comparison:
    """All cells of a row with their errors and tolerances."""

    row: Agreement
    cells: Sequence[Cell]
    measured: np.ndarray
    units: np.ndarray
    expected: np.ndarray
    within: np.ndarray
    errors: Errors = field(repr=False)

    def deviations(self) -> np.ndarray:
        """Return the deviation of each cell in the direction that makes the claim fail."""
        difference = self.measured - self.expected
        if self.row.kind == "at least":
            return -difference
        return difference if self.row.kind == "at most" else np.abs(difference)

    def scaled(self, factor: float) -> Comparison:
        """Return the same comparison with every prediction multiplied by a factor."""
        if self.row.relative:
            # m / (f e) against 1
            return replace(self, measured=self.measured / factor)
        return replace(self, expected=self.expected * factor)

    def finding(self, axis: Axis | None) -> Finding | NotTestable:
        """Judge the cell that is closest to failing."""
        allowance = self.errors.allowances(two_sided=self.row.kind == "equal")
        tolerance = self.within + allowance
        margin = self.deviations() / tolerance
        judged = self.judged()
        if not judged.any():
            return NotTestable(self._more_replicates(allowance))
        worst = int(np.argmax(np.where(judged, margin, -np.inf)))
        cell = self.cells[worst]
        detail = f"Closest to failing of {len(self.cells)}: {self._where(cell, axis)}."
        if not judged.all():
            detail += f" {int((~judged).sum())} scatter too much to be judged."
        return Finding(
            float(self.measured[worst]), float(self.expected[worst]), float(tolerance[worst]),
            float(self.errors.standard_error[worst]), cell.point.replicates, self.row.kind, detail,
        )  # fmt: skip

    def judged(self) -> np.ndarray:
        """Return the cells whose statistical error is small enough to be judged."""
        two_sided = self.row.kind == "equal"
        allowance = self.errors.allowances(two_sided=two_sided)
        # A cell that is too noisy to hold may still fail; entries of a list may be correlated.
        together = self.errors.allowances(two_sided=two_sided, together=True)
        fails = self.deviations() > self.within + np.maximum(allowance, together)
        return np.asarray((allowance <= SPREAD * self.within) | fails)

    def _where(self, cell: Cell, axis: Axis | None) -> str:
        words = place(cell.point, axis)
        if cell.entry is None:
            return words
        name = self.row.entry
        entry = (
            f"{name} {cell.entry + 1}" if isinstance(name, str) else name(cell.setting)[cell.entry]
        )
        return f"{entry}, {words}"

    def _more_replicates(self, allowance: np.ndarray) -> str:
        if self.errors.total == 0:
            return "one replicate does not show its scatter: run at least 1 more replicate"
        # The cell with the smallest scatter is small by chance: the median cell is typical.
        middle = int(np.argsort(allowance / self.within)[self.within.size // 2])
        needed = self.errors.replicates_needed(
            middle, SPREAD * float(self.within[middle]), two_sided=self.row.kind == "equal"
        )
        replicates = self.cells[middle].point.replicates
        return too_noisy(float(self.within[middle]), needed - replicates)


def overlap_scatter(cell: Cell) -> float:
    """Scatter of a squared overlap q near its transition, up to a factor: sqrt(q) (1 - q)^(3/2)."""
    # q = 1 - 1/theta² has dq/dtheta = 2 (1 - q)^(3/2); below the transition q is a squared amplitude.
    overlap = min(max(cell.measured, 0.02), 0.98)
    return float(np.sqrt(overlap) * (1 - overlap) ** 1.5)


def compare(row: Agreement, points: Sequence[Point]) -> Comparison | NotTestable:
    """Measured and expected values of every cell of a row, with errors and stated tolerances."""
    if row.pairs is not None:
        points = paired(points, row.pairs)
    unknown = _unknown_name(row, points)
    if unknown and all(point.former for point in points):
        return NotTestable(f"{EARLIER} ({unknown.partition(';')[0]})")
    if unknown and not row.missing and row.where is None:
        raise InvalidParameter(f"claim {row.name!r} names {unknown}. Correct the claim's row.")
    cells = cells_of(row, points)
    if not cells:
        # Either these settings have other metrics, or the row names a wrong one.
        hint = f" (none has {unknown.split(', ')[0]} here)" if unknown else ""
        advice = advice_of(row, points, _partly_known(row, points))
        return NotTestable((advice or "the claim covers no point of this study") + hint)
    allowed = [row.within(cell) if callable(row.within) else row.within for cell in cells]
    cells = [cell for cell, tolerance in zip(cells, allowed, strict=True) if tolerance > 0]
    within = np.array([tolerance for tolerance in allowed if tolerance > 0])
    if not cells:
        return NotTestable(f"the stated tolerance is above 0 at none of {len(allowed)} places")
    raw = np.array([cell.expected for cell in cells])
    units = raw if row.relative else np.ones(len(cells))
    values = [cell.values / unit for cell, unit in zip(cells, units, strict=True)]
    measured = np.array([value.mean() for value in values])
    expected = np.ones(len(cells)) if row.relative else raw
    scales = np.maximum(np.abs(measured), np.abs(expected))
    if row.scatter is not None:
        scales = np.array([row.scatter(cell) for cell in cells]) / np.abs(units)
    scales = np.maximum(scales, 1e-150)  # squared below
    errors = pooled_errors(values, scales, [id(cell.point) for cell in cells])
    return Comparison(row, cells, measured, units, expected, within, errors)


def judge(row: Agreement, points: Sequence[Point], axis: Axis | None) -> Finding | NotTestable:
    """Verdict of a row on the points of a study."""
    comparison = compare(row, points)
    return comparison if isinstance(comparison, NotTestable) else comparison.finding(axis)
