"""Parts of a text for a terminal: lines as they are, sentences, tables."""

from __future__ import annotations

from collections.abc import Iterable

from solvable.plots.tables import Cell, Table

Part = str | Cell | Table  # a cell is a sentence: its lines break between words


def section(title: str, sentences: Iterable[str], *, single: bool = False) -> list[Part]:
    """An empty line, a bold title, and a list of sentences; ``single`` leaves out one's dash."""
    rows = list(sentences)
    dash = "" if single and len(rows) == 1 else "- "
    return ["", Cell(title, "bold"), *(Cell(f"{dash}{row}") for row in rows)]
