"""From a table to the matrix of numbers a learner takes, the same way for new data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from solvable.data.cells import first_odd_cell
from solvable.data.columns import (
    column_statistics,
    describe,
    describe_gaps,
    refuse_infinite,
    refuse_large,
    refuse_tiny,
    row_blocks,
    text_reason,
    unusable_numbers,
)
from solvable.data.table import Table, as_text, missing_mask
from solvable.data.target import Target
from solvable.errors import InvalidData
from solvable.plots.words import quoted_names

FORMAT = 1  # version of what :meth:`Preparation.to_dict` writes


@dataclass(frozen=True)
class Preparation:
    """How a table becomes a matrix, fitted on training rows.

    Columns of numbers come first, in the order of the table, with medians of the training rows
    where a value is missing; then one column of 0 and 1 for each text of a column of text, all 0
    where the text is missing or was not seen in training. Make one with :meth:`fit`.

    Parameters
    ----------
    numeric_names : tuple of str
        Columns of numbers that are used.
    medians : tuple of float
        What stands in for their missing values.
    categories : tuple of (str, tuple of str)
        Columns of text that are used, each with its texts.
    dropped : tuple of (str, str)
        Columns that are not used, each with the reason.
    dtype : str
        Type of the matrix, "float64" or "float32".
    target : Target, optional
        What is predicted.
    image_shape : tuple of int, optional
        Height, width (and channels) if each row is an image.
    treatments : tuple of str
        What was done, as sentences without full stop.
    still : tuple of (int, float)
        Columns of the matrix that have one value in the training rows, though not in the table that
        decided which columns are used: their positions and values. They have it in every row, since
        nothing can be learned of another. See :meth:`refit`.

    Examples
    --------
    >>> table = Table(np.array([[1.0, 7.0], [np.nan, 7.0], [3.0, 7.0]]), ("size", "unit"))
    >>> preparation = Preparation.fit(table)
    >>> preparation.transform(table).ravel()
    array([1., 2., 3.])
    >>> for sentence in preparation.treatments:
    ...     print(sentence)
    dropped column 'unit': constant
    column 'size': 1 of 3 values missing, replaced by 2, the median of the training rows
    """

    numeric_names: tuple[str, ...]
    medians: tuple[float, ...]
    categories: tuple[tuple[str, tuple[str, ...]], ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    dtype: str = "float64"
    target: Target | None = None
    image_shape: tuple[int, ...] | None = None
    treatments: tuple[str, ...] = ()
    still: tuple[tuple[int, float], ...] = ()

    @classmethod
    def fit(
        cls,
        table: Table,
        *,
        keep: Sequence[str] = (),  # columns of numbers to keep though they look like identifiers
        target: Target | None = None,
        image_shape: tuple[int, ...] | None = None,
        # Columns known to vary outside these rows, and texts that columns hold there.
        varying: Iterable[str] = (),
        further_texts: Mapping[str, frozenset[str]] | None = None,
    ) -> Preparation:
        """Decide from all rows what becomes of each column, and fit medians; see :meth:`refit`."""
        unknown = [name for name in keep if name not in table]
        if unknown:
            raise InvalidData(
                f"keep names {quoted_names(unknown)}, which is not a column; columns: "
                f"{quoted_names(table.order)}."
            )
        refuse_infinite(table.numeric, table.numeric_names)
        statistics = column_statistics(table.numeric)
        refuse_tiny(statistics, table.numeric_names)
        # A pixel is never an identifier, and a constant one has its place in the picture.
        kept = set(table.numeric_names) if image_shape else set(keep)
        kept_constant = set(table.numeric_names) if image_shape else set(varying)
        dropped = unusable_numbers(table, statistics, kept, kept_constant)
        categories, unusable = _usable_texts(table, further_texts or {})
        dropped |= unusable
        used = [i for i, name in enumerate(table.numeric_names) if name not in dropped]
        if not table.order:
            raise InvalidData(
                "there is no column besides the target; at least one is needed. Add columns."
            )
        if not used and not categories:
            reasons = "; ".join(f"{name!r}: {reason}" for name, reason in list(dropped.items())[:5])
            raise InvalidData(
                f"no column is left to learn from ({reasons}); at least one column that varies is "
                "needed. Add columns, or keep one with keep=."
            )
        preparation = cls(
            numeric_names=tuple(table.numeric_names[i] for i in used),
            medians=tuple(float(statistics.medians[i]) for i in used),
            categories=categories,
            dropped=tuple((name, dropped[name]) for name in table.order if name in dropped),
            dtype=str(np.result_type(table.numeric.dtype, np.float32)) if used else "float64",
            target=target,
            image_shape=image_shape,
        )
        treatments = preparation._described(statistics.n_missing[used], table.n_rows)
        n_constant = int(statistics.constant[used].sum())
        if image_shape and n_constant:
            treatments += (
                f"{n_constant} pixels are constant and were kept, so that filters can be drawn",
            )
        return replace(preparation, treatments=treatments)

    def refit(self, table: Table) -> Preparation:
        """Fit medians on the training rows, as if later rows were new ones."""
        # The columns stay: if they changed with the number of rows, errors at different numbers could
        # not be compared.
        statistics = column_statistics(self._numbers(table))
        one_value = statistics.empty | statistics.constant
        still = [(i, float(statistics.medians[i])) for i in np.flatnonzero(one_value).tolist()]
        place = len(self.numeric_names)
        for name, texts in self.categories:
            present = set(as_text(table.column(name)).tolist())
            # 0 in all rows where the text is in none, 1 where it is in every one.
            still += [
                (place + i, float(present == {text}))
                for i, text in enumerate(texts)
                if text not in present or len(present) == 1
            ]
            place += len(texts)
        # Pixels that are constant have their place in the picture.
        fitted = replace(
            self,
            medians=tuple(statistics.medians.tolist()),
            still=() if self.image_shape else tuple(still),
        )
        return replace(fitted, treatments=fitted._described(statistics.n_missing, table.n_rows))

    def _described(self, n_missing: np.ndarray, n_rows: int) -> tuple[str, ...]:
        """Sentences on columns that are not used, or replaced, and on missing numbers."""
        gaps = describe_gaps(self.numeric_names, n_missing, n_rows, self.medians)
        sentences = (*describe(self.dropped, self.categories), *gaps)
        if not self.still:
            return sentences
        names = quoted_names(self.columns[place] for place, _ in self.still)
        return (*sentences, f"one value in all training rows, taken for that in others: {names}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        ones = (f"{name}={text}" for name, texts in self.categories for text in texts)
        return (*self.numeric_names, *ones)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns a table must have."""
        return (*self.numeric_names, *(name for name, _ in self.categories))

    def transform(self, table: Table, *, first_row: int = 0) -> np.ndarray:
        """Matrix of the rows of a table whose columns have the right names, in any order."""
        # The very array of the table, memory-mapped or not, if nothing is to be done to it.
        missing = [name for name in self.needed if name not in table]
        if missing:
            near = get_close_matches(missing[0], table.order, n=1)
            hint = f" Is {near[0]!r} the same as {missing[0]!r}?" if near else ""
            raise InvalidData(
                f"{len(missing)} of {len(self.needed)} columns that were learned from are not in "
                f"the data: {quoted_names(missing)}; columns there: {quoted_names(table.order)}. Add "
                f"them, by these names.{hint}"
            )
        with np.errstate(over="ignore"):
            # What overflows float32 is infinite, and refused next.
            matrix = self._numbers(table).astype(self.dtype, copy=False)
        if refuse_infinite(matrix, self.numeric_names, first_row):
            matrix = np.array(matrix)
            medians = np.array(self.medians, dtype=self.dtype)
            for rows in row_blocks(matrix):
                block = matrix[rows]
                np.copyto(block, medians, where=np.isnan(block))
        if self.categories:
            refuse_large(table.n_rows, len(self.columns), self.dtype)
            ones = [
                as_text(table.column(name))[:, None] == np.array(texts, dtype=object)
                for name, texts in self.categories
            ]
            matrix = np.hstack([matrix, *ones], dtype=self.dtype)
        elif self.still:
            matrix = np.array(matrix)
        for place, value in self.still:
            matrix[:, place] = value
        return matrix

    def report(self, table: Table) -> tuple[str, ...]:
        """What :meth:`transform` does to a table of new rows."""
        sentences = []
        known = {*self.needed, *(name for name, _ in self.dropped)}
        extra = [name for name in table.order if name not in known]
        if extra:
            sentences.append(f"ignored columns that were not learned from: {quoted_names(extra)}")
        present = {name: table.column(name) for name in self.needed if name in table}
        for name, texts in self.categories:
            column = as_text(present[name]) if name in present else np.array([], dtype=object)
            unseen = sorted({value for value in column if value is not None}.difference(texts))
            if unseen:
                sentences.append(
                    f"column {name!r}: texts not seen in training count as none of those seen: "
                    f"{quoted_names(unseen)}"
                )
        names = [n for n in self.numeric_names if n in present and present[n].dtype != object]
        n_missing = np.array([np.count_nonzero(missing_mask(present[n])) for n in names], dtype=int)
        sentences.extend(describe_gaps(names, n_missing, table.n_rows))
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values; :meth:`from_dict` reads it back."""
        return {
            "format": FORMAT,
            "numeric_names": list(self.numeric_names),
            "medians": list(self.medians),
            "categories": [[name, list(texts)] for name, texts in self.categories],
            "dropped": [list(pair) for pair in self.dropped],
            "dtype": self.dtype,
            "target": self.target.to_dict() if self.target else None,
            "image_shape": list(self.image_shape) if self.image_shape else None,
            "treatments": list(self.treatments),
            "still": [list(pair) for pair in self.still],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Preparation:
        """Read back what :meth:`to_dict` returned."""
        if fields.get("format") != FORMAT:
            raise InvalidData(
                f"the preparation stored with the model has format {fields.get('format')!r}; "
                f"allowed: {FORMAT}. Read it with the version of solvable that wrote it."
            )
        try:
            preparation = cls(
                numeric_names=tuple(map(str, fields["numeric_names"])),
                medians=tuple(map(float, fields["medians"])),
                categories=tuple((name, tuple(texts)) for name, texts in fields["categories"]),
                dropped=tuple((name, reason) for name, reason in fields["dropped"]),
                dtype={"float32": "float32", "float64": "float64"}[fields["dtype"]],
                target=Target.from_dict(fields["target"]) if fields["target"] else None,
                image_shape=tuple(map(int, fields["image_shape"]))
                if fields["image_shape"]
                else None,
                treatments=tuple(map(str, fields["treatments"])),
                still=tuple((int(place), float(value)) for place, value in fields.get("still", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidData(
                f"the preparation stored with the model is damaged ({error!r}). Fit the model anew."
            ) from error
        if len(preparation.medians) != len(preparation.numeric_names):
            raise InvalidData(
                f"the preparation stored with the model is damaged: {len(preparation.medians)} "
                f"medians for {len(preparation.numeric_names)} columns. Fit the model anew."
            )
        return preparation

    def _numbers(self, table: Table) -> np.ndarray:
        """Columns of numbers by name; the array of the table itself if they are all it has."""
        if table.numeric_names == self.numeric_names:
            return table.numeric
        position = table.positions
        if all(name in position for name in self.numeric_names):
            return table.numeric[:, [position[name] for name in self.numeric_names]]
        matrix = np.empty((table.n_rows, len(self.numeric_names)), dtype=self.dtype)
        for i, name in enumerate(self.numeric_names):
            column = table.column(name)
            if column.dtype == object and any(value is not None for value in column):
                text = first_odd_cell(column) or next(
                    (row, value) for row, value in enumerate(column) if value is not None
                )
                raise InvalidData(
                    f"column {name!r} holds text ({text[1]!r} in row {text[0] + 1}) where numbers "
                    "were learned from; allowed: numbers, or an empty cell. Mend the column."
                )
            matrix[:, i] = np.nan if column.dtype == object else column
        return matrix


def _usable_texts(
    table: Table, further_texts: Mapping[str, frozenset[str]]
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], dict[str, str]]:
    """Columns of text with their texts, and why the others cannot be used."""
    usable = []
    unusable = {}
    for name, column in table.texts.items():
        others = further_texts.get(name, frozenset())
        reason = text_reason(column, others)
        if reason:
            unusable[name] = reason
        else:
            texts = others.union(value for value in column if value is not None)
            usable.append((name, tuple(sorted(texts))))
    return tuple(usable), unusable
