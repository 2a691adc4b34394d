"""What the spectrum of one weight matrix says: bulk, learned features, tail, phase."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from solvable.arrays import to_numpy
from solvable.diagnose.bulk_fit import BulkFit
from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.diagnosis import (
    NOT_FITTED,
    REFUTED,
    Comparison,
    Estimate,
    MatrixDiagnosis,
    Rival,
)
from solvable.diagnose.findings import (
    curve_of,
    decay_below_threshold,
    errors_and_advice,
    exponent_of,
    features_of,
)
from solvable.diagnose.phase_likelihood import PhaseLaw, phase_laws
from solvable.diagnose.rivals import goodness_of, rivals_of, tail_of
from solvable.diagnose.spectrum import Spectrum, in_unit, read_spectrum
from solvable.diagnose.strengths import Decay
from solvable.errors import InvalidData


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
    arXiv:2505.17958; backed by ``tests/diagnose/test_matrix.py``.

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
    stored = str(weights.dtype) if dtype is None else dtype
    shape = tuple(weights.shape)
    # Threads that wait for each other cost more than they bring at these sizes.
    with _blas().limit(limits=1):
        try:
            spectrum = read_spectrum(weights, precision, tied=tied)
        except InvalidData as error:
            return MatrixDiagnosis(name, shape, stored, NOT_FITTED, str(error))
        row = _of_spectrum(spectrum, name, shape, stored, seed)
        if row.fitted and initial is not None:
            start = diagnose_matrix(initial, precision=precision, tied=tied, seed=seed)
            change = np.asarray(weights, dtype=np.float64) - initial
            difference = diagnose_matrix(change, name=name, precision=precision, seed=seed)
            compared: Comparison | None = _against_initial(
                row,
                start,
                difference,
                float(np.linalg.norm(change)),
                float(np.linalg.norm(initial)),
            )
        elif row.fitted and control and not spectrum.symmetric:
            compared = _against_permuted(weights, row, precision, seed)
        else:
            compared = None
    return replace(row, initial=compared)


@cache
def _blas() -> Any:
    """What sets the threads; looking for the loaded libraries takes as long as a small matrix."""
    import scipy.linalg  # noqa: F401  has a BLAS of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


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
    return _explained(base, spectrum, fit, whole, notes, seed)


def _explained(
    base: MatrixDiagnosis,
    spectrum: Spectrum,
    fit: BulkFit | None,
    whole: WholeBulk | None,
    notes: list[str],
    seed: int,
) -> MatrixDiagnosis:
    """The row with the likeliest law; as it is if no law can be fitted."""
    values = spectrum.ordered(fit)
    believed = fit is not None and fit.p_value >= REFUTED and 4 * fit.n_outliers <= values.size
    laws = phase_laws(values, whole, fit.n_outliers if fit else 0, believed=believed)
    if not laws:
        return base
    best, runner_up = laws[0], laws[1] if len(laws) > 1 else None
    if best.smooth is None and best.phase != "rank-collapse" and fit is not None:
        fit, decay = decay_below_threshold(fit, best, notes, seed)
        base = _with_bulk(base, spectrum, fit, decay)
        tail, against = None, None
        p_value: float | None = fit.p_value
        notes.append("tail: not fitted, as a bulk of noise explains the spectrum.")
    else:
        tail, against = tail_of(values, best, whole, fit, notes, seed)
        p_value = goodness_of(best, values, tail, seed)
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
            Rival(law.phase, law.log_likelihood, None, law.n_parameters) for law in laws
        ),
        law=curve_of(spectrum, whole, fit, best),
    )


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
    change: float,
    norm: float,
) -> Comparison:
    """Compare with the weights before training."""
    relative = change / norm if norm > 0 else None
    text = f"{start.phase} before training, {row.phase} after; the change is {difference.phase}"
    return Comparison(
        "initial weights",
        start.phase,
        None if start.bulk is None else start.bulk.n_outliers,
        None if start.noise is None else start.noise.value,
        relative,
        difference,
        f"{text}." if relative is None else f"{text}, {relative:.2g} times their norm.",
    )


def _against_permuted(
    weights: np.ndarray, row: MatrixDiagnosis, precision: float, seed: int
) -> Comparison:
    """Compare with the same entries in random order: what their sizes alone make of a spectrum."""
    # Outliers of the permuted matrix are no features. Its seed is a child of the caller's.
    rng = np.random.default_rng([seed, 1_234])
    mixed = rng.permutation(np.asarray(weights).ravel()).reshape(weights.shape)
    try:
        spectrum = read_spectrum(mixed, precision)
        fit = spectrum.fit(seed)
    except InvalidData as error:
        return Comparison("permuted entries", NOT_FITTED, text=f"permuted entries: {error}")
    laws = phase_laws(spectrum.values, spectrum.bulk(fit), fit.n_outliers)
    phase = laws[0].phase if laws else NOT_FITTED
    outliers = row.bulk.n_outliers if row.bulk else 0
    text = f"the same entries in random order are {phase}"
    if phase != "random-like":
        text += ": a part of the structure is in the size of single entries"
    elif outliers:
        text += f": their order makes the {outliers} outliers"
    return Comparison(
        "permuted entries", phase, fit.n_outliers, fit.noise * spectrum.unit, text=f"{text}."
    )
