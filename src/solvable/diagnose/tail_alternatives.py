"""Explanations of a tail, fitted to the same values: power law, log-normal, bulk and spikes."""

from __future__ import annotations

import numpy as np

from solvable.diagnose.bulk_fit import BulkFit
from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.diagnosis import Rival
from solvable.diagnose.phase_likelihood import PhaseLaw
from solvable.diagnose.smooth_law import SmoothLaw, fit_smooth
from solvable.errors import InvalidData
from solvable.fitting.goodness import largest_gaps
from solvable.fitting.power_tail import TailFit, fit_tail


def rivals_of(values: np.ndarray, laws: list[PhaseLaw], fit: BulkFit | None) -> tuple[Rival, ...]:
    """Fit a power law, a log-normal, and a bulk with spikes to the same values."""
    rivals = []
    y = np.abs(values)
    positive = y[y > 0]
    for law in laws:
        if law.smooth is not None and law.smooth.power_tail:
            rivals.append(Rival("power law", law.log_likelihood, None, law.n_parameters))
            # The log-normal gets the same zeros and the same signs as the other laws.
            common = law.log_likelihood - law.smooth.log_likelihood
            logs = np.log(positive)
            n = logs.size
            value = -n * (np.log(logs.std()) + 0.5 * np.log(2 * np.pi) + 0.5) - logs.sum()
            extra = law.n_parameters - law.smooth.n_parameters
            rivals.append(Rival("log-normal", float(value) + common, _normal(logs), 2 + extra))
            break
    with_bulk = [law for law in laws if law.smooth is None and law.phase != "rank-collapse"]
    if with_bulk and fit is not None:
        best = max(with_bulk, key=lambda law: law.score)
        rivals.append(Rival("bulk and spikes", best.log_likelihood, fit.p_value, best.n_parameters))
    return tuple(rivals)


def _normal(logs: np.ndarray, draws: int = 199) -> float:
    """p-value of a log-normal: bootstrap of the Kolmogorov-Smirnov distance with normal draws."""
    from scipy.special import ndtr

    rng = np.random.default_rng(0)
    rows = np.vstack([logs, rng.standard_normal((draws, logs.size))])
    rows = np.sort((rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True))
    away = largest_gaps(ndtr(rows))
    return float((1 + (away[1:] >= away[0]).sum()) / (1 + draws))


def against_bulk(
    values: np.ndarray, bulk: WholeBulk, n_outliers: int, smooth: SmoothLaw, *, seed: int
) -> float:
    """Probability that bulk and spikes resemble a power law as closely as the data; bootstrap."""
    # Below 0.05, bulk and spikes are ruled out as the cause of the tail.
    rng, draws = np.random.default_rng(seed), 24
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
    for _ in range(draws):
        noise = bulk.law.draw(rest, rng) * bulk.scale - bulk.shift
        if bulk.cut and not bulk.signed:
            noise = np.clip(noise, 0.0, None)
        tops = values[rest:] + bulk.width(values[rest:]) * rng.standard_normal(n_outliers)
        count += gain(np.sort(np.concatenate([noise, np.abs(tops)]))) >= seen
        if count >= 4:
            # After four such replicates the p-value stays above 0.16 for any further replicates.
            return (1 + count) / (1 + draws)
    return (1 + count) / (1 + draws)


def tail_of(
    values: np.ndarray,
    best: PhaseLaw,
    whole: WholeBulk | None,
    fit: BulkFit | None,
    notes: list[str],
    seed: int,
) -> tuple[TailFit | None, float | None]:
    """Fit a power-law tail if no bulk explains the spectrum; also give the p-value of bulk and spikes."""
    positive = np.abs(values[values != 0])
    # Squared singular values are the eigenvalues whose tail is usually fitted.
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


def goodness_of(
    best: PhaseLaw, values: np.ndarray, tail: TailFit | None, seed: int
) -> float | None:
    """p-value of the likeliest law without a bulk; None if there is no such law."""
    if best.phase == "heavy-tailed" and tail is not None:
        return tail.p_value
    if best.smooth is None:
        return None
    return best.smooth.p_value(np.abs(values[values != 0]), seed=seed)
