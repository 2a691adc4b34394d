"""Predictions of a system, kept in memory for settings that a page asks for again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from solvable.frame.curves import predict_each
from solvable.frame.points import Metrics
from solvable.frame.system import System
from solvable.study.parameters import canonical_json

MOST_PREDICTIONS = 4_000
"""Largest number of kept predictions of all systems; the oldest are dropped first."""


class Remembered:
    """Predictions of one system at single settings and along its axis, each computed once."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._kept: OrderedDict[tuple[str, float], Metrics | Exception] = OrderedDict()
        self._lock = threading.Lock()

    def predict(self, setting: Any) -> Metrics:
        """Return the prediction at a setting; a refusal is kept as well."""
        key = canonical_json(setting.model_dump(mode="json"))
        return self._known((key, 0.0), partial(self.system.predict, setting))

    def along(self, setting: Any, coordinates: np.ndarray) -> Sequence[Metrics]:
        """Return predictions at coordinates on the axis."""
        axis = self.system.axis
        assert axis is not None
        if not self.system.draws_whole_lines:
            return predict_each(self.predict, axis)(setting, coordinates)
        fields = setting.model_dump(mode="json")
        line = canonical_json({**fields, axis.parameter: "along"})

        def at(x: float) -> Metrics:
            return self.system.along(setting, np.array([x]))[0]

        return [self._known((line, float(x)), partial(at, float(x))) for x in coordinates]

    def _known(self, key: tuple[str, float], compute: Callable[[], Metrics]) -> Metrics:
        """Return a kept value, or compute and keep it; an exception is kept and raised again."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is None:
            try:
                found = compute()
            except Exception as error:
                found = error.with_traceback(None)  # frames would keep large arrays alive
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > MOST_PREDICTIONS:
                    self._kept.popitem(last=False)
        if isinstance(found, Exception):
            raise found
        return found


_SYSTEMS: dict[int, Remembered] = {}


def remembered(system: System) -> Remembered:
    """Return the kept predictions of a system."""
    known = _SYSTEMS.get(id(system))
    if known is None or known.system is not system:
        known = _SYSTEMS[id(system)] = Remembered(system)
    return known
