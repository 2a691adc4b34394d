"""State of one page server: controls, runs, and computations under way."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from solvable.explore.controls import controls
from solvable.explore.interruption import Interruptible, Unwanted
from solvable.explore.lines import Lines, theory_figures
from solvable.explore.look import page_figure
from solvable.explore.memo import WANTED
from solvable.explore.newest import PATIENCE, Newest
from solvable.explore.page import panel_names
from solvable.explore.runs import Runs
from solvable.explore.values import settings_of, whole
from solvable.frame.system import System
from solvable.paths import printable

SECONDS, MOST_SECONDS = 0.08, 60.0
"""Seconds for the first request for the lines of one setting; later ones have four times as many."""


class Explorer:
    """Hold what the callbacks of one page server share."""

    def __init__(self, system: System, start: Mapping[str, Any], runs: Runs) -> None:
        self.system = system
        self.start = dict(start)
        self.runs = runs
        self.controls = controls(system)
        self.newest = Newest()
        self.computed = 0  # number of requests that were computed, for tests
        self._first_figure = Interruptible()
        self._first = threading.Thread(target=self._prepare, daemon=True)

    def labels(self) -> dict[str, str]:
        """Return the runs by name, with their directories, the newest first."""
        found = [
            (name, printable(str(run.directory))) for name, run in list(self.runs.known.items())
        ]
        return dict(reversed(found))

    def prepare(self) -> None:
        """Compute the first figure, and import what it needs, while a browser loads the page."""
        self._first.start()

    def close(self) -> None:
        """Stop an active run, whose finished tasks are kept, and what is computed at the start."""
        self.runs.close()
        self._first_figure.end()
        if self._first.is_alive():
            self._first.join(timeout=2.0)

    def _prepare(self) -> None:
        with suppress(Exception, Unwanted):  # a system may raise any exception; a page shows it
            self._first_figure.run(self._draw_first)

    def _draw_first(self) -> None:
        """Draw the first panel at the start; its predictions are kept."""
        panel = next(iter(panel_names(self.system)), "")
        lines = theory_figures(self.system, self.start, None, SECONDS, only=[panel])
        for figure in lines.figures:
            page_figure(figure, 800, dark=False)

    def draw(self, asked: Mapping[str, Any]) -> Lines | None:
        """Return the figures that a page asks for; None if it asks for something newer already."""
        if self._first.is_alive():
            self._first.join(timeout=3.0)
        stage = whole(asked.get("stage"), 0, 1000)
        page, number = str(asked.get("page"))[:40], whole(asked.get("n"), 0)
        with self.newest.turn(page, number) as current:
            if not current():
                return None
            self.computed += 1
            settings = self.settings(asked)
            run = self.runs.known.get(str(asked.get("points")))
            seconds = min(MOST_SECONDS, SECONDS * 4.0 ** min(stage, 10))
            result = None if run is None else run.result()
            waited_for = WANTED.set(current)
            try:
                panel = str(asked.get("panel"))
                lines = partial(
                    theory_figures, self.system, settings, result, seconds, only=[panel]
                )
                # More of a line that is shown already ends at once, a first line somewhat later:
                # otherwise a slider that moves on would never show one.
                patience = PATIENCE if stage == 0 else 0.0
                return self.newest.compute(page, number, lines, patience)
            except Unwanted:
                return None
            finally:
                WANTED.reset(waited_for)

    def settings(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings in a request."""
        values = asked.get("values") or {}
        return settings_of({c.name: values.get(c.name) for c in self.controls})
