r"""Label-weighted moments of features, summed chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvable.arrays import Array, as_on, is_tensor, namespace, to_numpy
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.memory import available_bytes, gigabytes
from solvable.operators._symmetric import mirror, rank_update


class LabelMoments:
    r"""Sums of :math:`w_g`, :math:`w_g z` and :math:`w_g z z^T` over samples, group by group.

    For classes :math:`w_g` is 1 in class g and 0 elsewhere; a real label y has two groups,
    with weights :math:`w = (1, y)`. Sums are additive: parts of the samples can be summed
    separately, in any chunks, and merged; the result is the same to rounding.

    Parameters
    ----------
    n_features : int
        Number P of features.
    n_groups : int
        Number of classes, or 2 for a real label.
    classes : bool
        True if the groups are classes; each sample then belongs to one group.

    Raises
    ------
    MemoryLimitExceeded
        If the sums, :math:`8 G P^2` bytes, do not fit.

    Notes
    -----
    Cost :math:`n P^2` flops for any number of classes, and twice as many for a real label. Products of
    float32 features use float32; sums use float64. The groups are those of (lofi 1) and (lofi 4).

    Examples
    --------
    >>> Z = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> whole, part = LabelMoments(2, 2), LabelMoments(2, 2)
    >>> whole.add(Z, np.array([0, 1, 1])).second(1)
    array([[1., 1.],
           [1., 5.]])
    >>> part.add(Z[:1], np.array([0])).merge(LabelMoments(2, 2).add(Z[1:], np.array([1, 1]))).rows
    3
    """

    def __init__(self, n_features: int, n_groups: int, *, classes: bool = True) -> None:
        needed, free = 8.0 * n_groups * n_features**2, available_bytes()
        if needed > free:
            raise MemoryLimitExceeded(
                f"second moments of {n_features} features in {n_groups} groups take "
                f"{gigabytes(needed)}; {gigabytes(free)} are free. Take a smaller width."
            )
        self.n_features = n_features
        self.n_groups = n_groups
        self.classes = classes
        self.rows = 0
        self.totals = np.zeros(n_groups)
        self.first = np.zeros((n_groups, n_features))
        self._second = [np.zeros((n_features, n_features), order="F") for _ in range(n_groups)]

    def add(self, Z: Array, labels: np.ndarray) -> LabelMoments:
        """Add a chunk of features (m, P) with the class or the real label of each row (m,).

        Tensors are summed on their device; the sums are copied to the host when they are first read.
        """
        if Z.ndim != 2 or Z.shape[1] != self.n_features or len(labels) != len(Z):
            raise InvalidData(
                f"features have shape {tuple(Z.shape)} and labels {labels.shape}; allowed: "
                f"(m, {self.n_features}) and (m,)."
            )
        self._place(Z)
        if self.classes:
            for group in range(self.n_groups):
                chosen = labels == group
                if chosen.any():
                    self._add(group, Z if chosen.all() else _chosen(Z, chosen), None)
        else:
            self._add(0, Z, None)
            self._add(1, Z, np.asarray(labels, dtype=np.float64))
        if not bool(namespace(self.first).all(namespace(self.first).isfinite(self.first))):
            raise InvalidData(
                "the features are NaN or infinite, because the samples are; allowed: finite numbers."
            )
        self.rows += len(Z)
        return self

    def _place(self, like: Array) -> None:
        """Move the sums to the device of the samples."""
        if is_tensor(self.first) == is_tensor(like):
            return
        if not is_tensor(like):
            self.first = to_numpy(self.first)
            self._second = [np.asfortranarray(to_numpy(second)) for second in self._second]
            return
        xp = namespace(like)
        wide = xp.astype(like[:1], xp.float64)
        self.first = as_on(self.first, wide)
        self._second = [as_on(second, wide) for second in self._second]

    def fetch(self) -> LabelMoments:
        """Move the sums to the host."""
        self._place(self.totals)
        return self

    def _add(self, group: int, Z: Array, weights: np.ndarray | None) -> None:
        xp = namespace(Z)
        if weights is None:
            self.totals[group] += len(Z)
            self.first[group] += xp.sum(Z, axis=0, dtype=xp.float64)
            rank_update(self._second[group], Z, 1.0)
            return
        self.totals[group] += weights.sum()
        wide = xp.astype(Z, xp.float64, copy=False)
        self.first[group] += as_on(weights, wide) @ wide
        for sign in (1.0, -1.0):
            chosen = np.sign(weights) == sign
            if chosen.any():
                size = as_on(np.sqrt(np.abs(weights[chosen])), Z)
                rank_update(self._second[group], _chosen(Z, chosen) * size[:, None], sign)

    def merge(self, other: LabelMoments) -> LabelMoments:
        """Merge the sums of other samples with the same features and groups."""
        kinds = [
            (moments.n_features, moments.n_groups, moments.classes) for moments in (self, other)
        ]
        if kinds[0] != kinds[1]:
            raise InvalidData(
                f"moments of (features, groups, classes) {kinds[1]} cannot be added to {kinds[0]}."
            )
        self.fetch()
        other.fetch()
        self.rows += other.rows
        self.totals += other.totals
        self.first += other.first
        for mine, theirs in zip(self._second, other._second, strict=True):
            mine += theirs
        return self

    def centred(self) -> LabelMoments:
        """Moments of the same samples after centring the features."""
        from scipy.linalg.blas import dsyr2

        self.fetch()
        whole = slice(None) if self.classes else slice(1)
        mean = self.first[whole].sum(axis=0) / self.rows
        moments = LabelMoments(self.n_features, self.n_groups, classes=self.classes)
        moments.rows, moments.totals = self.rows, self.totals.copy()
        moments.first = self.first - np.outer(self.totals, mean)
        for mine, second, first, total in zip(
            moments._second, self._second, self.first, self.totals, strict=True
        ):
            # S_g - f_g m^T - m f_g^T + t_g m m^T = S_g - u m^T - m u^T with u = f_g - t_g m / 2.
            mine[:] = second
            dsyr2(-1.0, first - total * mean / 2, mean, a=mine, overwrite_a=True)
        return moments

    def second(self, group: int) -> np.ndarray:
        """Copy of group g's sum of :math:`w_g z z^T`, shape (P, P)."""
        return mirror(self.upper_triangle(group).copy(order="F"))

    def upper_triangle(self, group: int) -> np.ndarray:
        """Upper triangle of group g's sum of :math:`w_g z z^T`, in column-major order."""
        return self.fetch()._second[group]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Convert to plain arrays, from which :meth:`from_arrays` restores the same bits."""
        self.fetch()
        return {
            "rows": np.array(self.rows),
            "classes": np.array(self.classes),
            "totals": self.totals,
            "first": self.first,
            "second": np.stack([second.T for second in self._second]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> LabelMoments:
        """Restore moments from the arrays of :meth:`to_arrays`."""
        missing = {"rows", "classes", "totals", "first", "second"} - set(arrays)
        if missing:
            raise InvalidData(f"stored moments lack {', '.join(sorted(missing))}.")
        groups, width = arrays["first"].shape
        if arrays["second"].shape != (groups, width, width) or arrays["totals"].shape != (groups,):
            raise InvalidData(
                f"stored moments have shapes {arrays['first'].shape} and {arrays['second'].shape}; "
                "allowed: (G, P) and (G, P, P)."
            )
        moments = cls(width, groups, classes=bool(arrays["classes"]))
        moments.rows = int(arrays["rows"])
        moments.totals = np.array(arrays["totals"], dtype=np.float64)
        moments.first = np.array(arrays["first"], dtype=np.float64)
        moments._second = [np.asfortranarray(second.T) for second in arrays["second"]]
        return moments


def _chosen(Z: Array, chosen: np.ndarray) -> Array:
    """Select the rows for which the host array is True."""
    if isinstance(Z, np.ndarray):
        return Z[chosen]
    return namespace(Z).take(Z, as_on(np.flatnonzero(chosen), Z), axis=0)
