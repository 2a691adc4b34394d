"""What a forecast says in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from solvable.forecast.choice import HeldOut
from solvable.forecast.curve import LearningCurve
from solvable.forecast.noise import ReplicateNoise

DECISIVE = 3.0
"""Difference of log predictive densities, odds of 20 to 1, from which models count as told apart."""

FAR = 10.0
"""Multiple of the largest measured size beyond which a note warns."""

SURPRISING = 1.25
"""Widening of the intervals from which a note explains it."""


def is_decisive(held_out: Mapping[str, HeldOut]) -> bool:
    """Whether the held-out sizes tell the models apart.

    Parameters
    ----------
    held_out : mapping of str to HeldOut
        By model.

    Returns
    -------
    bool
        True from odds of 20 to 1.
    """
    scores = sorted(one.score for one in held_out.values())
    return scores[-1] - scores[-2] >= DECISIVE


def verdict_sentence(
    held_out: Mapping[str, HeldOut], weights: Mapping[str, float], sizes: Sequence[float]
) -> str:
    """Say which model predicted the held-out sizes better, and whether that means anything.

    Parameters
    ----------
    held_out : mapping of str to HeldOut
        By model.
    weights : mapping of str to float
        By model.
    sizes : sequence of float
        Held out.

    Returns
    -------
    str
        One or two sentences.
    """
    ranked = sorted(held_out, key=lambda name: held_out[name].score, reverse=True)
    best, other = ranked[:2]
    gap = held_out[best].score - held_out[other].score
    odds = f"{np.exp(min(gap, 7.0)):.2g}" if gap < 6.9 else "more than 1000"
    where = ", ".join(f"{size:g}" for size in sizes)
    if is_decisive(held_out):
        return (
            f"The {best} predicts the held-out errors at n = {where} better than the {other} "
            f"(odds {odds} to 1), and carries {weights[best]:.0%} of the forecast."
        )
    return (
        f"The data cannot tell the {best} from the {other}: the held-out errors at n = {where} "
        f"favour the {best} by odds of only {odds} to 1. The intervals cover both "
        f"({weights[best]:.0%} and {weights[other]:.0%})."
    )


def forecast_notes(
    curve: LearningCurve,
    noise: ReplicateNoise,
    held_out: Mapping[str, HeldOut],
    weights: Mapping[str, float],
    inflation: float,
    asked: np.ndarray,
) -> tuple[str, ...]:
    """Collect what a reader should know before trusting the numbers.

    Parameters
    ----------
    curve : LearningCurve
        Measured.
    noise : ReplicateNoise
        Of its errors.
    held_out : mapping of str to HeldOut
        By model.
    weights : mapping of str to float
        By model.
    inflation : float
        Widening of the intervals.
    asked : ndarray
        Sizes to predict.

    Returns
    -------
    tuple of str
        Sentences.
    """
    notes = []
    best = max(weights, key=lambda name: weights[name])
    if not noise.known:
        notes.append(
            "No sample size has two replicates: noise and misfit cannot be told apart, and the "
            "intervals rest on the scatter around the fits alone."
        )
    elif curve.counts.min() < 2:
        notes.append(
            "Some sample sizes have one replicate only; their noise is taken from the others."
        )
    if inflation > SURPRISING:
        notes.append(
            f"The held-out errors lie outside what was predicted for them (the {best} said "
            f"{', '.join(f'{one:.4g}' for one in held_out[best].predicted)} where "
            f"{', '.join(f'{one:.4g}' for one in held_out[best].measured)} was measured); the "
            f"intervals are widened by {inflation:.2g}."
        )
    if noise.correlation > 0.3:
        notes.append(
            f"Errors of one replicate at different sizes move together (correlation "
            f"{noise.correlation:.2f}), which is allowed for."
        )
    far = asked[asked > FAR * curve.sizes[-1]]
    if far.size:
        notes.append(
            f"n = {far[0]:g} and beyond are more than {FAR:g} times the largest measured size: the "
            "intervals assume that nothing new happens on the way."
        )
    if asked[0] < curve.sizes[0]:
        notes.append(f"n = {asked[0]:g} is below the smallest measured size.")
    return tuple(notes)
