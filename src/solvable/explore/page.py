"""Layout of the page: a control per parameter, panels, the run, and the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solvable.explore.controls import Control
from solvable.explore.span import preset_values
from solvable.explore.values import presets_of
from solvable.frame.drawn import panel_name
from solvable.frame.system import System

SLOTS = 4
"""Largest number of figures of one panel that are shown."""

POSITIONS = 300
"""Positions of a logarithmic slider."""


def panel_names(system: System) -> dict[str, str]:
    """Return the label of each panel in the menu, by name of the panel."""
    names: dict[str, str] = {}
    for panel in system.panels:
        name = panel_name(panel)
        words = str(getattr(panel, "title", ""))
        if not words or "{" in words:  # a title that is completed with values of a point
            words = name.replace("_", " ").replace("-", " ")
        names.setdefault(name, words[:1].upper() + words[1:])
    return names


def specification(controls: Sequence[Control], start: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the scripts of the page need to know about the controls."""
    return {
        # An address without these would be read as the start.
        "always": [c.name for c in controls if start.get(c.name, c.default) != c.default],
        "controls": {
            c.name: {
                "kind": c.kind,
                "low": c.low,
                "first": c.first,
                "high": c.high,
                "log": c.scale == "log",
                "integer": c.integer,
                "positions": positions(c),
                "default": c.default,
            }
            for c in controls
        },
        "names": [c.name for c in controls],
    }


def layout(
    system: System, controls: Sequence[Control], start: Mapping[str, Any], runs: Mapping[str, str]
) -> Any:
    """Return the components of the page."""
    from dash import dcc, html

    names = panel_names(system)
    main = [c for c in controls if c.axis or preset_values(system, c.name)]
    rest = [c for c in controls if c not in main]
    shown = [_control(c) for c in main]
    if rest:
        folded = [_control(c) for c in rest]
        shown.append(html.Details([html.Summary(f"{len(rest)} more parameters"), *folded]))
    return html.Div(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Store(id="specification", data=specification(controls, start)),
            dcc.Store(id="fresh"),
            dcc.Interval(id="tick", interval=700, disabled=True),
            html.Header([html.H1(system.title), html.P(f"solvable explore {system.name}")]),
            html.Div(
                [
                    html.Section(_figures(names), className="figures", **{"aria-label": "Figures"}),
                    html.Section(
                        [
                            html.H2("Parameters"),
                            html.Fieldset([html.Legend("Set to a preset"), _presets(system)]),
                            *shown,
                        ],
                        className="controls",
                        **{"aria-label": "Parameters"},
                    ),
                ],
                className="columns",
            ),
            html.Section(_run(system, runs), **{"aria-label": "Run"}),
            html.Section(_words(), **{"aria-label": "Command and Python"}),
        ],
        id="page",
        role="main",
    )


def _figures(names: Mapping[str, str]) -> list[Any]:
    from dash import dcc, html

    options = [{"label": words, "value": name} for name, words in names.items()]
    # explore.js fills them.
    slots = [
        html.Figure(
            [
                html.H2(id=f"title-{k}"),
                html.Div(id=f"figure-{k}", className="plot"),
                html.Figcaption(id=f"caption-{k}"),
            ],
            id=f"slot-{k}",
            hidden=True,
        )
        for k in range(SLOTS)
    ]
    return [
        html.Fieldset(
            [
                html.Legend("Panel"),
                dcc.RadioItems(
                    id="panel", options=options, value=next(iter(names), None), className="pills"
                ),
            ]
        ),
        html.P(id="busy", className="busy"),
        html.P(id="problem", className="problem", role="alert"),
        html.P(id="remark", className="quiet", role="status"),
        *slots,
    ]


def _presets(system: System) -> Any:
    """Return a button for each preset, with its description."""
    from dash import html

    words = {name: preset.description for name, preset in system.presets.items()}
    return html.Div(
        [
            html.Button(name, id=f"preset-{name}", title=words.get(name, "The defaults."))
            for name in presets_of(system)
        ],
        className="presets",
    )


def _control(control: Control) -> Any:
    """Return the label and the input elements of one parameter."""
    from dash import dcc, html

    words = control.name.replace("_", " ")
    help_id = f"help-{control.name}"
    value_id = f"value-{control.name}"
    help_text = html.P(control.description.replace("`", ""), id=help_id, className="quiet")
    if control.kind == "choice":
        options = [{"label": str(value).lower(), "value": value} for value in control.values]
        return html.Fieldset(
            [
                html.Legend(words),
                dcc.RadioItems(
                    id=value_id, options=options, value=control.default, className="pills"
                ),
                help_text,
            ],
            className="control",
        )
    label = html.Label(words, htmlFor=value_id)
    if control.kind == "text":
        suggestions = [str(value) for value in control.values if value not in (None, "")]
        field = dcc.Input(
            id=value_id, type="text", debounce=True, list=f"list-{control.name}", maxLength=500
        )
        choices = html.Datalist(
            [html.Option(value=text) for text in suggestions], id=f"list-{control.name}"
        )
        return html.Div([html.Div([label, field], className="row"), choices, help_text],
                        className="control")  # fmt: skip
    return html.Div(
        [
            html.Div(
                [label, dcc.Input(id=value_id, type="number", step="any", debounce=0.3)],
                className="row",
            ),
            html.Label(
                f"slider of {words}", htmlFor=f"position-{control.name}", className="unseen"
            ),
            dcc.Input(
                id=f"position-{control.name}",
                type="range",
                min=0,
                max=positions(control),
                step=1,
                className="range",
            ),
            help_text,
        ],
        className="control",
    )


def positions(control: Control) -> int:
    """Return the number of steps of a slider."""
    if control.step is None:
        return POSITIONS
    return max(1, min(1000, round((control.high - control.low) / control.step)))


def _run(system: System, runs: Mapping[str, str]) -> list[Any]:
    from dash import dcc, html

    quick = system.presets.get("quick")
    return [
        html.H2("Measure this setting"),
        html.P(
            "A run measures the parameters above at the axis values of the preset quick. Its points "
            "appear on the figures while it runs; it is kept in its directory.",
            className="quiet",
        ),
        html.Div(
            [
                html.Label("replicates", htmlFor="replicates"),
                dcc.Input(
                    id="replicates", type="number", value=quick.replicates if quick else 3, step=1
                ),
                html.Button("Start a run", id="start", className="main"),
                html.Button("Stop", id="cancel", disabled=True),
            ],
            className="row start",
        ),
        html.Progress(id="bar", value="0", max="1", hidden=True, **{"aria-label": "Tasks done"}),
        html.P(id="progress", role="status"),
        html.Fieldset(
            [
                html.Legend("Points of"),
                dcc.RadioItems(
                    id="points",
                    options=points_options(runs),
                    value=next(iter(runs), "none"),
                    className="pills",
                ),
            ]
        ),
        html.Div(id="verdicts"),
    ]


def points_options(runs: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the choices of runs whose points are shown."""
    found = [{"label": words, "value": name} for name, words in runs.items()]
    return [{"label": "no run", "value": "none"}, *found]


def _words() -> list[Any]:
    from dash import html

    parts: list[Any] = [html.H2("The same from the command line and from Python")]
    for name, words in (("command", "command"), ("python", "Python lines")):
        parts += [
            html.Pre(html.Code(id=name), tabIndex="0", **{"aria-label": words}),
            html.Button(f"Copy the {words}", id=f"copy-{name}"),
            html.Span(id=f"copied-{name}", role="status", className="quiet"),
        ]
    return parts


def verdict_list(rows: Sequence[Any]) -> Any:
    """Return the verdicts of a run as a table."""
    from dash import html

    head = ["verdict", "claim", "measured", "predicted or allowed", "tolerance"]
    body = [
        html.Tr(
            [
                html.Td(row.status, className=row.status.split()[0]),
                html.Td([html.B(row.claim), html.Br(), row.statement]
                        + ([html.Br(), html.Span(row.reason, className="quiet")]
                           if row.status not in ("holds",) else [])),
                html.Td(row.measured),
                html.Td(row.expected),
                html.Td(row.tolerance),
            ]
        )
        for row in rows
    ]  # fmt: skip
    table = html.Table([html.Thead(html.Tr([html.Th(word) for word in head])), html.Tbody(body)])
    return html.Div(
        table, className="scroll", tabIndex="0", role="region", **{"aria-label": "Verdicts"}
    )
