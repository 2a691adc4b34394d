"""Predictions of a system, kept in memory for settings that a page asks for again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from solvable.frame.curves import predict_each, predictions_at
from solvable.frame.points import Metrics
from solvable.frame.system import System
from solvable.study.parameters import canonical_json

MOST_PREDICTIONS = 4_000
"""Largest number of kept predictions of one system; the oldest are dropped first."""


class Remembered:
    """Predictions of one system at single settings and along its axis, each computed once."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._kept: OrderedDict[tuple[str, float], Metrics | Exception] = OrderedDict()

    def predict(self, setting: Any) -> Metrics:
        """Return the prediction at a setting; a refusal is kept as well."""
        key = canonical_json(setting.model_dump(mode="json"))
        return self._known((key, 0.0), partial(self.system.predict, setting))

    def along(self, setting: Any, coordinates: np.ndarray) -> Sequence[Metrics]:
        """Return predictions at coordinates on the axis.

        Missing ones are computed in one call or, if it raises, one by one.
        """
        axis, function = self.system.axis, self.system.along
        assert axis is not None
        if not self.system.draws_whole_lines:
            return predict_each(self.predict, axis)(setting, coordinates)
        line = canonical_json({**setting.model_dump(mode="json"), axis.parameter: "along"})
        keys = [(line, float(x)) for x in coordinates]
        missing = [key[1] for key in keys if key not in self._kept]
        if len(missing) > 1:
            try:
                computed = function(setting, np.array(missing))
            except Exception:  # a system may raise any exception; each place is then tried alone
                computed = ()
            for x, metrics in zip(missing, computed, strict=False):
                self._keep((line, x), metrics)

        def at(x: float) -> Metrics:
            return function(setting, np.array([x]))[0]

        return predictions_at(
            lambda key: self._known(key, partial(at, key[1])),
            [partial(tuple, key) for key in keys],
        )

    def _known(self, key: tuple[str, float], compute: Callable[[], Metrics]) -> Metrics:
        """Return a kept value, or compute and keep it; an exception is kept and raised again."""
        found = self._kept.get(key)
        if found is None:
            try:
                found = compute()
            except Exception as error:
                found = error.with_traceback(None)  # frames would keep large arrays alive
            self._keep(key, found)
        else:
            self._kept.move_to_end(key)
        if isinstance(found, Exception):
            raise found
        return found

    def _keep(self, key: tuple[str, float], value: Metrics | Exception) -> None:
        self._kept[key] = value
        while len(self._kept) > MOST_PREDICTIONS:
            self._kept.popitem(last=False)


@lru_cache(maxsize=8)
def remembered(system: System) -> Remembered:
    """Return the kept predictions of a system."""
    return Remembered(system)
