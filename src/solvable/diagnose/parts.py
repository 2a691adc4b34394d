"""Parts of a diagnosis read off its fitted law: features, exponents, advice, errors, curve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.diagnosis import (
    Advice,
    Curve,
    ErrorParts,
    Estimate,
    Exponent,
    Feature,
    Rival,
)
from solvable.diagnose.fit import BulkFit
from solvable.diagnose.phase_likelihood import PhaseLaw
from solvable.diagnose.smooth_law import SmoothLaw, fit_smooth
from solvable.diagnose.spectrum import Spectrum
from solvable.diagnose.strengths import MINIMUM_STRENGTHS, Decay, fit_decay, shrinkage_errors
from solvable.diagnose.tail import TailFit
from solvable.errors import InvalidData

NORMAL = 1.959964
"""Standard errors on either side of a 95 % interval."""

CURVE_POINTS = 400
"""Points of a curve that is drawn."""

RIVAL_DRAWS = 24
"""Simulated matrices behind a p-value against bulk and spikes: the least is 0.04."""


def features_of(fit: BulkFit, unit: float) -> tuple[Feature, ...]:
    """Outliers with their signals, in the unit of the file.

    Parameters
    ----------
    fit : BulkFit
        In units of the largest entry.
    unit : float
        The largest entry.

    Returns
    -------
    tuple of Feature
        Strongest first.
    """
    spikes = fit.spikes
    symmetric = spikes.short_overlap is spikes.long_overlap
    found = []
    for k in range(spikes.observed.size):
        s, reach = float(spikes.strengths[k]), NORMAL * float(spikes.standard_errors[k])
        observed = float(spikes.observed[k]) - fit.shrinkage
        # A signal below the threshold would not be seen.
        low = max(abs(s) - reach, min(fit.threshold, abs(s)))
        ends = sorted((np.sign(s) * low, np.sign(s) * (abs(s) + reach)))
        found.append(
            Feature(
                observed * unit,
                Estimate(s * unit, float(ends[0]) * unit, float(ends[1]) * unit),
                float(spikes.short_overlap[k]),
                None if symmetric else float(spikes.long_overlap[k]),
            )
        )
    return tuple(found)


def decay_of(fit: BulkFit, notes: list[str], seed: int) -> Decay | None:
    """Decay of the strengths, or None with a note where there are too few.

    Parameters
    ----------
    fit : BulkFit
        With its spikes.
    notes : list of str
        Takes the refusal.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Decay or None
        The exponent does not depend on the unit.
    """
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


def exponent_of(
    tail: TailFit | None, bulk_p_value: float | None, decay: Decay | None
) -> Exponent | None:
    """Put together what is known of exponents.

    Parameters
    ----------
    tail : TailFit or None
        Of the spectrum.
    bulk_p_value : float or None
        Of the power law against bulk and spikes.
    decay : Decay or None
        Of the strengths.

    Returns
    -------
    Exponent or None
        None if neither was fitted.
    """
    if tail is None and decay is None:
        return None
    found = Exponent(bulk_p_value=bulk_p_value)
    if tail is not None:
        found = replace(
            found,
            spectrum=Estimate(tail.exponent, *tail.interval),
            spectrum_p_value=tail.p_value,
            lognormal_p_value=tail.power_law_p_value,
            n_tail=tail.n_tail,
        )
    if decay is not None:
        found = replace(
            found,
            strengths=Estimate(decay.value, decay.low, decay.high),
            strengths_p_value=decay.p_value,
            n_strengths=decay.n,
        )
    return found


def errors_and_advice(
    spectrum: Spectrum, fit: BulkFit, decay: Decay | None
) -> tuple[ErrorParts, Advice]:
    """Where the distance to the signals comes from and what would lower it, in the unit of the file.

    Parameters
    ----------
    spectrum : Spectrum
        The values.
    fit : BulkFit
        In the same unit.
    decay : Decay or None
        For the signals that are not detected.

    Returns
    -------
    tuple of ErrorParts and Advice
        Both are predictions of the generative law.
    """
    spikes, unit, count = fit.spikes, spectrum.unit, int(fit.spikes.observed.size)
    y = np.abs(spectrum.ordered(fit))
    cosines = np.sqrt(spikes.short_overlap * spikes.long_overlap)
    found = shrinkage_errors(y, count, np.abs(spikes.strengths), cosines, edge=fit.edge)
    undetected = decay.undetected(y.size) if decay is not None and decay.p_value >= 0.1 else None
    norm = float((y**2).sum())
    # A product overflows to infinity where a power raises.
    square = unit * unit
    parts = ErrorParts(
        found.bulk * square,
        found.shrinkage * square,
        found.rotation * square,
        None if undetected is None else undetected * square,
        norm * square,
    )
    share = float((np.sort(y)[y.size - count :] ** 2).sum()) / norm
    total = found.bulk + found.shrinkage + found.rotation
    lowered = fit.shrinkage > 0 and spectrum.semidefinite
    what = "eigenvalues" if spectrum.symmetric else "singular values"
    gain = 1 - np.sqrt(found.denoised / total) if total else 0.0
    cut_gain = 1 - np.sqrt(found.cut / total) if total else 0.0
    text = (
        f"Keep {count} of {y.size} {what} ({share:.0%} of the squared norm): the predicted error "
        f"falls by {cut_gain:.0%}, with the best size of each by {gain:.0%}."
        if count
        else "Nothing stands out of the noise: there is nothing to keep."
    )
    root = np.sqrt([total, found.cut, found.denoised, found.edge]) * unit
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
    """Fitted law of the winning phase for drawing, in the unit of the file.

    Parameters
    ----------
    spectrum : Spectrum
        The values.
    bulk, fit : WholeBulk and BulkFit, or None
        Of the phases that have a bulk.
    law : PhaseLaw
        The winner.

    Returns
    -------
    Curve
        Outliers are not part of the law: its mass is the share of the others.
    """
    unit, p = spectrum.unit, spectrum.values.size
    if law.smooth is not None or bulk is None or fit is None:
        if law.smooth is None:
            return Curve(np.zeros(0), np.zeros(0), spectrum.zeros / p)
        y = np.abs(spectrum.values)
        y = np.sort(y[y > 0])
        x = np.geomspace(y[0], y[-1], CURVE_POINTS)
        atom = spectrum.zeros / p
        return Curve(x * unit, law.smooth.density(x) * (1 - atom) / unit, atom)
    low, high = (edge * bulk.scale - bulk.shift for edge in bulk.law.edges)
    atom = 0.0
    if spectrum.semidefinite:
        low = max(low, 0.0)
        if bulk.shift > 0:
            atom = float(bulk.law.cdf(np.array([bulk.shift / bulk.scale]))[0])
    x = np.linspace(low, high, CURVE_POINTS)
    share = 1 - fit.n_outliers / p
    density = bulk.law.density((x + bulk.shift) / bulk.scale) / bulk.scale
    return Curve(x * unit, density * share / unit, atom * share)


def rivals_of(values: np.ndarray, laws: list[PhaseLaw], fit: BulkFit | None) -> tuple[Rival, ...]:
    """Power law, log-normal, and bulk with spikes on the same values.

    Parameters
    ----------
    values : ndarray of shape (p,)
        All values; zeros keep an atom of their own.
    laws : list of PhaseLaw
        Fitted laws of the phases.
    fit : BulkFit or None
        For its p-value.

    Returns
    -------
    tuple of Rival
        Those that could be fitted.
    """
    found = []
    y = np.abs(values)
    positive = y[y > 0]
    for one in laws:
        if one.smooth is not None and one.smooth.power_tail:
            found.append(Rival("power law", one.log_likelihood, None, one.n_parameters))
            # The same atom and sign for the log-normal.
            common = one.log_likelihood - one.smooth.log_likelihood
            logs = np.log(positive)
            n = logs.size
            value = -n * (np.log(logs.std()) + 0.5 * np.log(2 * np.pi) + 0.5) - logs.sum()
            extra = one.n_parameters - one.smooth.n_parameters
            found.append(Rival("log-normal", float(value) + common, _normal(logs), 2 + extra))
            break
    with_bulk = [one for one in laws if one.smooth is None and one.phase != "rank-collapse"]
    if with_bulk and fit is not None:
        best = max(with_bulk, key=lambda one: one.score)
        found.append(Rival("bulk and spikes", best.log_likelihood, fit.p_value, best.n_parameters))
    return tuple(found)


def _normal(logs: np.ndarray, draws: int = 199) -> float:
    """Goodness of fit of a log-normal, by the same distance of as many normal draws."""
    from scipy.special import ndtr

    rng = np.random.default_rng(0)
    rows = np.vstack([logs, rng.standard_normal((draws, logs.size))])
    rows = np.sort((rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True))
    law, steps = ndtr(rows), np.arange(logs.size + 1) / logs.size
    away = np.maximum(np.abs(law - steps[1:]), np.abs(law - steps[:-1])).max(axis=1)
    return float((1 + (away[1:] >= away[0]).sum()) / (1 + draws))


def against_bulk(
    values: np.ndarray, bulk: WholeBulk, n_outliers: int, smooth: SmoothLaw, *, seed: int
) -> float:
    """Probability that bulk and spikes look as much like a power law, by parametric bootstrap.

    Parameters
    ----------
    values : ndarray of shape (p,)
        All values, ascending.
    bulk : WholeBulk
        Its best law.
    n_outliers : int
        Its spikes.
    smooth : SmoothLaw
        The power law.
    seed : int
        Of the simulation.

    Returns
    -------
    float
        Below 0.05, bulk and spikes are ruled out as the cause of the tail.
    """
    rng = np.random.default_rng(seed)
    p = values.size
    rest = p - n_outliers

    def gain(y: np.ndarray) -> float:
        positive = y[y > 0]
        heavy = fit_smooth(positive, power_tail=True, shifted=smooth.shifted).log_likelihood
        zeros = p - positive.size
        if zeros:
            heavy += zeros * np.log(zeros / p) + positive.size * np.log(positive.size / p)
        return float(heavy - bulk.log_density(y[:rest]).sum())

    seen = gain(values)
    count = 0
    for _ in range(RIVAL_DRAWS):
        noise = bulk.law.draw(rest, rng) * bulk.scale - bulk.shift
        if bulk.cut and not bulk.signed:
            noise = np.clip(noise, 0.0, None)
        tops = values[rest:] + bulk.width(values[rest:]) * rng.standard_normal(n_outliers)
        count += gain(np.sort(np.concatenate([noise, np.abs(tops)]))) >= seen
        if count >= 4:
            # Four of them put the p-value above 0.16 whatever follows.
            return (1 + count) / (1 + RIVAL_DRAWS)
    return (1 + count) / (1 + RIVAL_DRAWS)
