"""Records of one setting of the parameters, with the prediction at that setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from solvable.errors import InvalidData, InvalidParameter

Metrics = dict[str, float | list[float | None] | str | None]
"""Named results of a replicate or a prediction: numbers, lists, words (such as the name of a phase),
or None where not measured."""

NO_PREDICTION = "no prediction"
"""Key of a prediction that holds the reason why the prediction, or a part of it, is missing."""

EVERY_METRIC = "*"
"""Entry of the judged metrics of a point that stands for all metrics."""

RAISED = "error: "
"""Beginning of the reason if `predict` raised an exception other than a refusal."""


def raised_prediction(line: str) -> Metrics:
    """Return a prediction that holds only the exception that `predict` raised."""
    return {NO_PREDICTION: f"{RAISED}{line}"}


def has_raised(prediction: Metrics) -> bool:
    """Return True if `predict` raised an exception other than a refusal."""
    return str(prediction.get(NO_PREDICTION) or "").startswith(RAISED)


def predicted_or_refused(predict: Callable[[Any], Metrics], parameters: Any) -> Metrics:
    """Return the prediction, or the reason why there is none at these parameters."""
    try:
        return predict(parameters)
    except InvalidParameter as error:
        return {NO_PREDICTION: " ".join(str(error).split())}


def listed(values: Sequence[float] | np.ndarray) -> list[float | None]:
    """Convert a metric to plain numbers, with None for infinity and NaN."""
    return [float(value) if np.isfinite(value) else None for value in values]


@dataclass(frozen=True)
class Point:
    """All replicates of a study at one setting of the parameters, with the prediction there."""

    parameters: Mapping[str, Any]
    """Every parameter of the system, by name."""
    metrics: Sequence[Metrics]
    """One mapping per replicate, as :meth:`System.measure` returned it; none for a setting that was
    only predicted."""
    prediction: Metrics
    """Result of :meth:`System.predict`."""
    setting: Any = None
    """The parameters as the system's own model; :meth:`System.verdicts` and :meth:`System.figures` fill
    it in."""
    other: Point | None = None
    """The point that a claim about pairs compares it with."""
    judged: frozenset[str] | None = None
    """Metrics that some claim judges at this point; None if unknown."""
    former: bool = False
    """True if an earlier run measured the records. Metrics and predictions that they lack are then NaN;
    else such a name is a mistake in the code of a claim or figure, which raises."""

    def judges(self, names: Iterable[str]) -> bool:
        """Return True if a claim judges one of these metrics here, or if claims are unknown."""
        return self.judged is None or not self.judged.isdisjoint((*names, EVERY_METRIC))

    @property
    def refusal(self) -> str:
        """Reason why a prediction or a part of it is missing; empty if nothing is missing."""
        return str(self.prediction.get(NO_PREDICTION) or "")

    @property
    def refused(self) -> bool:
        """True if nothing is predicted at this point."""
        return bool(self.refusal) and len(self.prediction) == 1

    @property
    def replicates(self) -> int:
        """Number of replicates."""
        return len(self.metrics)

    def values(self, name: str) -> np.ndarray:
        """Measured values, shape (replicates,) or (replicates, length); None becomes NaN.

        None may stand for a whole list if another replicate or the prediction is a list. Words raise
        :class:`~solvable.errors.InvalidData`.
        """
        column = [metrics.get(name) if self.former else metrics[name] for metrics in self.metrics]
        if column and all(type(value) is float for value in column):  # most metrics
            return np.array(column)
        gap = self._gap(name)
        if not self.metrics:  # a setting that was predicted and not measured
            return np.empty((0, *gap.shape))
        rows = [_numbers(name, value, gap) for value in column]
        if len({row.shape for row in rows}) > 1:
            sizes = ", ".join(str(row.size) for row in rows)
            raise InvalidData(
                f"metric {name!r} has {sizes} entries in the replicates of a point; allowed: as many "
                "in each. Fill a list with None."
            )
        return np.array(rows)

    def mean(self, name: str) -> np.ndarray:
        """Mean over replicates, shape () or (length,); NaN without replicates."""
        return self.values(name).mean(axis=0) if self.metrics else self._gap(name)

    def standard_error(self, name: str) -> np.ndarray:
        """Standard error of the mean; NaN with fewer than two replicates."""
        values = self.values(name)
        if len(values) < 2:
            return np.full(values.shape[1:], np.nan)
        return values.std(axis=0, ddof=1) / np.sqrt(len(values))

    def predicted(self, name: str) -> np.ndarray:
        """Predicted value, shape () or (length,); None becomes NaN, words raise as in `values`.

        None may stand for a whole list if a replicate has measured a list.
        """
        if self.refused:
            return np.array(np.nan)
        if name not in self.prediction and self.former:
            return self._gap(name)
        if name not in self.prediction:
            raise InvalidParameter(
                f"the prediction {name!r} is used, which predict does not return; allowed: "
                f"{', '.join(self.prediction)}. Correct the claim or the figure."
            )
        return _numbers(name, self.prediction[name], self._gap(name))

    def _gap(self, name: str) -> np.ndarray:
        """Return NaN in the shape of the first list among replicates and prediction."""
        known = (metrics.get(name) for metrics in (*self.metrics, self.prediction))
        size = next((len(one) for one in known if isinstance(one, list)), None)
        return np.full(() if size is None else (size,), np.nan)


@dataclass(frozen=True)
class Remembered(Point):
    """A point that computes each mean and each predicted value once."""

    known: dict[tuple[str, str], np.ndarray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def mean(self, name: str) -> np.ndarray:
        """Mean over replicates, as in :class:`Point`."""
        if ("mean", name) not in self.known:
            self.known["mean", name] = super().mean(name)
        return self.known["mean", name].copy()

    def predicted(self, name: str) -> np.ndarray:
        """Predicted value, as in :class:`Point`."""
        if ("predicted", name) not in self.known:
            self.known["predicted", name] = super().predicted(name)
        return self.known["predicted", name].copy()


def remembered(point: Point) -> Point:
    """Return a point with the same records that computes each number once."""
    return Remembered(**{one.name: getattr(point, one.name) for one in fields(Point)})


def paired(points: Sequence[Point], parameter: str) -> list[Point]:
    """Set `other` of each point to the point with the next larger value of a parameter."""
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        key = tuple(str(v) for name, v in point.parameters.items() if name != parameter)
        groups.setdefault(key, []).append(point)
    ordered = [sorted(group, key=lambda p: p.parameters[parameter]) for group in groups.values()]
    return [replace(a, other=b) for group in ordered for a, b in pairwise(group)]


def _numbers(
    name: str, value: float | list[float | None] | str | None, gap: np.ndarray
) -> np.ndarray:
    if isinstance(value, str):  # NumPy would read words such as "nan" or "1" as numbers
        raise InvalidData(
            f"metric {name!r} is the word {value!r}; allowed: a number or a list. Read words from "
            "the point's `metrics` or `prediction`."
        )
    return gap.copy() if value is None else np.asarray(value, dtype=float)
