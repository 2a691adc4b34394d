"""The moment operator of samples that lie in several places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from solvable.arrays import Array
from solvable.errors import InvalidParameter
from solvable.operators.base import MomentStatistics, SymmetricOperator


class ShardSum(SymmetricOperator):
    """Sum of the moment operators of disjoint parts of the samples.

    Parameters
    ----------
    shards : sequence of operators
        At least one; same features and correction.
    """

    def __init__(self, shards: Sequence[SymmetricOperator]) -> None:
        if not shards:
            raise InvalidParameter("there are no shards; at least one is needed.")
        first = shards[0]
        for shard in shards:
            if shard.features != first.features or shard.correction != first.correction:
                raise InvalidParameter(
                    f"shards differ: {shard.features} with correction {shard.correction!r} against "
                    f"{first.features} with {first.correction!r}; all must agree."
                )
        self.shards = tuple(shards)
        self.features = first.features
        self.correction = first.correction
        self.n_samples = sum(shard.n_samples for shard in shards)

    def _apply(self, U: Array) -> Array:
        terms = [shard.matmat(U) * (shard.n_samples / self.n_samples) for shard in self.shards]
        return sum(terms[1:], terms[0])

    @property
    def itemsize(self) -> int:
        """Bytes per entry of the samples as they are multiplied: 4 or 8."""
        return max(shard.itemsize for shard in self.shards)

    def blocks(self, rows: int) -> Iterator[tuple[Array, np.ndarray]]:
        """Samples and weights in order, shard after shard."""
        for shard in self.shards:
            yield from shard.blocks(rows)

    @property
    def weighted_norms(self) -> np.ndarray:
        r""":math:`T_\mu \|F_\mu\|^2 / D` of every sample, shard after shard, shape (n,)."""
        return np.concatenate([shard.weighted_norms for shard in self.shards])

    @cached_property
    def statistics(self) -> MomentStatistics:
        """Averages over all shards."""
        parts = [shard.statistics for shard in self.shards]
        shares = np.array([part.n_samples for part in parts]) / self.n_samples

        def mean(name: str) -> float:
            return float(shares @ np.array([getattr(part, name) for part in parts]))

        return MomentStatistics(
            n_samples=self.n_samples,
            n_features=self.features.n_features,
            mean_weight=mean("mean_weight"),
            weight_second_moment=mean("weight_second_moment"),
            weighted_norm_mean=mean("weighted_norm_mean"),
            weighted_norm_second=mean("weighted_norm_second"),
            weighted_norm_fourth=mean("weighted_norm_fourth"),
            largest_weighted_norm=max(part.largest_weighted_norm for part in parts),
        )

    def dense(self) -> np.ndarray:
        """The operator as a matrix, shape (D, D)."""
        total = self.shards[0].dense() * (self.shards[0].n_samples / self.n_samples)
        for shard in self.shards[1:]:
            total += shard.dense() * (shard.n_samples / self.n_samples)
        return total
