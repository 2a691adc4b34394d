"""Extrapolate a learning curve by two families of curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.errors import InvalidParameter, unknown_choice
from solvable.forecast.choice import (
    HeldOut,
    bend_of,
    forecast_notes,
    is_decisive,
    model_weights,
    refusal_of,
    score_families,
    spread_inflation,
    verdict_sentence,
)
from solvable.forecast.curve import LARGEST, LearningCurve
from solvable.forecast.families import Cascade, Family, PowerLaw
from solvable.forecast.fit_quality import fit_chance, misfit_note
from solvable.forecast.fitting import Fits, Fitted, fit_family
from solvable.forecast.intervals import ConfidenceMixture, Profile, deviance_scale
from solvable.forecast.noise import ReplicateNoise, replicate_noise
from solvable.forecast.results import Diagnostics, Estimate, Forecast, Needed, Prediction, Score


def forecast(
    curve: LearningCurve,
    *,
    at: Sequence[float] = (),
    factors: Sequence[float] | None = None,
    confidence: float = 0.9,
    of: Literal["mean", "measurement"] = "mean",
    error: float | None = None,
    resamples: int = 300,
    seed: int = 0,
    band_points: int = 24,
) -> Forecast:
    r"""Extrapolate a learning curve by an offset power law and a cascade, with intervals.

    .. math::
        e(n)=e_\infty+A\,n^{-b}\qquad\text{or}\qquad
        e(n)=e_\infty+A\sum_{i\le p}\lambda_i^2\big(1-c_i^4(n)\big),\quad
        c_i^2=\frac{(n/n_i-1)_+}{(n/n_i-1)_++1+4\lambda_i^2},

    with :math:`e_\infty,A\ge0`, :math:`\lambda_i^2\propto i^{-2\gamma}` summing to 1, and thresholds
    :math:`n_i=n_1i^{2\gamma}` rounded at finite size. Both models are fitted by maximum likelihood,
    with weights from the scatter of replicates. Each model is also fitted to the smaller sizes only;
    its predictive density at the largest sizes is its weight. Intervals follow from the profile
    likelihood, calibrated by a parametric bootstrap and averaged over models. Intervals are widened if
    the held-out errors lie outside their predicted range.

    Parameters
    ----------
    curve : LearningCurve
        Curve of at least 4 distinct sizes, with replicates for reliable intervals.
    at : sequence of float
        Sample sizes to predict, above 0.
    factors : sequence of float, optional
        Multiples of the largest measured size to predict, above 0; (2, 4) if ``at`` is empty, none
        otherwise.
    confidence : float
        Confidence of the intervals, between 0.5 and 0.99.
    of : {"mean", "measurement"}
        What the intervals cover: the mean error over replicates (default), or one new measurement
        with its noise.
    error : float, optional
        Error for which the number of samples is wanted, above 0.
    resamples : int
        Bootstrap curves per model, 100 to 100,000.
    seed : int
        Seed of the bootstrap; the same seed gives the same forecast.
    band_points : int
        Number of sizes at which the curve is predicted for the figure, 0 to 1000; 0 saves a third of
        the time.

    Returns
    -------
    Forecast
        Predictions with intervals; or ``refusal`` and no predictions.

    Raises
    ------
    InvalidParameter
        If an argument is out of range.

    Notes
    -----
    Takes about 1 s for 8 sizes, for any number of replicates. The cascade follows
    arXiv:2605.14567, Theorems 3.1 and 3.2, with constants for the identity readout. The intervals were
    checked on simulated and measured curves (``tests/forecast/test_coverage.py``,
    ``benchmarks/forecast_coverage.py``). The intervals assume one of the families; they do not
    cover a change of regime beyond the data.

    Examples
    --------
    >>> n = np.repeat([100, 200, 400, 800, 1600], 3)
    >>> noise = np.tile([0.99, 1.0, 1.01], 5)
    >>> found = forecast(LearningCurve(n, (0.05 + 2 * n**-0.6) * noise), resamples=100)
    >>> [point.samples for point in found.predictions]
    [3200.0, 6400.0]
    >>> found.predictions[0].lower < 0.05 + 2 * 3200**-0.6 < found.predictions[0].upper
    True
    """
    asked = _asked_sizes(curve, at, factors)
    _check(confidence, of, error, resamples, seed, band_points)
    noise = replicate_noise(curve)
    diagnostics = _diagnostics(curve, noise)
    refusal = refusal_of(curve, noise)
    if refusal is not None:
        return Forecast(None, False, refusal, refusal, confidence, of, diagnostics)
    families = _families(curve)
    held_out = score_families(
        families, curve, resamples=resamples, rng=random_stream(seed, "held out")
    )
    fitted = {
        family.name: fit_family(
            family, sizes=curve.sizes, means=curve.expected, noise=noise, resamples=resamples,
            rng=random_stream(seed, "fit", family.name),
        )
        for family in families
    }  # fmt: skip
    weights = model_weights(held_out)
    inflation = spread_inflation(held_out, weights)
    predictor = _Predictor(curve, noise, fitted, weights, inflation, asked, confidence, of)
    far = float(curve.sizes[-1]) * np.geomspace(1.0, 1000.0, 31)
    best = max(weights, key=lambda name: weights[name])
    scores = _scores(fitted, held_out, weights)
    chance = fit_chance(fitted.values(), noise)
    notes = forecast_notes(curve, noise, held_out[best], best, inflation, asked)
    diagnostics = replace(
        diagnostics,
        fit_chance=chance,
        held_out=tuple(curve.sizes[-held_out[best].measured.size :].tolist()),
        inflation=inflation,
        resamples=resamples,
        notes=(*filter(None, [misfit_note(chance, scores[best])]), *notes),
    )
    return Forecast(
        best,  # type: ignore[arg-type]
        is_decisive(held_out),
        verdict_sentence(held_out, weights, diagnostics.held_out),
        None,
        confidence,
        of,
        diagnostics,
        predictor.predictions(asked),
        predictor.band(band_points),
        {name: _estimates(model, confidence) for name, model in fitted.items()},
        scores,
        predictor.today,
        predictor.floor(),
        None if error is None else Needed.on(predictor.predictions(far), error),
    )


class _Predictor:
    """Predict the error at any size from the fitted models."""

    def __init__(
        self,
        curve: LearningCurve,
        noise: ReplicateNoise,
        fitted: Mapping[str, Fitted],
        weights: Mapping[str, float],
        inflation: float,
        asked: np.ndarray,
        confidence: float,
        of: str,
    ) -> None:
        self.curve, self.noise, self.fitted, self.of = curve, noise, list(fitted.values()), of
        self.bend = bend_of(curve, noise, confidence)
        self.weights = [weights[name] for name in fitted]
        tail = (1 - confidence) / 2
        self.levels = (0.5, tail, 1 - tail)
        # Both models fall, so that errors beyond the data stay below the upper end at the largest size.
        beyond = NormalDist().inv_cdf(1 - tail) * float(noise.covariance[-1, -1]) ** 0.5
        self.highest = float(curve.expected[-1]) + beyond if noise.known else np.inf
        self.asked = asked
        self.scales = [
            inflation * np.array([deviance_scale(model, float(n)) for n in asked])
            for model in self.fitted
        ]
        last, half = float(curve.sizes[-1]), max(curve.sizes.size // 2, 3)
        self.today = float(self._mixture(last).quantiles((0.5,))[0])
        line = np.polyfit(
            np.log(curve.sizes[-half:]), np.log(np.maximum(curve.expected[-half:], 1e-300)), 1
        )
        self.slope = min(float(line[0]), 0.0)

    def __call__(self, size: float) -> Prediction:
        """Return the predicted error with its interval, as quantiles of the averaged confidence."""
        mixture = self._mixture(size)
        median, lower, upper = mixture.quantiles(self.levels)
        if self.of == "measurement":
            misfit = float(np.dot(self.weights, [model.misfit for model in self.fitted]))
            _, lower, upper = mixture.measurement_quantiles(self.levels, self.noise, misfit)
        if self.bend is not None:
            lower = min(lower, self.bend.error_at(size))
        if size > self.curve.sizes[-1]:
            median = self._centre(size, float(median), mixture)
        if size >= self.curve.sizes[-1] and self.of == "mean":
            median, upper = min(median, self.highest), min(upper, self.highest)
        if self.curve.tested is not None:
            median, upper = min(median, 1.0), min(upper, 1.0)
        return Prediction(size, float(median), float(min(lower, median)), float(max(upper, median)))

    def _mixture(self, size: float) -> ConfidenceMixture:
        profiles = [Profile(model, self.curve.expected, size) for model in self.fitted]
        # The calibration is computed at the requested sizes and interpolated between these sizes.
        scales = [
            float(np.interp(np.log(size), np.log(self.asked), calibrated))
            for calibrated in self.scales
        ]
        return ConfidenceMixture(profiles, self.weights, scales)

    def _centre(self, size: float, median: float, mixture: ConfidenceMixture) -> float:
        """Move the median beyond the data towards what was measured."""
        # A constant plus falling powers of n is convex on log-log axes, so beyond the data it falls at
        # most like the power law through the last half of the sizes, unless features emerge late.
        if self.bend is None:
            median = max(median, self.today * (size / self.curve.sizes[-1]) ** self.slope)
        # With confidence H that the error falls below today's e_k, the centre is m^(1 - w) e_k^w,
        # w = 2 (1 - H): a flat curve is as plausible as a falling one if H = 1/2. On 101 simulated
        # curves, this lowers the error where a floor is near, and costs less where there is none.
        weight = min(2 * (1 - mixture.below(self.today)), 1.0)
        return median ** (1 - weight) * max(median, self.today) ** weight

    def predictions(self, sizes: Sequence[float] | np.ndarray) -> tuple[Prediction, ...]:
        """Return predictions at increasing sizes; beyond the data, errors do not rise."""
        found = [self(float(n)) for n in sizes]
        for place in range(1, len(found)):
            before, here = found[place - 1 : place + 1]
            if before.samples >= self.curve.sizes[-1]:
                ends = (
                    min(getattr(one, part) for one in (before, here))
                    for part in ("mean", "lower", "upper")
                )
                found[place] = Prediction(here.samples, *ends)
        return tuple(found)

    def band(self, points: int) -> tuple[Prediction, ...]:
        """Return predictions from the smallest measured to the largest requested size."""
        last = max(float(self.asked[-1]), float(self.curve.sizes[-1]))
        return self.predictions(np.geomspace(self.curve.sizes[0], last, points))

    def floor(self) -> Estimate:
        """Return the error that remains for any number of samples, with its interval."""
        median, lower, upper = self._mixture(np.inf).quantiles(self.levels)
        upper = min(upper, self.highest)
        # Errors below a thousandth of today's count as none.
        lower, median = (0.0 if end < 1e-3 * self.today else end for end in (lower, median))
        return Estimate(float(min(median, upper)), float(lower), float(upper))


def _families(curve: LearningCurve) -> tuple[Family, ...]:
    # With the reference size in the middle of the data, amplitude and exponent are nearly uncorrelated.
    return (PowerLaw(float(np.sqrt(curve.sizes[0] * curve.sizes[-1]))), Cascade())


def _asked_sizes(
    curve: LearningCurve, at: Sequence[float], factors: Sequence[float] | None
) -> np.ndarray:
    if factors is None:
        factors = () if len(at) else (2.0, 4.0)
    for name, values in (("at", at), ("factors", factors)):
        for value in values:
            if not (np.isfinite(value) and value > 0):
                raise InvalidParameter(f"{name} holds {value}; allowed: finite numbers above 0.")
    if not len(at) and not len(factors):
        raise InvalidParameter(
            "`at` and `factors` are both empty; give at least one size or factor."
        )
    sizes = [*map(float, at), *(float(curve.sizes[-1]) * float(factor) for factor in factors)]
    for size in sizes:
        if not 1 / LARGEST <= size <= LARGEST:
            raise InvalidParameter(
                f"the requested sample size is {size:g}; allowed: {1 / LARGEST:g} to {LARGEST:g}."
            )
    return np.unique(sizes)


def _check(
    confidence: float, of: str, error: float | None, resamples: int, seed: int, band_points: int
) -> None:
    if error is not None and not 0 < error < np.inf:
        raise InvalidParameter(f"error is {error}; allowed: finite numbers above 0.")
    if not 0.5 <= confidence <= 0.99:
        raise InvalidParameter(f"confidence is {confidence}; allowed: 0.5 to 0.99.")
    if of not in ("mean", "measurement"):
        raise InvalidParameter(unknown_choice("of", of, ("mean", "measurement")))
    if not 100 <= resamples <= 100_000:
        raise InvalidParameter(f"resamples is {resamples}; allowed: 100 to 100,000.")
    check_integer("seed", seed, 0)
    if not 0 <= band_points <= 1000:
        raise InvalidParameter(f"band_points is {band_points}; allowed: 0 to 1000.")


def _diagnostics(curve: LearningCurve, noise: ReplicateNoise) -> Diagnostics:
    known, last = noise.known, float(curve.means[-1])
    errors = np.sqrt(np.diag(noise.covariance)) if known else np.zeros(curve.sizes.size)
    return Diagnostics(
        tuple(curve.sizes.tolist()),
        tuple(curve.means.tolist()),
        tuple(errors.tolist()),
        tuple(curve.counts.tolist()),
        noise=float(np.sqrt(noise.variances[-1])) / last if known and last > 0 else None,
        noise_exponent=noise.exponent if known else None,
        replicate_correlation=noise.correlation,
    )


def _scores(
    fitted: Mapping[str, Fitted], held_out: Mapping[str, HeldOut], weights: Mapping[str, float]
) -> dict[str, Score]:
    return {
        name: Score(
            held_out[name].score,
            weights[name],
            None if np.isnan(model.chi_square) else model.chi_square,
            int(model.freedom),
            model.misfit,
            tuple(held_out[name].predicted.tolist()),
        )
        for name, model in fitted.items()
    }


def _estimates(fitted: Fitted, confidence: float) -> dict[str, Estimate]:
    """Return the maximum-likelihood value and bootstrap percentiles for each parameter of a model."""
    best, draws = _quoted(fitted, fitted.best), _quoted(fitted, fitted.draws)
    tail = (1 - confidence) / 2
    estimates = {}
    for name, values in draws.items():
        value = float(best[name][0])
        ends = (tail, 1 - tail)
        if name == "features":  # an integer, so that the ends of its interval are drawn values
            lower, upper = np.quantile(values, ends, method="inverted_cdf")
        else:
            lower, upper = np.quantile(values, ends)
        # The interval is extended to include the estimate, which draws at a boundary may miss.
        estimates[name] = Estimate(value, min(float(lower), value), max(float(upper), value))
    return estimates


def _quoted(fitted: Fitted, fits: Fits) -> dict[str, np.ndarray]:
    """Convert a model's parameters to the units of the output."""
    family = fitted.grid.family
    parameters = fitted.grid.parameters[fits.rows]
    amplitude = fits.amplitude
    if isinstance(family, PowerLaw):
        # A (n / n_0)^-b = A n_0^b n^-b
        amplitude = amplitude * np.exp(parameters[:, 0] * np.log(family.reference))
    columns = dict(zip(family.parameters, parameters.T, strict=True))
    return {"offset": fits.offset, "amplitude": amplitude, **columns}
