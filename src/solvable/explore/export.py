"""Theory lines over a grid of settings, with sliders, as one HTML file that needs no network."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from solvable.errors import InvalidParameter
from solvable.explore.export_grid import Along, Slider, settings_of, sliders_of
from solvable.explore.lines import theory_figures
from solvable.explore.snippets import command_of
from solvable.frame.system import System
from solvable.pages.environment import page_environment, picture
from solvable.plots.figure import Figure
from solvable.plots.files import write_atomically
from solvable.plots.plotly_backend import draw_plotly
from solvable.study.parameters import validate_parameters
from solvable.study.results import StudyResult

GENERATOR = "solvable explore"
MOST_BYTES = 40_000_000
MOST_SECONDS = 1_800.0
SECONDS_EACH = 3.0
"""Seconds for the lines of one setting, which are interpolated between as many predictions."""


@dataclass(frozen=True)
class Exported:
    """A written page: its path, size in bytes, number of settings, and the seconds it took."""

    path: Path
    size: int
    settings: int
    seconds: float
    refused: int  # settings without a prediction

    def __str__(self) -> str:
        refused = f", {self.refused} without a prediction" if self.refused else ""
        return (
            f"{self.path}: {self.settings} settings{refused}, {self.size / 1e6:.1f} MB, "
            f"{self.seconds:.0f} s"
        )


def write_export(
    system: System,
    path: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    result: StudyResult | None = None,
    along: Along | None = None,
) -> Exported:
    """Write the panels of a system at all settings of a grid as one HTML file with sliders.

    `along` names the sliders with their values, or with a number of values; other parameters stay at
    `settings`. Grids that would take too long or make too large a file are refused, as a rule after
    the first setting.
    """
    path, start = Path(path), time.perf_counter()
    _check_path(path)
    fixed = dict(settings or {})
    here = validate_parameters(system, fixed).model_dump(mode="json")
    sliders = sliders_of(system, along, here)
    grid = settings_of(sliders)
    first = _first_setting(grid, here)
    pages = _Pages(system, fixed, result)
    for index in (first, *(k for k in range(len(grid)) if k != first)):
        pages.add(index, grid[index])
        _check_cost(time.perf_counter() - start, pages, len(grid))
    html = _html(system, sliders, first, pages)
    write_atomically(path, html.encode())
    size, took = path.stat().st_size, time.perf_counter() - start
    return Exported(
        path, size, len(grid), took, sum(bool(e["refusal"]) for e in pages.entries.values())
    )


def is_export(path: Path) -> bool:
    """Return True if :func:`write_export` wrote the file, so that it may be replaced."""
    try:
        with path.open("rb") as stream:
            return f'<meta name="generator" content="{GENERATOR}'.encode() in stream.read(2048)
    except OSError:
        return False


def _check_path(path: Path) -> None:
    if path.is_dir():
        raise InvalidParameter(f"{path} is a directory; allowed: the name of an HTML file.")
    if path.exists() and not is_export(path):
        raise InvalidParameter(
            f"{path} exists and is not a page of `solvable explore --export`, so it is not replaced. "
            "Choose another name."
        )


def _first_setting(grid: Sequence[Mapping[str, Any]], here: Mapping[str, Any]) -> int:
    """Return the index of the setting with most parameters as in `here`."""
    same = [sum(str(here[name]) == str(value) for name, value in p.items()) for p in grid]
    return int(np.argmax(same))


@dataclass
class _Pages:
    """Figures of each setting; equal parts of drawings are stored once."""

    system: System
    fixed: Mapping[str, Any]
    result: StudyResult | None
    entries: dict[int, dict[str, Any]] = field(default_factory=dict)  # by place in the grid
    pool: dict[str, int] = field(default_factory=dict)
    size: int = 0
    figures: dict[str, Figure] = field(default_factory=dict)  # the first figure of each name
    omitted: dict[str, None] = field(default_factory=dict)
    left_out: int = 0

    def add(self, index: int, point: Mapping[str, Any]) -> None:
        """Draw one setting of the grid."""
        values = {**self.fixed, **point}
        lines = theory_figures(self.system, values, self.result, SECONDS_EACH)
        self.left_out = max(self.left_out, lines.left_out)
        self.omitted |= dict.fromkeys(lines.omitted)
        for figure in lines.figures:
            self.figures.setdefault(figure.name, figure)
        self.entries[index] = {
            "refusal": lines.refusal,
            "command": self._command(values),
            "figures": {figure.name: self._drawing(figure) for figure in lines.figures},
        }

    def _command(self, values: Mapping[str, Any]) -> str:
        try:
            return command_of(self.system, values)
        except InvalidParameter:
            return ""

    def _drawing(self, figure: Figure) -> dict[str, Any]:
        """Return a drawing as places in the pool: layout, and per trace its look and its columns."""
        drawn = draw_plotly(figure, texts=False).to_plotly_json()
        traces = []
        for trace in drawn["data"]:
            columns = {name: trace.pop(name) for name in ("x", "y", "customdata") if name in trace}
            parts = {name: self._pooled(values) for name, values in columns.items()}
            traces.append([self._pooled(trace), parts])
        words = f"{figure.title}. {figure.caption}"
        return {
            "layout": self._pooled(drawn["layout"]),
            "data": traces,
            "words": self._pooled(words),
        }

    def _pooled(self, value: Any) -> int:
        text = json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)
        if text not in self.pool:
            self.pool[text] = len(self.pool)
            self.size += len(text)
        return self.pool[text]


def _plain(value: Any) -> Any:
    """Return JSON values with five digits; NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return value


def _check_cost(spent: float, pages: _Pages, count: int) -> None:
    """Refuse a grid that would pass the limits if its other settings cost as much as those so far."""
    more = count / len(pages.entries)
    seconds, size = spent * more, pages.size * more
    taking = f"about {seconds / 60:.0f} minutes" if seconds > MOST_SECONDS else ""
    large = f"a file of about {size / 1e6:.0f} MB" if size > MOST_BYTES else ""
    if taking or large:
        raise InvalidParameter(
            f"the grid would take {' and '.join(filter(None, (taking, large)))}; allowed: up to "
            f"{MOST_SECONDS / 60:.0f} minutes and {MOST_BYTES / 1e6:.0f} MB. Give fewer values "
            "or sliders in `along`."
        )


def _html(system: System, sliders: Sequence[Slider], first: int, pages: _Pages) -> str:
    from plotly.offline import get_plotlyjs

    data = {
        "pool": "POOL",  # first, so that no text of the user is replaced
        "sliders": [[str(_plain(value)) for value in slider.values] for slider in sliders],
        "first": first,
        "names": list(pages.figures),
        "entries": [pages.entries[index] for index in range(len(pages.entries))],
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    text = text.replace('"POOL"', f"[{','.join(pages.pool)}]", 1)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    shapes = [len(slider.values) for slider in sliders]
    places = [int(k) for k in np.unravel_index(first, shapes)] if shapes else []
    fixed = {n: v for n, v in pages.fixed.items() if n not in {s.control.name for s in sliders}}
    return (
        page_environment("solvable.explore")
        .get_template("export.html.jinja")
        .render(
            generator=f"{GENERATOR} {version('solvable')}",
            system=system,
            sliders=list(zip(sliders, places, strict=True)),
            fixed=fixed,
            figures=list(pages.figures.values()),
            pictures=[picture(figure) for figure in pages.figures.values()],
            omitted=list(pages.omitted),
            left_out=pages.left_out,
            run=pages.result is not None,
            data=text,
            plotly=get_plotlyjs() if pages.figures else "",
        )
    )
