"""Answers to the page: figures of a setting, and the words that belong to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from solvable.errors import SolvableError
from solvable.explore.explorer import Explorer
from solvable.explore.lines import Lines
from solvable.explore.look import page_figure
from solvable.explore.page import SLOTS
from solvable.explore.snippets import command_of, python_of
from solvable.explore.values import whole
from solvable.paths import error_line, printable
from solvable.plots.words import counted


def answer(explorer: Explorer, asked: Mapping[str, Any]) -> str | None:
    """Return the answer to a request as JSON; None if the page asks for something newer already."""
    found = {
        "n": whole(asked.get("n"), 0), "complete": True, "seconds": 0.0, "figures": [],
        "problem": "", "remark": "", "command": "", "python": "",
    }  # fmt: skip
    try:
        lines = explorer.draw(asked)
        if lines is None:
            return None
        found |= _shown(explorer, lines, asked)
    except SolvableError as error:
        found["problem"] = printable(str(error))
    except Exception as error:  # a system may raise any exception
        found["problem"] = error_line(error)
    return json.dumps(found, allow_nan=False)


def _shown(explorer: Explorer, lines: Lines, asked: Mapping[str, Any]) -> dict[str, Any]:
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
        settings = explorer.settings(asked)
        shown["command"] = command_of(explorer.system, settings)
        shown["python"] = python_of(explorer.system, settings)
    return shown


def _remark(lines: Lines) -> str:
    words = []
    if lines.omitted and not lines.figures and not lines.refusal:
        words.append("This panel shows measurements: start a run below, or choose another panel.")
    if lines.left_out:
        words.append(f"Not shown: {counted(lines.left_out, 'point')} of the run at other settings.")
    if not lines.complete:
        words.append("Some values of the lines are interpolated; more are being computed.")
    return " ".join(words)
