"""Report of learning as one HTML file that needs no network."""

from __future__ import annotations

import re
from base64 import b64encode
from importlib.metadata import version
from pathlib import Path
from typing import Any

from solvable.learn import choice_words, direction_words, importance_words, words
from solvable.learn.figures import CAPTION, draw_pictures, learn_figures
from solvable.learn.results import LayerFound, Learned
from solvable.pages.environment import GENERATOR, drawings, page_environment, picture
from solvable.plots.files import check_names, write_atomically
from solvable.plots.recording_backend import record
from solvable.plots.words import percents


def interval_places(found: Learned) -> list[tuple[float, float, float] | None]:
    """Return each method's interval ends and error in percent of the bar; None if outside the bar."""
    # The scale ends at the largest upper end of a method other than the constant.
    ends = [
        score.upper
        for score in found.methods
        if score.key != "constant" and score.upper is not None
    ]
    top = 1.04 * max(ends, default=1.0) or 1.0
    places: list[tuple[float, float, float] | None] = []
    for score in found.methods:
        if score.error is None or score.error > top:
            places.append(None)
        else:
            left, right, dot = (
                100 * min(max(part or 0.0, 0.0), top) / top
                for part in (*words.ends_of(score, found), score.error)
            )
            places.append((left, right, dot))
    return places


def render_learn_report(
    found: Learned, path: str | Path, *, command: str = "", model: str = "model.safetensors"
) -> Path:
    """Write the report in one atomic step; `command` is the command line that repeats the run."""
    write_atomically(path, _html(found, command, model).encode())
    return Path(path)


def _html(found: Learned, command: str, model: str) -> str:
    from plotly.offline import get_plotlyjs

    environment = page_environment("solvable.learn")
    environment.filters["tied"] = _tied
    figures = learn_figures(found)
    check_names(figures)
    shown: dict[str, Any] = {
        figure.name: {
            "figure": figure,
            "index": index,
            "picture": picture(figure),
            "notes": [call["text"] for call in record(figure).named("note")],
        }
        for index, figure in enumerate(figures)
    }
    return environment.get_template("learn.html.jinja").render(
        found=found,
        words=words,
        choice=choice_words,
        directions=direction_words,
        columns=importance_words,
        unequal=any(score.balanced_error is not None for score in found.methods),
        generator=f"{GENERATOR} {version('solvable')}",
        lines=list(zip(found.methods, interval_places(found), strict=True)),
        shown=shown,
        filters=_filters(found),
        filters_caption=CAPTION,
        cards=_cards(found),
        command=command,
        model=model,
        drawings=drawings(figures),
        plotly=get_plotlyjs() if figures else "",
    )


def _tied(text: str) -> str:
    """Put a no-break space between a number and its unit, and between a column name and its number."""
    return re.sub(r"(?<=') (?=\d)| (?=%)", "\N{NO-BREAK SPACE}", text)


def _filters(found: Learned) -> str:
    """Return the pictures as a data URI; empty if there are none."""
    if found.pictures is None or not len(found.pictures):
        return ""
    return f"data:image/svg+xml;base64,{b64encode(draw_pictures(found)).decode()}"


def _held(layer: LayerFound) -> int:
    """Return the number of directions that hold on unseen rows, or of all if that was not measured."""
    looked = [one.confirmed for one in layer.strongest if one.confirmed is not None]
    return sum(looked) if looked else layer.directions


def _cards(found: Learned) -> list[tuple[str, str, str]]:
    """Return the number, name and interval of each of the report's three answers."""
    score = found.chosen
    value, interval = percents(score.error, *found.ends)
    named = [one for one in found.explained.importance if one.named]
    if found.explained.importance:
        many = f"of {len(found.explained.importance)}, for {choice_words.with_the(score)}"
        second = (str(len(named)), "columns or groups of correlated ones matter", many)
    else:
        second = (
            " and ".join(str(_held(layer)) for layer in found.found),
            "directions carry signal",
            f"in {found.n_samples} rows, learned features",
        )
    cards = [(value, words.error_name(found), f"{interval} on unseen rows, {score.title}"), second]
    if found.outlook.expected:
        twice = found.outlook.expected[1]
        value, interval = percents(twice.error, twice.lower, twice.upper)
        cards.append((value, f"{words.error_name(found)} with twice the rows", interval))
    else:
        cards.append(("–", f"{words.error_name(found)} with twice the rows", "no forecast"))
    return cards
