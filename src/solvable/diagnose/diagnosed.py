"""All results of one file of weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from solvable.diagnose.diagnosis import ADAPTER, INTEGERS, HeadDiagnosis, MatrixDiagnosis
from solvable.diagnose.measured_ranks import MeasuredRanks
from solvable.plots.displayed import Shown


@dataclass(frozen=True, repr=False)
class Diagnosed(Shown, view="solvable.diagnose.view"):
    """Diagnoses of a file; ``figure(name)`` draws the spectrum of the matrix with this name."""

    name: str  # name of the file
    rows: tuple[MatrixDiagnosis, ...]  # one row per array, in the order of the file
    seed: int = 0  # random seed of the bootstraps
    quick: bool = False  # True if no law was fitted
    initial: str = ""  # file of the initial weights; empty if there is none
    seconds: float = 0.0  # run time in seconds
    n_arrays: int = (
        0  # number of arrays in the file; larger than the number of rows after an interrupt
    )
    versions: Mapping[str, str] = field(default_factory=dict)  # versions of the packages
    heads: tuple[
        HeadDiagnosis, ...
    ] = ()  # diagnoses of the attention heads, one product query^T key each
    attention: tuple[str, ...] = ()  # attention arrays that were not analysed, with the reasons
    interrupted: bool = False  # True if the user interrupted the diagnosis
    needed: MeasuredRanks | None = None  # ranks that keep the user's loss, if it was given
    notes: tuple[str, ...] = ()  # sentences about how the file was read

    @property
    def complete(self) -> bool:
        """Return True if every array and every head was analysed."""
        return len(self.rows) >= self.n_arrays and not self.interrupted

    def needed_rank(self, row: MatrixDiagnosis) -> int | None:
        """Return the smallest rank of a matrix that keeps the user's loss, if it was measured."""
        rows = self.needed.rows if self.needed else ()
        return next((one.rank for one in rows if one.name == row.name), None)

    @property
    def vectors(self) -> tuple[MatrixDiagnosis, ...]:
        """Rows of vectors and single numbers, which have no spectrum."""
        return tuple(row for row in self.rows if _is_vector(row) and row.reason != INTEGERS)

    @property
    def integers(self) -> tuple[MatrixDiagnosis, ...]:
        """Rows of arrays of integers and truth values, which are skipped."""
        return tuple(row for row in self.rows if row.reason == INTEGERS)

    @property
    def matrices(self) -> tuple[MatrixDiagnosis, ...]:
        """Rows of all other arrays, sorted by number if the file sorts names alphabetically."""
        rows = [row for row in self.rows if not _is_vector(row) and row.reason != INTEGERS]
        names = [row.name for row in rows]
        return tuple(sorted(rows, key=_natural) if names == sorted(names) else rows)

    @property
    def fitted(self) -> tuple[MatrixDiagnosis, ...]:
        """Rows of the matrices that have a phase."""
        return tuple(row for row in self.matrices if row.fitted)

    @property
    def refused(self) -> tuple[MatrixDiagnosis, ...]:
        """Rows of the matrices that have no phase, without adapters."""
        plain = (row for row in self.matrices if not row.reason.startswith(ADAPTER))
        return tuple(row for row in plain if not row.fitted)

    @property
    def adapters(self) -> tuple[MatrixDiagnosis, ...]:
        """Rows of low-rank adapters, to whose few values no law is fitted."""
        return tuple(row for row in self.matrices if row.reason.startswith(ADAPTER))


def _natural(row: MatrixDiagnosis) -> list[tuple[int, str]]:
    """Sort key that compares numbers in names as numbers."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", row.name)
    ]


def _is_vector(row: MatrixDiagnosis) -> bool:
    # Damaged arrays, whose shape is unknown, are listed as matrices.
    return len(row.shape) == 1 or (row.shape == () and row.dtype != "unknown")
