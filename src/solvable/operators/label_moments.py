r"""Label-weighted moments that are summed chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.memory import available_bytes, gigabytes
from solvable.operators._symmetric import mirror, rank_update


class LabelMoments:
    r"""Sums of :math:`w_g`, :math:`w_g z` and :math:`w_g z z^T` over samples, group by group.

    For classes :math:`w_g` is 1 in class g and 0 elsewhere; for a real label there are two groups,
    :math:`w = (1, y)`. Sums are additive: parts of the samples can be summed anywhere, in any
    chunks, and merged; the result is the same to rounding.

    Parameters
    ----------
    n_features : int
        Columns P of the features.
    n_groups : int
        Number of classes, or 2 for a real label.
    classes : bool
        Whether the groups are classes, so that each sample belongs to one.

    Raises
    ------
    MemoryLimitExceeded
        If the sums, :math:`8 G P^2` bytes, do not fit.

    Notes
    -----
    :math:`n P^2` flops for any number of classes, twice that for a real label. float32 features are
    multiplied in float32 and added up in float64.

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

    def add(self, Z: np.ndarray, labels: np.ndarray) -> LabelMoments:
        """Add a chunk of features (m, P) with the class or the real label of each row (m,)."""
        if Z.ndim != 2 or Z.shape[1] != self.n_features or len(labels) != len(Z):
            raise InvalidData(
                f"features have shape {Z.shape} and labels {labels.shape}; allowed: "
                f"(m, {self.n_features}) and (m,)."
            )
        if self.classes:
            for group in range(self.n_groups):
                chosen = labels == group
                if chosen.any():
                    part = Z if chosen.all() else Z[chosen]
                    self._add(group, part, None)
        else:
            self._add(0, Z, None)
            self._add(1, Z, np.asarray(labels, dtype=np.float64))
        if not np.isfinite(self.first).all():
            raise InvalidData(
                "the features are NaN or infinite, so the samples are; allowed: finite numbers."
            )
        self.rows += len(Z)
        return self

    def _add(self, group: int, Z: np.ndarray, weights: np.ndarray | None) -> None:
        if weights is None:
            self.totals[group] += len(Z)
            self.first[group] += Z.sum(axis=0, dtype=np.float64)
            rank_update(self._second[group], Z, 1.0)
            return
        self.totals[group] += weights.sum()
        self.first[group] += weights @ Z
        size = np.sqrt(np.abs(weights)).astype(Z.dtype)
        for sign in (1.0, -1.0):
            chosen = np.sign(weights) == sign
            if chosen.any():
                rank_update(self._second[group], Z[chosen] * size[chosen, None], sign)

    def merge(self, other: LabelMoments) -> LabelMoments:
        """Add the sums of other samples, of the same features and groups."""
        kinds = [
            (moments.n_features, moments.n_groups, moments.classes) for moments in (self, other)
        ]
        if kinds[0] != kinds[1]:
            raise InvalidData(
                f"moments of (features, groups, classes) {kinds[1]} cannot be added to {kinds[0]}."
            )
        self.rows += other.rows
        self.totals += other.totals
        self.first += other.first
        for mine, theirs in zip(self._second, other._second, strict=True):
            mine += theirs
        return self

    def second(self, group: int) -> np.ndarray:
        """Sum of :math:`w_g z z^T`, shape (P, P); a copy."""
        return mirror(self._second[group].copy(order="F"))

    def upper_triangle(self, group: int) -> np.ndarray:
        """Sum of :math:`w_g z z^T` in column order; only its upper triangle is filled."""
        return self._second[group]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays that :meth:`from_arrays` reads back bit by bit, to be stored or sent."""
        return {
            "rows": np.array(self.rows),
            "classes": np.array(self.classes),
            "totals": self.totals,
            "first": self.first,
            "second": np.stack([second.T for second in self._second]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> LabelMoments:
        """Moments from the arrays of :meth:`to_arrays`."""
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
