"""Single entries, rows, columns and a mean that would hide the directions of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.plots.words import counted

# share of rows or columns of zeros from which on they are the result (a collapse) and stay
MOST_DEAD = 0.9


@dataclass(frozen=True)
class Outliers:
    """Part of a matrix that was taken out before its directions were counted."""

    kind: str  # "entry", "row", "column", "mean", "dead row" or "dead column"
    count: int  # number of such parts
    place: tuple[int, ...]  # index of the largest, from 0; empty for a mean and for dead parts
    share: float  # share in the squared norm of the matrix
    value: float  # the largest entry, the largest norm of a row or column, the mean; else 0


def without_outliers(weights: np.ndarray) -> tuple[np.ndarray, tuple[Outliers, ...]]:
    """Return a matrix without its outlying parts, as (rows, all other axes), and these parts.

    The matrix itself is returned if nothing was taken out. An entry, row, column or mean is taken
    out if it alone is larger than the edge of the noise.
    """
    matrix = given = weights.reshape(len(weights), -1)
    largest = max(float(matrix.max()), -float(matrix.min()))
    if not np.isfinite(largest) or not 1e-100 < largest < 1e100:
        return matrix, ()  # squares would leave the range; such weights do not occur in networks
    squares = _squares(matrix)
    total = float(squares[0].sum())
    matrix, found = _without_dead(matrix, squares)
    whole = not found  # only without dead parts are the places those of the file
    scale = _scale(matrix)
    # edge of noise whose entries have this scale: scale (sqrt(p) + sqrt(q))   (spectra 2)
    edge = scale * (matrix.shape[0] ** 0.5 + matrix.shape[1] ** 0.5)
    if largest > edge:
        far = np.abs(matrix) > edge
        top = np.unravel_index(int(np.argmax(np.abs(matrix))), weights.shape) if whole else ()
        share = float(np.square(matrix[far], dtype=np.float64).sum()) / total
        found.append(Outliers("entry", int(far.sum()), tuple(map(int, top)), share, largest))
        matrix = np.where(far, matrix.dtype.type(0), matrix)
    mean = float(matrix.mean(dtype=np.float64))
    if abs(mean) * matrix.size**0.5 > edge:
        found.append(Outliers("mean", 1, (), mean**2 * matrix.size / total, mean))
        matrix = matrix - matrix.dtype.type(mean)
    factors = []
    if matrix is not given:
        squares = _squares(matrix)
    for sizes, kind in zip(squares, ("row", "column"), strict=True):
        far = sizes > edge**2
        lowered = np.sqrt(np.median(sizes) / np.where(far, sizes, 1.0))
        factors.append(np.where(far, lowered, 1.0).astype(matrix.dtype))
        if far.any():
            place = (int(np.argmax(sizes)),) if whole else ()
            share, top_norm = float(sizes[far].sum()) / total, float(sizes.max()) ** 0.5
            found.append(Outliers(kind, int(far.sum()), place, share, top_norm))
    if any((factor != 1).any() for factor in factors):
        # Lowered to the median norm rather than removed: a direction keeps its part in the row.
        matrix = matrix * factors[0][:, None] * factors[1]
    return matrix, tuple(found)


def _without_dead(
    matrix: np.ndarray, squares: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, list[Outliers]]:
    """Return the matrix without rows and columns of zeros, unless nearly all are zero."""
    found = []
    for axis, kind in ((0, "dead row"), (1, "dead column")):
        alive = squares[axis] > 0
        dead = int((~alive).sum())
        if 0 < dead < MOST_DEAD * alive.size:
            matrix = np.compress(alive, matrix, axis=axis)
            found.append(Outliers(kind, dead, (), 0.0, 0.0))
    return matrix, found


def _scale(matrix: np.ndarray) -> float:
    """Standard deviation of the entries other than zero, from their median modulus."""
    # A hundred thousand entries give the median to half a percent.
    sample = matrix.reshape(-1)[:: max(1, matrix.size // 100_000)]
    sample = np.abs(sample[sample != 0])
    # The median modulus of a standard normal variable is 0.6745.
    return float(np.median(sample)) / 0.6745 if sample.size else 0.0


def _squares(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared norms of rows and columns, without a copy of the whole matrix."""
    rows, columns = np.zeros(matrix.shape[0]), np.zeros(matrix.shape[1])
    for start in range(0, len(rows), 64):
        part = np.square(matrix[start : start + 64], dtype=np.float64)
        rows[start : start + 64] = part.sum(axis=1)
        columns += part.sum(axis=0)
    return rows, columns


def dead_rows(parts: Sequence[Outliers]) -> int:
    """Number of rows of zeros."""
    return sum(part.count for part in parts if part.kind == "dead row")


def outlier_text(part: Outliers, *, short: bool = False) -> str:
    """Write a part that was taken out, such as "1 outlier entry at [17, 5], 14 % of the squared norm"."""
    if short:
        plural = part.kind.replace("entry", "entrie") + "s"
        return "mean" if part.kind == "mean" else counted(part.count, part.kind, plural)
    if part.kind == "mean":
        return f"a mean of {part.value:.3g}, {100 * part.share:.2g} % of the squared norm"
    kind = outlier_text(part, short=True).partition(" ")[2]
    if part.kind.startswith("dead"):
        return f"{part.count} {kind} (all zero)"
    at = f" at {list(part.place)}" if part.place else ""
    where = at if part.count == 1 else f" (the largest{at})" if at else ""
    return f"{part.count} outlier {kind}{where}, {100 * part.share:.2g} % of the squared norm"
