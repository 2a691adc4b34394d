"""Predictions of a system, kept in memory for settings that a page asks for again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any

import numpy as np

from solvable.explore.interruption import Unwanted
from solvable.frame.curves import predict_each, predictions_at
from solvable.frame.points import Metrics
from solvable.frame.system import System
from solvable.study.parameters import canonical_json

MOST_PREDICTIONS = 4_000
"""Largest number of kept predictions of one system; the oldest are dropped first."""

WANTED: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=lambda: True)
"""Returns False once nobody waits for the lines of this thread any more."""


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
        return self._line("along", self.system.along, setting, coordinates)

    def preview(self, setting: Any, coordinates: np.ndarray) -> Sequence[Metrics]:
        """Return fast predictions of less accuracy at coordinates on the axis."""
        function = self.system.preview
        assert function is not None
        return self._line("preview", function, setting, coordinates)

    def preview_at(self, setting: Any) -> Metrics:
        """Return the fast prediction at one setting; raises if theory refuses the setting."""
        axis, function = self.system.axis, self.system.preview
        assert axis is not None
        assert function is not None
        x = float(axis.value(setting) if axis.value else getattr(setting, axis.parameter))
        key = self._key("preview", setting)
        return self._known((key, x), lambda: function(setting, np.array([x]))[0])

    def _key(self, kind: str, setting: Any) -> str:
        axis = self.system.axis
        assert axis is not None
        return canonical_json({**setting.model_dump(mode="json"), axis.parameter: kind})

    def _line(
        self,
        kind: str,
        function: Callable[[Any, np.ndarray], Sequence[Metrics]],
        setting: Any,
        coordinates: np.ndarray,
    ) -> list[Metrics]:
        """Return kept values, and compute the missing ones in one call or, if it raises, one by one."""
        line = self._key(kind, setting)
        keys = [(line, float(x)) for x in coordinates]
        with self._lock:
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
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is None:
            if not WANTED.get()():
                raise Unwanted
            try:
                found = compute()
            except Exception as error:
                found = error.with_traceback(None)  # frames would keep large arrays alive
            self._keep(key, found)
        if isinstance(found, Exception):
            raise found
        return found

    def _keep(self, key: tuple[str, float], value: Metrics | Exception) -> None:
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > MOST_PREDICTIONS:
                self._kept.popitem(last=False)


@lru_cache(maxsize=8)
def remembered(system: System) -> Remembered:
    """Return the kept predictions of a system."""
    return Remembered(system)
