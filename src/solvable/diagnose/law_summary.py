"""Summary of a spectrum's fitted law: features, their decay, errors, advice, drawn curve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvable.diagnose.bulk_fit import BulkFit, SymmetricFit
from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.diagnosis import (
    Advice,
    Curve,
    ErrorParts,
    Estimate,
    Exponent,
    Feature,
)
from solvable.diagnose.phase_likelihood import PhaseLaw
from solvable.diagnose.spectrum import Spectrum
from solvable.diagnose.strengths import (
    MINIMUM_STRENGTHS,
    Decay,
    fit_decay,
    fit_decaying,
    shrinkage_errors,
)
from solvable.errors import InvalidData
from solvable.fitting.power_tail import TailFit


def features_of(fit: BulkFit, unit: float) -> tuple[Feature, ...]:
    """Features: outliers with the signals behind the outliers, in the unit of the file."""
    spikes = fit.spikes
    symmetric = spikes.short_overlap is spikes.long_overlap
    # Strength and interval stay above the threshold, because a weaker signal would not be visible.
    ends = np.sign(spikes.strengths)[:, None] * spikes.intervals(floor=fit.threshold)
    return tuple(
        Feature(
            float(spikes.observed[k] - fit.shrinkage) * unit,
            Estimate(
                float(spikes.strengths[k]) * unit, *(float(end) * unit for end in sorted(row))
            ),
            float(spikes.short_overlap[k]),
            None if symmetric else float(spikes.long_overlap[k]),
        )
        for k, row in enumerate(ends)
    )


def decay_of(fit: BulkFit, notes: list[str], seed: int) -> Decay | None:
    """Fit the decay of the strengths; with too few strengths, return None and add a note."""
    if fit.n_outliers < MINIMUM_STRENGTHS:
        if fit.n_outliers:
            notes.append(
                f"decay of strengths: {fit.n_outliers} of them; {MINIMUM_STRENGTHS} are needed."
            )
        return None
    try:
        return fit_decay(fit.spikes.strengths, fit.spikes.standard_errors, seed=seed)
    except InvalidData as error:
        notes.append(f"decay of strengths: {error}")
        return None


def decay_below_threshold(
    fit: BulkFit, best: PhaseLaw, notes: list[str], seed: int
) -> tuple[BulkFit, Decay | None]:
    """Fit the decay of the strengths; a decay in the likeliest law is continued into the bulk."""
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


def exponent_of(
    tail: TailFit | None, bulk_p_value: float | None, decay: Decay | None
) -> Exponent | None:
    """Collect the exponents of the spectrum and of the strengths, with their tests."""
    if tail is None and decay is None:
        return None
    exponent = Exponent(bulk_p_value=bulk_p_value)
    if tail is not None:
        exponent = replace(
            exponent,
            spectrum=Estimate(tail.exponent, *tail.interval),
            spectrum_p_value=tail.p_value,
            lognormal_p_value=tail.power_law_p_value,
            n_tail=tail.n_tail,
        )
    if decay is not None:
        exponent = replace(
            exponent,
            strengths=Estimate(decay.value, decay.low, decay.high),
            strengths_p_value=decay.p_value,
            n_strengths=decay.n,
        )
    return exponent


def errors_and_advice(
    spectrum: Spectrum, fit: BulkFit, decay: Decay | None
) -> tuple[ErrorParts, Advice]:
    """Predict the contributions to the distance to the signals, and the effect of a cut."""
    spikes, unit, count = fit.spikes, spectrum.unit, int(fit.spikes.observed.size)
    y = np.abs(spectrum.ordered(fit))
    cosines = np.sqrt(spikes.short_overlap * spikes.long_overlap)
    errors = shrinkage_errors(y, count, np.abs(spikes.strengths), cosines, edge=fit.edge)
    undetected = decay.undetected(y.size) if decay is not None and decay.p_value >= 0.1 else None
    norm = float((y**2).sum())
    # A product overflows to infinity; a power would raise an error.
    square = unit * unit
    parts = ErrorParts(
        errors.bulk * square,
        errors.shrinkage * square,
        errors.rotation * square,
        None if undetected is None else undetected * square,
        norm * square,
    )
    share = float((np.sort(y)[y.size - count :] ** 2).sum()) / norm
    total = errors.bulk + errors.shrinkage + errors.rotation
    lowered = fit.shrinkage > 0 and spectrum.semidefinite
    what = "eigenvalues" if spectrum.symmetric else "singular values"
    gain = 1 - np.sqrt(errors.denoised / total) if total else 0.0
    cut_gain = 1 - np.sqrt(errors.cut / total) if total else 0.0
    text = (
        f"a cut at the edge of the bulk would keep {count} of {y.size} {what} and "
        f"{100 * share:.0f} % of the squared norm; the predicted matrix error would fall by "
        f"{100 * cut_gain:.0f} %, or by {100 * gain:.0f} % with the best size of each value."
        if count
        else "no value is above the noise: a cut would keep nothing."
    )
    root = np.sqrt([total, errors.cut, errors.denoised, errors.edge]) * unit
    advice = Advice(
        count,
        share,
        fit.cut * unit,
        float(root[0]),
        float(root[1]),
        float(root[2]),
        float(root[3]) if lowered else None,
        text,
    )
    return parts, advice


def curve_of(
    spectrum: Spectrum, bulk: WholeBulk | None, fit: BulkFit | None, law: PhaseLaw
) -> Curve:
    """Curve of the likeliest law for drawing, in the unit of the file."""
    # The curve leaves out the outliers; its integral is the share of the other values.
    unit, p, points = spectrum.unit, spectrum.values.size, 400
    if law.smooth is not None or bulk is None or fit is None:
        if law.smooth is None:
            return Curve(np.zeros(0), np.zeros(0), spectrum.zeros / p)
        y = np.abs(spectrum.values)
        y = np.sort(y[y > 0])
        x = np.geomspace(y[0], y[-1], points)
        atom = spectrum.zeros / p
        return Curve(x * unit, law.smooth.density(x) * (1 - atom) / unit, atom)
    low, high = (edge * bulk.scale - bulk.shift for edge in bulk.law.edges)
    atom = 0.0
    if spectrum.semidefinite:
        low = max(low, 0.0)
        if bulk.shift > 0:
            atom = float(bulk.law.cdf(np.array([bulk.shift / bulk.scale]))[0])
    x = np.linspace(low, high, points)
    share = 1 - fit.n_outliers / p
    density = bulk.law.density((x + bulk.shift) / bulk.scale) / bulk.scale
    return Curve(x * unit, density * share / unit, atom * share)
