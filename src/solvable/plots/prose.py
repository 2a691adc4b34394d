"""Sentences as plain data, drawn in a terminal between tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from solvable.paths import printable
from solvable.plots.tables import Table

if TYPE_CHECKING:
    from rich.text import Text


class Prose(NamedTuple):
    """A sentence that breaks between words, in a style of rich such as ``bold``."""

    text: str
    style: str = ""

    def __rich__(self) -> Text:
        """The sentence as rich draws it."""
        from rich.text import Text

        return Text(printable(self.text), style=self.style)


Part = str | Prose | Table  # a line as it is, a sentence or a table


def section(title: str, sentences: Iterable[str], *, single: bool = False) -> list[Part]:
    """An empty line, a bold title, and a list of sentences; ``single`` leaves out one's dash."""
    rows = list(sentences)
    dash = "" if single and len(rows) == 1 else "- "
    return ["", Prose(title, "bold"), *(Prose(f"{dash}{row}") for row in rows)]
