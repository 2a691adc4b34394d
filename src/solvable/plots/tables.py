"""Tables as plain data, for a terminal or a page."""

from __future__ import annotations

import os
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from solvable.paths import printable

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table as RichTable

GAP = 2
"""Number of blanks between columns in a terminal."""

_CSS = {
    "bold": "font-weight:bold",
    "dim": "opacity:0.65",
    "green": "color:#1a7f37",
    "bold red": "color:#c62828;font-weight:bold",
    "yellow": "color:#9a6700",
}
"""Colours of the terminal's styles on a light page."""

_VERDICTS = {
    "holds": "green",
    "holds weakly": "yellow",
    "fails": "bold red",
    "not testable": "yellow",
    "error": "bold red",
}


class Cell(NamedTuple):
    """Text with a style of rich, such as ``bold red``."""

    text: str
    style: str = ""
    more: str = ""  # shown on a page alone, below the text
    # on a page alone: interval and value in percent of a bar, and the anchor that it leads to
    range: tuple[float, float, float] | None = None
    link: str = ""


class Column(NamedTuple):
    """Head of a column; right-aligned cells are never broken into lines."""

    name: str
    right: bool = False
    wrap: bool | None = None
    shown: Literal["always", "details", "page"] = (
        "always"  # "details": in a terminal with --details
    )

    @property
    def breaks(self) -> bool:
        """True if long text is broken into lines, False if it is cut."""
        return not self.right if self.wrap is None else self.wrap


def verdict_cell(status: str) -> Cell:
    """Return the word of a verdict in its colour; other words have none."""
    return Cell(status, _VERDICTS.get(status, ""))


class Table:
    """Rows of text under named columns.

    Every text is escaped: markup of rich and HTML is shown literally, and control characters are
    removed. Print the table with rich, or use :meth:`to_text` or :meth:`to_html`.
    """

    def __init__(self, *columns: str | Column, title: str = "", indented: bool = False) -> None:
        heads = [Column(head) if isinstance(head, str) else head for head in columns]
        self.columns = [head._replace(name=printable(head.name)) for head in heads]
        self.rows: list[tuple[list[Cell], str]] = []
        self.title = printable(title)
        self.indented = indented

    @classmethod
    def of(cls, *columns: str | Column, rows: Iterable[Iterable[str]], title: str = "") -> Table:
        """Make a table from a list of rows."""
        table = cls(*columns, title=title)
        for row in rows:
            table.add(*row)
        return table

    def add(self, *cells: str | Cell, style: str = "") -> None:
        """Add a row; missing cells at its end are empty."""
        if len(cells) > len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        given = [Cell(text) if isinstance(text, str) else text for text in cells]
        self.rows.append(([cell._replace(text=printable(cell.text)) for cell in given], style))

    def printed(self, *, details: bool) -> Table:
        """Return the table without the columns that a terminal does not show."""
        allowed = ("always", "details") if details else ("always",)
        chosen = [i for i, column in enumerate(self.columns) if column.shown in allowed]
        if len(chosen) == len(self.columns):
            return self
        table = Table(*(self.columns[i] for i in chosen), title=self.title, indented=self.indented)
        for cells, style in self.rows:
            table.add(*(cells[i] for i in chosen if i < len(cells)), style=style)
        return table

    @property
    def width(self) -> int:
        """Width in characters if no cell is broken or cut."""
        from rich.cells import cell_len

        widths = [
            max(cell_len(line) for text in texts for line in text.split("\n"))
            for texts in self._texts()
        ]
        return sum(widths) + GAP * (len(widths) - 1) + 2 * self.indented

    def _texts(self) -> list[list[str]]:
        """Return the texts of each column, head first."""
        return [
            [column.name, *(cells[place].text for cells, _ in self.rows if place < len(cells))]
            for place, column in enumerate(self.columns)
        ]

    def __rich__(self) -> RichTable | Group:
        """Return the table for rich; ``console.print(table)`` calls this."""
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=None,
            pad_edge=self.indented,
            header_style="dim",
            padding=(0, 1) if self.indented else (0, GAP, 0, 0),
        )
        for column in self.columns:
            table.add_column(
                Text(column.name),
                justify="right" if column.right else "left",
                no_wrap=not column.breaks,
                overflow="fold" if column.breaks else "ellipsis",
            )
        for cells, style in self.rows:
            table.add_row(
                *(Text(cell.text, style=cell.style) for cell in cells), style=style or None
            )
        # rich would break a title of the table that is wider than the table
        return Group(Text(self.title, style="bold"), table) if self.title else table

    def to_text(self) -> str:
        """Return the table as text of unlimited width without colours, as for a pipe."""
        from rich.console import Console

        width = max(self.width, len(self.title), 1)
        console = Console(width=width, color_system=None, force_terminal=False)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def to_html(self) -> str:
        """Return a ``table`` element with inline styles, as notebooks remove style sheets."""
        head = "".join(
            f'<th scope="col" style="text-align:{_side(column)}">{_literal(column.name)}</th>'
            for column in self.columns
        )
        body = "".join(
            f"<tr{_styled(style)}>"
            + "".join(
                f'<td style="text-align:{_side(column)}{_css(cell.style, ";")}">'
                f"{_literal(cell.text)}</td>"
                for column, cell in zip(self.columns, cells, strict=False)
            )
            + "</tr>"
            for cells, style in self.rows
        )
        caption = (
            f'<caption style="text-align:left;font-weight:bold">{_literal(self.title)}</caption>'
            if self.title
            else ""
        )
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _side(column: Column) -> str:
    return "right" if column.right else "left"


def _css(style: str, before: str = "") -> str:
    return f"{before}{_CSS[style]}" if style in _CSS else ""


def _styled(style: str) -> str:
    return f' style="{_CSS[style]}"' if style in _CSS else ""


def _literal(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def window(stream: Any) -> int | None:
    """Return the width of the terminal of a stream; None for a pipe."""
    limited = stream.isatty() or "COLUMNS" in os.environ
    return console_for(stream).width if limited else None


def console_for(stream: Any) -> Console:
    """Return a console of the terminal's width; for a pipe, of fixed width without colours."""
    from rich.console import Console

    limited = stream.isatty() or "COLUMNS" in os.environ
    return Console(file=stream, width=None if limited else 120, highlight=False)
