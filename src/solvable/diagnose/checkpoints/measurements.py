"""Numbers of all matrices of one checkpoint, without any law."""

from __future__ import annotations

from collections.abc import Iterator

from solvable.data.weights.stored import StoredArray, Weights
from solvable.diagnose.adapters import joined_adapters, multiplied
from solvable.diagnose.attention.query_key_arrays import heads_of
from solvable.diagnose.diagnosis import Measurement
from solvable.diagnose.matrices_of_file import diagnose_file
from solvable.diagnose.outliers import dead_rows
from solvable.diagnose.roles import split_arrays


def matrices_in(weights: Weights, heads: int | None) -> dict[str, StoredArray]:
    """Return the matrices of a checkpoint by name: fused projections split, adapters multiplied."""
    arrays = split_arrays(joined_adapters(weights.arrays), heads_of(weights, heads))
    return {stored.name: multiplied(stored) for stored in arrays if stored.is_matrix}


def measurements_of(
    weights: Weights, *, heads: int | None, seed: int, workers: int
) -> Iterator[Measurement]:
    """Yield the numbers of each matrix of a checkpoint."""
    for row in diagnose_file(weights, heads=heads, laws=False, workers=workers, seed=seed):
        if len(row.shape) > 1 or row.dtype == "unknown":
            yield Measurement(
                row.name,
                row.shape,
                row.directions,
                row.norm,
                row.largest,
                row.stable_rank,
                dead_rows(row.outliers),
                "" if row.norm is not None else row.reason,
            )
