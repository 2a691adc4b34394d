"""The target column: a number to predict, or classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from solvable.data.table import as_text, number_text
from solvable.errors import InvalidData, unknown_choice
from solvable.plots.words import quoted_names

Kind: TypeAlias = Literal["classification", "regression", "binary"]
"""What is predicted: one of three classes or more, a number, one of two classes."""

Task: TypeAlias = Literal["auto", "classification", "regression", "binary"]
"""What the user asks for; "auto" decides by the values."""

MAX_CLASSES = 100  # distinct values above which a target cannot be classes


@dataclass(frozen=True)
class Target:
    """Which column is predicted and how its values are encoded.

    Parameters
    ----------
    name : str
        The column.
    kind : {"classification", "regression", "binary"}
        What is predicted.
    classes : tuple of str
        Class labels, numbers in numerical order or text in alphabetical order; empty in
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
        """Numbers to predict, or codes of the classes: -1 for a label that is none."""
        if self.kind == "regression":
            return _in_range(self.name, finite_numbers(self.name, column))
        if column.dtype != object and all(map(_is_finite_number, self.classes)):
            values = np.array([float(label) for label in self.classes])
            codes = np.minimum(np.searchsorted(values, column), len(values) - 1)
            return np.where(values[codes] == column, codes, -1).astype(np.int64)
        code = {label: position for position, label in enumerate(self.classes)}
        return np.array([code.get(label, -1) for label in as_text(column)], dtype=np.int64)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Labels of codes; numbers stay as they are."""
        if self.kind == "regression":
            return np.asarray(codes)
        return np.array(self.classes, dtype=object)[np.asarray(codes, dtype=np.int64)]

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON values."""
        return {"name": self.name, "kind": self.kind, "classes": list(self.classes)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Target:
        """Target of what :meth:`to_dict` returned."""
        if fields["kind"] not in get_args(Kind):
            raise InvalidData(unknown_choice("kind of target", fields["kind"], get_args(Kind)))
        return cls(str(fields["name"]), fields["kind"], tuple(map(str, fields["classes"])))


@dataclass(frozen=True)
class TargetValues:
    """Distinct values of a target and how often each occurs; mergeable over parts of the data."""

    name: str
    counts: dict[Any, int]  # up to MAX_CLASSES + 1 values; more are only known to exist
    n_rows: int  # with a value
    whole: bool  # whether every value so far is a whole number; never for text

    @classmethod
    def of(cls, name: str, column: np.ndarray) -> TargetValues:
        """Values of one part of the data, none of them missing."""
        if column.dtype == object:
            common = Counter(column.tolist()).most_common(MAX_CLASSES + 1)
            return cls(name, dict(common), len(column), len(column) == 0)
        numbers = finite_numbers(name, column)
        distinct, counts = np.unique(numbers, return_counts=True)
        whole = bool(np.all(distinct == np.round(distinct)))
        kept = zip(distinct[: MAX_CLASSES + 1].tolist(), counts.tolist(), strict=False)
        return cls(name, dict(kept), len(column), whole)

    def has_others(self, target: Target) -> bool:
        """Return whether some of the values are none of the classes of a target."""
        labels = {_label(value) for value in self.counts}
        return target.kind != "regression" and not labels <= set(target.classes)

    def merge(self, other: TargetValues) -> TargetValues:
        """Values of both parts together."""
        counts = dict(self.counts)
        for value, count in other.counts.items():
            if value in counts or len(counts) <= MAX_CLASSES:
                counts[value] = counts.get(value, 0) + count
        return TargetValues(
            self.name, counts, self.n_rows + other.n_rows, self.whole and other.whole
        )


def finite_numbers(name: str, column: np.ndarray) -> np.ndarray:
    """Target values as float64; refuses text and infinities."""
    if column.dtype == object:
        texts = [value for value in column if not _is_finite_number(value)]
        if texts:
            raise InvalidData(
                f"target {name!r} holds {texts[0]!r} (and {len(texts) - 1} more values that are not "
                "numbers); allowed in regression: numbers. Mend the column, or use "
                "task=classification."
            )
        return np.array([float(value) for value in column])
    values = column.astype(np.float64)
    infinite = np.isinf(values)
    if infinite.any():
        raise InvalidData(
            f"target {name!r} is infinite in {np.count_nonzero(infinite)} rows, first in row "
            f"{int(np.argmax(infinite)) + 1}; allowed: finite numbers. Mend or remove these rows."
        )
    return values


def refuse_tiny_target(name: str, values: np.ndarray) -> None:
    """Raise :class:`InvalidData` for numbers to learn whose fourth powers all vanish."""
    largest = float(np.abs(values).max(initial=0.0))
    if 0.0 < largest < 1e-60:
        raise InvalidData(
            f"target {name!r} holds nothing larger than {largest:.3g}; allowed: values that reach "
            "1e-60. Express it in another unit."
        )


def _in_range(name: str, values: np.ndarray) -> np.ndarray:
    """The values, unless the variance of their squares, a fourth power, leaves double precision."""
    most, largest = 1e60, float(np.abs(values).max(initial=0.0))
    if largest > most:
        raise InvalidData(
            f"target {name!r} holds {largest:.3g}; allowed: up to {most:g}, either sign. Express it "
            "in another unit, or remove these rows."
        )
    return values


def fit_target(
    name: str, column: np.ndarray, task: Task = "auto"
) -> tuple[Target, tuple[str, ...]]:
    """Decide what is predicted from all values of the target, with notes on what is not evident."""
    # The only row of a class cannot be both learned from and tested: its class gets no code.
    return decide_target(TargetValues.of(name, column), task)


def decide_target(values: TargetValues, task: Task = "auto") -> tuple[Target, tuple[str, ...]]:
    """Like :func:`fit_target`, from the values merged over parts of the data."""
    if task not in get_args(Task):
        raise InvalidData(unknown_choice("task", task, get_args(Task)))
    name, counts = values.name, values.counts
    textual = any(isinstance(value, str) for value in counts)
    if values.n_rows < 2:
        raise InvalidData(
            f"target {name!r} has {values.n_rows} rows with a value; at least 2 are needed."
        )
    if len(counts) == 1:
        value = next(iter(counts))
        raise InvalidData(
            f"target {name!r} is {_label(value)} in all {values.n_rows} rows; it must take two "
            "values or more to be learned. Choose another target or add rows."
        )
    # "auto" reads as classes: text, two values, or at most 20 whole numbers with 5 rows each on
    # average.
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
            f"target {name!r} takes {len(counts)} whole numbers and was read as classes; "
            "task=regression reads it as a number",
        )
    return Target(name, "binary" if len(classes) == 2 else "classification", classes), notes


def _refuse_classes(values: TargetValues, task: Task, textual: bool) -> None:
    """Raise if the values cannot be classes."""
    name, counts = values.name, values.counts
    if task == "binary" and len(counts) != 2:
        raise InvalidData(
            f"target {name!r} takes {_count(counts)} values; task=binary allows 2. Use "
            "task=classification, or make the column two-valued."
        )
    if len(counts) > MAX_CLASSES or (len(counts) > 2 and 2 * len(counts) > values.n_rows):
        advice = (
            "Choose another target, or group its values."
            if textual
            else "Use task=regression, or group its values."
        )
        raise InvalidData(
            f"target {name!r} takes {_count(counts)} distinct values in {values.n_rows} rows "
            f"({quoted_names(_label(value) for value in sorted(counts, key=str)[:3])}, ...); allowed: at "
            f"most {MAX_CLASSES} classes with two rows each or more. {advice}"
        )
    single = sorted(_label(value) for value, count in counts.items() if count == 1)
    if len(counts) - len(single) < 2:
        raise InvalidData(
            f"target {name!r} has classes with a single row: {quoted_names(single)}, which leave fewer "
            "than two classes; allowed: at least two classes of 2 rows or more, so that one can be held "
            "back. Merge classes, add rows, or use task=regression if it is a number."
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
