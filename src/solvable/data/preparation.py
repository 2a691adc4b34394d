"""Convert a table to a learner's input matrix, in the same way for training rows and new rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from solvable.data.cells import first_odd_cell
from solvable.data.columns import (
    column_statistics,
    describe,
    describe_gaps,
    marked_gaps,
    refuse_infinite,
    refuse_large,
    refuse_tiny,
    row_blocks,
    unusable_numbers,
)
from solvable.data.encoders import (
    Encoder,
    Levels,
    damaged,
    encoder_from_dict,
    encoder_to_dict,
    usable_texts,
)
from solvable.data.reading import Reading
from solvable.data.table import Table, as_text, missing_mask
from solvable.data.target import Target
from solvable.data.target_means import Means
from solvable.errors import InvalidData, quoted
from solvable.plots.words import quoted_names

FORMAT = 2  # version of the dictionary of :meth:`Preparation.to_dict`; version 1 has no encoders


def _shares(
    table: Table, categories: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[tuple[float, ...], ...]:
    """Return the share of the rows with each text."""
    columns = [(as_text(table.column(name)), texts) for name, texts in categories]
    return tuple(
        tuple(float((column == text).mean()) for text in texts) for column, texts in columns
    )


@dataclass(frozen=True)
class Preparation:
    """Conversion of a table to a matrix, fitted on training rows.

    Columns of numbers come first, in the order of the table, with missing values replaced by medians
    of the training rows. Each column of few texts then becomes one column of 0 and 1 per distinct text;
    all these columns are 0 if the text is missing, and the shares of the training rows if these do not
    have it. Indicators of missing numbers follow, and at last the encodings of dates, of many texts and
    of sentences. Create a preparation with :meth:`fit`.

    Parameters
    ----------
    numeric_names : tuple of str
        Names of the used columns of numbers.
    medians : tuple of float
        Medians that replace missing values in these columns.
    categories : tuple of (str, tuple of str)
        Used columns of few texts, each with its distinct texts.
    dropped : tuple of (str, str)
        Unused columns, each with the reason.
    dtype : str
        Type of the matrix, "float64" or "float32".
    target : Target, optional
        Target of the learning problem.
    image_shape : tuple of int, optional
        Height, width (and channels) if each row is an image.
    treatments : tuple of str
        Sentences about the preparation, without full stop.
    still : tuple of (int, float)
        Positions and values of matrix columns that are constant in the training rows but not in the
        whole table. They get this value in every row, because the effect of other values is not learned.
        See :meth:`refit`.
    gaps : tuple of str
        Columns of numbers whose missing values are marked by a column of 0 and 1.
    encoders : tuple of Encoder
        Encodings of the used columns of dates, of many texts and of sentences.
    shares : tuple of tuple of float
        Share of the training rows with each text of the columns of few texts; a text that they do not
        have is encoded by these shares.
    reading : Reading
        Statements of the user about columns; new rows are read in the same way.

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
    gaps: tuple[str, ...] = ()
    encoders: tuple[Encoder, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()
    reading: Reading = field(default_factory=Reading)

    @classmethod
    def fit(
        cls,
        table: Table,
        *,
        keep: Sequence[str] = (),  # columns of numbers to keep although they look like identifiers
        target: Target | None = None,
        image_shape: tuple[int, ...] | None = None,
        # Names of columns that vary in rows outside this table, and the columns' texts in these rows.
        varying: Iterable[str] = (),
        further_texts: Mapping[str, frozenset[str]] | None = None,
        # Encoded target of the rows, for the means of the target of each text.
        y: np.ndarray | None = None,
    ) -> Preparation:
        """Choose the usable columns from all rows, and fit their medians; see :meth:`refit`."""
        unknown = [name for name in keep if name not in table]
        if unknown:
            raise InvalidData(
                f"keep is {quoted_names(unknown)}, which is not a column; allowed: "
                f"{quoted_names(table.order)}."
            )
        refuse_infinite(table.numeric, table.numeric_names)
        statistics = column_statistics(table.numeric)
        refuse_tiny(statistics, table.numeric_names)
        # All pixels are kept: no pixel is an identifier, and pictures need constant pixels too.
        kept = set(table.numeric_names) if image_shape else set(keep)
        kept_constant = set(table.numeric_names) if image_shape else set(varying)
        dropped = unusable_numbers(table, statistics, kept, kept_constant)
        categories, encoders, unusable = usable_texts(table, further_texts or {})
        dropped |= unusable
        if y is not None and target is not None:
            for one in encoders:
                if isinstance(one, Levels):
                    means = Means.fit(one.name, table.column(one.name), y, len(target.classes))
                    encoders = (*encoders, *([means] if means is not None else []))
        used = [i for i, name in enumerate(table.numeric_names) if name not in dropped]
        if not table.order:
            raise InvalidData(
                "there is no column other than the target; allowed: at least one. Add columns."
            )
        if not used and not categories and not encoders:
            reasons = "; ".join(f"{name!r}: {reason}" for name, reason in list(dropped.items())[:5])
            raise InvalidData(
                f"no column is usable ({reasons}); allowed: at least one column that varies. Add "
                "columns, or keep one with --keep (keep=)."
            )
        preparation = cls(
            numeric_names=tuple(table.numeric_names[i] for i in used),
            medians=tuple(float(statistics.medians[i]) for i in used),
            categories=categories,
            dropped=tuple((name, dropped[name]) for name in table.order if name in dropped),
            dtype=str(np.result_type(table.numeric.dtype, np.float32)) if used else "float64",
            target=target,
            image_shape=image_shape,
            gaps=() if image_shape else marked_gaps(table, statistics.n_missing, used),
            encoders=encoders,
            shares=_shares(table, categories),
        )
        treatments = preparation._described(statistics.n_missing[used], table.n_rows)
        n_constant = int(statistics.constant[used].sum())
        if image_shape and n_constant:
            treatments += (
                f"{n_constant} pixels are constant and were kept for the pictures of directions",
            )
        return replace(preparation, treatments=treatments)

    def refit(self, table: Table, y: np.ndarray | None = None) -> Preparation:
        """Fit medians and encoders again on the training rows only; the columns used stay the same."""
        # If the columns used changed with the number of rows, errors at different numbers of rows would
        # not be comparable.
        statistics = column_statistics(self._numbers(table))
        one_value = statistics.empty | statistics.constant
        still = [(i, float(statistics.medians[i])) for i in np.flatnonzero(one_value).tolist()]
        place = len(self.numeric_names)
        for name, texts in self.categories:
            present = set(as_text(table.column(name)).tolist())
            # A text's column is 0 if no training row has the text, and 1 if every training row has it.
            still += [
                (place + i, float(present == {text}))
                for i, text in enumerate(texts)
                if text not in present or len(present) == 1
            ]
            place += len(texts)
        for name in self.gaps:
            missing = missing_mask(table.column(name))
            if missing.all() or not missing.any():
                still.append((place, float(missing.all())))
            place += 1
        # Constant pixels of images keep their values.
        fitted = replace(
            self,
            medians=tuple(statistics.medians.tolist()),
            still=() if self.image_shape else tuple(still),
            encoders=tuple(
                _refitted(one, as_text(table.column(one.name)), y) for one in self.encoders
            ),
            shares=_shares(table, self.categories),
        )
        return replace(fitted, treatments=fitted._described(statistics.n_missing, table.n_rows))

    def _described(self, n_missing: np.ndarray, n_rows: int) -> tuple[str, ...]:
        """Return sentences about unused columns, columns of text and missing numbers."""
        gaps = describe_gaps(self.numeric_names, n_missing, n_rows, self.medians)
        encoded = [one.sentence for one in self.encoders]
        marks = f"missing values of {quoted_names(self.gaps)} are marked by columns of 0 and 1"
        marked = [marks] * bool(self.gaps)
        sentences = (*describe(self.dropped, self.categories), *encoded, *gaps, *marked)
        if not self.still:
            return sentences
        names = quoted_names(self.columns[place] for place, _ in self.still)
        still = f"constant in all training rows, and set to this value in others: {names}"
        return (*sentences, still)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the matrix columns."""
        return tuple(name for _, names in self.parts for name in names)

    @property
    def parts(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names of the table's columns, each with the names of matrix columns in their order."""
        # A column of numbers comes twice if its missing values are marked.
        return (
            *((name, (name,)) for name in self.numeric_names),
            *((name, tuple(f"{name}={text}" for text in texts)) for name, texts in self.categories),
            *((name, (f"{name}: missing",)) for name in self.gaps),
            *((one.name, one.columns) for one in self.encoders),
        )

    @property
    def needed(self) -> tuple[str, ...]:
        """Names of the columns that a table must have."""
        texts = (name for name, _ in self.categories)
        encoded = dict.fromkeys(one.name for one in self.encoders)
        return (*self.numeric_names, *texts, *encoded)

    def transform(
        self, table: Table, *, first_row: int = 0, y: np.ndarray | None = None
    ) -> np.ndarray:
        """Convert a table to a matrix; the table's columns are matched by name.

        With the encoded target `y`, the rows are training rows: the mean target of a row's text is
        computed from other rows.
        """
        # If no value changes, the matrix is the table's own array, which may be memory-mapped.
        missing = [name for name in self.needed if name not in table]
        if missing:
            near = get_close_matches(missing[0], table.order, n=1)
            hint = f" Is {near[0]!r} the same as {missing[0]!r}?" if near else ""
            raise InvalidData(
                f"{len(missing)} of {len(self.needed)} columns of the model are not in the data: "
                f"{quoted_names(missing)}; columns of the data: {quoted_names(table.order)}. Add the "
                f"missing columns under these names.{hint}"
            )
        used = len(self.numeric_names)
        more = len(self.columns) > used
        with np.errstate(over="ignore"):
            # Values that overflow float32 become infinite; infinite values are refused below.
            if more:
                refuse_large(table.n_rows, len(self.columns), self.dtype)
                whole = np.empty((table.n_rows, len(self.columns)), dtype=self.dtype)
                whole[:, :used] = self._numbers(table)
                self._encode(table, whole[:, used:], y)
                matrix = whole[:, :used]
            else:
                whole = matrix = self._numbers(table).astype(self.dtype, copy=False)
        if refuse_infinite(matrix, self.numeric_names, first_row):
            if not more:
                whole = matrix = np.array(matrix)
            medians = np.array(self.medians, dtype=self.dtype)
            for rows in row_blocks(matrix):
                block = matrix[rows]
                np.copyto(block, medians, where=np.isnan(block))
        if self.still and not more:
            whole = np.array(whole)
        for place, value in self.still:
            whole[:, place] = value
        return whole

    def _encode(self, table: Table, places: np.ndarray, y: np.ndarray | None) -> None:
        """Write the columns of 0 and 1 and the encodings into the last columns of a matrix."""
        start = 0
        absent = {place for place, value in self.still if not value}
        for place, (name, texts) in enumerate(self.categories):
            column = as_text(table.column(name))
            ones = column[:, None] == np.array(texts, dtype=object)
            places[:, start : start + len(texts)] = ones
            if self.shares:
                first = len(self.numeric_names) + start
                seen = [one not in absent for one in range(first, first + len(texts))]
                present = np.array([text is not None for text in column], dtype=bool)
                unseen = present & ~ones[:, seen].any(axis=1)
                places[unseen, start : start + len(texts)] = self.shares[place]
            start += len(texts)
        for name in self.gaps:
            places[:, start] = missing_mask(table.column(name))
            start += 1
        for one in self.encoders:
            column = as_text(table.column(one.name))
            if isinstance(one, Means) and y is not None:
                encoded = one.encode_training(column, y)
            else:
                encoded = one.encode(column)
            places[:, start : start + encoded.shape[1]] = encoded
            start += encoded.shape[1]

    def report(self, table: Table) -> tuple[str, ...]:
        """Return sentences about the changes that :meth:`transform` makes to a table of new rows."""
        sentences = []
        known = {*self.needed, *self.reading.exclude, *(name for name, _ in self.dropped)}
        extra = [name for name in table.order if name not in known]
        if extra:
            sentences.append(f"ignored columns that the model does not use: {quoted_names(extra)}")
        present = {name: table.column(name) for name in self.needed if name in table}
        for name, texts in self.categories:
            column = as_text(present[name]) if name in present else np.array([], dtype=object)
            unseen = sorted({value for value in column if value is not None}.difference(texts))
            if unseen:
                sentences.append(
                    f"column {name!r}: texts not seen in training, encoded by the shares of the training "
                    f"rows: {quoted_names(unseen)}"
                )
        sentences += [
            sentence
            for one in self.encoders
            if one.name in present and (sentence := one.report(as_text(present[one.name])))
        ]
        names = [n for n in self.numeric_names if n in present and present[n].dtype != object]
        n_missing = np.array([np.count_nonzero(missing_mask(present[n])) for n in names], dtype=int)
        sentences.extend(describe_gaps(names, n_missing, table.n_rows))
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return the preparation as JSON values for :meth:`from_dict`."""
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
            "gaps": list(self.gaps),
            "encoders": [encoder_to_dict(one) for one in self.encoders],
            "shares": [list(one) for one in self.shares],
            "reading": self.reading.to_dict(),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Preparation:
        """Create a preparation from the result of :meth:`to_dict`."""
        if not isinstance(fields, Mapping):
            raise damaged(TypeError(f"{quoted(fields)} is no table"))
        if fields.get("format") not in (1, FORMAT):
            raise InvalidData(
                f"the preparation stored with the model has format {fields.get('format')!r}; "
                f"allowed: 1 or {FORMAT}. Use the version of solvable that wrote the model."
            )
        try:
            preparation = cls(
                numeric_names=_texts(fields["numeric_names"]),
                medians=tuple(_finite(value) for value in fields["medians"]),
                categories=tuple(
                    (_text(name), _texts(texts)) for name, texts in fields["categories"]
                ),
                dropped=tuple((_text(name), _text(why)) for name, why in fields["dropped"]),
                dtype={"float32": "float32", "float64": "float64"}[fields["dtype"]],
                target=Target.from_dict(fields["target"]) if fields["target"] else None,
                image_shape=tuple(map(int, fields["image_shape"]))
                if fields["image_shape"]
                else None,
                treatments=_texts(fields["treatments"]),
                still=tuple(
                    (int(place), _finite(value)) for place, value in fields.get("still", ())
                ),
                gaps=_texts(fields.get("gaps", ())),
                encoders=tuple(map(encoder_from_dict, fields.get("encoders", ()))),
                shares=tuple(tuple(map(_finite, one)) for one in fields.get("shares", ())),
                reading=Reading.from_dict(fields.get("reading", {})),
            )
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise damaged(error) from error
        if len(preparation.medians) != len(preparation.numeric_names):
            raise InvalidData(
                f"the preparation stored with the model is damaged: {len(preparation.medians)} "
                f"medians for {len(preparation.numeric_names)} columns. Fit the model again."
            )
        lengths = [len(texts) for _, texts in preparation.categories]
        if preparation.shares and [len(one) for one in preparation.shares] != lengths:
            raise damaged(ValueError("shares of other texts"))
        return preparation

    def _numbers(self, table: Table) -> np.ndarray:
        """Select columns of numbers by name; no copy is made if all columns of numbers are selected."""
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
                    f"column {name!r} contains text ({text[1]!r} in row {text[0] + 1}), but the model "
                    "was fitted to numbers; allowed: numbers, or an empty cell. Correct the column."
                )
            matrix[:, i] = np.nan if column.dtype == object else column
        return matrix


def _refitted(one: Encoder, column: np.ndarray, y: np.ndarray | None) -> Encoder:
    """Fit an encoding again; without target, means of the target stay as they are."""
    if isinstance(one, Means):
        return one if y is None else one.refit(column, y)
    return one.refit(column)


def _texts(values: Any) -> tuple[str, ...]:
    """Return stored texts; raise for anything else."""
    if not isinstance(values, list | tuple):
        raise TypeError(f"{quoted(values)} is no list of texts")
    return tuple(map(_text, values))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{quoted(value)} is no text")
    return value


def _finite(value: Any) -> float:
    if not np.isfinite(float(value)):
        raise ValueError(f"{value} is no finite number")
    return float(value)
