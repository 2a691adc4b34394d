"""Parts of a text for a terminal: fixed lines, sentences, tables."""

from __future__ import annotations

from collections.abc import Iterable

from solvable.plots.tables import Cell, Table

Part = str | Cell | Table  # text, a cell that is wrapped between words, or a table


def section(title: str, sentences: Iterable[str], *, single: bool = False) -> list[Part]:
    """Return an empty line, a bold title and a list; with ``single``, a lone item has no dash."""
    rows = list(sentences)
    dash = "" if single and len(rows) == 1 else "- "
    return ["", Cell(title, "bold"), *(Cell(f"{dash}{row}") for row in rows)]
