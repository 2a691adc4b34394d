"""What learning from a data set found: numbers with intervals, ready for a page or for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.plots.displayed import Shown

Verdict: TypeAlias = Literal["better", "worse", "no difference"]
"""How a method compares with the learned features, as far as these data can show."""


@dataclass(frozen=True)
class MethodScore:
    """One method on rows that it has not seen."""

    key: str
    title: str
    meaning: str
    # rate of wrong classes, or mean squared error over the variance of the target
    error: float | None
    lower: float | None  # 95 % interval
    upper: float | None
    test_rows: int
    training_rows: int  # of each fit, on average
    seconds: float  # of all its fits
    # its error less that of the learned features on the same rows; Holm over the table
    difference: float | None = None
    difference_lower: float | None = None
    difference_upper: float | None = None
    verdict: Verdict | None = None  # empty where no method differs from the constant
    beats_constant: bool = False  # all methods tested together
    remark: str = ""  # why it was not measured, or on fewer rows, or tuned less
    # mean over classes; this and the next two where one class has more than 80 % of the rows
    balanced_error: float | None = None
    auc: float | None = None  # mean over folds, for two classes
    never: tuple[str, ...] = ()  # classes that it predicts for no row
    # the simplest of those whose error is within one standard error of the smallest
    recommended: bool = False


@dataclass(frozen=True)
class ColumnShare:
    """How much of a direction is made of a column, and how much of what it tells rests on it."""

    column: str
    share: float  # of all columns together, from 0 to 1
    # Share of the signal on unseen rows that is lost where the column is shuffled there, with its
    # standard error; None if there is no signal.
    lost: float | None = None
    lost_error: float | None = None
    named: bool = False  # whether that is above zero, all columns and directions tested together


@dataclass(frozen=True)
class Direction:
    """One direction of the features."""

    number: int  # rank by strength, from 1
    strength: float  # its eigenvalue; the sign says which way the target goes
    # Strength over what meaningless labels give once the stronger directions are removed; None
    # where it was not tested.
    ratio: float | None
    # Rows at which a direction of this strength is expected to be found: those at which its null,
    # which falls as the root of their number, is as strong.
    emergence_rows: float | None
    residual_dimension: float  # effective dimension of what the stronger directions leave
    # The same from the residual dimension (FilterReport); a lower estimate for weak directions.
    emergence_rows_by_dimension: float
    columns: tuple[ColumnShare, ...] = ()  # the largest first; none where it was not attributed
    straight: float | None = None  # share of its variance that is a straight line in the columns
    # Median over folds of its squared correlation with the likest direction of the fold's model, on
    # the rows that the fold tests.
    again: float | None = None
    linear: bool = (
        False  # whether it is a mean of the features weighted by the target, a first moment
    )
    # Signal on unseen rows, that of training rows being 1, with its standard error, and whether it is
    # above zero, all directions shown tested together; None where it was not looked at.
    unseen: float | None = None
    unseen_error: float | None = None
    confirmed: bool | None = None


@dataclass(frozen=True)
class SignalOfClass:
    """How many directions tell one class from the others."""

    label: str  # the class; the target itself if there is one signal only
    tested: tuple[int, ...]  # ranks of the directions that were tested, from the straight line on
    ratios: tuple[float, ...]  # strength of each over its null
    directions: int  # above their null, interpolated between those tested
    emergence_rows: float | None  # rows at which the strongest is expected to be found

    @property
    def strongest(self) -> float | None:
        """The larger of the first two ratios, a straight line and what bends; None if none is known."""
        return max(self.ratios[:2], default=None)


@dataclass(frozen=True)
class LayerFound:
    """What one filter found in all rows."""

    number: int  # layer, from 1
    directions: int  # that carry signal at this sample size
    directions_in_folds: tuple[int, ...]  # the same from the training rows of each fold
    kept: int  # directions that the model keeps: at least one
    threshold: float  # ratio above which a direction counts
    strongest: tuple[Direction, ...]  # those kept, the weaker ones more sparsely
    signals: tuple[SignalOfClass, ...]  # per class, or one
    columns: tuple[ColumnShare, ...] = ()  # shares in all directions together, by their strength


@dataclass(frozen=True)
class CurvePoint:
    """The error of learned features with fewer rows."""

    rows: int  # training rows
    errors: tuple[float, ...]  # one per fold
    directions: tuple[int, ...]  # above their null in the first filter, one per fold

    @property
    def mean(self) -> float:
        """Mean over folds."""
        return float(np.mean(self.errors))

    @property
    def standard_error(self) -> float:
        """Of the mean over folds."""
        return float(np.std(self.errors, ddof=1) / math.sqrt(len(self.errors)))


@dataclass(frozen=True)
class Expected:
    """The error that is expected with more rows."""

    factor: float  # multiple of the rows of the data set
    rows: int
    error: float  # forecast with its 90 % interval
    lower: float
    upper: float


@dataclass(frozen=True)
class Outlook:
    """Expected error at more rows."""

    curve: tuple[CurvePoint, ...]
    # at 1, 2 and 4 times the rows; empty if the curve must not be extrapolated
    expected: tuple[Expected, ...] = ()
    band: tuple[tuple[float, float, float, float], ...] = ()  # (rows, error, lower, upper) to draw
    confidence: float = 0.9
    verdict: str = ""  # what the forecast rests on, or why there is none
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Learned(Shown, view="solvable.learn.view"):
    """All that `solvable learn` found.

    Parameters
    ----------
    name : str
        Data set.
    n_samples, n_columns : int
        Its size after preparation.
    kind : {"classification", "binary", "regression"}
        What is predicted.
    class_labels : tuple of str
        Classes; empty in regression.
    target : str
        Column that is predicted.
    target_deviation : float or None
        Standard deviation of the target in regression.
    image_shape : tuple of int or None
        If rows are images.
    treatments : tuple of str
        What was done to the data.
    network : str
        The network, in words.
    protocol : str
        How errors were measured, in words.
    folds, seed, layers : int
        As asked.
    methods : tuple of MethodScore
        Learned features first.
    found : tuple of LayerFound
        One per filter.
    outlook : Outlook
        Learning curve and forecast.
    fingerprint : str
        Of the data and of what was asked.
    data_fingerprint : str
        Of the data alone.
    seconds : float
        In all.
    versions : mapping of str to str
        Of the libraries.
    model : object
        Fitted to all rows; not part of the JSON.
    pictures : ndarray or None
        Images of the strongest directions of the first filter, shape (k, height, width).
    predictions : ndarray
        Of the learned features for every row tested, by the model that had not seen it.
    rows, row_folds : ndarray of int
        Rows of the data set that were tested, and the fold that tests each.
    warnings : tuple of str
        What may make the error look better than it is, as sentences without full stop.
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
        """Whether a number is predicted."""
        return self.kind == "regression"

    @property
    def learned(self) -> MethodScore:
        """Score of the learned features."""
        return self.methods[0]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the model and arrays, as JSON can hold it; what is not finite is None."""
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
