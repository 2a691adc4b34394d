"""What a forecast says: predictions and parameters with intervals, scores, a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from solvable.plots.displayed import Shown

ModelName = Literal["power law", "cascade"]


@dataclass(frozen=True)
class Estimate:
    """Maximum likelihood of a parameter, with its interval by parametric bootstrap."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Prediction:
    """Forecast of the mean error at one sample size, with the uncertainty of parameters and model."""

    samples: float
    mean: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Score:
    """How a model fits, and how it predicted the largest sizes from the smaller ones.

    Attributes
    ----------
    log_predictive : float
        Logarithm of the predictive density of the held-out errors, up to a constant that both models
        share; higher is better.
    weight : float
        Share of the model in the forecast, 0 to 1.
    chi_square : float or None
        Weighted squares of the fit to all sizes by the noise between replicates alone; None if no
        size has two replicates.
    freedom : int
        Degrees of freedom left by the fit.
    misfit : float
        Relative deviation of the means from the model beyond the noise between replicates.
    held_out_predicted : tuple of float
        What the model, fitted to the smaller sizes, said of the largest.
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

    sizes: tuple[float, ...]  # distinct sample sizes
    means: tuple[float, ...]
    # from the replicates, pooled over sizes; 0 if there are none
    standard_errors: tuple[float, ...]
    replicates: tuple[int, ...]  # errors per size
    held_out: tuple[float, ...] = ()  # sizes that decided between the models
    noise: float | None = None  # relative standard deviation of one error at the largest size
    noise_exponent: float | None = None  # q in variance ~ error^q
    replicate_correlation: float = 0.0  # between errors of one replicate at two sizes
    inflation: float = 1.0  # factor by which held-out errors widened the intervals
    resamples: int = 0  # bootstrap curves per model
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Forecast(Shown, view="solvable.forecast.view"):
    """A learning curve extrapolated, or why it was not.

    Attributes
    ----------
    model : {"power law", "cascade"} or None
        The model that predicted the largest sizes better; None if the forecast was refused.
    distinguishable : bool
        Whether the held-out sizes tell the two models apart.
    verdict : str
        One or two sentences: which model, whether the data can tell, or why there is no forecast.
    refusal : str or None
        Why the curve is not extrapolated; None if it is.
    predictions : tuple of Prediction
        At the sizes asked for.
    band : tuple of Prediction
        From the smallest measured size to the largest asked for, to draw.
    parameters : mapping of str to (mapping of str to Estimate)
        By model, then by name; each model has ``offset`` and ``amplitude``, the power law
        ``exponent``, the cascade ``decay``, ``first_threshold`` and ``features``.
    scores : mapping of str to Score
        By model.
    confidence : float
        Of the intervals.
    of : {"mean", "measurement"}
        Whether intervals hold for the mean error over replicates or for one new measurement.
    diagnostics : Diagnostics
        What it rests on.
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

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dictionaries and lists, for JSON."""
        return asdict(self)
