r"""Sums computed in one pass over a stream; they can be merged and are stored without pickle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from solvable.arrays import Array, namespace, to_numpy
from solvable.errors import InvalidData
from solvable.fitting.described_arrays import under
from solvable.operators.label_moments import LabelMoments


class Survey:
    """Moments and bounds of the columns, and moments of the labels."""

    _NAMES = ("mean", "deviation", "lowest", "highest", "label_mean", "label_deviation")

    def __init__(self, n_columns: int) -> None:
        self.rows = 0
        self.mean = np.zeros(n_columns)
        self.deviation = np.zeros(n_columns)
        self.lowest = np.full(n_columns, np.inf)
        self.highest = np.full(n_columns, -np.inf)
        self.label_mean = np.zeros(1)
        self.label_deviation = np.zeros(1)
        self.classes: np.ndarray = np.empty(0)
        self.counts = np.empty(0, dtype=np.int64)

    @property
    def variance(self) -> np.ndarray:
        """Variance of each column, shape (d,)."""
        return self.deviation / self.rows

    def add(
        self, X: Array, y: np.ndarray, *, classes: Sequence[Any] | np.ndarray | None = None
    ) -> Survey:
        """Add a chunk; for a tensor, four rows of numbers are copied to the host."""
        xp = namespace(X)
        if not bool(xp.all(xp.isfinite(X))):
            raise InvalidData(
                "some samples are NaN or infinite; allowed: finite numbers. Drop or impute such "
                "rows."
            )
        other = Survey(X.shape[1])
        other.rows = len(X)
        mean = xp.sum(X, axis=0, dtype=xp.float64) / len(X)
        other.mean = to_numpy(mean)
        other.deviation = to_numpy(xp.sum((X - mean) ** 2, axis=0, dtype=xp.float64))
        other.lowest, other.highest = to_numpy(xp.min(X, axis=0)), to_numpy(xp.max(X, axis=0))
        other.classes, other.counts = np.unique(y, return_counts=True)
        if np.issubdtype(np.asarray(y).dtype, np.number):
            labels = np.asarray(y, dtype=np.float64)
            other.label_mean = labels.mean(keepdims=True)
            other.label_deviation = np.square(labels - labels.mean()).sum(keepdims=True)
        if classes is not None:
            other._add_classes(np.asarray(classes), np.zeros(len(classes), dtype=np.int64))
        return self.merge(other)

    def _add_classes(self, classes: np.ndarray, counts: np.ndarray) -> None:
        if not self.classes.size:
            self.classes, self.counts = classes, counts
            return
        together = np.concatenate([self.classes, classes])
        self.classes, places = np.unique(together, return_inverse=True)
        summed = np.bincount(places, np.concatenate([self.counts, counts]))
        self.counts = summed.astype(np.int64)

    def merge(self, other: Survey) -> Survey:
        """Merge the sums of other samples."""
        if not other.rows:
            return self
        total = self.rows + other.rows
        share = other.rows / total
        # The merged squared deviations M_a + M_b + (mean_b - mean_a)² n_a n_b / n are accurate
        # even for large means.
        for mean, deviation in (("mean", "deviation"), ("label_mean", "label_deviation")):
            step = getattr(other, mean) - getattr(self, mean)
            spread = getattr(self, deviation) + getattr(other, deviation)
            setattr(self, deviation, spread + step**2 * self.rows * share)
            setattr(self, mean, getattr(self, mean) + step * share)
        self.lowest = np.minimum(self.lowest, other.lowest)
        self.highest = np.maximum(self.highest, other.highest)
        self.rows = total
        self._add_classes(other.classes, other.counts)
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Convert to plain arrays; text labels become code points."""
        arrays = {
            "rows": np.array(self.rows),
            **{name: getattr(self, name) for name in self._NAMES},
            "counts": self.counts,
        }
        return arrays | classes_to_arrays(self.classes)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Survey:
        """Sums from the arrays of :meth:`to_arrays`."""
        survey = cls(len(arrays["mean"]))
        survey.rows = int(arrays["rows"])
        for name in (*cls._NAMES, "counts"):
            setattr(survey, name, np.array(arrays[name]))
        survey.classes = classes_from_arrays(arrays)
        return survey


def classes_to_arrays(classes: np.ndarray) -> dict[str, np.ndarray]:
    """Convert labels to an array that safetensors can hold."""
    if classes.dtype.kind in "US":
        text = classes.astype(str)
        return {"class_text": text.view(np.uint32).reshape(len(text), -1)}
    return {"classes": classes}


def classes_from_arrays(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Labels from the arrays of :func:`classes_to_arrays`."""
    if "class_text" in arrays:
        codes = np.ascontiguousarray(arrays["class_text"], dtype=np.uint32)
        return codes.view(f"<U{codes.shape[1]}")[:, 0].copy()
    return np.array(arrays["classes"])


class FilterSums:
    """Moments of a filter's inputs weighted by the labels, and weighted by random labels."""

    def __init__(self, moments: LabelMoments, nulls: Sequence[LabelMoments] = ()) -> None:
        self.moments = moments
        self.nulls = list(nulls)

    def merge(self, other: FilterSums) -> FilterSums:
        """Merge the sums of other samples."""
        self.moments.merge(other.moments)
        for mine, theirs in zip(self.nulls, other.nulls, strict=True):
            mine.merge(theirs)
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Convert to plain arrays."""
        return {
            f"{number}.{key}": value
            for number, moments in enumerate((self.moments, *self.nulls))
            for key, value in moments.to_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> FilterSums:
        """Sums from the arrays of :meth:`to_arrays`."""
        numbers = sorted({int(key.partition(".")[0]) for key in arrays})
        moments = [LabelMoments.from_arrays(under(arrays, f"{number}.")) for number in numbers]
        return cls(moments[0], moments[1:])


class ScaleSums:
    """Sum of the squared norms of the inputs of a lift."""

    def __init__(self) -> None:
        self.rows = 0
        self.total = 0.0

    def add(self, total: float, rows: int) -> ScaleSums:
        """Add a chunk by its sum of squared norms and its number of inputs."""
        self.total += total
        self.rows += rows
        return self

    def merge(self, other: ScaleSums) -> ScaleSums:
        """Merge the sums of other samples."""
        return self.add(other.total, other.rows)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Convert to plain arrays."""
        return {"rows": np.array(self.rows), "total": np.array(self.total)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> ScaleSums:
        """Sums from the arrays of :meth:`to_arrays`."""
        return cls().add(float(arrays["total"]), int(arrays["rows"]))
