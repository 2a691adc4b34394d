"""Which family a forecast rests on, by how each predicts the largest sizes; whether there may be one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from solvable.forecast.curve import LearningCurve
from solvable.forecast.families import Family
from solvable.forecast.fitting import Fitted, fit_family
from solvable.forecast.noise import ReplicateNoise, replicate_noise


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How a family, fitted to the smaller sizes, predicted the h largest."""

    predicted: np.ndarray
    measured: np.ndarray
    spread: np.ndarray  # standard deviation of measured less predicted, relative
    score: float  # logarithm of the predictive density of the measured errors
    distance: float  # squared Mahalanobis; about h if the family and its intervals hold


def refusal_of(curve: LearningCurve, noise: ReplicateNoise) -> str | None:
    """Why a curve must not be extrapolated, in a sentence; None if nothing speaks against it."""
    least, fallen, risen = 4, 2.0, 3.0  # sizes; standard errors of a fall and of a rise
    sizes, means = curve.sizes, curve.means
    if sizes.size < least:
        return (
            f"Extrapolation is refused: {sizes.size} distinct sample "
            f"size{'s' if sizes.size > 1 else ''}; allowed: at least {least}, because offset, "
            "amplitude and exponent take three. Measure at more sizes."
        )
    if not means.any():
        return "Extrapolation is refused: every error is zero, there is nothing left to fall."
    if curve.tested is None and not means[-1]:
        return (
            f"Extrapolation is refused: the error at n = {sizes[-1]:g} is 0. Among m test rows a rate "
            "of 0 may be as large as 3 / m, and a curve of errors does not tell m: give it with "
            "--tested (LearningCurve: tested)."
        )
    covariance = noise.covariance
    if not noise.known:
        # Single errors are credited with a noise of 3 %.
        covariance = np.diag((0.03 * means) ** 2)
    spread = np.sqrt(
        np.maximum(np.diag(covariance)[:-1] + covariance[-1, -1] - 2 * covariance[-1, :-1], 1e-300)
    )
    change = (means[-1] - means[:-1]) / spread
    highest, lowest = int(np.argmin(change)), int(np.argmax(change))
    if change[lowest] > risen:
        return (
            f"Extrapolation is refused: the error rises, from {means[lowest]:.4g} at "
            f"n = {sizes[lowest]:g} to {means[-1]:.4g} at n = {sizes[-1]:g} "
            f"({change[lowest]:.1f} standard errors); both models only fall. Look for a learner that "
            "is not regularised, or measure beyond the rise."
        )
    if change[highest] > -fallen:
        return (
            f"Extrapolation is refused: the error at n = {sizes[-1]:g} ({means[-1]:.4g}) is not "
            f"below the others by {fallen:g} standard errors, so no fall has been measured. "
            "Measure at larger sizes or with more replicates."
        )
    return None


@dataclass(frozen=True)
class Bend:
    """A curve that steepens may go on doing so, and no law here falls so fast."""

    samples: float  # n_k, the largest size
    error: float  # its mean, less a standard error
    rate: float  # slope -d log e / d log n over n, at its upper end

    def error_at(self, size: float) -> float:
        """Error if the slope goes on growing with n; infinite within the data."""
        # e(n) = e_k (1 + r (n - n_k) / 2)^-2: the slope first grows as n, as while steps of a fixed
        # number of epochs are too few, and to 2 at most. An exponential, which never stops, covered
        # measured curves no better, and the lower ends of steep ones were no bound at all.
        beyond = self.rate * (size - self.samples)
        return self.error * (1 + beyond / 2) ** -2 if beyond > 0 else float("inf")


def bend_of(curve: LearningCurve, noise: ReplicateNoise, confidence: float = 0.9) -> Bend | None:
    """The bend of a curve that steepens beyond its noise, or of models of a fixed number of epochs."""
    means = curve.expected
    if not (noise.known and (means > 0).all()):
        return None
    # Slopes -d log e / d log n between neighbours, as rows of weights of log e.
    weights = np.diff(np.eye(curve.sizes.size), axis=0) / -np.diff(np.log(curve.sizes))[:, None]

    def slope(contrast: np.ndarray) -> tuple[float, float]:
        relative = contrast / means
        value = float(contrast @ np.log(means))
        return value, float(np.sqrt(relative @ noise.covariance @ relative))

    # No power law is steeper in its second half than in its first. Below two standard errors more
    # bends are foreseen, and cascades, which steepen and stop, have intervals far too wide.
    half = curve.sizes.size // 2
    late = weights[half:].mean(axis=0)
    steeper, error = slope(late - weights[:half].mean(axis=0))
    if steeper <= 2 * error and not curve.fixed_epochs:
        return None
    # A slope belongs to the middle of the sizes it is taken over; the larger rate counts, at the
    # upper end of its interval.
    beyond = NormalDist().inv_cdf((1 + confidence) / 2)
    rates = []
    for contrast, first in ((weights[-1], -2), (late, half)):
        value, error = slope(contrast)
        upper = max(value + beyond * error, 0.0)
        rates.append(upper / np.sqrt(curve.sizes[-1] * curve.sizes[first]))
    # Its end is known to its own standard error.
    last = float(max(means[-1] - np.sqrt(noise.covariance[-1, -1]), 0.0))
    return Bend(float(curve.sizes[-1]), last, float(max(rates)))


def held_out_sizes(n_sizes: int) -> int:
    """Number of sizes held out of at least 4: the largest third, at most 3, at least 1."""
    return min(max(n_sizes // 3, 1), 3)


def score_families(
    families: tuple[Family, ...],
    curve: LearningCurve,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> Mapping[str, HeldOut]:
    """Fit each family to the smaller sizes and score its prediction of the largest, by name."""
    count = held_out_sizes(curve.sizes.size)
    first = curve.sizes.size - count
    known = curve.up_to(first)
    noise = replicate_noise(known)
    # The noise of what is held out may be known to the judge, though not to the fit.
    judged = replicate_noise(curve).covariance[first:, first:]
    scores = {}
    for family in families:
        fitted = fit_family(
            family,
            sizes=known.sizes,
            means=known.expected,
            noise=noise,
            resamples=resamples,
            rng=rng,
        )
        scores[family.name] = _scored(fitted, curve.sizes[first:], curve.expected[first:], judged)
    return scores


def _scored(
    fitted: Fitted, sizes: np.ndarray, measured: np.ndarray, covariance: np.ndarray
) -> HeldOut:
    """Student's t around the drawn curves, in the logarithm of the error."""
    freedom = 5.0  # few, so that one wild point does not decide alone
    floor = 1e-3 * max(float(measured.max()), 1e-300)
    draws = np.log(np.maximum(fitted.drawn_curves(sizes), floor))
    centre = np.median(draws, axis=0)
    scale = np.exp(centre)
    spread = np.atleast_2d(np.cov(draws, rowvar=False))
    spread = spread + covariance / np.outer(scale, scale) + fitted.misfit**2 * np.eye(sizes.size)
    residual = np.log(np.maximum(measured, floor)) - centre
    distance = float(residual @ np.linalg.solve(spread, residual))
    _, log_determinant = np.linalg.slogdet(spread)
    h = sizes.size
    score = -0.5 * log_determinant - (freedom + h) / 2 * np.log1p(distance / freedom)
    return HeldOut(scale, measured, np.sqrt(np.diag(spread)), float(score), distance)


def model_weights(held_out: Mapping[str, HeldOut]) -> dict[str, float]:
    """Shares of the models in a forecast, summing to 1: their predictive densities, as they are."""
    scores = np.array([held.score for held in held_out.values()])
    relative = np.exp(scores - scores.max())
    return dict(zip(held_out, (relative / relative.sum()).tolist(), strict=True))


def spread_inflation(held_out: Mapping[str, HeldOut], weights: Mapping[str, float]) -> float:
    """Factor of at least 1 by which held-out errors widen the intervals of the forecast."""
    # sqrt(max(1, (nu_0 + sum_M w_M q_M) / (nu_0 + h))): q_M, the squared distance of h held-out
    # errors, has mean h if the intervals of model M are right; the prior that they are is worth
    # nu_0 = 2 errors.
    prior = 2.0
    distance = sum(weights[name] * held.distance for name, held in held_out.items())
    count = next(iter(held_out.values())).measured.size
    return float(max(1.0, (prior + distance) / (prior + count)) ** 0.5)


def is_decisive(held_out: Mapping[str, HeldOut]) -> bool:
    """Whether the held-out sizes tell the models apart."""
    scores = sorted(held.score for held in held_out.values())
    return scores[-1] - scores[-2] >= 3.0  # odds of e³ = 20 to 1


def verdict_sentence(
    held_out: Mapping[str, HeldOut], weights: Mapping[str, float], sizes: Sequence[float]
) -> str:
    """Which model predicted the held-out sizes better, and whether that means anything."""
    best, other = sorted(held_out, key=lambda name: held_out[name].score, reverse=True)[:2]
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
    held: HeldOut,
    best: str,
    inflation: float,
    asked: np.ndarray,
) -> tuple[str, ...]:
    """What a reader should know before trusting the numbers, in sentences."""
    notes = []
    if not noise.known:
        notes.append(
            "No sample size has two replicates: noise and misfit cannot be told apart, and the "
            "intervals rest on the scatter around the fits alone."
        )
    elif curve.counts.min() < 2:
        notes.append(
            "Some sample sizes have one replicate only; their noise is taken from the others."
        )
    if curve.fixed_epochs:
        notes.append(
            "Models of a fixed number of epochs take more steps where they have more samples: the "
            "intervals reach down to where the slope of the curve goes on growing."
        )
    elif bend_of(curve, noise) is not None:
        notes.append(
            "The error seems to fall faster at its larger sizes, as it does where models are trained for "
            "a fixed number of epochs and more samples are more steps too. Neither model bends so: "
            "the intervals reach down to where the slope goes on growing. If the number of epochs is "
            "fixed, say so with --fixed-epochs (LearningCurve: fixed_epochs); training longer, or "
            "measuring beyond the bend, tells more."
        )
    if inflation > 1.25:
        predicted, measured = (
            ", ".join(f"{error:.4g}" for error in errors)
            for errors in (held.predicted, held.measured)
        )
        notes.append(
            f"The held-out errors lie outside what was predicted for them (the {best} said "
            f"{predicted} where {measured} was measured); the intervals are widened by "
            f"{inflation:.2g}."
        )
    if noise.correlation > 0.3:
        notes.append(
            f"Errors of one replicate at different sizes move together (correlation "
            f"{noise.correlation:.2f}), which is allowed for."
        )
    far = asked[asked > 10 * curve.sizes[-1]]
    if far.size:
        notes.append(
            f"n = {far[0]:g} and beyond are more than 10 times the largest measured size: the "
            "intervals assume that nothing new happens on the way."
        )
    if asked[0] < curve.sizes[0]:
        notes.append(f"n = {asked[0]:g} is below the smallest measured size.")
    return tuple(notes)
