"""Labelled samples read in chunks of rows, from files larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from solvable.arrays import Array
from solvable.data.columns import MAX_CATEGORIES, column_statistics
from solvable.data.parquet import read_parquet
from solvable.data.preparation import Preparation
from solvable.data.raw_data import Part, RawData
from solvable.data.readers import PARQUET_ENDINGS, read_raw
from solvable.data.table import Table, as_text, missing_mask, stack_rows
from solvable.data.target import Target, TargetValues, Task, decide_target
from solvable.errors import InvalidData, InvalidParameter

HEAD_ROWS = 100_000  # first rows of a stream from which its preparation is fitted

HEAD_ENTRIES = 20_000_000
"""Entries, 160 MB at most, after which fewer rows of a wide table have to do."""


@runtime_checkable
class LabelledSource(Protocol):
    """Samples with labels that can be read again and again in chunks of rows."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        ...

    @property
    def n_columns(self) -> int:
        """Number of columns of the inputs."""
        ...

    @property
    def dtype(self) -> Any:
        """Type of the inputs."""
        ...

    def chunks(self, rows: int, start: int = 0) -> Iterator[tuple[slice, Array, Array]]:
        """Yield ``(slice, X, y)`` in order from row ``start``, ``rows`` rows each but the last."""
        ...


@dataclass(frozen=True, eq=False)
class ArrayStream:
    """Labelled samples in two arrays: in memory, memory-mapped, or on a GPU."""

    X: Array  # (n, d)
    y: Array  # (n,)

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
        """Yield ``(slice, X, y)`` in order from row ``start``; the blocks are views."""
        for low in _starts(rows, start, self.n_samples):
            part = slice(low, min(low + rows, self.n_samples))
            yield part, self.X[part, :], self.y[part]


@dataclass(frozen=True, eq=False)
class PartStream:
    """Labelled samples in files, prepared part by part as they are read."""

    # Memory is that of one part (a row group, a shard) and one chunk.
    parts: tuple[Part, ...]
    sizes: tuple[int, ...]  # rows of each part whose target is a number or one of the classes
    preparation: Preparation  # with its target
    treatments: tuple[str, ...] = ()  # what was done, as sentences without full stop

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
        """What is predicted."""
        assert self.preparation.target is not None
        return self.preparation.target

    def chunks(self, rows: int, start: int = 0) -> Iterator[tuple[slice, Array, Array]]:
        """Yield ``(slice, X, y)`` in order from row ``start``, ``rows`` rows each but the last."""
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
        """Prepared parts from row ``start`` on."""
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


def from_arrays(X: Array, y: Array) -> ArrayStream:
    """Labelled source of arrays, which are neither copied nor treated.

    Parameters
    ----------
    X : array of shape (n, d)
        Inputs: NumPy, memory-mapped, or of another array library.
    y : array of shape (n,)
        Labels.

    Returns
    -------
    ArrayStream
        The same samples.

    Raises
    ------
    InvalidData
        If shapes do not fit together.

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
    """Labelled source of files that need not fit into memory.

    Parameters
    ----------
    path_or_paths : path or sequence of paths
        A Parquet file or several; a folder of Parquet files, of ``X*.npy`` and ``y*.npy``
        (memory-mapped) or of NPZ shards; anything else that :func:`~solvable.data.load` reads, which
        is then held in memory.
    target : str, optional
        Column to predict.
    task : {"auto", "classification", "regression", "binary"}
        What to predict.
    keep : sequence of str
        Columns to keep though they look like identifiers.
    preparation : Preparation, optional
        Treatment of the columns, as of an earlier stream. By default it is fitted on the first
        100,000 rows, fewer of a wide table; whether a column is constant and which texts it holds
        is asked of all rows.

    Returns
    -------
    PartStream
        The samples; its ``treatments`` say what was done.

    Raises
    ------
    InvalidData
        If the data cannot be learned from. An infinite value beyond the first rows is found when
        its chunk is read.

    Notes
    -----
    Opening reads the target of every part, and other columns only where a question is open.
    Float32 columns stay float32.
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
            treatments += (f"medians and identifiers are those of the first {head.n_rows} rows",)
    elif preparation.target is None:
        raise InvalidParameter(
            "the preparation has no target, and a labelled source needs one. Fit it with target=."
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
    """Rows with target in each part, and the values of all."""
    sizes = []
    merged = TargetValues(raw.target, {}, 0, True)
    for part in raw.parts:
        values = part.target()
        assert values is not None
        values = values[~missing_mask(values)]
        sizes.append(len(values))
        merged = merged.merge(TargetValues.of(raw.target, values))
    return tuple(sizes), merged


def _known_rows(
    raw: RawData, target: Target, sizes: tuple[int, ...], values: TargetValues
) -> tuple[int, ...]:
    """Rows with a target in each part, without those of a class that has no code."""
    if not values.has_others(target):
        return sizes
    columns = (part.target() for part in raw.parts)
    return tuple(int(_used_rows(column, target).sum()) for column in columns if column is not None)


def _used_rows(values: np.ndarray, target: Target) -> np.ndarray:
    """Rows whose target is a number or one of the classes, as a mask."""
    used = ~missing_mask(values)
    if target.kind != "regression":
        used[used] = target.encode(values[used]) >= 0
    return used


def _head(parts: Sequence[Part], target: Target) -> tuple[Table, int]:
    """The first parts that together have ``HEAD_ROWS`` rows or are wide, and how many they are."""
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
    """Columns that are constant in the head and vary later, and texts that come later."""
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
    """First rows of the chunks; refuses a chunk without rows and a start outside the samples."""
    if rows < 1 or not 0 <= start <= n_samples:
        raise InvalidParameter(
            f"rows is {rows} and start is {start}; allowed: rows of 1 or more and start from 0 to "
            f"{n_samples}."
        )
    return range(start, n_samples, rows)


def _take(
    blocks: list[tuple[np.ndarray, np.ndarray]], size: int
) -> tuple[tuple[np.ndarray, np.ndarray], list[tuple[np.ndarray, np.ndarray]]]:
    """The first ``size`` rows of the blocks, a view where one block has them; and the rest."""
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
    return (
        np.concatenate([X for X, _ in taken]),
        np.concatenate([y for _, y in taken]),
    ), blocks
