"""Results of learning from a data set: numbers with intervals, for reports and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.forecast.results import Needed
from solvable.learn.applied import Applied, applied, probability_columns
from solvable.learn.calibration import Reliability
from solvable.learn.importance import Explained
from solvable.learn.training_range import TrainingRange
from solvable.plots.displayed import Shown

Verdict: TypeAlias = Literal["better", "worse", "no difference"]
"""Comparison of a method's error with the learned features' error, at 5 % significance."""


@dataclass(frozen=True)
class MethodScore:
    """Error of one method on unseen rows."""

    key: str
    title: str
    meaning: str
    # share of wrong predictions, or mean squared error divided by the target's variance
    error: float | None
    lower: float | None  # ends of the 95 % interval of the error
    upper: float | None
    test_rows: int
    training_rows: int  # mean number of training rows over the method's fits
    seconds: float  # total duration of the method's fits
    # error minus the learned features' error on the same rows; interval with Holm's correction
    difference: float | None = None
    difference_lower: float | None = None
    difference_upper: float | None = None
    verdict: Verdict | None = None  # "no difference" where no method beats the constant
    beats_constant: bool = False  # True if clearly better than the constant, with Holm's correction
    remark: str = ""  # reason for a missing error, fewer rows or less tuning
    # The next three are given only if one class has more than 80 % of the rows; mean error over classes
    balanced_error: float | None = None
    auc: float | None = None  # area under the ROC curve, mean over folds; for two classes
    never: tuple[str, ...] = ()  # classes that the method predicts for no row
    # value of the metric that was asked for, and the ends of its 95 % interval
    metric: float | None = None
    metric_lower: float | None = None
    metric_upper: float | None = None
    # True for the model to use: the smallest error (or best metric), of two equal ones the simpler
    recommended: bool = False
    tied: bool = False  # True if not clearly worse than the recommended one, with Holm's correction
    phrase: str = ""  # name in sentences, such as "a Gaussian kernel" or "boosted trees"


@dataclass(frozen=True)
class ColumnShare:
    """Share of a column in a direction, and share of the direction's signal that needs the column."""

    column: str
    share: float  # share of the column from 0 to 1; the shares of all columns add up to 1
    # Share of the signal on unseen rows that is lost when the column is shuffled there, and the
    # share's standard error; None if there is no signal.
    lost: float | None = None
    lost_error: float | None = None
    named: bool = False  # True if the loss is significant, corrected for all columns and directions


@dataclass(frozen=True)
class Direction:
    """Direction of the features that a filter keeps."""

    number: int  # rank by strength, from 1
    strength: float  # eigenvalue, positive if the target grows with the squared coordinate
    # Strength divided by its null value, which is measured with shuffled labels after removal of the
    # stronger directions; None if not tested.
    ratio: float | None
    # Number of rows n at which the strength equals the null, which falls as n^(-1/2).
    emergence_rows: float | None
    residual_dimension: float  # effective dimension of the features without the stronger directions
    # Estimate of emergence_rows from the residual dimension (FilterReport); too low if weak.
    emergence_rows_by_dimension: float
    columns: tuple[
        ColumnShare, ...
    ] = ()  # columns by share, the largest first; empty if not attributed
    straight: float | None = None  # share of the direction's variance linear in the columns
    # Squared correlation with the most correlated direction of a fold's model on the fold's test
    # rows, median over folds.
    again: float | None = None
    linear: bool = False  # True for a first moment, the mean of the features weighted by the target
    # Signal on unseen rows divided by the signal on training rows, the ratio's standard error, and
    # True if the ratio is significant, corrected for all directions shown; None if not measured.
    unseen: float | None = None
    unseen_error: float | None = None
    confirmed: bool | None = None


@dataclass(frozen=True)
class SignalOfClass:
    """Directions that separate one class from the other classes."""

    label: str  # class; the target itself if it has a single signal
    tested: tuple[int, ...]  # ranks of the directions that were tested; rank 1 is the first moment
    ratios: tuple[float, ...]  # strength of each tested direction divided by its null
    directions: int  # number of directions with signal, interpolated between tested ranks
    emergence_rows: float | None  # number of rows at which the strongest direction equals its null

    @property
    def strongest(self) -> float | None:
        """Larger ratio of the first and the strongest second moment; None if none was tested."""
        return max(self.ratios[:2], default=None)


@dataclass(frozen=True)
class LayerFound:
    """Directions that one filter found in all rows."""

    number: int  # number of the layer, from 1
    directions: int  # number of directions with signal in these rows
    directions_in_folds: tuple[
        int, ...
    ]  # number of directions with signal in each fold's training rows
    kept: int  # number of directions that the model uses, at least one
    threshold: float  # ratio to the null above which a direction has signal
    strongest: tuple[Direction, ...]  # selection of kept directions, sparser where weaker
    signals: tuple[SignalOfClass, ...]  # one entry per class, or a single entry for one signal
    columns: tuple[ColumnShare, ...] = ()  # shares in all directions, weighted by strength


@dataclass(frozen=True)
class CurvePoint:
    """Error of a method at one number of training rows."""

    rows: int  # number of training rows
    errors: tuple[float, ...]  # error of each fold
    # number of directions with signal in each fold's first filter; empty for methods without directions
    directions: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        """Mean error over folds."""
        return float(np.mean(self.errors))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean error over folds."""
        return float(np.std(self.errors, ddof=1) / math.sqrt(len(self.errors)))


@dataclass(frozen=True)
class Roc:
    """ROC curve on held-out rows, mean over folds, for two classes."""

    false_positives: tuple[
        float, ...
    ]  # shares of the first class's rows above a limit of the output
    true_positives: tuple[float, ...]  # the same of the second class
    area: float  # mean over folds, with its 95 % interval
    lower: float
    upper: float


@dataclass(frozen=True)
class Expected:
    """Error that is expected with more rows."""

    factor: float  # number of rows divided by the rows of the data set
    rows: int
    error: float  # forecast error; `lower` and `upper` are its 90 % interval
    lower: float
    upper: float


@dataclass(frozen=True)
class Outlook:
    """Measured learning curve of one method, and its error expected with more rows."""

    curve: tuple[CurvePoint, ...]
    # forecasts at 1, 2 and 4 times the rows; empty if there is no forecast
    expected: tuple[Expected, ...] = ()
    band: tuple[
        tuple[float, float, float, float], ...
    ] = ()  # points (rows, error, lower, upper) to draw
    confidence: float = 0.9
    verdict: str = ""  # sentence about the fitted laws, or the reason for a missing forecast
    notes: tuple[str, ...] = ()
    method: str = ""  # key of the method
    floor: tuple[float, float, float] | None = (
        None  # error for any number of rows, with its interval
    )
    unclear: bool = False  # True if the fits allow that the error does not fall with twice the rows
    needed: Needed | None = None  # rows for the error that was asked for


@dataclass(frozen=True, repr=False)
class Learned(Shown, view="solvable.learn.answer"):
    """Result of `solvable learn`.

    Parameters
    ----------
    name : str
        Name of the data set.
    n_samples, n_columns : int
        Numbers of rows and columns after preparation.
    kind : {"classification", "binary", "regression"}
        Kind of the target.
    class_labels : tuple of str
        Names of the classes; empty in regression.
    target : str
        Name of the predicted column.
    target_deviation : float or None
        Standard deviation of the target in regression.
    image_shape : tuple of int or None
        Shape of each image, if rows are images.
    treatments : tuple of str
        Sentences about the preparation of the data.
    network : str
        Description of the network.
    protocol : str
        Description of how errors were measured.
    folds, seed, layers : int
        Options of the run.
    methods : tuple of MethodScore
        Errors of the methods, learned features first.
    found : tuple of LayerFound
        Directions of each filter.
    outlook : Outlook
        Learning curve and forecast.
    fingerprint : str
        Digest of the data and of the options.
    data_fingerprint : str
        Digest of the inputs.
    seconds : float
        Duration of the run.
    versions : mapping of str to str
        Versions of the libraries.
    model : object
        Recommended model, fitted to all rows; not part of the JSON.
    features : object
        Network of the learned features, fitted to all rows; not part of the JSON.
    pictures : ndarray or None
        Pictures of the first filter's strongest directions, shape (k, height, width).
    predictions : ndarray
        Prediction of every tested row by the recommended method, fitted without that row.
    truth : ndarray
        Number or class code of every tested row.
    rows, row_folds : ndarray of int
        Indices of the tested rows in the data set, and the fold of each tested row.
    preparation : Preparation or None
        Preparation of the columns for new rows; not part of the JSON.
    metric : str
        Name of the metric that chose the recommended method; empty for the error.
    reliability : Reliability or None
        Quality of the recommended method's calibrated probabilities on held-out rows, with the
        calibration; None for numbers.
    interval : tuple of float or None
        Ends of the 95 % interval of the error of `model` on new rows. It is wider than in `methods`,
        because it includes the choice of the method, the training rows that folds share, and for the
        lower end the rows that each fold leaves out. It is from zero to infinity (None in JSON) if the
        squared errors seem to have no finite mean.
    roc : Roc or None
        ROC curve of the recommended method, for two classes.
    test : dict or None
        Error of the model fitted to all rows, on the rows of another file.
    range : TrainingRange or None
        Range of the training rows; not part of the JSON.
    explained : Explained
        Columns that the recommended model uses: importance on held-out rows, effects, interactions.
    in_time : bool
        True if rows were predicted from earlier rows.
    warnings : tuple of str
        Reasons why the measured error may be too small, as sentences without full stop.
    """

    name: str
    n_samples: int
    n_columns: int
    kind: str
    class_labels: tuple[str, ...]
    target: str
    target_deviation: float | None
    image_shape: tuple[int, ...] | None
    treatments: tuple[str, ...]
    network: str
    protocol: str
    folds: int
    seed: int
    layers: int
    methods: tuple[MethodScore, ...]
    found: tuple[LayerFound, ...]
    outlook: Outlook
    fingerprint: str = ""
    data_fingerprint: str = ""
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    model: Any = field(default=None, repr=False)
    preparation: Any = field(default=None, repr=False)
    pictures: np.ndarray | None = field(default=None, repr=False)
    predictions: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)
    truth: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int), repr=False)
    row_folds: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int), repr=False)
    warnings: tuple[str, ...] = ()
    metric: str = ""
    reliability: Reliability | None = None
    roc: Roc | None = None
    test: dict[str, Any] | None = None
    features: Any = field(default=None, repr=False)
    interval: tuple[float, float] | None = None
    range: TrainingRange | None = field(default=None, repr=False)
    in_time: bool = False
    explained: Explained = field(default_factory=Explained)

    @property
    def is_regression(self) -> bool:
        """Return True if the target is a number."""
        return self.kind == "regression"

    @property
    def learned(self) -> MethodScore:
        """Return the score of the learned features."""
        return self.methods[0]

    @property
    def chosen(self) -> MethodScore:
        """Return the score of the recommended method, whose fit to all rows is `model`."""
        return next((score for score in self.methods if score.recommended), self.methods[-1])

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Return the ends of the 95 % interval of the recommended model's error."""
        return self.interval or (self.chosen.lower, self.chosen.upper)

    @property
    def notes(self) -> dict[str, Any]:
        """Return the data stored with the model: preparation of new rows and measured error."""
        score, deviation = self.chosen, self.target_deviation
        return {
            "preparation": self.preparation.to_dict(),
            # the same content for the same rows, wherever their file lies
            "name": Path(self.name).name or self.name,
            "method": score.key,
            "phrase": score.phrase,
            "rows": self.n_samples,
            "error": _plain([score.error, *self.ends]),
            "calibration": self.reliability and self.reliability.calibration.to_dict(),
            "variance": None if deviation is None else deviation**2,
            "data_fingerprint": self.data_fingerprint,
            "versions": dict(self.versions),
            "range": self.range and self.range.to_dict(),
            "times": self.in_time,
        }

    def applied(self, data: Any) -> Applied:
        """Return predictions of `model` for new rows, with their error if the target is known."""
        return applied(self.model, self.preparation, self.notes, data)

    def predict(self, data: Any) -> np.ndarray:
        """Return the predicted class or number of each row of new data, shape (n,).

        Parameters
        ----------
        data : path, str, data frame or array
            Data as for ``learn_features``; columns are matched by name.
        """
        return self.applied(data).predicted

    def predict_probabilities(self, data: Any) -> np.ndarray:
        """Return the calibrated probability of each class, shape (n, C), as in ``class_labels``.

        Parameters
        ----------
        data : path, str, data frame or array
            Data as for ``learn_features``; columns are matched by name.
        """
        return np.stack(list(probability_columns(self.applied(data)).values()), axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON except the model and arrays; numbers not finite become None."""
        left_out = (
            "model",
            "features",
            "preparation",
            "pictures",
            "predictions",
            "truth",
            "rows",
            "row_folds",
            "range",
        )
        names = [item.name for item in fields(self) if item.name not in left_out]
        return {name: _plain(getattr(self, name)) for name in names}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
