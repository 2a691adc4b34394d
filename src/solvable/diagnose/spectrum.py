"""Checked spectrum of one weight matrix: singular values, or eigenvalues if it is symmetric."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.diagnose.bulk_fit import MINIMUM_COUNT, BulkFit, fit_bulk, fit_symmetric
from solvable.diagnose.chance_outliers import confirmed
from solvable.diagnose.decomposition import Vectors, eigenvectors, singular_values
from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.errors import InvalidData
from solvable.plots.words import counted

COLLAPSED = 0.9  # smallest share of zeros in the phase rank-collapse
LARGEST_SIDE = 20_000  # largest shorter side for which singular values are computed (cubic time)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Spectrum of a matrix in units of the largest entry."""

    values: np.ndarray  # (p,): singular values, or eigenvalues if symmetric; ascending, zeros exact
    unit: float  # unit: modulus of the largest entry
    shape: tuple[int, int]  # shorter and longer side
    symmetric: bool  # True if the values are eigenvalues
    semidefinite: bool  # True if no eigenvalue is below zero
    notes: tuple[str, ...]  # changes made to the array
    matrix: np.ndarray  # the matrix, transposed if taller than wide, in a unit of its own
    scale: float  # the unit of ``values`` in the unit of ``matrix``
    vectors: Vectors | None = (
        None  # ``vectors(k)``: vectors of the k largest values, on the shorter side
    )

    @property
    def zeros(self) -> int:
        """Number of values that are zero to the precision of the file."""
        return int((self.values == 0).sum())

    def fit(self, seed: int) -> BulkFit:
        """Fit bulk of noise and outliers, in units of the largest entry."""
        if self.symmetric:
            return fit_symmetric(self.values, semidefinite=self.semidefinite, seed=seed)
        return fit_bulk(self.values, self.shape, seed=seed)

    def controlled(
        self, fit: BulkFit | None, count: int, seed: int, *, overwrite: bool = False
    ) -> tuple[int, str]:
        """Count the largest values that exceed all controls, and name the control that ends the count."""
        moduli = np.sort(np.abs(self.values))
        matrix, vectors = self.matrix, self.vectors
        if self.symmetric and not self.semidefinite and fit is not None:
            # Values of both signs are measured from the centre.
            moduli = np.sort(np.abs(self.values + fit.shrinkage))
            matrix = matrix + fit.shrinkage * np.eye(len(matrix))
        tops = moduli[::-1][:count] * self.scale
        return confirmed(
            matrix,
            tops,
            eigenvectors(matrix) if vectors is None else vectors,
            symmetric=self.symmetric,
            overwrite=overwrite,
            seed=seed,
        )


def read_spectrum(weights: np.ndarray, precision: float, *, exact: bool = True) -> Spectrum:
    """Return the singular values or eigenvalues of an array; raise if there are none.

    If not ``exact``, the smaller half of the values may be rounded to single precision.
    """
    # A copy of the whole matrix, in this unit or in double precision, is avoided: it may be large.
    matrix, notes = _joined(weights)
    p, q = sorted(matrix.shape)
    largest = scale = _largest(matrix)
    most = 1e12  # the entries' squares stay in the range of single precision
    if not 1 / most < scale < most:
        matrix, scale = matrix / largest, 1.0
    # A symmetric matrix may differ from its transpose by eight spacings of the stored numbers.
    near = 8.0 * max(precision, 2.0**-52) * scale
    # Comparing one row excludes most matrices quickly; a full comparison is slow for large matrices.
    symmetric = p == q and float(np.abs(matrix[0] - matrix[:, 0]).max()) <= near
    if symmetric:
        symmetric = float(np.abs(matrix - matrix.T).max()) <= near
    vectors: Vectors | None = None
    if symmetric:
        matrix, scale = np.divide(matrix, scale, dtype=np.float64), 1.0
        y = np.linalg.eigvalsh(matrix)
    else:
        matrix = matrix if matrix.shape[0] == p else matrix.T
        y, vectors = singular_values(matrix, scale, exact=exact)
    size = float(np.linalg.norm(y)) / matrix.size**0.5
    top = float(np.abs(y).max())
    # In double precision values count as equal up to a relative difference of 1e-12.
    if float(np.ptp(np.abs(y))) <= max(precision, 1e-12) * top:
        raise InvalidData(
            f"all {p} singular values are {top * largest:.6g}: a multiple of an orthogonal matrix."
        )
    rounding = max(precision, 2.0**-52) * size * (p**0.5 + q**0.5)
    tolerance = _zero_up_to(np.abs(y), max(rounding, 2.0**-52 * q * top), 2.0**-52 * q * top)
    # Limit below which single precision cannot separate a value from zero.
    vanishing = 2.0**-23 * q * top
    if (np.abs(y) <= vanishing).sum() >= COLLAPSED * p and vanishing > tolerance:
        # Weight decay moves values towards zero, but never to exactly zero.
        tolerance = vanishing
        notes = (*notes, "values below the rounding of single precision count as zeros.")
    y = np.where(np.abs(y) <= tolerance, 0.0, y)
    return Spectrum(y, largest, (p, q), symmetric, bool(y[0] >= 0), notes, matrix, scale, vectors)


def _joined(weights: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Matrix in single or double precision; axes after the first are joined, with a note."""
    if weights.ndim < 2:
        raise InvalidData(f"an array of {weights.ndim} axes has no spectrum.")
    if weights.size == 0:
        raise InvalidData(f"the matrix is empty: its shape is {tuple(weights.shape)}.")
    if weights.dtype.kind not in "fiub":
        raise InvalidData(f"the entries have type {weights.dtype}; allowed: real numbers.")
    notes: tuple[str, ...] = ()
    if weights.ndim > 2:
        notes = (f"axes after the first of {tuple(weights.shape)} were joined.",)
    rows, columns = weights.shape[0], weights.size // weights.shape[0]
    p = min(rows, columns)
    if p < MINIMUM_COUNT:
        raise InvalidData(
            f"a {rows} x {columns} matrix has {counted(p, 'singular value')}; at least "
            f"{MINIMUM_COUNT} are needed."
        )
    if p > LARGEST_SIDE:
        raise InvalidData(f"its shorter side {p} is above {LARGEST_SIDE}; take a part of it.")
    single = weights.dtype.kind == "f" and weights.dtype.itemsize <= 4
    dtype = np.float32 if single else np.float64
    return np.asarray(weights.reshape(rows, columns), dtype=dtype), notes


def _zero_up_to(moduli: np.ndarray, rounding: float, exact: float) -> float:
    """Largest value that counts as zero: values below rounding count, if a gap separates them."""
    # A square matrix of noise has singular values down to zero, some below the rounding of half
    # precision and as many just above. Zeros that became rounding noise have a gap above them.
    below = int((moduli <= rounding).sum())
    beside = int(((moduli > rounding) & (moduli <= 2 * rounding)).sum())
    return rounding if below > 3 * (beside + 2) else exact


def _largest(matrix: np.ndarray) -> float:
    low, high = float(matrix.min()), float(matrix.max())
    largest = max(-low, high)
    if not np.isfinite(largest):
        count = int((~np.isfinite(matrix)).sum())
        raise InvalidData(f"{count} of {matrix.size} entries are not finite.")
    if largest == 0:
        raise InvalidData("all entries are zero.")
    smallest, most = 1e-301, 1e301  # outside this range, sums of squares overflow or underflow
    if not smallest <= largest <= most:
        raise InvalidData(
            f"its largest entry {largest:.3g} is out of range; allowed: {smallest:g} to {most:g}. "
            "Multiply the matrix by a constant."
        )
    if low == high:
        raise InvalidData(f"all entries are {low:.6g}: the matrix has rank one.")
    return largest


def few_frequencies(weights: np.ndarray) -> str:
    """Sentence on rows or columns of a few frequencies, as in Fourier bases and position tables."""
    # (spectra 12) Of noise the k largest of n squared Fourier coefficients hold k (1 + H_n - H_k) / n
    # of their sum, with harmonic numbers H: 0.23 for k = 4 and n = 64.
    top, least, share = 4, 128, 0.4
    if sum(side > 1 for side in weights.shape) != 2 or weights.dtype.kind != "f":
        return ""
    matrix = weights.reshape(len(weights), -1)
    for axis, kind in ((1, "row"), (0, "column")):
        if matrix.shape[axis] < least:
            continue
        # A hundred rows or columns are enough for a median.
        lines = np.moveaxis(matrix, axis, 1)[:: max(1, matrix.shape[1 - axis] // 100)]
        power = np.square(np.abs(np.fft.rfft(lines.astype(np.float64))[:, 1:]))
        total = power.sum(axis=1)
        largest = np.partition(power, -top, axis=1)[:, -top:].sum(axis=1)
        held = float(np.median(largest[total > 0] / total[total > 0])) if total.any() else 0.0
        if held > share:
            return (
                f"{top} of {power.shape[1]} frequencies hold {100 * held:.0f} % of a typical {kind}'s "
                "squared norm around its mean"
            )
    return ""


def in_unit(fit: BulkFit, unit: float) -> BulkFit:
    """Return the fit in the unit of the file."""
    spikes = replace(
        fit.spikes,
        observed=fit.spikes.observed * unit,
        strengths=fit.spikes.strengths * unit,
        standard_errors=fit.spikes.standard_errors * unit,
    )
    lengths = ("noise", "shrinkage", "edge", "cut", "noise_error", "shrinkage_error")
    return replace(fit, spikes=spikes, **{name: getattr(fit, name) * unit for name in lengths})


def with_magnitude(row: MatrixDiagnosis, weights: np.ndarray) -> MatrixDiagnosis:
    """Complete a row by its norm, largest singular value and stable rank, if all entries are finite."""
    if row.values is not None:
        moduli = np.abs(row.values)
        unit = float(moduli.max())
        norm, largest = float(np.linalg.norm(moduli / unit)), 1.0
    else:
        unit, norm, largest = _measured(weights)
    if not np.isfinite(unit):
        return row
    if unit == 0 or largest == 0:
        return replace(row, norm=0.0, largest=0.0)
    return replace(row, norm=norm * unit, largest=largest * unit, stable_rank=(norm / largest) ** 2)


def _measured(weights: np.ndarray) -> tuple[float, float, float]:
    """Return the largest entry, and norm and largest singular value in units of it."""
    if weights.ndim < 2 or weights.size == 0 or weights.dtype.kind not in "fiub":
        return np.nan, 0.0, 0.0
    matrix = weights.reshape(weights.shape[0], -1)
    unit = max(float(matrix.max()), -float(matrix.min()))
    if not np.isfinite(unit) or not 1e-301 < unit < 1e301:
        return (0.0 if unit == 0 else np.nan), 0.0, 0.0
    small = 512  # up to this side a whole decomposition takes a fraction of a second
    if min(matrix.shape) <= small:
        matrix = np.divide(matrix, unit, dtype=np.float64)
        return unit, float(np.linalg.norm(matrix)), float(np.linalg.norm(matrix, 2))
    from scipy.sparse.linalg import LinearOperator, svds

    # One copy, in single precision, because such a matrix may be large.
    single = (matrix / unit).astype(np.float32, copy=False)
    norm = sum(float(np.vdot(row, row)) for row in single) ** 0.5
    # A fixed start, so that the same matrix always has the same value.
    start = np.cos(np.arange(min(matrix.shape), dtype=np.float64))
    operator = LinearOperator(
        single.shape,
        matvec=lambda vector: single @ vector.astype(np.float32),
        rmatvec=lambda vector: vector.astype(np.float32) @ single,
        dtype=np.float64,
    )
    found = svds(operator, k=1, v0=start, tol=1e-6, return_singular_vectors=False)
    return unit, norm, float(found[0])
