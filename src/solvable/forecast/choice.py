"""Weigh the two models by their predictions for the largest sizes, and refuse unsuitable curves."""

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
    """Errors at the h largest sizes, predicted by a model fitted to the smaller sizes."""

    predicted: np.ndarray
    measured: np.ndarray
    spread: np.ndarray  # relative standard deviation of measured minus predicted errors
    score: float  # logarithm of the predictive density of the measured errors
    distance: float  # squared Mahalanobis distance of the errors; about h if intervals are right


def refusal_of(curve: LearningCurve, noise: ReplicateNoise) -> str | None:
    """Return the reason for refusing to extrapolate a curve; None if the curve is suitable."""
    # Smallest number of sizes; smallest required fall and smallest refused rise, in standard errors
    least, fallen, risen = 4, 2.0, 3.0
    sizes, means = curve.sizes, curve.means
    if sizes.size < least:
        return (
            f"Extrapolation is refused: {sizes.size} distinct sample "
            f"size{'s' if sizes.size > 1 else ''}; allowed: at least {least}, because offset, "
            "amplitude and exponent already need three. Measure at more sizes."
        )
    if not means.any():
        return "Extrapolation is refused: every error is zero, so there is no fall to extrapolate."
    if curve.tested is None and not means[-1]:
        return (
            f"Extrapolation is refused: the error at n = {sizes[-1]:g} is 0. With m test rows the true "
            "error may be as large as 3 / m. Give the number of test rows with --tested (LearningCurve: "
            "tested)."
        )
    covariance = noise.covariance
    if not noise.known:
        # Without replicates, a noise of 3 % is assumed.
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
            f"({change[lowest]:.1f} standard errors), but both models only describe "
            "falling errors. Regularise the learner, or measure beyond the rise. If these are scores "
            "such as accuracies, name their column accuracy."
        )
    if change[highest] > -fallen:
        return (
            f"Extrapolation is refused: the error at n = {sizes[-1]:g} ({means[-1]:.4g}) is not "
            f"{fallen:g} standard errors below that at any smaller size, so no fall has been measured. "
            "Measure at larger sizes or with more replicates."
        )
    return None


@dataclass(frozen=True)
class Bend:
    """Lower bound beyond the data for a curve that steepens; neither model describes such a curve."""

    samples: float  # largest measured size n_k
    error: float  # mean error at n_k minus one standard error
    rate: float  # slope -d log e / d log n divided by n, at the upper end of the slope's interval

    def error_at(self, size: float) -> float:
        """Error at size n if the slope continues to grow with n; infinity for n within the data."""
        # e(n) = e_k (1 + r (n - n_k) / 2)^-2: the slope first grows in proportion to n, as with too few
        # steps in a fixed number of epochs, and it is at most 2. An exponential did not cover measured
        # curves better, and gave useless lower ends for steep curves.
        beyond = self.rate * (size - self.samples)
        return self.error * (1 + beyond / 2) ** -2 if beyond > 0 else float("inf")


def bend_of(curve: LearningCurve, noise: ReplicateNoise, confidence: float = 0.9) -> Bend | None:
    """Return the bend of a curve that steepens significantly or has fixed epochs; otherwise None."""
    means = curve.expected
    if not (noise.known and (means > 0).all()):
        return None
    # Slopes -d log e / d log n between neighbouring sizes; each row contains the weights of log e.
    weights = np.diff(np.eye(curve.sizes.size), axis=0) / -np.diff(np.log(curve.sizes))[:, None]

    def slope(contrast: np.ndarray) -> tuple[float, float]:
        relative = contrast / means
        value = float(contrast @ np.log(means))
        return value, float(np.sqrt(relative @ noise.covariance @ relative))

    # A power law is never steeper in its second half than in its first. A threshold below two standard
    # errors would detect more bends, but make intervals of cascades far too wide.
    half = curve.sizes.size // 2
    late = weights[half:].mean(axis=0)
    steeper, error = slope(late - weights[:half].mean(axis=0))
    if steeper <= 2 * error and not curve.fixed_epochs:
        return None
    # A slope is assigned to the geometric mean of its two sizes. Two rates are computed, each at
    # the upper end of its interval, and the larger rate is used.
    beyond = NormalDist().inv_cdf((1 + confidence) / 2)
    rates = []
    for contrast, first in ((weights[-1], -2), (late, half)):
        value, error = slope(contrast)
        upper = max(value + beyond * error, 0.0)
        rates.append(upper / np.sqrt(curve.sizes[-1] * curve.sizes[first]))
    last = float(max(means[-1] - np.sqrt(noise.covariance[-1, -1]), 0.0))
    return Bend(float(curve.sizes[-1]), last, float(max(rates)))


def held_out_sizes(n_sizes: int) -> int:
    """Return the number of held-out sizes: a third of all sizes, at least 1 and at most 3."""
    return min(max(n_sizes // 3, 1), 3)


def score_families(
    families: tuple[Family, ...],
    curve: LearningCurve,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> Mapping[str, HeldOut]:
    """Fit each model to the smaller sizes, and score its prediction for the largest sizes."""
    count = held_out_sizes(curve.sizes.size)
    first = curve.sizes.size - count
    known = curve.up_to(first)
    noise = replicate_noise(known)
    # The held-out errors are used for the noise of the score, but not in the fit.
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
    """Score a prediction by a Student's t density of the log error around the bootstrap curves."""
    freedom = 5.0  # heavy tails, so that a single outlier does not decide
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
    """Weights of the models in a forecast: the predictive densities, normalised to sum 1."""
    scores = np.array([held.score for held in held_out.values()])
    relative = np.exp(scores - scores.max())
    return dict(zip(held_out, (relative / relative.sum()).tolist(), strict=True))


def spread_inflation(held_out: Mapping[str, HeldOut], weights: Mapping[str, float]) -> float:
    """Return the factor of at least 1 that widens the intervals if held-out errors exceed them."""
    # sqrt(max(1, (nu_0 + sum_M w_M q_M) / (nu_0 + h))): the squared distance q_M of h held-out errors
    # has mean h if the intervals of model M are right; the prior for this counts as nu_0 = 2 errors.
    prior = 2.0
    distance = sum(weights[name] * held.distance for name, held in held_out.items())
    count = next(iter(held_out.values())).measured.size
    return float(max(1.0, (prior + distance) / (prior + count)) ** 0.5)


def is_decisive(held_out: Mapping[str, HeldOut]) -> bool:
    """Return True if the held-out sizes favour one model by odds of at least 20 to 1."""
    scores = sorted(held.score for held in held_out.values())
    return scores[-1] - scores[-2] >= 3.0  # odds of e³ = 20 to 1


def verdict_sentence(
    held_out: Mapping[str, HeldOut], weights: Mapping[str, float], sizes: Sequence[float]
) -> str:
    """State which model predicted the held-out sizes better, and by what odds."""
    best, other = sorted(held_out, key=lambda name: held_out[name].score, reverse=True)[:2]
    gap = held_out[best].score - held_out[other].score
    odds = f"{np.exp(min(gap, 7.0)):.2g}" if gap < 6.9 else "more than 1000"
    where = ", ".join(f"{size:g}" for size in sizes)
    if is_decisive(held_out):
        return (
            f"The {best} predicts the held-out errors at n = {where} better than the {other} "
            f"(odds {odds} to 1); its weight in the forecast is {100 * weights[best]:.0f} %."
        )
    return (
        f"The data do not decide between {best} and {other}: the held-out errors at n = {where} "
        f"favour the {best} by odds of only {odds} to 1. The intervals cover both, with weights of "
        f"{100 * weights[best]:.0f} % and {100 * weights[other]:.0f} %."
    )


def forecast_notes(
    curve: LearningCurve,
    noise: ReplicateNoise,
    held: HeldOut,
    best: str,
    inflation: float,
    asked: np.ndarray,
) -> tuple[str, ...]:
    """Return sentences on the limits of a forecast."""
    notes = list(curve.notes)
    if not noise.known:
        notes.append(
            "No sample size has two replicates, so noise and misfit cannot be separated. The intervals "
            "use only the scatter around the fits."
        )
    elif curve.counts.min() < 2:
        notes.append(
            "Some sample sizes have a single replicate; their noise is estimated from the others."
        )
    if curve.fixed_epochs:
        notes.append(
            "With a fixed number of epochs, more samples mean more training steps. The lower ends of the "
            "intervals therefore assume that the slope of the curve continues to grow."
        )
    elif bend_of(curve, noise) is not None:
        notes.append(
            "The error falls faster at the larger sizes, as with a fixed number of epochs, where more "
            "samples mean more training steps. Neither model has this shape, so the lower ends of the "
            "intervals assume that the slope continues to grow. If the number of epochs is fixed, give "
            "--fixed-epochs (LearningCurve: fixed_epochs). Training longer or measuring beyond the bend "
            "narrows the intervals."
        )
    if inflation > 1.25:
        predicted, measured = (
            ", ".join(f"{error:.4g}" for error in errors)
            for errors in (held.predicted, held.measured)
        )
        notes.append(
            f"The held-out errors lie outside their prediction (by the {best}: {predicted}; measured: "
            f"{measured}), so the intervals are widened by a factor of {inflation:.2g}."
        )
    if noise.correlation > 0.3:
        notes.append(
            "Errors of one replicate at different sizes are correlated (correlation "
            f"{noise.correlation:.2f}); the intervals include this."
        )
    far = asked[asked > 10 * curve.sizes[-1]]
    beyond = (
        f" (sizes from n = {far[0]:g} on are more than 10 times the largest)" if far.size else ""
    )
    notes.append(
        f"A break ahead is not covered: the intervals assume that the curve goes on{beyond} and that no "
        "new feature is learned in between."
    )
    if asked[0] < curve.sizes[0]:
        notes.append(f"n = {asked[0]:g} is below the smallest measured size.")
    return tuple(notes)
