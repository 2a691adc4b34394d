"""Diagnosis of the spectrum of one weight matrix: bulk, learned features, tail, phase."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from solvable.arrays import to_numpy
from solvable.diagnose.bulk_fit import MINIMUM_COUNT, BulkFit, first_outliers
from solvable.diagnose.change import change_between, comparison_of
from solvable.diagnose.diagnosis import (
    NOT_FITTED,
    REFUTED,
    STRUCTURED,
    Control,
    Estimate,
    Exponent,
    MatrixDiagnosis,
)
from solvable.diagnose.directions import LEVEL, directions_of, directions_of_small
from solvable.diagnose.outliers import Outliers, outlier_text, without_outliers
from solvable.diagnose.phases import WholeBulk, features_of, power_curve
from solvable.diagnose.spectrum import (
    COLLAPSED,
    Spectrum,
    few_frequencies,
    in_unit,
    read_spectrum,
    with_magnitude,
)
from solvable.errors import InvalidData
from solvable.fitting.power_tail import TailFit, fit_tail
from solvable.plots.words import counted


def diagnose_matrix(
    weights: np.ndarray,
    *,
    name: str = "weights",
    dtype: str | None = None,
    precision: float = 2.0**-52,
    initial: np.ndarray | None = None,
    overwrite: bool = False,
    laws: bool = True,
    seed: int = 0,
) -> MatrixDiagnosis:
    r"""Bulk, learned features, tail and phase of one matrix.

    Features, noise and shrinkage are given if a bulk of noise is not refuted. A feature must also be
    larger than every value of the same matrix under random signs, applied to its entries and to their
    cosines along rows, columns and both: these controls keep heavy tails, unequal variances and
    correlations. If the largest value fails this test, the matrix is random-like. A power-law tail is
    fitted only without a bulk, because the edge of noise resembles a power law; without either the
    phase is bulk-decay. Symmetric matrices are diagnosed by
    their eigenvalues. ``directions`` is a lower bound that needs no law; single entries, rows, columns
    or a mean that hide directions or features are taken out and named in ``outliers``.

    Parameters
    ----------
    weights : ndarray of shape (p, q) or (p, ...)
        Axes after the first are joined, for example those of a convolution.
    name, dtype : str
        Copied to the result.
    precision : float
        Relative spacing of the stored numbers; singular values below the rounding noise count as zero.
    initial : ndarray, optional
        Weights before training, of the same shape.
    overwrite : bool
        Whether the entries of ``weights`` may be destroyed, which saves a copy of a large matrix in
        single precision. Not allowed together with ``initial``.
    laws : bool
        Whether laws are fitted. Without them the matrix has its lower bound, size, outliers and change,
        but no phase.
    seed : int
        Random seed of the bootstraps and random signs.

    Returns
    -------
    MatrixDiagnosis
        The diagnosis; ``phase`` is ``"not fitted"`` if the matrix cannot be fitted.

    Raises
    ------
    InvalidData
        If the initial weights have another shape, or ``overwrite`` is True with initial weights.

    Notes
    -----
    Time: half a second, and about 20 times that of the product of the matrix with itself and its
    eigenvalues in single precision, most of it for random signs. Source: derivations/spectra (1), (4),
    (7), (9), (10), (40); backed by ``tests/diagnose/test_matrix.py``,
    ``tests/diagnose/test_directions.py`` and ``tests/diagnose/test_noise_families.py``.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((60, 200))
    >>> diagnose_matrix(noise).phase
    'random-like'
    """
    weights = to_numpy(weights)
    initial = None if initial is None else to_numpy(initial)
    if initial is not None and initial.shape != weights.shape:
        raise InvalidData(
            f"the initial weights are {initial.shape}, the weights {weights.shape}; pass the same shape."
        )
    if initial is not None and overwrite:
        raise InvalidData(
            "overwrite is True, but the change since the initial weights needs the weights; pass False."
        )
    stored = str(weights.dtype) if dtype is None else dtype
    # At these sizes several BLAS threads are slower than one, because they wait for each other.
    with blas().limit(limits=1):
        row = _alone(weights, name, stored, precision, laws, seed, overwrite)
        if initial is not None:
            start = _alone(initial, name, stored, precision, laws, seed)
            change, multiple, relative = change_between(weights, initial)
            difference = _alone(change, name, stored, precision, laws, seed)
            compared = comparison_of(row, start, difference, change, multiple, relative)
            row = replace(row, initial=compared)
        return row if laws else _without_values(row)


def _alone(
    weights: np.ndarray,
    name: str,
    stored: str,
    precision: float,
    laws: bool,
    seed: int,
    overwrite: bool = False,
) -> MatrixDiagnosis:
    """Diagnose a matrix without its initial weights."""
    blank = MatrixDiagnosis(name, tuple(weights.shape), stored, NOT_FITTED, "")
    try:
        spectrum = read_spectrum(weights, precision, exact=laws)
    except InvalidData as error:
        few, dead = _few(weights, seed, precision)
        # Entries that are not finite are the news, also in a matrix that is too small for a fit.
        lost = int((~np.isfinite(weights)).sum()) if weights.dtype.kind == "f" else 0
        reason = f"{lost} of {weights.size} entries are not finite." if lost else str(error)
        refused = replace(blank, reason=reason, directions=few, outliers=dead)
        return with_magnitude(refused, weights)
    cleaned = weights
    outliers: tuple[Outliers, ...] = ()
    if weights.dtype.kind == "f":
        cleaned, outliers = without_outliers(weights)
    # A matrix that is counted with and without its outliers has half the level in each.
    level = LEVEL / 2 if outliers else LEVEL
    directions = directions_of(spectrum, seed, level=level, overwrite=overwrite)
    row = replace(blank, values=spectrum.values * spectrum.unit, symmetric=spectrum.symmetric)
    structure = few_frequencies(weights) if laws else ""
    if structure:
        row = replace(row, phase=STRUCTURED, reason=f"{structure}.", zeros=spectrum.zeros)
    elif laws:
        row = _of_spectrum(spectrum, row, seed, overwrite)
    row = with_magnitude(replace(row, directions=directions), weights)
    laws = laws and not structure
    return _revealed(row, cleaned, outliers, precision, laws, seed) if outliers else row


def _without_values(row: MatrixDiagnosis) -> MatrixDiagnosis:
    """Return a row without its spectra, which nothing draws if no law was fitted."""
    compared = row.initial
    if compared is not None and compared.difference is not None:
        compared = replace(compared, difference=replace(compared.difference, values=None))
    return replace(row, values=None, initial=compared)


def _revealed(
    row: MatrixDiagnosis,
    cleaned: np.ndarray,
    outliers: tuple[Outliers, ...],
    precision: float,
    laws: bool,
    seed: int,
) -> MatrixDiagnosis:
    """Return the diagnosis without outlying parts where they hide directions or features."""
    kept = replace(row, outliers=_dead(outliers))
    try:
        spectrum = read_spectrum(cleaned, precision, exact=laws)
    except InvalidData:
        return kept
    directions = directions_of(spectrum, seed, level=LEVEL / 2)
    least = row.directions or 0
    better = None
    # Large rows also stem from strong features: those that were found stay as they are. Large diagonal
    # entries of a symmetric matrix are features themselves.
    if laws and not row.features and not row.symmetric:
        blank = MatrixDiagnosis(row.name, row.shape, row.dtype, NOT_FITTED, "")
        better = _of_spectrum(spectrum, blank, seed, overwrite=False)
    revealed = better is not None and better.features
    if not revealed and directions <= least:
        return kept
    taken = tuple(f"taken out: {outlier_text(part)}." for part in outliers)
    base = better if better is not None and revealed else row
    # Norm and stable rank are those of the whole matrix.
    return replace(
        base,
        norm=row.norm,
        largest=row.largest,
        stable_rank=row.stable_rank,
        directions=max(directions, least),
        outliers=outliers,
        notes=(*taken, *base.notes),
    )


def _few(
    matrix: np.ndarray, seed: int, precision: float
) -> tuple[int | None, tuple[Outliers, ...]]:
    """Count the directions and the rows of zeros of a matrix that is too small for a fit."""
    if matrix.ndim < 2 or matrix.size == 0 or matrix.dtype.kind != "f":
        return None, ()
    matrix = matrix.reshape(len(matrix), -1)
    if not 1 < min(matrix.shape) < MINIMUM_COUNT or not np.isfinite(matrix).all():
        return None, ()
    _, outliers = without_outliers(matrix)
    return directions_of_small(matrix, seed, precision), _dead(outliers)


def _dead(outliers: tuple[Outliers, ...]) -> tuple[Outliers, ...]:
    return tuple(part for part in outliers if part.kind.startswith("dead"))


@cache
def blas() -> Any:
    """Return the controller of BLAS threads, cached because finding the libraries is slow."""
    import scipy.linalg  # noqa: F401  SciPy's own BLAS must be loaded first
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _of_spectrum(
    spectrum: Spectrum, blank: MatrixDiagnosis, seed: int, overwrite: bool
) -> MatrixDiagnosis:
    """Complete a row by a bulk of noise that is not refuted, else by a power law or neither."""
    notes = list(spectrum.notes)
    base = replace(
        blank,
        zeros=spectrum.zeros,
        values=spectrum.values * spectrum.unit,
        symmetric=spectrum.symmetric,
    )
    fit: BulkFit | None = None
    try:
        fit = spectrum.fit(seed)
    except InvalidData as error:
        notes.append(f"bulk: {error}")
    collapsed = spectrum.zeros >= COLLAPSED * spectrum.values.size
    if fit is not None and not collapsed:
        # With more outliers than a quarter of the values, what is left resembles a bulk too easily.
        if fit.p_value >= REFUTED and 4 * fit.n_outliers <= spectrum.values.size:
            row = _with_bulk(base, spectrum, fit, notes, seed, overwrite)
            return replace(row, notes=tuple(notes))
        outliers = counted(fit.n_outliers, "outlier")
        notes.append(f"bulk: noise with {outliers} is refuted, p = {fit.p_value:.3f}.")
    if collapsed:
        reason = "almost all values are zero."
        row = _with_tail(replace(base, phase="rank-collapse", reason=reason), spectrum, notes, seed)
    elif fit is None and spectrum.values.size - spectrum.zeros < MINIMUM_COUNT:
        row = replace(base, reason=" ".join(notes))
    else:
        control = _control(spectrum, None, 1, seed, overwrite)
        if control.confirmed:
            row = _with_tail(replace(base, control=control), spectrum, notes, seed)
        else:
            row = replace(base, phase="random-like", reason=f"{control.text}.", control=control)
    return replace(row, notes=tuple(notes))


def _control(
    spectrum: Spectrum, fit: BulkFit | None, tested: int, seed: int, overwrite: bool
) -> Control:
    """Test the values above a bulk (or, without a bulk, the largest value) against random signs."""
    count, reaching = spectrum.controlled(fit, tested, seed, overwrite=overwrite)
    beyond = f"{tested} value{'s' * (tested != 1)} beyond the edge of independent noise"
    if fit is None:
        beyond = "the largest value"
    if not count:
        text = f"noise: {beyond}, and the same matrix under {reaching} has values as large"
    elif count == tested:
        text = f"{beyond}, above all values of the same matrix under random signs"
    else:
        text = (
            f"{beyond}, of which {count} are larger than those of the same matrix under {reaching}"
        )
    return Control(tested, count, text)


def _with_bulk(
    base: MatrixDiagnosis,
    spectrum: Spectrum,
    fit: BulkFit,
    notes: list[str],
    seed: int,
    overwrite: bool,
) -> MatrixDiagnosis:
    """Complete a row by a bulk of noise and the features beyond it."""
    control, reason = None, "noise"
    if fit.n_outliers:
        control = _control(spectrum, fit, fit.n_outliers, seed, overwrite)
        reason = control.text
        fit = first_outliers(fit, control.confirmed)
        if control.confirmed:
            reason = f"noise and {counted(control.confirmed, 'signal')}"
    unit, whole = spectrum.unit, WholeBulk.of(spectrum, fit)
    low = fit.noise * whole.law.edges[0] - fit.shrinkage
    if spectrum.semidefinite:
        low = max(low, 0.0)
    strengths = np.abs(fit.spikes.strengths) / fit.threshold
    row = replace(
        base,
        phase=whole.phase(strengths),
        reason=f"{reason}; p = {fit.p_value:.3f}.",
        bulk=in_unit(fit, unit),
        edges=(low * unit, fit.edge * unit),
        law=whole.curve(spectrum, fit.n_outliers),
        control=control,
    )
    notes.append("tail: not fitted, because a bulk of noise explains the spectrum.")
    if control is not None and not control.confirmed:
        # If noise alone exceeds the edge, its law is not that of independent noise.
        return row
    return replace(
        row,
        phase_p_value=fit.p_value,
        noise=Estimate.of(fit.noise, fit.noise_error, unit),
        shrinkage=Estimate.of(fit.shrinkage, fit.shrinkage_error, unit) if fit.shrinkage else None,
        features=features_of(fit, unit),
    )


def _with_tail(
    base: MatrixDiagnosis, spectrum: Spectrum, notes: list[str], seed: int
) -> MatrixDiagnosis:
    """Complete a row without a bulk by its power-law tail, if it has one."""
    no_tail = "no bulk, and no power law of at least a quarter of the values."
    moduli = np.abs(spectrum.values)
    power = 1 if spectrum.symmetric else 2
    tail: TailFit | None = None
    try:
        # Squared singular values are the eigenvalues whose tail is usually fitted.
        tail = fit_tail(moduli[moduli > 0] ** power, draws=39, seed=seed)
    except InvalidData as error:
        notes.append(f"tail: {error}")
    if tail is None:
        return (
            base if base.phase != NOT_FITTED else replace(base, phase="bulk-decay", reason=no_tail)
        )
    row = replace(
        base,
        tail=replace(tail, threshold=tail.threshold * spectrum.unit**power),
        exponent=Exponent(
            Estimate(tail.exponent, *tail.interval),
            tail.p_value,
            tail.power_law_p_value,
            tail.n_tail,
        ),
    )
    if base.phase != NOT_FITTED:
        return row
    # A power law of a few of the largest values is no law of the matrix.
    if not tail.plausible or 4 * tail.n_tail < moduli.size:
        return replace(row, phase="bulk-decay", reason=no_tail)
    reason = (
        f"no bulk, and the largest {tail.n_tail} values follow a power law; p = {tail.p_value:.3f}."
    )
    law = power_curve(tail, spectrum)
    return replace(row, phase="heavy-tailed", reason=reason, phase_p_value=tail.p_value, law=law)
