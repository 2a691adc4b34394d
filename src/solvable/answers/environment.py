"""Templates and drawings of pages that need no network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from solvable.paths import printable
from solvable.plots.figure import Figure
from solvable.plots.files import Pictures, pictures
from solvable.plots.plotly_backend import draw_plotly

if TYPE_CHECKING:
    from jinja2 import Environment

GENERATOR = "solvable report"  # beginning of the ``generator`` entry of a report


def page_environment(package: str) -> Environment:
    """Return an environment with templates of a package, then the shared ones; texts are escaped."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    packages = dict.fromkeys((package, "solvable.answers"))
    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """Remove control characters from texts of the user; our own markup stays."""
    return printable(value) if type(value) is str else value


def drawings(figures: Sequence[Figure]) -> str:
    """Return Plotly's traces and layouts as JSON for a script element."""
    drawn: list[Any] = [
        json.loads(draw_plotly(figure, texts=False).to_json()) for figure in figures
    ]
    text = json.dumps(drawn, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def picture(figure: Figure) -> str:
    """Draw the figure as a data URL."""
    return picture_address(pictures(figure))


def picture_address(made: Pictures) -> str:
    """Return a drawn picture as a data URL."""
    return f"data:image/svg+xml;base64,{b64encode(made.inline).decode()}"
