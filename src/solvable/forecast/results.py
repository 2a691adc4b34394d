"""Results of a forecast: predictions and parameters with intervals, scores, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from solvable.plots.displayed import Shown

ModelName = Literal["power law", "cascade"]


@dataclass(frozen=True)
class Estimate:
    """Maximum-likelihood estimate of a parameter, with its interval by parametric bootstrap."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Prediction:
    """Forecast error at one sample size, with the uncertainty of parameters and model."""

    samples: float
    mean: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Needed:
    """Number of samples at which an error is reached; None if it is reached at no number."""

    error: float
    samples: float | None
    fewest: float | None  # where the lower and the upper end of the interval reach the error
    most: float | None
    path: tuple[
        Prediction, ...
    ] = ()  # predictions at increasing sizes, between which they are read

    @classmethod
    def on(cls, path: Sequence[Prediction], error: float) -> Needed:
        """Return the sizes at which predictions at increasing sizes first reach an error."""
        found: list[float | None] = []
        for part in ("mean", "lower", "upper"):
            ends = np.array([getattr(one, part) for one in path])
            below = np.flatnonzero(ends <= error)
            place = int(below[0]) if below.size else None
            if not place:
                found.append(None if place is None else path[0].samples)
                continue
            # linear in the logarithms of size and error
            logs = np.log(np.maximum(ends[place - 1 : place + 1], 1e-300))
            share = (logs[0] - np.log(error)) / (logs[0] - logs[1])
            before, here = (one.samples for one in path[place - 1 : place + 1])
            found.append(float(before * (here / before) ** share))
        samples, fewest, most = found
        return cls(error, samples, fewest, most, tuple(path))


@dataclass(frozen=True)
class Score:
    """Quality of a model's fit, and of its prediction for the largest sizes from smaller sizes.

    Attributes
    ----------
    log_predictive : float
        Logarithm of the predictive density of the held-out errors, up to a constant that both models
        share; higher is better.
    weight : float
        Weight of the model in the forecast, 0 to 1.
    chi_square : float or None
        Sum of squares of the fit to all sizes, weighted by the noise between replicates; None if no
        size has two replicates.
    freedom : int
        Residual degrees of freedom of the fit.
    misfit : float
        Relative deviation of the means from the model beyond the noise between replicates.
    held_out_predicted : tuple of float
        Errors at the largest sizes predicted by the model fitted to the smaller sizes.
    """

    log_predictive: float
    weight: float
    chi_square: float | None
    freedom: int
    misfit: float
    held_out_predicted: tuple[float, ...]


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of the fits behind a forecast."""

    sizes: tuple[float, ...]  # number of distinct sample sizes
    means: tuple[float, ...]
    # degrees of freedom of the noise, from replicates at all sizes; 0 without replicates
    standard_errors: tuple[float, ...]
    replicates: tuple[int, ...]  # number of errors at each size
    held_out: tuple[
        float, ...
    ] = ()  # number of held-out sizes, whose prediction gives the weights of the models
    noise: float | None = None  # relative standard deviation of one error at the largest size
    noise_exponent: float | None = None  # exponent q in variance ~ error^q
    replicate_correlation: float = 0.0  # correlation between errors of one replicate at two sizes
    inflation: float = 1.0  # factor by which held-out errors widened the intervals
    resamples: int = 0  # number of bootstrap curves per model
    # probability that noise alone deviates this much from the better fit; None if not judged
    fit_chance: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Forecast(Shown, view="solvable.forecast.view"):
    """Forecast of a learning curve, or the reason for refusing one.

    Attributes
    ----------
    model : {"power law", "cascade"} or None
        The model that predicted the largest sizes better; None if the forecast was refused.
    distinguishable : bool
        True if the held-out sizes favour one model by odds of at least 20 to 1.
    verdict : str
        One or two sentences on the weights of the models, or the reason for giving no forecast.
    refusal : str or None
        Reason for not extrapolating the curve; None if there is a forecast.
    predictions : tuple of Prediction
        Predictions at the requested sizes.
    band : tuple of Prediction
        Predictions from the smallest measured to the largest requested size, for figures.
    parameters : mapping of str to (mapping of str to Estimate)
        Parameters by model, then by name. Each model has ``offset`` and ``amplitude``; the power law
        has ``exponent``, the cascade has ``decay``, ``first_threshold`` and ``features``.
    scores : mapping of str to Score
        Scores by model.
    confidence : float
        Confidence of the intervals.
    of : {"mean", "measurement"}
        Quantity that the intervals cover: the mean error over replicates, or one new measurement.
    diagnostics : Diagnostics
        Diagnostics of the data and the fits. ``fit_chance`` is the probability that noise alone
        deviates this much from the better fit; below 0.01, neither model fits. It is None without
        replicates, or if there are fewer than six sizes.
    today : float or None
        Error at the largest measured size by the fits.
    floor : Estimate or None
        Error that remains for any number of samples, with its interval.
    needed : Needed or None
        Number of samples for the error that was asked for.
    """

    model: ModelName | None
    distinguishable: bool
    verdict: str
    refusal: str | None
    confidence: float
    of: Literal["mean", "measurement"]
    diagnostics: Diagnostics
    predictions: tuple[Prediction, ...] = ()
    band: tuple[Prediction, ...] = ()
    parameters: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    scores: Mapping[str, Score] = field(default_factory=dict)
    today: float | None = None
    floor: Estimate | None = None
    needed: Needed | None = None

    @property
    def unclear(self) -> tuple[float, ...]:
        """Sizes beyond the data whose interval contains today's error."""
        if self.today is None:
            return ()
        last = self.diagnostics.sizes[-1]
        return tuple(
            one.samples
            for one in self.predictions
            if one.samples > last and one.lower <= self.today <= one.upper
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain dictionaries and lists, for JSON."""
        return asdict(self)
