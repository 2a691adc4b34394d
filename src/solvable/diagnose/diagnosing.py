"""What the spectrum of each weight matrix says: bulk, learned features, tail, phase."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.controls import against_initial, against_permuted
from solvable.diagnose.decaying_fit import fit_decaying
from solvable.diagnose.diagnosis import NOT_FITTED, Comparison, Estimate, MatrixDiagnosis, Rival
from solvable.diagnose.fit import BulkFit
from solvable.diagnose.parts import (
    against_bulk,
    curve_of,
    decay_of,
    errors_and_advice,
    exponent_of,
    features_of,
    rivals_of,
)
from solvable.diagnose.phase_likelihood import PhaseLaw, phase_laws
from solvable.diagnose.spectrum import Spectrum, in_unit, read_spectrum
from solvable.diagnose.strengths import Decay
from solvable.diagnose.symmetric_fit import SymmetricFit
from solvable.diagnose.tail import TailFit, fit_tail
from solvable.diagnose.weights import StoredArray, iter_weights
from solvable.errors import InvalidData, InvalidParameter

REFUTED = 0.02
"""p-value below which a note says that the best law is refuted; the phase stays the likeliest."""


def diagnose_file(
    path: str | Path,
    *,
    initial: str | Path | None = None,
    tied: bool = False,
    control: bool = True,
    workers: int = 1,
    seed: int = 0,
) -> Iterator[MatrixDiagnosis]:
    """Diagnose the matrices of a file one by one.

    Parameters
    ----------
    path : str or Path
        ``.safetensors``, ``.npz`` or ``.npy``.
    initial : str or Path, optional
        Weights before training, under the same names: their difference is diagnosed as well.
    tied : bool
        Whether to diagnose the product of each matrix with itself, as a quadratic network learns
        it.
    control : bool
        Whether to compare with permuted entries where there are no initial weights.
    workers : int
        Processes; the result does not depend on their number.
    seed : int
        Of the bootstraps.

    Yields
    ------
    MatrixDiagnosis
        One per array, in the order of the file; what cannot be fitted says why, and the rest goes
        on.

    Raises
    ------
    InvalidData
        If a file itself cannot be read.
    InvalidParameter
        If ``workers`` is below 1.

    Notes
    -----
    Memory: per process the largest array four times in double precision. Backed by
    ``tests/diagnose/test_diagnosing.py``; time by ``benchmarks/diagnose.py``.
    """
    if workers < 1:
        raise InvalidParameter(f"workers is {workers}; allowed: 1 or more.")
    before = {} if initial is None else {one.name: one for one in iter_weights(initial)}
    missing = initial is not None
    tasks = (
        (stored, before.get(stored.name), missing, tied, control, seed)
        for stored in iter_weights(path)
    )
    if workers == 1:
        for task in tasks:
            yield _diagnose_stored(*task)
        return
    from joblib import Parallel, delayed

    run = Parallel(n_jobs=workers, return_as="generator", pre_dispatch=2 * workers)
    yield from run(delayed(_diagnose_stored)(*task) for task in tasks)


def _diagnose_stored(
    stored: StoredArray,
    before: StoredArray | None,
    missing: bool,
    tied: bool,
    control: bool,
    seed: int,
) -> MatrixDiagnosis:
    if len(stored.shape) == 1:
        # Biases and normalisations are most of the arrays of a network: not read at all.
        return MatrixDiagnosis(
            stored.name, stored.shape, stored.dtype, NOT_FITTED, "a vector has no spectrum."
        )
    refusal, start = "", None
    try:
        weights = stored.read()
    except InvalidData as error:
        return MatrixDiagnosis(stored.name, stored.shape, stored.dtype, NOT_FITTED, str(error))
    if missing:
        try:
            start, refusal = _initial(stored, before)
        except InvalidData as error:
            refusal = str(error)
    found = diagnose_matrix(
        weights,
        name=stored.name,
        dtype=stored.dtype,
        precision=stored.precision,
        initial=start,
        tied=tied,
        control=control,
        seed=seed,
    )
    note = (f"initial weights: {refusal}",) if refusal else ()
    return replace(found, notes=(*found.notes, *note))


def _initial(stored: StoredArray, before: StoredArray | None) -> tuple[np.ndarray | None, str]:
    if before is None:
        return None, "none of this name."
    if before.shape != stored.shape:
        return None, f"their shape is {before.shape}, that of the weights {stored.shape}."
    return before.read(), ""


def diagnose_matrix(
    weights: np.ndarray,
    *,
    name: str = "weights",
    dtype: str | None = None,
    precision: float = 2.0**-52,
    initial: np.ndarray | None = None,
    tied: bool = False,
    control: bool = False,
    seed: int = 0,
) -> MatrixDiagnosis:
    r"""Bulk, learned features, tail and phase of one matrix.

    The phase is that of the likeliest law, each parameter at a price
    (:func:`solvable.diagnose.phase_likelihood.phase_laws`); features, noise, shrinkage and advice
    are given where that law has a bulk. A tail is fitted only where it has none, because the edge
    of noise passes for a power law. Symmetric matrices are diagnosed by their eigenvalues.

    Parameters
    ----------
    weights : ndarray of shape (p, q) or (p, ...)
        Further axes are joined, as for a convolution.
    name, dtype : str
        Carried to the result.
    precision : float
        Relative spacing of the stored numbers: singular values below its noise are zero.
    initial : ndarray, optional
        Weights before training, of the same shape.
    tied : bool
        Whether to diagnose the product of the matrix with itself.
    control : bool
        Whether to compare with permuted entries where there are no initial weights.
    seed : int
        Of the bootstraps.

    Returns
    -------
    MatrixDiagnosis
        Never raises for a matrix that cannot be fitted: ``phase`` is then ``"not fitted"``.

    Raises
    ------
    InvalidData
        If initial weights have another shape.

    Notes
    -----
    Time of a singular value decomposition and about a second. Source: derived from
    arXiv:2505.17958; backed by ``tests/diagnose/test_diagnosing.py``.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((60, 200))
    >>> diagnose_matrix(noise).phase
    'random-like'
    """
    from threadpoolctl import threadpool_limits

    if initial is not None and initial.shape != weights.shape:
        raise InvalidData(
            f"the initial weights are {initial.shape}, the weights {weights.shape}; pass the same shape."
        )
    stored = str(weights.dtype) if dtype is None else dtype
    shape = tuple(weights.shape)
    # Threads that wait for each other cost more than they bring at these sizes.
    with threadpool_limits(1):
        try:
            spectrum = read_spectrum(weights, precision, tied=tied)
        except InvalidData as error:
            return MatrixDiagnosis(name, shape, stored, NOT_FITTED, str(error))
        found = _of_spectrum(spectrum, name, shape, stored, seed)
        if found.fitted and initial is not None:
            start = diagnose_matrix(initial, precision=precision, tied=tied, seed=seed)
            change = np.asarray(weights, dtype=np.float64) - initial
            difference = diagnose_matrix(change, name=name, precision=precision, seed=seed)
            compared: Comparison | None = against_initial(
                found,
                start,
                difference,
                float(np.linalg.norm(change)),
                float(np.linalg.norm(initial)),
            )
        elif found.fitted and control and not spectrum.symmetric:
            compared = against_permuted(weights, found, precision, seed)
        else:
            compared = None
    return replace(found, initial=compared)


def _of_spectrum(
    spectrum: Spectrum, name: str, shape: tuple[int, ...], dtype: str, seed: int
) -> MatrixDiagnosis:
    notes = list(spectrum.notes)
    fit: BulkFit | None = None
    whole: WholeBulk | None = None
    try:
        fit = spectrum.fit(seed)
        whole = spectrum.bulk(fit)
    except InvalidData as error:
        notes.append(f"bulk: {error}")
    values = spectrum.ordered(fit)
    believed = fit is not None and fit.p_value >= REFUTED and 4 * fit.n_outliers <= values.size
    laws = phase_laws(values, whole, fit.n_outliers if fit else 0, believed=believed)
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
    if not laws:
        return base
    best = laws[0]
    if best.smooth is None and best.phase != "rank-collapse" and fit is not None:
        fit, decay = _decayed(fit, best, notes, seed)
        base = _with_bulk(base, spectrum, fit, decay)
        tail, against = None, None
        p_value: float | None = fit.p_value
        notes.append("tail: not fitted, as a bulk of noise explains the spectrum.")
    else:
        tail, against = _tail(values, best, whole, fit, notes, seed)
        p_value = _goodness(best, values, tail, seed)
    runner_up = laws[1] if len(laws) > 1 else None
    if p_value is not None and p_value < REFUTED:
        notes.append(f"the likeliest law is refuted all the same (p = {p_value:.3f}).")
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
            Rival(one.phase, one.log_likelihood, None, one.n_parameters) for one in laws
        ),
        law=curve_of(spectrum, whole, fit, best),
    )


def _decayed(
    fit: BulkFit, best: PhaseLaw, notes: list[str], seed: int
) -> tuple[BulkFit, Decay | None]:
    """Decay of the strengths; where the likeliest law has one, continued below the threshold."""
    decay = decay_of(fit, notes, seed)
    if decay is None or not best.decay:
        return fit, decay
    if not isinstance(fit, SymmetricFit) or not fit.semidefinite:
        return fit, decay
    try:
        better, again = fit_decaying(fit)
    except InvalidData as error:
        notes.append(f"decay of strengths: {error}")
        return fit, decay
    if again.p_value < 0.1:
        return fit, again
    notes.append("noise and shrinkage: the decay of the strengths was continued into the bulk.")
    return better, again


def _with_bulk(
    base: MatrixDiagnosis, spectrum: Spectrum, fit: BulkFit, decay: Decay | None
) -> MatrixDiagnosis:
    unit = spectrum.unit
    errors, advice = errors_and_advice(spectrum, fit, decay)
    if spectrum.symmetric:
        low = -2 * fit.noise - fit.shrinkage
    else:
        p, q = spectrum.shape
        low = fit.noise * (1 - (p / q) ** 0.5) - fit.shrinkage
    if spectrum.semidefinite:
        low = max(low, 0.0)
    return replace(
        base,
        noise=_estimate(fit.noise, fit.noise_error, unit),
        shrinkage=_estimate(fit.shrinkage, fit.shrinkage_error, unit) if fit.shrinkage else None,
        features=features_of(fit, unit),
        exponent=exponent_of(None, None, decay),
        advice=advice,
        errors=errors,
        edges=(low * unit, fit.edge * unit),
    )


def _estimate(value: float, error: float, unit: float) -> Estimate:
    reach = 1.959964 * error
    return Estimate(value * unit, (value - reach) * unit, (value + reach) * unit)


def _tail(
    values: np.ndarray,
    best: PhaseLaw,
    whole: WholeBulk | None,
    fit: BulkFit | None,
    notes: list[str],
    seed: int,
) -> tuple[TailFit | None, float | None]:
    """Power-law tail where no bulk explains the spectrum, and its p-value against one."""
    positive = np.abs(values[values != 0])
    # Squared singular values are the eigenvalues whose tail is customary.
    symmetric = (values < 0).any() or (whole is not None and whole.law.key == ())
    try:
        tail = fit_tail(positive if symmetric else positive**2, seed=seed)
    except InvalidData as error:
        notes.append(f"tail: {error}")
        return None, None
    against = None
    law = best.smooth
    rival = None if whole is None or whole.signed else whole
    if law is not None and law.power_tail and rival is not None and fit is not None:
        against = against_bulk(values, rival, fit.n_outliers, law, seed=seed)
    return tail, against


def _goodness(best: PhaseLaw, values: np.ndarray, tail: TailFit | None, seed: int) -> float | None:
    if best.phase == "heavy-tailed" and tail is not None:
        return tail.p_value
    if best.smooth is None:
        return None
    return best.smooth.p_value(np.abs(values[values != 0]), seed=seed)


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
