"""The Dash application: callbacks between controls, theory, runs and the address."""

from __future__ import annotations

import os
import traceback
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from solvable.errors import SolvableError
from solvable.explore.explorer import Explorer
from solvable.explore.page import layout, panel_names, points_options, verdict_list
from solvable.explore.runs import Run
from solvable.explore.server import RENDERER
from solvable.explore.values import from_address, presets_of, settings_of
from solvable.paths import printable
from solvable.study.tables import verdict_rows

PLOTLY = "plotly.min.js"
"""Name of Plotly's script under the address of the page."""

INDEX = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{%title%}</title>'
    f'<script async id="plotly" src="{PLOTLY}"></script>'
    "{%metas%}{%favicon%}{%css%}</head><body>{%app_entry%}"
    "<footer>{%config%}{%scripts%}{%renderer%}</footer></body></html>"
)
"""Page of Dash, without :class:`dcc.Graph`: explore.js draws, which is faster."""


def build(explorer: Explorer, token: str) -> Any:
    """Build the application under the path of its token."""
    from dash import Dash

    app = Dash(
        __name__,
        url_base_pathname=f"/{token}/",
        assets_folder=str(Path(__file__).with_name("assets")),
        serve_locally=True,
        title=escape(f"{explorer.system.name}: {explorer.system.title}"),
        update_title="",
        suppress_callback_exceptions=False,
        include_assets_files=True,
        meta_tags=[{"name": "color-scheme", "content": "light dark"}],
    )
    app.renderer = RENDERER
    app.index_string = INDEX
    app.enable_dev_tools(debug=False)
    _refuse_malformed(app.server)
    app.layout = lambda: layout(
        explorer.system, explorer.controls, explorer.start, explorer.labels()
    )
    _connect_scripts(app, explorer)
    _connect_address(app, explorer)
    _connect_runs(app, explorer)
    _connect_figures(app, explorer, token)
    return app


def _refuse_malformed(server: Any) -> None:
    """Answer requests that are not of this page with 400."""
    from flask import Response, request
    from werkzeug.exceptions import HTTPException

    said = "400: not a request of this page.\n"

    @server.before_request
    def check() -> Any:
        if request.method == "POST" and not isinstance(request.get_json(silent=True), dict):
            return Response(said, 400, mimetype="text/plain")
        return None

    @server.errorhandler(Exception)
    def refuse(error: Exception) -> Any:
        if isinstance(error, HTTPException):
            return error
        if os.environ.get("SOLVABLE_DEBUG") == "1":
            traceback.print_exception(error)
        return Response(said, 400, mimetype="text/plain")


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
        Input("panel", "value"),
        Input("points", "value"),
        Input("fresh", "data"),
        *(Input(f"value-{control.name}", "value") for control in explorer.controls),
        State("specification", "data"),
        prevent_initial_call=True,
    )
    for name in ("command", "python"):
        app.clientside_callback(
            ClientsideFunction("explore", "copy"),
            Output(f"copied-{name}", "children"),
            Input(f"copy-{name}", "n_clicks"),
            State(name, "children"),
            prevent_initial_call=True,
        )


def _connect_figures(app: Any, explorer: Explorer, token: str) -> None:
    """Answer requests for figures, which explore.js draws: callbacks of Dash would be slower."""
    from flask import Response, request, send_from_directory

    scripts = str(Path(find_spec("plotly").submodule_search_locations[0], "package_data"))  # type: ignore[union-attr, index]

    @app.server.get(f"/{token}/{PLOTLY}")
    def script() -> Any:
        return send_from_directory(scripts, PLOTLY, max_age=86_400)

    @app.server.post(f"/{token}/draw")
    def draw() -> Any:
        found = explorer.answer(request.get_json())
        return (
            Response(status=204) if found is None else Response(found, mimetype="application/json")
        )


def _connect_address(app: Any, explorer: Explorer) -> None:
    """Connect the address to the controls."""
    from dash import Input, Output, State, ctx, no_update

    values = [Output(f"value-{c.name}", "value", allow_duplicate=True) for c in explorer.controls]
    panels, presets = panel_names(explorer.system), presets_of(explorer.system)

    @app.callback(
        *values,
        Output("panel", "value"),
        Output("points", "value", allow_duplicate=True),
        Output("remark", "children", allow_duplicate=True),
        Output("tick", "disabled", allow_duplicate=True),
        Input("address", "search"),
        *(Input(f"preset-{name}", "n_clicks") for name in presets),
        State("panel", "value"),
        State("points", "value"),
        prevent_initial_call="initial_duplicate",
    )
    def read_address(search: str | None, *rest: Any) -> Any:
        if str(ctx.triggered_id).startswith("preset-"):
            preset = presets[str(ctx.triggered_id).removeprefix("preset-")]
            found, _, faults = from_address(explorer.system, explorer.controls, "", preset)
            words: dict[str, str] = {"panel": rest[-2], "points": rest[-1]}
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
