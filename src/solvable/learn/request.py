"""Options of a learning run. The command line imports this module, so this module imports little."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from solvable.errors import InvalidParameter, unknown_choice

LEAST_ROWS = 20  # smallest number of rows with which an error on unseen rows is estimated

Metric: TypeAlias = Literal["accuracy", "balanced-accuracy", "auc", "log-loss", "r2", "mae"]
"""Measure of quality by which methods are chosen."""


class MetricKind(NamedTuple):
    """Properties of a metric."""

    title: str
    kind: str  # "classes" or "numbers"
    largest: bool  # True if larger values are better
    range: tuple[float, float]


METRICS: dict[str, MetricKind] = {
    "accuracy": MetricKind("accuracy", "classes", True, (0, 1)),
    "balanced-accuracy": MetricKind("balanced accuracy", "classes", True, (0, 1)),
    "auc": MetricKind("AUC", "classes", True, (0, 1)),
    "log-loss": MetricKind("log loss", "classes", False, (0, math.inf)),
    "r2": MetricKind("R²", "numbers", True, (-math.inf, 1)),
    "mae": MetricKind("mean absolute error", "numbers", False, (0, math.inf)),
}
"""Metrics by their names as options."""


@dataclass(frozen=True)
class Request:
    """Options of `solvable learn` other than the options for reading the data.

    Parameters
    ----------
    folds : int
        Number of folds of the data; each fold is predicted from the other folds.
    layers : int
        Number of filters, each above a random layer.
    rows : int
        Largest number of rows to learn from; a larger table is reduced to random rows.
    seed : int
        Seed of the folds and of the random layers.
    metric : str, optional
        Measure by which methods are chosen: accuracy, balanced-accuracy, auc, log-loss, r2, mae.
        [default: wrong predictions, or variance not explained]
    seconds : float, optional
        Time after which no further method is fitted. [default: no limit]
    error : float, optional
        Share of wrong predictions, or of variance not explained, for which the number of rows is wanted.

    Raises
    ------
    InvalidParameter
        If a value is out of range.

    Examples
    --------
    >>> Request(folds=1)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: folds is 1; allowed: whole numbers from 2 to 20.
    """

    folds: int = 5
    layers: int = 1
    rows: int = 20_000
    seed: int = 0
    metric: Metric | None = None
    seconds: float | None = None
    error: float | None = None

    def __post_init__(self) -> None:
        if self.metric is not None and self.metric not in METRICS:
            raise InvalidParameter(unknown_choice("metric", self.metric, tuple(METRICS)))
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise InvalidParameter(f"seconds is {self.seconds}; allowed: finite numbers above 0.")
        if self.error is not None and not 0 < self.error < 1:
            raise InvalidParameter(f"error is {self.error}; allowed: numbers between 0 and 1.")
        for name, least, most in (
            ("folds", 2, 20),
            ("layers", 1, 5),
            ("rows", LEAST_ROWS, None),
            ("seed", 0, None),
        ):
            value = getattr(self, name)
            if not least <= value <= (most or math.inf):
                allowed = f"from {least}" + (f" to {most}" if most else "")
                raise InvalidParameter(f"{name} is {value}; allowed: whole numbers {allowed}.")
