"""Answers to the page: figures of a setting, and the words that belong to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from solvable.errors import SolvableError
from solvable.explore.controls import controls
from solvable.explore.lines import Lines, theory_figures
from solvable.explore.look import page_figure
from solvable.explore.page import SLOTS, panel_names
from solvable.explore.runs import Run, run_of
from solvable.explore.snippets import command_of, python_of
from solvable.explore.values import settings_of, whole
from solvable.frame.system import System
from solvable.paths import error_line, printable
from solvable.plots.words import counted
from solvable.study.results import StudyResult

SECONDS, MOST_SECONDS = 0.08, 60.0
"""Seconds for the first request for the lines of one setting; later ones have four times as many."""


class Desk:
    """Answers requests for the lines of one system; predictions and runs are kept."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.controls = controls(system)
        self._runs: dict[str, Run] = {}

    def prepare(self, start: Mapping[str, Any]) -> None:
        """Draw the first panel at the start while a browser loads the page."""
        panel = next(iter(panel_names(self.system)), "")
        for figure in theory_figures(self.system, start, None, SECONDS, only=[panel]).figures:
            page_figure(figure, 800, dark=False)

    @staticmethod
    def refused(asked: Mapping[str, Any], reason: str) -> str:
        """Return the answer to a request that cannot be computed."""
        return json.dumps(_empty(asked) | {"problem": printable(reason)})

    def answer(self, asked: Mapping[str, Any], newer: Callable[[], bool] = lambda: False) -> str:
        """Return the answer to a request as JSON; a refinement ends if `newer` returns True."""
        try:
            values = asked.get("values") or {}
            settings = settings_of({c.name: values.get(c.name) for c in self.controls})
            seconds = min(
                MOST_SECONDS, SECONDS * 4.0 ** min(whole(asked.get("stage"), 0, 1000), 10)
            )
            panel, result = str(asked.get("panel")), self._result(asked.get("directory"))
            lines = theory_figures(
                self.system, settings, result, seconds, only=[panel], newer=newer
            )
            found = _empty(asked) | self._shown(lines, settings, asked)
        except SolvableError as error:
            return self.refused(asked, str(error))
        except Exception as error:  # a system may raise any exception
            return self.refused(asked, error_line(error))
        return json.dumps(found, allow_nan=False)

    def _result(self, directory: str | None) -> StudyResult | None:
        """Return the run whose points the page shows."""
        if directory is None:
            return None
        if directory not in self._runs:
            known = run_of(self.system, directory)
            self._runs[directory] = Run("", Path(directory), self.system, _result=known)
        return self._runs[directory].result()

    def _shown(
        self, lines: Lines, settings: Mapping[str, Any], asked: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what the page shows of lines."""
        width, dark = whole(asked.get("width"), 200, 4000), asked.get("dark") is True
        faults = [f"{fault.part} {fault.name} raised {fault.error}" for fault in lines.faults]
        shown = {
            "complete": lines.complete,
            "seconds": lines.seconds,
            "figures": [
                {
                    "title": printable(figure.title),
                    "caption": printable(figure.caption),
                    **page_figure(figure, width, dark),
                }
                for figure in lines.figures[:SLOTS]
            ],
            "problem": printable(" ".join([lines.refusal, *faults]).strip()),
            "remark": _remark(lines),
        }
        if not lines.refusal or lines.figures:
            shown["command"] = command_of(self.system, settings)
            shown["python"] = python_of(self.system, settings)
        return shown


def _empty(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer without figures."""
    return {
        "n": whole(asked.get("n"), 0), "complete": True, "seconds": 0.0, "figures": [],
        "problem": "", "remark": "", "command": "", "python": "",
    }  # fmt: skip


def _remark(lines: Lines) -> str:
    words = []
    if lines.omitted and not lines.figures and not lines.refusal:
        words.append("This panel shows measurements: start a run below, or choose another panel.")
    if lines.left_out:
        words.append(f"Not shown: {counted(lines.left_out, 'point')} of the run at other settings.")
    if not lines.complete:
        words.append("Some values of the lines are interpolated; more are being computed.")
    return " ".join(words)
