"""The diagnoses of a file, as the terminal and the page show them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from solvable.diagnose.diagnosis import MatrixDiagnosis


@dataclass(frozen=True)
class Diagnosed:
    """The diagnoses of a file.

    Parameters
    ----------
    name : str
        The file.
    rows : tuple of MatrixDiagnosis
        One per array that has been looked at, in the order of the file.
    seed : int
        Of the bootstraps.
    initial : str
        File of the initial weights; empty if there is none.
    seconds : float
        What it took.
    n_arrays : int
        Arrays in the file: more than rows if it was interrupted.
    versions : mapping
        Of what it was computed with.
    """

    name: str
    rows: tuple[MatrixDiagnosis, ...]
    seed: int = 0
    initial: str = ""
    seconds: float = 0.0
    n_arrays: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every array was looked at."""
        return len(self.rows) >= self.n_arrays

    @property
    def vectors(self) -> tuple[MatrixDiagnosis, ...]:
        """Vectors and single numbers, which have no spectrum."""
        return tuple(one for one in self.rows if _is_vector(one))

    @property
    def matrices(self) -> tuple[MatrixDiagnosis, ...]:
        """All others; where the file has them by the alphabet, 10 comes after 9."""
        rows = [one for one in self.rows if not _is_vector(one)]
        names = [one.name for one in rows]
        return tuple(sorted(rows, key=_natural) if names == sorted(names) else rows)

    @property
    def fitted(self) -> tuple[MatrixDiagnosis, ...]:
        """Matrices that have a phase."""
        return tuple(one for one in self.matrices if one.fitted)

    @property
    def refused(self) -> tuple[MatrixDiagnosis, ...]:
        """Matrices that have none."""
        return tuple(one for one in self.matrices if not one.fitted)


def _natural(row: MatrixDiagnosis) -> list[tuple[int, str]]:
    """Key by which numbers are compared as numbers."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", row.name)
    ]


def _is_vector(row: MatrixDiagnosis) -> bool:
    # What is damaged has no known shape, and must be told.
    return len(row.shape) == 1 or (row.shape == () and row.dtype != "unknown")
