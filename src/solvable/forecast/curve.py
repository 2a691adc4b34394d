"""Learning curve (measured error against sample size) with replicates, from arrays or a text file."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from solvable.arrays import to_numpy
from solvable.errors import InvalidData
from solvable.forecast.curve_data import columns_in_memory
from solvable.forecast.curve_file import read_columns

LARGEST = 1e30  # largest allowed sample size and error; the smallest allowed value is the inverse
MOST_SIZES = 500  # largest number of distinct sample sizes; takes about 12 s and 0.6 GB


@dataclass(frozen=True, eq=False)
class LearningCurve:
    r"""Errors :math:`e_j` measured with :math:`n_j` samples; a size may have any number of replicates.

    Parameters
    ----------
    samples : array of shape (m,)
        Sample sizes :math:`n_j`, above 0; a size that occurs several times has replicates.
    errors : array of shape (m,)
        Errors :math:`e_j\ge0`: error rates, mean squared errors, or errors that fall to an offset of
        at least 0.
    replicates : sequence of shape (m,), optional
        Replicate to which each error belongs, such as a seed. Errors of one replicate at different
        sizes may be correlated (the same test rows, the same teacher). With names this correlation
        is estimated and included; without names errors count as independent.
    shared : float
        Correlation of two replicates at n samples, divided by n, due to shared training rows; the
        correlation is at most 0.9. For k folds of cross-validation with n_k training rows it is
        1 / (k n_k) (Nadeau and Bengio, Mach. Learn. 52 (2003)); for independent samples it is 0.
    tested : float, optional
        Number of test rows behind the mean at each size, if errors are shares of wrong predictions.
        Their sampling noise is then included, also for an error of 0.
    fixed_epochs : bool
        True if every model was trained for the same number of epochs, so that more samples mean more
        training steps. Such a curve may steepen beyond the data; the lower ends of a forecast then
        allow for this.
    notes : tuple of str
        Sentences about how the data were read.

    Raises
    ------
    InvalidData
        If shapes disagree, values are not finite or negative, or a replicate has two errors at the
        same size.

    Examples
    --------
    >>> curve = LearningCurve([100, 100, 200, 200], [0.31, 0.29, 0.21, 0.19])
    >>> curve.sizes, curve.means
    (array([100., 200.]), array([0.3, 0.2]))
    """

    samples: np.ndarray
    errors: np.ndarray
    replicates: tuple[str, ...] | None = None
    shared: float = 0.0
    tested: float | None = None
    fixed_epochs: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        samples, errors = (_vector(name, getattr(self, name)) for name in ("samples", "errors"))
        if samples.shape != errors.shape or samples.size == 0:
            raise InvalidData(
                f"samples have shape {samples.shape} and errors {errors.shape}; allowed: (m,) for "
                "both, m at least 1. Give one sample size per error."
            )
        _check(samples > 0, "samples", samples, "above 0")
        _check(errors >= 0, "errors", errors, "at least 0 (an error, not a score or an accuracy)")
        # Squares and ratios of numbers outside the allowed range overflow.
        inside = (samples >= 1 / LARGEST) & (samples <= LARGEST)
        _check(inside, "samples", samples, f"{1 / LARGEST:g} to {LARGEST:g}, in another unit")
        inside = (errors == 0) | ((errors >= 1 / LARGEST) & (errors <= LARGEST))
        _check(inside, "errors", errors, f"0, or {1 / LARGEST:g} to {LARGEST:g}, in another unit")
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "errors", errors)
        # The noise is a covariance over sizes, so memory grows with the square of their number.
        if self.sizes.size > MOST_SIZES:
            raise InvalidData(
                f"the curve has {self.sizes.size} sample sizes; allowed: at most {MOST_SIZES}. Keep "
                "fewer sizes, for example at equal steps of log n."
            )
        if not 0 <= self.shared < math.inf:
            raise InvalidData(f"shared is {self.shared}; allowed: finite numbers of at least 0.")
        if self.tested is not None and not (1 <= self.tested < math.inf and (errors <= 1).all()):
            raise InvalidData(
                f"tested is {self.tested} and the largest error is {errors.max():g}; allowed: at least 1 "
                "test row, and errors of at most 1 (shares of wrong predictions)."
            )
        if self.replicates is not None:
            object.__setattr__(self, "replicates", self._named_replicates())

    def _named_replicates(self) -> tuple[str, ...]:
        names = tuple(str(name) for name in self.replicates or ())
        if len(names) != self.samples.size:
            raise InvalidData(
                f"replicates has {len(names)} entries for {self.samples.size} errors; allowed: one "
                "name per error."
            )
        seen = set()
        for name, size in zip(names, self.samples.tolist(), strict=True):
            if (name, size) in seen:
                raise InvalidData(
                    f"replicate {name!r} has two errors at n = {size:g}; allowed: one. Give "
                    "repeated measurements different names, or give no names."
                )
            seen.add((name, size))
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

        A long file has columns ``n`` (or ``samples``), ``error`` and optionally ``replicate`` (or
        ``seed``). A wide file has a column ``n`` and one column per replicate, or one column per sample
        size, with the sizes in the header, and one row per replicate. Cells are separated by commas,
        semicolons or tabs.

        Parameters
        ----------
        path : str or path
            Path of the text file, in UTF-8.
        samples, error, replicate : str, optional
            Column names in a long file, needed if the names are unusual or there are other columns.

        Returns
        -------
        LearningCurve
            Curve, with names of the replicates if the file has them.

        Raises
        ------
        InvalidData
            If the file cannot be read as a curve; the message names the line and the column.
        """
        measured, errors, names, notes = read_columns(path, samples, error, replicate)
        return cls(np.array(measured), np.array(errors), names, notes=notes)

    @classmethod
    def of(cls, data: Any) -> LearningCurve:
        """Make a curve from a file, a data frame, a dictionary, or the result of ``learning_curve``.

        Parameters
        ----------
        data : path, data frame, dict, tuple or LearningCurve
            Path of a file as for :meth:`from_csv`; columns as in such a file; or ``(sizes, scores)`` or
            ``(sizes, training scores, test scores)`` of scikit-learn's ``learning_curve``, with scores
            of shape (sizes, folds). Scores up to 1 become errors 1 - score, and negative losses change
            sign.

        Returns
        -------
        LearningCurve
            Curve, with notes about converted scores.

        Raises
        ------
        InvalidData
            If the data cannot be read as a curve.

        Examples
        --------
        >>> LearningCurve.of({"n": ["1,000", "2,000"], "accuracy": [0.8, 0.9]}).errors.round(3).tolist()
        [0.2, 0.1]
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, PathLike)):
            return cls.from_csv(data)
        measured, errors, names, notes = columns_in_memory(data)
        return cls(np.array(measured), np.array(errors), names, notes=notes)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Distinct sample sizes in increasing order, shape (k,)."""
        return np.unique(self.samples)

    @cached_property
    def _place(self) -> np.ndarray:
        return np.searchsorted(self.sizes, self.samples)

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of replicates at each size, shape (k,)."""
        return np.bincount(self._place, minlength=self.sizes.size)

    @cached_property
    def means(self) -> np.ndarray:
        """Mean error at each size, shape (k,)."""
        return np.asarray(np.bincount(self._place, self.errors) / self.counts)

    @cached_property
    def expected(self) -> np.ndarray:
        """Error that the fits use at each size, shape (k,): the mean, or a rate's posterior mean."""
        # k wrong predictions among m rows give (k + 1) / (m + 2), the posterior mean of a uniform prior.
        m = self.tested
        return self.means if m is None else (self.means * m + 1) / (m + 2)

    @cached_property
    def variances(self) -> np.ndarray:
        """Variance between replicates at each size, shape (k,); NaN for a single replicate."""
        squares = np.bincount(self._place, (self.errors - self.means[self._place]) ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.counts > 1, squares / (self.counts - 1), np.nan)

    def up_to(self, n_sizes: int) -> LearningCurve:
        """Return the curve of the ``n_sizes`` smallest sizes."""
        kept = self._place < n_sizes
        names = self.replicates
        if names is not None:
            names = tuple(name for name, keep in zip(names, kept, strict=True) if keep)
        return replace(self, samples=self.samples[kept], errors=self.errors[kept], replicates=names)


def _vector(name: str, values: Any) -> np.ndarray:
    try:
        array = np.array(to_numpy(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
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
