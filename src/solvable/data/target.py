"""Target column, which contains numbers or classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from solvable.data.table import as_text, number_text
from solvable.errors import InvalidData, unknown_choice
from solvable.plots.words import quoted_names

Kind: TypeAlias = Literal["classification", "regression", "binary"]
"""Kind of the target: three or more classes, a number, or two classes."""

Task: TypeAlias = Literal["auto", "classification", "regression", "binary"]
"""Requested kind of the target; "auto" decides by the target's values."""

MAX_CLASSES = 100  # largest allowed number of classes


@dataclass(frozen=True)
class Target:
    """Column to predict, with the encoding of its values.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"classification", "regression", "binary"}
        Kind of the target.
    classes : tuple of str
        Class labels, numbers in numerical order or texts in alphabetical order; empty in
        regression. The code of a label is its position.

    Examples
    --------
    >>> target, _ = fit_target("colour", np.array(["red", "blue", "red", "blue"], dtype=object))
    >>> target.kind, target.classes
    ('binary', ('blue', 'red'))
    >>> target.encode(np.array(["red", "green"], dtype=object))
    array([ 1, -1])
    """

    name: str
    kind: Kind
    classes: tuple[str, ...] = ()

    def encode(self, column: np.ndarray) -> np.ndarray:
        """Return the target as numbers, or as class codes with -1 for an unknown label."""
        if self.kind == "regression":
            return _in_range(self.name, finite_numbers(self.name, column))
        if column.dtype != object and all(map(_is_finite_number, self.classes)):
            values = np.array([float(label) for label in self.classes])
            codes = np.minimum(np.searchsorted(values, column), len(values) - 1)
            return np.where(values[codes] == column, codes, -1).astype(np.int64)
        code = {label: position for position, label in enumerate(self.classes)}
        return np.array([code.get(label, -1) for label in as_text(column)], dtype=np.int64)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the class labels of the given codes; numbers are returned unchanged."""
        if self.kind == "regression":
            return np.asarray(codes)
        return np.array(self.classes, dtype=object)[np.asarray(codes, dtype=np.int64)]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {"name": self.name, "kind": self.kind, "classes": list(self.classes)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Target:
        """Create a target from the result of :meth:`to_dict`."""
        if fields["kind"] not in get_args(Kind):
            raise InvalidData(unknown_choice("kind of target", fields["kind"], get_args(Kind)))
        return cls(str(fields["name"]), fields["kind"], tuple(map(str, fields["classes"])))


@dataclass(frozen=True)
class TargetValues:
    """Counts of a target's distinct values; counts of different parts of the data can be merged."""

    name: str
    counts: dict[Any, int]  # at most MAX_CLASSES + 1 values; further values are not counted
    n_rows: int  # number of rows with a value
    whole: bool  # True if all values are whole numbers; False for text

    @classmethod
    def of(cls, name: str, column: np.ndarray) -> TargetValues:
        """Count the values of one part of the data, without missing values."""
        if column.dtype == object:
            common = Counter(column.tolist()).most_common(MAX_CLASSES + 1)
            return cls(name, dict(common), len(column), len(column) == 0)
        numbers = finite_numbers(name, column)
        distinct, counts = np.unique(numbers, return_counts=True)
        whole = bool(np.all(distinct == np.round(distinct)))
        kept = zip(distinct[: MAX_CLASSES + 1].tolist(), counts.tolist(), strict=False)
        return cls(name, dict(kept), len(column), whole)

    def has_others(self, target: Target) -> bool:
        """Return True if some values are not classes of the given target."""
        labels = {_label(value) for value in self.counts}
        return target.kind != "regression" and not labels <= set(target.classes)

    def merge(self, other: TargetValues) -> TargetValues:
        """Return the counts of both parts together."""
        counts = dict(self.counts)
        for value, count in other.counts.items():
            if value in counts or len(counts) <= MAX_CLASSES:
                counts[value] = counts.get(value, 0) + count
        return TargetValues(
            self.name, counts, self.n_rows + other.n_rows, self.whole and other.whole
        )


def finite_numbers(name: str, column: np.ndarray) -> np.ndarray:
    """Convert target values to float64; raise :class:`InvalidData` for texts and infinities."""
    if column.dtype == object:
        texts = [value for value in column if not _is_finite_number(value)]
        if texts:
            raise InvalidData(
                f"target {name!r} holds {texts[0]!r} (and {len(texts) - 1} more values that are not "
                "numbers); allowed in regression: numbers. Correct the column, or set "
                "the task to classification."
            )
        return np.array([float(value) for value in column])
    values = column.astype(np.float64)
    infinite = np.isinf(values)
    if infinite.any():
        raise InvalidData(
            f"target {name!r} is infinite in {np.count_nonzero(infinite)} rows, first in row "
            f"{int(np.argmax(infinite)) + 1}; allowed: finite numbers. Correct or remove these rows."
        )
    return values


def refuse_tiny_target(name: str, values: np.ndarray) -> None:
    """Raise :class:`InvalidData` if the fourth powers of all numbers underflow."""
    largest = float(np.abs(values).max(initial=0.0))
    if 0.0 < largest < 1e-60:
        raise InvalidData(
            f"target {name!r} has no value larger than {largest:.3g}; allowed: values of 1e-60 or more. "
            "Express the target in another unit."
        )


def _in_range(name: str, values: np.ndarray) -> np.ndarray:
    """Return the values; raise :class:`InvalidData` if their fourth powers overflow double precision."""
    most, largest = 1e60, float(np.abs(values).max(initial=0.0))
    if largest > most:
        raise InvalidData(
            f"target {name!r} holds {largest:.3g}; allowed: absolute values up to {most:g}. Express the "
            "target in another unit, or remove these rows."
        )
    return values


def fit_target(
    name: str, column: np.ndarray, task: Task = "auto"
) -> tuple[Target, tuple[str, ...]]:
    """Decide the target's kind from all values; return the target with sentences about the choice."""
    # A class with a single row gets no code, because one row cannot serve training and testing.
    return decide_target(TargetValues.of(name, column), task)


def decide_target(values: TargetValues, task: Task = "auto") -> tuple[Target, tuple[str, ...]]:
    """Decide the target's kind from the merged values of all parts; see :func:`fit_target`."""
    if task not in get_args(Task):
        raise InvalidData(unknown_choice("task", task, get_args(Task)))
    name, counts = values.name, values.counts
    textual = any(isinstance(value, str) for value in counts)
    if values.n_rows < 2:
        raise InvalidData(
            f"target {name!r} has {values.n_rows} rows with a value; allowed: at least 2. Add rows."
        )
    if len(counts) == 1:
        value = next(iter(counts))
        raise InvalidData(
            f"target {name!r} is {_label(value)} in all {values.n_rows} rows; allowed: two or more "
            "values. Choose another target or add rows."
        )
    # "auto" chooses classes for text, for two values, and for at most 20 whole numbers with 5 rows each
    # on average.
    few_whole = values.whole and len(counts) <= 20 and len(counts) * 5 <= values.n_rows
    if task == "regression" or (task == "auto" and not (textual or len(counts) == 2 or few_whole)):
        if textual:
            finite_numbers(name, np.array(list(counts), dtype=object))
        return Target(name, "regression"), ()
    _refuse_classes(values, task, textual)
    single = sorted(_label(value) for value, count in counts.items() if count == 1)
    repeated = [value for value, count in counts.items() if count > 1]
    ordered = sorted(repeated) if not textual else sorted(map(_label, repeated))
    classes = tuple(_label(value) for value in ordered)
    notes: tuple[str, ...] = ()
    if single:
        notes = (
            f"set aside 1 row of class {single[0]!r}, the only one of its class"
            if len(single) == 1
            else f"set aside {len(single)} rows of classes {quoted_names(single)}, each the only one of "
            "its class",
        )
    if task == "auto" and not textual and len(classes) > 2:
        notes += (
            f"target {name!r} takes {len(counts)} whole numbers, which are read as classes; "
            "the task regression reads them as numbers",
        )
    return Target(name, "binary" if len(classes) == 2 else "classification", classes), notes


def _refuse_classes(values: TargetValues, task: Task, textual: bool) -> None:
    """Raise :class:`InvalidData` if the values cannot be classes."""
    name, counts = values.name, values.counts
    if task == "binary" and len(counts) != 2:
        raise InvalidData(
            f"target {name!r} takes {_count(counts)} values; allowed with the task binary: 2. Set "
            "the task to classification, or choose a column of two values."
        )
    if len(counts) > MAX_CLASSES or (len(counts) > 2 and 2 * len(counts) > values.n_rows):
        advice = "Choose another target" if textual else "Set the task to regression"
        raise InvalidData(
            f"target {name!r} takes {_count(counts)} distinct values in {values.n_rows} rows "
            f"({quoted_names(_label(value) for value in sorted(counts, key=str)[:3])}, ...); allowed: at "
            f"most {MAX_CLASSES} classes with at least two rows each. {advice}, or group its values."
        )
    single = sorted(_label(value) for value, count in counts.items() if count == 1)
    if len(counts) - len(single) < 2:
        raise InvalidData(
            f"target {name!r} has fewer than two classes of 2 or more rows (classes of a single row: "
            f"{quoted_names(single)}); allowed: at least two. Merge classes, add rows, or "
            "set the task to regression if the target is a number."
        )


def _label(value: float | str) -> str:
    return value if isinstance(value, str) else number_text(value)


def _count(counts: dict[Any, int]) -> str:
    return f"more than {MAX_CLASSES}" if len(counts) > MAX_CLASSES else str(len(counts))


def _is_finite_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except (TypeError, ValueError):
        return False
