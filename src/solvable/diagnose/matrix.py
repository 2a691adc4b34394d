"""Diagnosis of the spectrum of one weight matrix: bulk, learned features, tail, phase."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from solvable.arrays import to_numpy
from solvable.diagnose.bulk_fit import BulkFit, first_outliers
from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.cuts import suggestion_of
from solvable.diagnose.diagnosis import (
    NOT_FITTED,
    REFUTED,
    Comparison,
    Control,
    Estimate,
    MatrixDiagnosis,
    Rival,
)
from solvable.diagnose.law_summary import (
    curve_of,
    decay_below_threshold,
    errors_and_advice,
    exponent_of,
    features_of,
)
from solvable.diagnose.magnitude import with_magnitude
from solvable.diagnose.phase_likelihood import PhaseLaw, phase_laws
from solvable.diagnose.roles import role_of
from solvable.diagnose.spectrum import Spectrum, in_unit, read_spectrum
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
    seed: int = 0,
) -> MatrixDiagnosis:
    r"""Bulk, learned features, tail and phase of one matrix.

    The phase is the phase of the likeliest law, with a penalty per parameter
    (:func:`solvable.diagnose.phase_likelihood.phase_laws`). Features, noise, shrinkage and cut
    are given if that law has a bulk that is not refuted. A feature must also be larger than every
    value of the same matrix under random signs, applied to its entries and to their cosines along
    rows, columns and both: these controls keep heavy tails, unequal variances and correlations. If
    the largest value fails this test, the matrix is random-like. A power-law tail is fitted only
    without a bulk, because the edge of noise resembles a power law. Symmetric matrices are diagnosed by
    their eigenvalues. A cut is suggested if it keeps half of the squared norm and the phase leads by
    10 nats; never for an embedding or a fused projection, and only if the change since ``initial``
    passes the same rules.

    Parameters
    ----------
    weights : ndarray of shape (p, q) or (p, ...)
        Axes after the first are joined, for example those of a convolution.
    name, dtype : str
        Copied to the result; embeddings and fused projections are recognised by ``name``.
    precision : float
        Relative spacing of the stored numbers; singular values below the rounding noise count as zero.
    initial : ndarray, optional
        Weights before training, of the same shape.
    overwrite : bool
        Whether the entries of ``weights`` may be destroyed, which saves a copy of a large matrix in
        single precision. Not allowed together with ``initial``.
    seed : int
        Random seed of the bootstraps.

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
    Time: 1.25 times that of the product of the matrix with itself and its eigenvalues, plus half a
    second. Source: derivations/spectra (1), (4), (7), (9), (10); backed by
    ``tests/diagnose/test_matrix.py`` and ``tests/diagnose/test_noise_families.py``.

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
    shape = tuple(weights.shape)
    # At these sizes several BLAS threads are slower than one, because they wait for each other.
    with blas().limit(limits=1):
        try:
            spectrum = read_spectrum(weights, precision)
        except InvalidData as error:
            refused = MatrixDiagnosis(name, shape, stored, NOT_FITTED, str(error))
            return with_magnitude(refused, weights)
        row = _of_spectrum(spectrum, name, shape, stored, seed, overwrite)
        row = with_magnitude(row, weights)
        if row.fitted and initial is not None:
            start = diagnose_matrix(initial, precision=precision, seed=seed)
            change = np.asarray(weights, dtype=np.float64) - initial
            difference = diagnose_matrix(change, name=name, precision=precision, seed=seed)
            row = replace(row, initial=_against_initial(row, start, difference, change, initial))
    return replace(row, suggestion=suggestion_of(row, role_of(name, shape)))


@cache
def blas() -> Any:
    """Return the controller of BLAS threads, cached because finding the libraries is slow."""
    import scipy.linalg  # noqa: F401  SciPy's own BLAS must be loaded first
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _of_spectrum(
    spectrum: Spectrum,
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    seed: int,
    overwrite: bool,
) -> MatrixDiagnosis:
    notes = list(spectrum.notes)
    fit: BulkFit | None = None
    whole: WholeBulk | None = None
    try:
        fit = spectrum.fit(seed)
        whole = spectrum.bulk(fit)
    except InvalidData as error:
        notes.append(f"bulk: {error}")
    base = MatrixDiagnosis(
        name,
        shape,
        dtype,
        NOT_FITTED,
        " ".join(notes),
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
        exponent=base.exponent or exponent_of(tail, against, None),
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
        # If noise alone exceeds the edge, there is no edge at which to cut.
        return base, fit
    if fit.p_value < REFUTED:
        notes.append("features: not given, because the law of the noise is refuted.")
        return base, fit
    fit, decay = decay_below_threshold(fit, best, notes, seed)
    errors, advice = errors_and_advice(spectrum, fit, decay)
    row = replace(
        base,
        noise=Estimate.of(fit.noise, fit.noise_error, unit),
        shrinkage=Estimate.of(fit.shrinkage, fit.shrinkage_error, unit) if fit.shrinkage else None,
        features=features_of(fit, unit),
        exponent=exponent_of(None, None, decay),
        advice=advice,
        errors=errors,
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


def _against_initial(
    row: MatrixDiagnosis,
    start: MatrixDiagnosis,
    difference: MatrixDiagnosis,
    change: np.ndarray,
    initial: np.ndarray,
) -> Comparison:
    """Compare the trained matrix with the weights before training."""
    # Norms are in units of the largest entry, because squares of extreme entries overflow.
    unit = float(np.abs(initial).max()) if initial.size else 0.0
    relative = None
    if unit > 0:
        norm = float(np.linalg.norm(np.asarray(initial, dtype=np.float64) / unit))
        relative = float(np.linalg.norm(change / unit)) / norm
    text = f"{start.phase} before training, {row.phase} after; the change is {difference.phase}"
    return Comparison(
        start.phase,
        None if start.bulk is None else start.bulk.n_outliers,
        None if start.noise is None else start.noise.value,
        relative,
        difference,
        f"{text}." if relative is None else f"{text}, of {relative:.2g} times the initial norm.",
    )
