"""Statements of the user about columns: missing values, numbers, categories, excluded columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from solvable.data.cells import parse_cells
from solvable.data.table import Table, as_text, from_columns, unknown_column
from solvable.errors import InvalidData
from solvable.plots.words import quoted_names


@dataclass(frozen=True)
class Reading:
    """Statements about columns, which hold for training rows and new rows."""

    missing: tuple[str, ...] = ()  # further texts or numbers that denote a missing value
    numbers: tuple[str, ...] = ()  # columns whose words count as missing
    categories: tuple[str, ...] = ()  # columns whose numbers are names of categories
    exclude: tuple[str, ...] = ()  # columns that are not used

    def check(self, names: Sequence[str]) -> None:
        """Raise :class:`InvalidData` if a named column does not exist or is named twice."""
        for option in ("numbers", "categories", "exclude"):
            for name in getattr(self, option):
                if name not in names:
                    raise InvalidData(unknown_column(option, name, names))
        both = set(self.numbers) & set(self.categories)
        if both:
            raise InvalidData(
                f"{quoted_names(sorted(both))} is in numbers and in categories; allowed: one of these."
            )

    def applied(self, table: Table) -> tuple[Table, list[str]]:
        """Return the table as stated, with sentences about what changed."""
        if self == Reading():
            return table, []
        columns: dict[str, np.ndarray] = {}
        notes = []
        excluded = [name for name in table.order if name in self.exclude]
        if excluded:
            notes.append(f"excluded as asked: {quoted_names(excluded)}")
        for name in table.order:
            if name in excluded:
                continue
            column, gone = self._without_missing(table.column(name))
            if gone:
                notes.append(f"column {name!r}: {gone} values count as missing, as asked")
            if name in self.numbers and column.dtype == object:
                column, lost = _forced(column)
                words = f"; {lost} cells are no numbers and count as missing" if lost else ""
                notes.append(f"column {name!r}: read as numbers, as asked{words}")
            elif name in self.categories and column.dtype != object:
                column = as_text(column)
                notes.append(f"column {name!r}: numbers read as categories, as asked")
            columns[name] = column
        if not columns:
            raise InvalidData("all columns are excluded; allowed: at least one that is not.")
        return from_columns(columns), notes

    def values(self, column: np.ndarray) -> np.ndarray:
        """Return the target with further missing values."""
        return self._without_missing(column)[0]

    def _without_missing(self, column: np.ndarray) -> tuple[np.ndarray, int]:
        if not self.missing:
            return column, 0
        if column.dtype == object:
            texts = {text.strip().casefold() for text in self.missing}
            gone = np.array(
                [one is not None and one.strip().casefold() in texts for one in column], dtype=bool
            )
            if not gone.any():
                return column, 0
            left = column.copy()
            left[gone] = None
            # Without these texts, the column may hold numbers.
            return parse_cells(["" if one is None else one for one in left]).values, int(gone.sum())
        numbers = [float(text) for text in self.missing if _is_number(text)]
        gone = np.isin(column, numbers)
        if not gone.any():
            return column, 0
        wide = column.astype(np.result_type(column.dtype, np.float32))
        return np.where(gone, np.nan, wide), int(gone.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the statements as JSON values."""
        return {one.name: list(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Reading:
        """Create the statements from :meth:`to_dict`."""
        return cls(**{one.name: tuple(map(str, given.get(one.name, ()))) for one in fields(cls)})


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _forced(column: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the numbers of a column, with NaN for words, and the number of words."""
    known: dict[str | None, float] = {None: np.nan}
    for text in set(column.tolist()) - {None}:
        value = parse_cells([text]).values
        known[text] = float(value[0]) if value.dtype != object else np.nan
    numbers = np.array([known[text] for text in column.tolist()])
    present = np.array([text is not None for text in column], dtype=bool)
    return numbers, int(np.count_nonzero(present & np.isnan(numbers)))
