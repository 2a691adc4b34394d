"""Parts of a source: equal rows for every kind of source, without a copy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.arrays import GENERATION_ROWS, ArraySource, GeneratedSource, random_stream
from solvable.errors import InvalidParameter
from solvable.fitting.row_subsets import (
    GeneratedRange,
    RowSubset,
    count_held_back,
    part_sizes,
    split_rows,
    take_range,
)


def draw(rows, rng):
    return rng.standard_normal((rows, 3))


def read(source, rows=1000):
    whole = np.full((source.n_samples, source.n_columns), np.nan)
    for part, block in source.chunks(rows):
        assert part.stop - part.start == len(block) <= rows
        whole[part] = block
    assert not np.isnan(whole).any()
    return whole


class Reader:
    """User-defined source with only the methods of the protocol."""

    def __init__(self, array):
        self.array_of_mine = array
        self.n_samples, self.n_columns = array.shape
        self.dtype = array.dtype

    def chunks(self, rows):
        yield from ArraySource(self.array_of_mine).chunks(rows)


N = 2 * GENERATION_ROWS + 700


def sources():
    generated = GeneratedSource(draw, N, 3, seed=1)
    array = read(generated)
    return array, [ArraySource(array), generated, Reader(array)]


@pytest.mark.parametrize(
    ("start", "stop"), [(0, N), (0, 900), (5000, N), (4096, 8192), (4000, 4200), (7, 8)]
)
@pytest.mark.parametrize("rows", [333, 5000])
def test_ranges_of_every_kind_of_source(start, stop, rows):
    array, kinds = sources()
    for source in kinds:
        part = take_range(source, start, stop)
        assert part.n_samples == stop - start
        assert part.dtype == np.float64
        np.testing.assert_array_equal(read(part, rows), array[start:stop])


def test_later_blocks_only_are_drawn():
    drawn = []

    def recording(rows, rng):
        drawn.append(rows)
        return draw(rows, rng)

    part = take_range(GeneratedSource(recording, N, 3, seed=1), 8192, N)
    assert isinstance(part, GeneratedRange)
    read(part)
    assert len(drawn) == 1
    drawn.clear()
    read(take_range(GeneratedSource(recording, N, 3, seed=1), 0, 4096))
    assert len(drawn) == 1


@given(st.sets(st.integers(0, N - 1), min_size=1, max_size=60), st.integers(1, 5000))
def test_subsets_of_every_kind_of_source(rows, chunk):
    array, kinds = sources()
    chosen = np.array(sorted(rows))
    for source in kinds:
        subset = RowSubset(source, chosen)
        assert subset.n_samples == chosen.size
        np.testing.assert_array_equal(read(subset, chunk), array[chosen])


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_row_has_one_role(shuffle):
    array = np.arange(2000.0)[:, None]
    rng = random_stream("split") if shuffle else None
    parts = split_rows(ArraySource(array), array[:, 0], [1200, 500, 300], rng)
    seen = []
    for part, size in zip(parts, [1200, 500, 300], strict=True):
        assert part.labels.size == size
        np.testing.assert_array_equal(read(part.source)[:, 0], part.labels)
        seen.append(part.labels)
    assert sorted(np.concatenate(seen)) == array[:, 0].tolist()
    in_order = np.array_equal(np.concatenate(seen), array[:, 0])
    assert in_order is not shuffle


def test_split_in_order_shares_memory():
    array = np.zeros((100, 4), dtype=np.float32)
    for part in split_rows(ArraySource(array), np.zeros(100), [60, 40], None):
        assert np.shares_memory(part.source.array, array)
    (whole, nothing) = split_rows(ArraySource(array), np.zeros(100), [100, 0], random_stream(0))
    assert whole.source.array is array
    assert nothing.labels.size == 0


@pytest.mark.parametrize(
    ("held_back", "n", "expected"),
    [(0.25, 100, 25), (0.0, 10, 0), (0.25, 3, 1), (0.9, 4, 2), (0.01, 10, 1), (7, 9, 7), (0, 5, 0)],
)
def test_number_of_rows_held_back(held_back, n, expected):
    assert count_held_back(held_back, n) == expected


@pytest.mark.parametrize("held_back", [-0.1, 1.0, -1, 9, True, "half", None, float("nan"), 1j])
def test_bad_number_of_rows_held_back(held_back):
    with pytest.raises(InvalidParameter, match="held_back is"):
        count_held_back(held_back, 10)


@given(st.integers(2, 10**6), st.floats(0, 0.99), st.integers(1, 5))
def test_sizes_add_up(n, fraction, layers):
    held_back = count_held_back(fraction, n)
    sizes = part_sizes(n, held_back, layers)
    assert len(sizes) == layers + 1
    assert sum(sizes) == n
    assert sizes[-1] == held_back
    # The first layer has the most features and gets at least half of the spectral rows.
    assert 2 * sizes[0] >= n - held_back
    assert all(size == 0 or size >= 2 for size in sizes[1:-1])
