"""Read labelled samples in chunks of rows, from files larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from solvable.arrays import Array
from solvable.data.columns import MAX_CATEGORIES, column_statistics
from solvable.data.parquet import read_parquet
from solvable.data.preparation import Preparation
from solvable.data.raw_data import Part, RawData, target_of
from solvable.data.readers import PARQUET_ENDINGS, read_raw
from solvable.data.table import Table, as_text, missing_mask, stack_rows
from solvable.data.target import Target, TargetValues, Task, decide_target
from solvable.errors import InvalidData, InvalidParameter

HEAD_ROWS = 100_000  # number of first rows to which a stream's preparation is fitted

HEAD_ENTRIES = 20_000_000
"""Largest number of entries (at most 160 MB) in these first rows; it limits wide tables."""


@dataclass(frozen=True, eq=False)
class ArrayStream:
    """Labelled samples in two arrays: in memory, memory-mapped, or on a GPU."""

    X: Array  # inputs, shape (n, d)
    y: Array  # labels, shape (n,)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> Any:
        """Type of the inputs."""
        return self.X.dtype

    def chunks(self, rows: int, start: int = 0) -> Iterator[tuple[slice, Array, Array]]:
        """Yield ``(slice, X, y)`` from row ``start`` on; X and y are views."""
        for low in _starts(rows, start, self.n_samples):
            part = slice(low, min(low + rows, self.n_samples))
            yield part, self.X[part, :], self.y[part]


@dataclass(frozen=True, eq=False)
class PartStream:
    """Labelled samples in files, prepared part by part while reading."""

    # At any time, memory contains one part (a row group or a file) and one chunk.
    parts: tuple[Part, ...]
    sizes: tuple[int, ...]  # number of rows in each part with a valid target
    preparation: Preparation  # preparation of the inputs and the target
    treatments: tuple[str, ...] = ()  # sentences about the preparation, without full stop

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(self.sizes)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.preparation.columns)

    @property
    def dtype(self) -> Any:
        """Type of the inputs."""
        return np.dtype(self.preparation.dtype)

    @property
    def target(self) -> Target:
        """Target of the learning problem."""
        assert self.preparation.target is not None
        return self.preparation.target

    def chunks(self, rows: int, start: int = 0) -> Iterator[tuple[slice, Array, Array]]:
        """Yield ``(slice, X, y)`` from row ``start`` on, ``rows`` rows each (the last may be shorter)."""
        lows = _starts(rows, start, self.n_samples)
        blocks: list[tuple[np.ndarray, np.ndarray]] = []
        held = 0
        low = start
        for X, y in self._blocks(start):
            blocks.append((X, y))
            held += len(y)
            while held >= rows or (held and low + held == self.n_samples):
                size = min(rows, held)
                chunk, blocks = _take(blocks, size)
                yield slice(low, low + size), *chunk
                low += size
                held -= size
        assert low == self.n_samples or not lows

    def _blocks(self, start: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the prepared inputs and target of each part, from row ``start`` on."""
        first = 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            if size and first + size > start:
                table, values = part.read()
                assert values is not None
                if size < part.n_rows:
                    used = _used_rows(values, self.target)
                    table, values = table.rows(used), values[used]
                skip = slice(max(0, start - first), None)
                X = self.preparation.transform(table.rows(skip), first_row=first + skip.start)
                yield X, self.target.encode(values[skip])
            first += size


LabelledSource: TypeAlias = ArrayStream | PartStream
"""Samples with labels that can be read repeatedly in chunks of rows."""


def from_arrays(X: Array, y: Array) -> ArrayStream:
    """Make a labelled data source from arrays, which are neither copied nor prepared.

    Parameters
    ----------
    X : array of shape (n, d)
        Inputs: a NumPy array, a memory-mapped array, or an array of another library.
    y : array of shape (n,)
        Labels.

    Returns
    -------
    ArrayStream
        The same samples.

    Raises
    ------
    InvalidData
        If the shapes do not match.

    Examples
    --------
    >>> [rows for rows, X, y in from_arrays(np.zeros((5, 2)), np.zeros(5)).chunks(2, start=1)]
    [slice(1, 3, None), slice(3, 5, None)]
    """
    shapes = tuple(getattr(X, "shape", ())), tuple(getattr(y, "shape", ()))
    if len(shapes[0]) != 2 or shapes[1] != shapes[0][:1]:
        raise InvalidData(
            f"X has shape {shapes[0]} and y has shape {shapes[1]}; allowed: (n, d) and (n,). "
            "Reshape them."
        )
    return ArrayStream(X, y)


def open_stream(
    path_or_paths: str | Path | Sequence[str | Path],
    target: str | None = None,
    *,
    task: Task = "auto",
    keep: Sequence[str] = (),
    preparation: Preparation | None = None,
) -> PartStream:
    """Open files as a labelled data source; the files need not fit into memory.

    Parameters
    ----------
    path_or_paths : path or sequence of paths
        One or more Parquet files; a folder of Parquet files, of ``X*.npy`` and ``y*.npy``
        (memory-mapped) or of NPZ shards; or other data that :func:`~solvable.data.load` reads, which
        are then kept in memory.
    target : str, optional
        Column to predict.
    task : {"auto", "classification", "regression", "binary"}
        Kind of the target.
    keep : sequence of str
        Columns to keep although they look like identifiers.
    preparation : Preparation, optional
        Preparation of an earlier stream. By default, a preparation is fitted to the first 100,000 rows
        (fewer in a wide table); constant columns and the texts of columns are found in all rows.

    Returns
    -------
    PartStream
        Stream of the samples; ``treatments`` describes their preparation.

    Raises
    ------
    InvalidData
        If the data are unusable. Infinite values after the first rows raise when their chunk is read.

    Notes
    -----
    Opening reads the first rows of all columns. Of the later rows, it reads only the target and the
    columns that are constant or contain text in the first rows. Float32 columns stay float32.
    """
    raw = _open(path_or_paths, target)
    sizes, values = _scan_target(raw)
    n_rows = sum(part.n_rows for part in raw.parts)
    treatments: tuple[str, ...] = ()
    if sum(sizes) < n_rows:
        treatments = (f"dropped {n_rows - sum(sizes)} of {n_rows} rows: target missing",)
    seen_before = preparation is not None
    if preparation is None:
        fitted, notes = decide_target(values, task)
        head, n_head = _head(raw.parts, fitted)
        varying, texts = _beyond_head(raw.parts[n_head:], head)
        preparation = Preparation.fit(
            head,
            keep=keep,
            target=fitted,
            image_shape=raw.image_shape,
            varying=varying,
            further_texts=texts,
        )
        treatments += (*notes, *preparation.treatments)
        if n_head < len(raw.parts):
            treatments += (
                f"medians and identifiers are determined by the first {head.n_rows} rows",
            )
    elif preparation.target is None:
        raise InvalidParameter(
            "the preparation has no target; allowed: a preparation with one. Fit it with target=."
        )
    assert preparation.target is not None
    known = _known_rows(raw, preparation.target, sizes, values)
    if seen_before and known != sizes:
        lost = sum(sizes) - sum(known)
        treatments += (f"set aside {lost} rows of classes not seen in training",)
    return PartStream(raw.parts, known, preparation, (*raw.notes, *treatments))


def _open(path_or_paths: str | Path | Sequence[str | Path], target: str | None) -> RawData:
    if isinstance(path_or_paths, (str, Path)):
        return read_raw(path_or_paths, target)
    paths = [Path(path) for path in path_or_paths]
    if not paths or any(path.suffix not in PARQUET_ENDINGS for path in paths):
        raise InvalidParameter(
            f"paths are {[path.name for path in paths[:3]]}; allowed: one or more Parquet files, or "
            "one folder. Put array files into a folder."
        )
    return read_parquet(paths, target)


def _scan_target(raw: RawData) -> tuple[tuple[int, ...], TargetValues]:
    """Return each part's number of rows with a target, and the target values of all parts."""
    sizes = []
    merged = TargetValues(raw.target, {}, 0, True)
    for part in raw.parts:
        values = target_of(part)
        assert values is not None
        values = values[~missing_mask(values)]
        sizes.append(len(values))
        merged = merged.merge(TargetValues.of(raw.target, values))
    return tuple(sizes), merged


def _known_rows(
    raw: RawData, target: Target, sizes: tuple[int, ...], values: TargetValues
) -> tuple[int, ...]:
    """Return each part's number of rows whose target is a number or a known class."""
    if not values.has_others(target):
        return sizes
    columns = map(target_of, raw.parts)
    return tuple(int(_used_rows(column, target).sum()) for column in columns if column is not None)


def _used_rows(values: np.ndarray, target: Target) -> np.ndarray:
    """Return the mask of the rows whose target is a number or one of the classes."""
    used = ~missing_mask(values)
    if target.kind != "regression":
        used[used] = target.encode(values[used]) >= 0
    return used


def _head(parts: Sequence[Part], target: Target) -> tuple[Table, int]:
    """Read the first parts, up to ``HEAD_ROWS`` rows or ``HEAD_ENTRIES`` entries; count the parts."""
    tables: list[Table] = []
    n_rows = 0
    for part in parts:
        table, values = part.read()
        assert values is not None
        used = _used_rows(values, target)
        tables.append(table if used.all() else table.rows(used))
        n_rows += part.n_rows
        if n_rows >= HEAD_ROWS or n_rows * len(part.columns) >= HEAD_ENTRIES:
            break
    return stack_rows(tables), len(tables)


def _beyond_head(parts: Sequence[Part], head: Table) -> tuple[set[str], dict[str, frozenset[str]]]:
    """Return the columns that are constant in the first rows only, and all texts of text columns."""
    statistics = column_statistics(head.numeric)
    flat = dict(zip(head.numeric_names, statistics.low, strict=True))
    still = statistics.constant | statistics.empty
    asked = [name for name, is_flat in zip(head.numeric_names, still, strict=True) if is_flat]
    texts = {name: set(as_text(column)) - {None} for name, column in head.texts.items()}
    varying: set[str] = set()
    for part in parts:
        asked = [name for name in asked if name not in varying]
        open_texts = [name for name in texts if len(texts[name]) <= MAX_CATEGORIES]
        if not asked and not open_texts:
            break
        table, _ = part.read([*asked, *open_texts])
        for name in asked:
            values = table.column(name)
            if (values[~missing_mask(values)] != flat[name]).any():
                varying.add(name)
        for name in open_texts:
            texts[name] |= set(as_text(table.column(name))) - {None}
    return varying, {name: frozenset(seen) for name, seen in texts.items()}


def _starts(rows: int, start: int, n_samples: int) -> range:
    """Check the chunk size and the first row; return the position of each chunk's first row."""
    if rows < 1 or not 0 <= start <= n_samples:
        raise InvalidParameter(
            f"rows is {rows} and start is {start}; allowed: rows of 1 or more and start from 0 to "
            f"{n_samples}."
        )
    return range(start, n_samples, rows)


def _take(
    blocks: list[tuple[np.ndarray, np.ndarray]], size: int
) -> tuple[tuple[np.ndarray, np.ndarray], list[tuple[np.ndarray, np.ndarray]]]:
    """Split the blocks into the first ``size`` rows and the rest; one block alone is not copied."""
    taken: list[tuple[np.ndarray, np.ndarray]] = []
    for position, (X, y) in enumerate(blocks):
        n = min(size, len(y))
        taken.append((X[:n], y[:n]))
        size -= n
        if size == 0:
            rest = [(X[n:], y[n:])] if n < len(y) else []
            blocks = [*rest, *blocks[position + 1 :]]
            break
    if len(taken) == 1:
        return taken[0], blocks
    return (np.concatenate([X for X, _ in taken]), np.concatenate([y for _, y in taken])), blocks
