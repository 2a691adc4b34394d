"""Select rows of a sample source without a copy: ranges, subsets, and the split into roles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from solvable.arrays import (
    GENERATION_ROWS,
    Array,
    ArraySource,
    GeneratedSource,
    Source,
    is_real,
    namespace,
)
from solvable.errors import InvalidParameter


@dataclass(frozen=True)
class SourceView:
    """Base class of a selection of rows of a source."""

    source: Any

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.source.n_columns)

    @property
    def dtype(self) -> Any:
        """Data type of the entries."""
        return self.source.dtype


@dataclass(frozen=True)
class RowSubset(SourceView):
    """Selected rows of a source, which are read chunk by chunk."""

    rows: np.ndarray  # row positions in ascending order, so that the source is read in order

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.rows.size)

    @cached_property
    def _rows_there(self) -> Array:
        """Row positions, copied once to the device of the array."""
        array = self.source.array
        if isinstance(array, np.ndarray):
            return self.rows
        from array_api_compat import device

        return namespace(array).asarray(self.rows, device=device(array))

    def chunks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Yield ``(slice, block)`` pairs in the order of the rows."""
        if isinstance(self.source, ArraySource):
            for start in range(0, self.n_samples, rows):
                part = slice(start, min(start + rows, self.n_samples))
                yield part, _take(self.source.array, self._rows_there[part])
            return
        for part, block in self.source.chunks(rows):
            low, high = np.searchsorted(self.rows, (part.start, part.stop))
            if high > low:
                local = self.rows[low:high] - part.start
                yield slice(int(low), int(high)), _take(block, local)


@dataclass(frozen=True)
class GeneratedRange(SourceView):
    """Range of rows of a source that regenerates its rows; earlier blocks are not drawn."""

    start: int
    stop: int

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    def chunks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Yield ``(slice, block)`` pairs in the order of the rows."""
        first = self.start // GENERATION_ROWS * GENERATION_ROWS
        for part, block in self.source.chunks(rows, start=first):
            low, high = max(part.start, self.start), min(part.stop, self.stop)
            if low >= self.stop:
                return
            if high > low:
                here = slice(low - self.start, high - self.start)
                yield here, block[low - part.start : high - part.start]


def _take(block: Array, rows: Array) -> Array:
    """Select rows of a block with the block's array library."""
    if isinstance(block, np.ndarray):
        return block.take(rows, axis=0)
    from array_api_compat import device

    xp = namespace(block)
    there = rows if not isinstance(rows, np.ndarray) else xp.asarray(rows, device=device(block))
    return xp.take(block, there, axis=0)


def take_range(source: Source, start: int, stop: int) -> Source:
    """Select rows ``start`` to ``stop`` of a source without a copy."""
    if start == 0 and stop == source.n_samples:
        return source
    if isinstance(source, ArraySource):
        return ArraySource(source.array[start:stop, :])
    if isinstance(source, GeneratedSource):
        if start == 0:
            return replace(source, n_samples=stop)
        return GeneratedRange(source, start, stop)
    return RowSubset(source, np.arange(start, stop))


@dataclass(frozen=True)
class Part:
    """Samples and labels that have one role in a fit."""

    source: Source
    labels: np.ndarray


def count_held_back(held_back: Any, n_samples: int) -> int:
    """Return the number of held-back rows, from a fraction in [0, 1) (at least one row) or a number."""
    if not is_real(held_back):
        raise InvalidParameter(
            f"held_back is {held_back!r}; allowed: a fraction in [0, 1) or a number of rows."
        )
    if isinstance(held_back, (int, np.integer)):
        rows = int(held_back)
        allowed = f"an integer from 0 to n - 2 = {n_samples - 2}"
    else:
        if not 0 <= held_back < 1:
            raise InvalidParameter(
                f"held_back is {held_back}; allowed: a fraction in [0, 1), or an integer number "
                "of rows."
            )
        rows = min(max(1, round(held_back * n_samples)), n_samples - 2) if held_back > 0 else 0
        allowed = "a fraction that leaves two rows"
    if not 0 <= rows <= max(n_samples - 2, 0):
        raise InvalidParameter(
            f"held_back is {held_back} with n = {n_samples} samples; allowed: {allowed}."
        )
    return rows


def part_sizes(n_samples: int, held_back: int, n_layers: int) -> list[int]:
    """Return the number of rows for each spectral layer and for the second layer, with sum n_samples."""
    # Deeper layers have far fewer features than the first. Each deeper layer gets as many rows as
    # are held back, but all deeper layers together get at most half of the spectral rows. A layer
    # with fewer than two rows gets none, and uses the rows of the first layer instead.
    spectral = n_samples - held_back
    deeper = 0
    if n_layers > 1:
        share = spectral // (2 * (n_layers - 1))
        deeper = min(held_back, share) if held_back else share
        deeper = deeper if deeper >= 2 else 0
    return [spectral - deeper * (n_layers - 1), *[deeper] * (n_layers - 1), held_back]


def split_rows(
    source: Source, labels: np.ndarray, sizes: list[int], rng: np.random.Generator | None
) -> list[Part]:
    """Assign one role to every row without a copy: in order, or at random with a generator."""
    if rng is None or np.count_nonzero(sizes) < 2:
        stops = np.cumsum(sizes)
        return [
            Part(take_range(source, int(stop) - size, int(stop)), labels[stop - size : stop])
            for stop, size in zip(stops, sizes, strict=True)
        ]
    roles = np.repeat(np.arange(len(sizes), dtype=np.uint8), sizes)
    rng.shuffle(roles)
    parts = []
    for role in range(len(sizes)):
        rows = np.flatnonzero(roles == role).astype(np.int32 if roles.size < 2**31 else np.int64)
        parts.append(Part(RowSubset(source, rows), labels[rows]))
    return parts
