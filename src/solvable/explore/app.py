"""The Dash application: callbacks between controls, theory, runs and the address."""

from __future__ import annotations

import html
import math
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from solvable.errors import SolvableError
from solvable.explore.controls import controls
from solvable.explore.interruption import Interruptible, Unwanted
from solvable.explore.lines import Lines, theory_figures
from solvable.explore.look import page_figure
from solvable.explore.memo import WANTED
from solvable.explore.newest import Newest
from solvable.explore.page import SLOTS, layout, panel_names, points_options, verdict_list
from solvable.explore.runs import Run, Runs
from solvable.explore.snippets import command_of, python_of
from solvable.explore.values import from_address, settings_of
from solvable.frame.system import System
from solvable.paths import error_line, printable
from solvable.plots.words import counted
from solvable.study.tables import verdict_rows

SECONDS, MOST_SECONDS = 0.1, 60.0
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
        stage = _whole(asked.get("stage"), 0, 1000)
        page, number = str(asked.get("page"))[:40], _whole(asked.get("n"), 0)
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
                return self.newest.compute(page, number, lines)
            except Unwanted:
                return None
            finally:
                WANTED.reset(waited_for)

    def settings(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings in a request."""
        values = asked.get("values") or {}
        return settings_of({c.name: values.get(c.name) for c in self.controls})


def _whole(value: Any, least: int, most: int = 2**53) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return least
    return min(most, max(least, int(value)))


def build(explorer: Explorer, token: str) -> Any:
    """Build the application under the path of its token."""
    from dash import Dash

    app = Dash(
        __name__,
        url_base_pathname=f"/{token}/",
        assets_folder=str(Path(__file__).with_name("assets")),
        serve_locally=True,
        update_title="",
        title=html.escape(f"{explorer.system.name}: {explorer.system.title}"),
        suppress_callback_exceptions=False,
        include_assets_files=True,
        meta_tags=[{"name": "color-scheme", "content": "light dark"}],
    )
    # Plotly's script is by far the largest; Dash requests it once it has drawn the controls.
    plotly = f"/{token}/_dash-component-suites/plotly/package_data/plotly.min.js"
    preload = f'<link rel="preload" as="script" href="{plotly}">'
    app.index_string = app.index_string.replace("{%css%}", preload + "{%css%}")
    app.enable_dev_tools(debug=False)
    app.layout = lambda: layout(
        explorer.system, explorer.controls, explorer.start, explorer.labels()
    )
    _connect_scripts(app, explorer)
    _connect_figures(app, explorer)
    _connect_runs(app, explorer)
    return app


def _connect_scripts(app: Any, explorer: Explorer) -> None:
    """Connect what runs in the browser: sliders, the newest request, copying."""
    from dash import ClientsideFunction, Input, Output, State

    for control in explorer.controls:
        if control.kind != "slider":
            continue
        app.clientside_callback(
            ClientsideFunction("explore", "sync"),
            Output(f"position-{control.name}", "value"),
            Output(f"value-{control.name}", "value"),
            Input(f"position-{control.name}", "value"),
            Input(f"value-{control.name}", "value"),
            State("specification", "data"),
        )
    app.clientside_callback(
        ClientsideFunction("explore", "ask"),
        Output("asked", "data"),
        Input("panel", "value"),
        Input("points", "value"),
        Input("fresh", "data"),
        Input("again", "data"),
        *(Input(f"value-{control.name}", "value") for control in explorer.controls),
        State("specification", "data"),
        prevent_initial_call=True,
    )
    # Not an input of "ask": Dash does not trigger a callback by what follows from it.
    app.clientside_callback(ClientsideFunction("explore", "landed"), Input("answered", "data"))
    for name in ("command", "python"):
        app.clientside_callback(
            ClientsideFunction("explore", "copy"),
            Output(f"copied-{name}", "children"),
            Input(f"copy-{name}", "n_clicks"),
            State(name, "children"),
            prevent_initial_call=True,
        )


def _connect_figures(app: Any, explorer: Explorer) -> None:
    """Connect the address to the controls, and requests to figures."""
    from dash import Input, Output, State, ctx, no_update
    from dash.exceptions import PreventUpdate

    values = [Output(f"value-{c.name}", "value", allow_duplicate=True) for c in explorer.controls]
    panels = panel_names(explorer.system)

    @app.callback(
        *values,
        Output("panel", "value"),
        Output("points", "value", allow_duplicate=True),
        Output("remark", "children", allow_duplicate=True),
        Output("tick", "disabled", allow_duplicate=True),
        Input("address", "search"),
        Input("reset", "n_clicks"),
        State("panel", "value"),
        State("points", "value"),
        prevent_initial_call="initial_duplicate",
    )
    def read_address(search: str | None, clicks: int | None, panel: str, points: str) -> Any:
        if ctx.triggered_id == "reset":
            found, _, faults = from_address(explorer.system, explorer.controls, "", {})
            words: dict[str, str] = {"panel": panel, "points": points}
        else:
            found, words, faults = from_address(
                explorer.system, explorer.controls, search or "", explorer.start
            )
        known = explorer.runs.known
        asked = words.get("points", next(iter(explorer.labels()), "none"))
        if asked not in (*known, "none"):
            faults.append(
                "This page does not have the run of the address: give its directory, "
                f"`solvable explore {explorer.system.name} DIRECTORY`."
            )
            asked = "none"
        chosen = words.get("panel")
        chosen = chosen if chosen in panels else next(iter(panels), None)
        idle = explorer.runs.active() is None
        return (*found.values(), chosen, asked, " ".join(faults) or no_update, idle)

    slots = [
        Output(f"{part}-{k}", name)
        for k in range(SLOTS)
        for part, name in (
            ("figure", "figure"),
            ("figure", "style"),
            ("title", "children"),
            ("caption", "children"),
            ("slot", "hidden"),
        )
    ]

    @app.callback(
        *slots,
        Output("problem", "children"),
        Output("remark", "children"),
        Output("command", "children"),
        Output("python", "children"),
        Output("answered", "data"),
        Input("asked", "data"),
        prevent_initial_call=True,
    )
    def draw(asked: dict[str, Any]) -> Any:
        answer = {"n": asked.get("n"), "complete": True}
        blank = [no_update, no_update, no_update, no_update, True] * SLOTS
        try:
            lines = explorer.draw(asked)
            if lines is None:
                raise PreventUpdate
            shown = _shown(lines, asked)
            settings = explorer.settings(asked)
            words = ["", ""]
            if not lines.refusal or lines.figures:
                words = [
                    command_of(explorer.system, settings),
                    python_of(explorer.system, settings),
                ]
        except SolvableError as error:
            return (*blank, printable(str(error)), "", "", "", answer)
        except PreventUpdate:
            raise
        except Exception as error:  # a system may raise any exception
            return (*blank, error_line(error), "", "", "", answer)
        answer |= {"complete": lines.complete, "seconds": lines.seconds}
        faults = [f"{fault.part} {fault.name} raised {fault.error}" for fault in lines.faults]
        problem = " ".join([lines.refusal, *faults]).strip()
        return (*shown, printable(problem), _remark(lines), *words, answer)


def _shown(lines: Lines, asked: Mapping[str, Any]) -> list[Any]:
    """Return the properties of all slots."""
    from dash import no_update

    width, dark = _whole(asked.get("width"), 200, 4000), asked.get("dark") is True
    shown: list[Any] = []
    for k in range(SLOTS):
        if k >= len(lines.figures):
            shown += [no_update, no_update, no_update, no_update, True]
            continue
        figure = lines.figures[k]
        picture = page_figure(figure, width, dark)
        height = {"height": f"{picture['layout']['height']}px"}
        shown += [picture, height, printable(figure.title), printable(figure.caption), False]
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


def _connect_runs(app: Any, explorer: Explorer) -> None:
    """Connect the buttons of a run, and its progress."""
    from dash import Input, Output, State, ctx, no_update

    runs = explorer.runs
    named = [State(f"value-{control.name}", "value") for control in explorer.controls]

    @app.callback(
        Output("points", "options"),
        Output("points", "value"),
        Output("progress", "children", allow_duplicate=True),
        Output("tick", "disabled"),
        Input("start", "n_clicks"),
        Input("cancel", "n_clicks"),
        State("points", "value"),
        State("replicates", "value"),
        *named,
        prevent_initial_call=True,
    )
    def press(_: Any, __: Any, points: str, replicates: Any, *values: Any) -> Any:
        if ctx.triggered_id == "cancel":
            if run := runs.active():
                run.cancel()
            return no_update, no_update, "stopping; finished tasks are kept", False
        try:
            names = [control.name for control in explorer.controls]
            started = runs.start(settings_of(dict(zip(names, values, strict=True))), replicates)
        except (SolvableError, OSError) as error:
            return no_update, no_update, printable(str(error)), no_update
        return points_options(explorer.labels()), started.name, "starting", False

    @app.callback(
        Output("progress", "children"),
        Output("bar", "value"),
        Output("bar", "max"),
        Output("bar", "hidden"),
        Output("cancel", "disabled"),
        Output("start", "disabled"),
        Output("fresh", "data"),
        Output("verdicts", "children"),
        Output("tick", "disabled", allow_duplicate=True),
        Input("tick", "n_intervals"),
        Input("points", "value"),
        State("fresh", "data"),
        prevent_initial_call="initial_duplicate",
    )
    def follow(_: Any, points: str, fresh: Any) -> Any:
        active = runs.active()
        run = active or runs.known.get(str(points))
        if run is None:
            return "", "0", "1", True, True, False, no_update, [], True
        try:
            done, total, words = run.progress()
            mark = f"{run.name} {done}" + ("" if active else " end")
            unchanged = ctx.triggered_id == "tick" and fresh == mark
            verdicts = no_update if active or unchanged else _verdicts(run)
        except (SolvableError, OSError) as error:
            return printable(str(error)), "0", "1", True, True, False, no_update, [], True
        ended = active is None
        return (
            printable(words),
            str(done),
            str(max(1, total)),
            ended,
            ended,
            not ended,
            mark if mark != fresh else no_update,
            verdicts,
            ended,
        )


def _verdicts(run: Run) -> Any:
    """Return the verdicts on a run that has ended."""
    found = run.result()
    if found is None or not found.points:
        return []
    return verdict_list(verdict_rows(found.verdicts))
