"""Measured error against sample size, with replicates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from solvable.errors import InvalidData


@dataclass(frozen=True, eq=False)
class LearningCurve:
    r"""Errors :math:`e_j` measured with :math:`n_j` samples, any number of replicates per size.

    Parameters
    ----------
    samples : array of shape (m,)
        :math:`n_j`, above 0; a size that occurs several times has replicates.
    errors : array of shape (m,)
        :math:`e_j\ge0`: an error rate, a mean squared error, anything that falls towards an offset of
        at least 0.
    replicates : sequence of shape (m,), optional
        What each error belongs to, such as a seed. Errors of one replicate at different sizes may
        share noise (the same test rows, the same teacher); with the names that is measured and
        allowed for, without them errors count as independent.

    Raises
    ------
    InvalidData
        If shapes disagree, values are not finite or negative, or a replicate has two errors at a
        size.

    Examples
    --------
    >>> curve = LearningCurve([100, 100, 200, 200], [0.31, 0.29, 0.21, 0.19])
    >>> curve.sizes, curve.means
    (array([100., 200.]), array([0.3, 0.2]))
    """

    samples: np.ndarray
    errors: np.ndarray
    replicates: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        samples, errors = (_vector(name, getattr(self, name)) for name in ("samples", "errors"))
        if samples.shape != errors.shape or samples.size == 0:
            raise InvalidData(
                f"samples have shape {samples.shape} and errors {errors.shape}; allowed: (m,) for "
                "both, m at least 1. Give one sample size per error."
            )
        _check(samples > 0, "samples", samples, "above 0")
        _check(errors >= 0, "errors", errors, "at least 0 (an error, not a score or an accuracy)")
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "errors", errors)
        if self.replicates is not None:
            object.__setattr__(self, "replicates", self._named_replicates())

    def _named_replicates(self) -> tuple[str, ...]:
        names = tuple(str(one) for one in self.replicates or ())
        if len(names) != self.samples.size:
            raise InvalidData(
                f"replicates has {len(names)} entries for {self.samples.size} errors; allowed: one "
                "name per error."
            )
        seen = set()
        for place in zip(names, self.samples.tolist(), strict=True):
            if place in seen:
                raise InvalidData(
                    f"replicate {place[0]!r} has two errors at n = {place[1]:g}; allowed: one. Give "
                    "repeated measurements names of their own, or no names."
                )
            seen.add(place)
        return names

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        samples: str | None = None,
        error: str | None = None,
        replicate: str | None = None,
    ) -> LearningCurve:
        """Read a curve from a text file with a header line.

        Long: columns ``n`` (or ``samples``), ``error`` and, if there is one, ``replicate`` (or
        ``seed``). Wide: a column ``n`` and one column per replicate; or one column per sample size,
        with the sizes in the header, and one row per replicate. Commas, semicolons or tabs.

        Parameters
        ----------
        path : str or path
            The file, UTF-8.
        samples, error, replicate : str, optional
            Names of the columns of a long file, where they are not the usual ones or there are more.

        Returns
        -------
        LearningCurve
            With the names of the replicates if the file has them.

        Raises
        ------
        InvalidData
            If the file cannot be read as a curve; the message names the line and the column.
        """
        from solvable.forecast.curve_files import read_curve

        read = read_curve(path, samples=samples, error=error, replicate=replicate)
        return cls(np.array(read.samples), np.array(read.errors), read.replicates)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Distinct sample sizes in increasing order, shape (k,)."""
        return np.unique(self.samples)

    @cached_property
    def _place(self) -> np.ndarray:
        return np.searchsorted(self.sizes, self.samples)

    @cached_property
    def counts(self) -> np.ndarray:
        """Replicates at each size, shape (k,)."""
        return np.bincount(self._place, minlength=self.sizes.size)

    @cached_property
    def means(self) -> np.ndarray:
        """Mean error at each size, shape (k,)."""
        return np.asarray(np.bincount(self._place, self.errors) / self.counts)

    @cached_property
    def variances(self) -> np.ndarray:
        """Variance between replicates at each size, shape (k,); NaN for a single one."""
        squares = np.bincount(self._place, (self.errors - self.means[self._place]) ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.counts > 1, squares / (self.counts - 1), np.nan)

    def up_to(self, n_sizes: int) -> LearningCurve:
        """Keep the errors at the smallest sizes only.

        Parameters
        ----------
        n_sizes : int
            How many distinct sizes, at least 1.

        Returns
        -------
        LearningCurve
            What would have been known then.
        """
        kept = self._place < n_sizes
        names = self.replicates
        if names is not None:
            names = tuple(name for name, keep in zip(names, kept, strict=True) if keep)
        return LearningCurve(self.samples[kept], self.errors[kept], names)


def _vector(name: str, values: Any) -> np.ndarray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"{name} cannot be read as numbers; allowed: a list of numbers."
        ) from error
    if array.ndim != 1:
        raise InvalidData(f"{name} has shape {array.shape}; allowed: (m,).")
    _check(np.isfinite(array), name, array, "finite")
    array.setflags(write=False)
    return array


def _check(good: np.ndarray, name: str, values: np.ndarray, allowed: str) -> None:
    if not good.all():
        first = int(np.argmin(good))
        raise InvalidData(
            f"{name} holds {values[first]:g} at place {first + 1} of {values.size}; allowed: "
            f"{allowed}. Correct or remove it."
        )
