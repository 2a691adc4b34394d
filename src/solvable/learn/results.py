"""Results of learning from a data set: numbers with intervals, for reports and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.plots.displayed import Shown

Verdict: TypeAlias = Literal["better", "worse", "no difference"]
"""Comparison of a method's error with that of the learned features, at 5 % significance."""


@dataclass(frozen=True)
class MethodScore:
    """Error of one method on unseen rows."""

    key: str
    title: str
    meaning: str
    # share of wrong classes, or mean squared error divided by the variance of the target
    error: float | None
    lower: float | None  # 95 % interval
    upper: float | None
    test_rows: int
    training_rows: int  # of each fit, on average
    seconds: float  # of all its fits
    # its error minus that of the learned features on the same rows; interval with Holm's correction
    difference: float | None = None
    difference_lower: float | None = None
    difference_upper: float | None = None
    verdict: Verdict | None = None  # "no difference" where no method beats the constant
    beats_constant: bool = False  # with Holm's correction for all methods
    remark: str = ""  # reason for a missing error, fewer rows or less tuning
    # mean over classes; given, as the next two, if one class has more than 80 % of the rows
    balanced_error: float | None = None
    auc: float | None = None  # mean over folds, for two classes
    never: tuple[str, ...] = ()  # classes that the method predicts for no row
    # True for the simplest method whose error is within one standard error of the smallest
    recommended: bool = False


@dataclass(frozen=True)
class ColumnShare:
    """Share of a column in a direction, and share of the direction's signal that rests on it."""

    column: str
    share: float  # from 0 to 1; the shares of all columns add up to 1
    # Share of the signal on unseen rows that is lost when the column is shuffled there, with its
    # standard error; None if there is no signal.
    lost: float | None = None
    lost_error: float | None = None
    named: bool = False  # True if the loss is significant, corrected for all columns and directions


@dataclass(frozen=True)
class Direction:
    """Direction of the features that a filter keeps."""

    number: int  # rank by strength, from 1
    strength: float  # eigenvalue; positive if the target grows with the squared coordinate
    # Strength divided by its null, the strength with shuffled labels once the stronger directions are
    # removed; None if not tested.
    ratio: float | None
    # Number of rows at which the null, which falls as the square root of the rows, is as strong.
    emergence_rows: float | None
    residual_dimension: float  # effective dimension of the features without the stronger directions
    # The same number from the residual dimension (FilterReport); too low for weak directions.
    emergence_rows_by_dimension: float
    columns: tuple[ColumnShare, ...] = ()  # the largest first; empty if not attributed
    straight: float | None = None  # share of its variance explained linearly by the columns
    # Median over folds of its squared correlation with the most correlated direction of the fold's
    # model, on the test rows of the fold.
    again: float | None = None
    linear: bool = False  # True for a first moment, the mean of the features weighted by the target
    # Signal on unseen rows divided by that on training rows, its standard error, and True if it is
    # significant, corrected for all directions shown; None if not measured.
    unseen: float | None = None
    unseen_error: float | None = None
    confirmed: bool | None = None


@dataclass(frozen=True)
class SignalOfClass:
    """Directions that separate one class from the others."""

    label: str  # class; the target itself if it has a single signal
    tested: tuple[int, ...]  # ranks of the directions that were tested; rank 1 is the first moment
    ratios: tuple[float, ...]  # strength of each divided by its null
    directions: int  # number above their null, interpolated between those tested
    emergence_rows: float | None  # number of rows at which the strongest is as strong as its null

    @property
    def strongest(self) -> float | None:
        """Larger ratio of the first two, a first and a second moment; None if none was tested."""
        return max(self.ratios[:2], default=None)


@dataclass(frozen=True)
class LayerFound:
    """Directions that one filter found in all rows."""

    number: int  # layer, from 1
    directions: int  # number of directions with signal in these rows
    directions_in_folds: tuple[int, ...]  # the same from the training rows of each fold
    kept: int  # directions that the model uses: at least one
    threshold: float  # ratio to the null above which a direction has signal
    strongest: tuple[Direction, ...]  # a selection of the kept ones, weaker ones more sparsely
    signals: tuple[SignalOfClass, ...]  # one per class, or a single one
    columns: tuple[ColumnShare, ...] = ()  # shares in all directions, weighted by their strength


@dataclass(frozen=True)
class CurvePoint:
    """Error of the learned features at one number of training rows."""

    rows: int  # training rows
    errors: tuple[float, ...]  # one per fold
    directions: tuple[int, ...]  # number above their null in the first filter, one per fold

    @property
    def mean(self) -> float:
        """Mean over folds."""
        return float(np.mean(self.errors))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over folds."""
        return float(np.std(self.errors, ddof=1) / math.sqrt(len(self.errors)))


@dataclass(frozen=True)
class Expected:
    """Error that is expected with more rows."""

    factor: float  # multiple of the rows of the data set
    rows: int
    error: float  # forecast with its 90 % interval
    lower: float
    upper: float


@dataclass(frozen=True)
class Outlook:
    """Expected error at more rows."""

    curve: tuple[CurvePoint, ...]
    # at 1, 2 and 4 times the rows; empty if there is no forecast
    expected: tuple[Expected, ...] = ()
    band: tuple[tuple[float, float, float, float], ...] = ()  # (rows, error, lower, upper) to draw
    confidence: float = 0.9
    verdict: str = ""  # sentence on the fitted laws, or the reason for giving no forecast
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Learned(Shown, view="solvable.learn.view"):
    """Result of `solvable learn`.

    Parameters
    ----------
    name : str
        Data set.
    n_samples, n_columns : int
        Rows and columns after preparation.
    kind : {"classification", "binary", "regression"}
        Kind of the target.
    class_labels : tuple of str
        Classes; empty in regression.
    target : str
        Column that is predicted.
    target_deviation : float or None
        Standard deviation of the target in regression.
    image_shape : tuple of int or None
        Shape of an image, if rows are images.
    treatments : tuple of str
        Sentences on the preparation of the data.
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
        Model fitted to all rows; not part of the JSON.
    pictures : ndarray or None
        Images of the strongest directions of the first filter, shape (k, height, width).
    predictions : ndarray
        Predictions of the learned features for every tested row, by a model that had not seen it.
    rows, row_folds : ndarray of int
        Rows of the data set that were tested, and the fold of each.
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
    pictures: np.ndarray | None = field(default=None, repr=False)
    predictions: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int), repr=False)
    row_folds: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int), repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def is_regression(self) -> bool:
        """Return True if a number is predicted."""
        return self.kind == "regression"

    @property
    def learned(self) -> MethodScore:
        """Return the score of the learned features."""
        return self.methods[0]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the model and arrays for JSON; numbers that are not finite are None."""
        left_out = ("model", "pictures", "predictions", "rows", "row_folds")
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
