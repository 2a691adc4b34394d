"""A matrix against its initial weights and against its own entries in random order."""

from __future__ import annotations

import numpy as np

from solvable.diagnose.diagnosis import NOT_FITTED, Comparison, MatrixDiagnosis
from solvable.diagnose.phase_likelihood import phase_laws
from solvable.diagnose.spectrum import read_spectrum
from solvable.errors import InvalidData

PERMUTATION_SEED = 1_234
"""Of the permuted entries: a child of the caller's seed."""


def against_initial(
    found: MatrixDiagnosis,
    start: MatrixDiagnosis,
    difference: MatrixDiagnosis,
    change: float,
    norm: float,
) -> Comparison:
    """Compare with the weights before training.

    Parameters
    ----------
    found, start, difference : MatrixDiagnosis
        Of the weights, of the initial ones, and of the change.
    change, norm : float
        Frobenius norms of the change and of the initial weights.

    Returns
    -------
    Comparison
        With the diagnosis of the change.
    """
    relative = change / norm if norm > 0 else None
    text = f"{start.phase} before training, {found.phase} after; the change is {difference.phase}"
    return Comparison(
        "initial weights",
        start.phase,
        None if start.bulk is None else start.bulk.n_outliers,
        None if start.noise is None else start.noise.value,
        relative,
        difference,
        f"{text}." if relative is None else f"{text}, {relative:.2g} times their norm.",
    )


def against_permuted(
    weights: np.ndarray, found: MatrixDiagnosis, precision: float, seed: int
) -> Comparison:
    """Compare with the same entries in random order: what their sizes alone make of a spectrum.

    Parameters
    ----------
    weights : ndarray
        As stored.
    found : MatrixDiagnosis
        Of the weights.
    precision : float
        Relative spacing of the stored numbers.
    seed : int
        Of the permutation and the bootstraps.

    Returns
    -------
    Comparison
        Outliers of the permuted matrix are no features.
    """
    rng = np.random.default_rng([seed, PERMUTATION_SEED])
    mixed = rng.permutation(np.asarray(weights).ravel()).reshape(weights.shape)
    try:
        spectrum = read_spectrum(mixed, precision)
        fit = spectrum.fit(seed)
    except InvalidData as error:
        return Comparison("permuted entries", NOT_FITTED, text=f"permuted entries: {error}")
    laws = phase_laws(spectrum.values, spectrum.bulk(fit), fit.n_outliers)
    phase = laws[0].phase if laws else NOT_FITTED
    outliers = found.bulk.n_outliers if found.bulk else 0
    text = f"the same entries in random order are {phase}"
    if phase != "random-like":
        text += ": a part of the structure is in the size of single entries"
    elif outliers:
        text += f": their order makes the {outliers} outliers"
    return Comparison(
        "permuted entries", phase, fit.n_outliers, fit.noise * spectrum.unit, text=f"{text}."
    )
