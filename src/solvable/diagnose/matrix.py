"""Diagnosis of the spectrum of one weight matrix: bulk, learned features, tail, phase."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from solvable.arrays import to_numpy
from solvable.diagnose.bulk_fit import MINIMUM_COUNT, BulkFit, first_outliers
from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.change import change_between, comparison_of
from solvable.diagnose.diagnosis import (
    NOT_FITTED,
    REFUTED,
    STRUCTURED,
    Control,
    Estimate,
    MatrixDiagnosis,
    Rival,
)
from solvable.diagnose.directions import LEVEL, directions_of, directions_of_small
from solvable.diagnose.law_summary import (
    curve_of,
    exponent_of,
    features_of,
)
from solvable.diagnose.magnitude import with_magnitude
from solvable.diagnose.outliers import Outliers, outlier_text, without_outliers
from solvable.diagnose.phase_likelihood import PhaseLaw, phase_laws
from solvable.diagnose.spectrum import Spectrum, few_frequencies, in_unit, read_spectrum
from solvable.diagnose.tail_alternatives import goodness_of, rivals_of, tail_of
from solvable.errors import InvalidData


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

    The phase is the phase of the likeliest law, with a penalty per parameter
    (:func:`solvable.diagnose.phase_likelihood.phase_laws`). Features, noise and shrinkage
    are given if that law has a bulk that is not refuted. A feature must also be larger than every
    value of the same matrix under random signs, applied to its entries and to their cosines along
    rows, columns and both: these controls keep heavy tails, unequal variances and correlations. If
    the largest value fails this test, the matrix is random-like. A power-law tail is fitted only
    without a bulk, because the edge of noise resembles a power law. Symmetric matrices are diagnosed by
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
        spectrum = read_spectrum(weights, precision)
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
        spectrum = read_spectrum(cleaned, precision)
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
    notes = list(spectrum.notes)
    fit: BulkFit | None = None
    whole: WholeBulk | None = None
    try:
        fit = spectrum.fit(seed)
        whole = spectrum.bulk(fit)
    except InvalidData as error:
        notes.append(f"bulk: {error}")
    base = replace(
        blank,
        reason=" ".join(notes),
        zeros=spectrum.zeros,
        notes=tuple(notes),
        values=spectrum.values * spectrum.unit,
        symmetric=spectrum.symmetric,
    )
    return _explained(base, spectrum, fit, whole, notes, seed, overwrite)


def _explained(
    base: MatrixDiagnosis,
    spectrum: Spectrum,
    fit: BulkFit | None,
    whole: WholeBulk | None,
    notes: list[str],
    seed: int,
    overwrite: bool,
) -> MatrixDiagnosis:
    """Complete a row by the likeliest law; return it unchanged if no law can be fitted."""
    values = spectrum.ordered(fit)
    believed = fit is not None and fit.p_value >= REFUTED and 4 * fit.n_outliers <= values.size
    laws = phase_laws(values, whole, fit.n_outliers if fit else 0, believed=believed)
    if not laws:
        return base
    best, runner_up = laws[0], laws[1] if len(laws) > 1 else None
    control = _control(spectrum, fit, best, seed, overwrite)
    noise_alone = control is not None and not control.confirmed
    if control is not None and noise_alone:
        best, runner_up = replace(best, phase="random-like", what=control.text), None
    tail, against, p_value = None, None, None
    if best.smooth is None and best.phase != "rank-collapse" and fit is not None:
        base, fit = _with_bulk(base, spectrum, fit, best, control, notes, seed)
        # For dependent noise a bulk of independent noise is not the likeliest law either.
        p_value = None if noise_alone else fit.p_value
        notes.append("tail: not fitted, because a bulk of noise explains the spectrum.")
    elif not noise_alone:
        tail, against = tail_of(values, best, whole, fit, notes, seed)
        p_value = goodness_of(best, values, tail, seed)
    if p_value is not None and p_value < REFUTED:
        notes.append(f"the likeliest law is refuted as well (p = {p_value:.3f}).")
    if tail is not None:
        scale = spectrum.unit if spectrum.symmetric else spectrum.unit * spectrum.unit
        tail = replace(tail, threshold=tail.threshold * scale)
    return replace(
        base,
        phase=best.phase,
        reason=_reason(best, runner_up, p_value),
        bulk=None if fit is None else in_unit(fit, spectrum.unit),
        tail=tail,
        notes=tuple(notes),
        runner_up=runner_up.phase if runner_up else "",
        log_likelihood_ratio=best.score - runner_up.score if runner_up else None,
        phase_p_value=p_value,
        exponent=exponent_of(tail, against),
        rivals=rivals_of(values, laws, fit),
        candidates=tuple(
            Rival(law.phase, law.log_likelihood, None, law.n_parameters) for law in laws
        ),
        law=curve_of(spectrum, whole, fit, best),
        control=control,
    )


def _control(
    spectrum: Spectrum, fit: BulkFit | None, best: PhaseLaw, seed: int, overwrite: bool
) -> Control | None:
    """Test the values above a bulk (or, without a bulk, the largest value) against random signs."""
    with_bulk = best.smooth is None and fit is not None
    tested = fit.n_outliers if with_bulk and fit is not None else 1
    if best.phase == "rank-collapse" or (best.phase == "random-like" and not tested):
        return None
    # Without a value above the cut, the largest value is tested: a value just above the edge counts.
    tested = max(tested, 1)
    count, reaching = spectrum.controlled(fit, tested, seed, overwrite=overwrite)
    beyond = f"{tested} value{'s' * (tested != 1)} beyond the edge of independent noise"
    if not with_bulk:
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
    best: PhaseLaw,
    control: Control | None,
    notes: list[str],
    seed: int,
) -> tuple[MatrixDiagnosis, BulkFit]:
    """Complete a row by the results of the bulk unless the bulk is refuted; return the bulk fit too."""
    if control is not None:
        fit = first_outliers(fit, control.confirmed)
    unit = spectrum.unit
    if spectrum.symmetric:
        low = -2 * fit.noise - fit.shrinkage
    else:
        p, q = spectrum.shape
        low = fit.noise * (1 - (p / q) ** 0.5) - fit.shrinkage
    if spectrum.semidefinite:
        low = max(low, 0.0)
    base = replace(base, edges=(low * unit, fit.edge * unit))
    if control is not None and not control.confirmed:
        # If noise alone exceeds the edge, no value beyond it is a feature.
        return base, fit
    if fit.p_value < REFUTED:
        notes.append("features: not given, because the law of the noise is refuted.")
        return base, fit
    row = replace(
        base,
        noise=Estimate.of(fit.noise, fit.noise_error, unit),
        shrinkage=Estimate.of(fit.shrinkage, fit.shrinkage_error, unit) if fit.shrinkage else None,
        features=features_of(fit, unit),
    )
    return row, fit


def _reason(best: PhaseLaw, runner_up: PhaseLaw | None, p_value: float | None) -> str:
    words = f"{best.what}"
    if runner_up is not None:
        gain = best.score - runner_up.score
        words += f"; {gain:.1f} nats over {runner_up.phase}"
        if gain < 2:
            words += ", which is nearly as likely"
    if p_value is not None:
        words += f"; p = {p_value:.3f}"
    return f"{words}."
