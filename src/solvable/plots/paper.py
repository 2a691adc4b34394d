"""Figures at the width of a column of a paper, laid out by the measured sizes of their texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solvable.errors import InvalidParameter
from solvable.plots.canvas import Frame, LegendEntry
from solvable.plots.drawing import draw
from solvable.plots.figure import Figure
from solvable.plots.matplotlib_backend import MatplotlibCanvas
from solvable.plots.paper_layout import Flag, Layout
from solvable.plots.print_settings import settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

NARROWEST, WIDEST = 1.7, 7.0
"""Range of widths in inches."""

SIZES: dict[Any, Any] = {"axes.labelsize": 8.0, "legend.fontsize": 7.0, "xtick.labelsize": 7.0}
SIZES |= {"ytick.labelsize": 7.0, "font.size": 7.5}
# At 72 dots an inch, hinted letters are up to 13 % narrower than in a vector file.
SIZES |= {"text.hinting": "none"}


class PaperCanvas(MatplotlibCanvas):
    """Canvas that collects labels and the legend, and places them when everything is drawn."""

    def __init__(self, width: float, *, titled: bool = False) -> None:
        super().__init__(texts=False)
        self.figure.exact = True
        self._width, self._titled = width, titled
        self.notes: list[str] = []
        self._flags: list[Flag] = []
        self._entries: list[LegendEntry] = []
        self._frame: Frame | None = None

    def begin(self, frame: Frame) -> None:
        """Set up the axes without titles."""
        self._frame = frame
        super().begin(frame)
        self.figure.set_size_inches(self._width, self._width)
        self.axes.set(xlabel="", ylabel="")

    def marker(self, x: float, label: str, *, colour: str, row: int) -> None:
        """Draw a vertical line, and keep its label."""
        super().marker(x, label, colour=colour, row=-1)
        if label:
            self._flags.append(Flag(x, label, colour))

    def legend(self, entries: list[LegendEntry], *, beside: bool) -> None:
        """Keep the legend."""
        self._entries = entries

    def note(self, text: str) -> None:
        """Keep a remark."""
        self.notes += [text] if self._titled else []

    def finish(self) -> None:
        """Place titles, labels and the legend."""
        for line in self.axes.lines:
            line.set(linewidth=0.8 * line.get_linewidth(), markersize=0.75 * line.get_markersize())
        assert self._frame is not None
        kept = self._frame, sorted(self._flags), self._entries
        title = self._frame.title if self._titled else ""
        Layout(self.figure, self.axes, kept, self._width, title, " ".join(self.notes)).place()


def draw_paper(figure: Figure, width: float = 3.4, *, titled: bool = False) -> MatplotlibFigure:
    """Draw a figure for a paper, `width` inches wide, without caption; title and remarks if titled."""
    if not NARROWEST <= width <= WIDEST:  # also refuses NaN
        raise InvalidParameter(
            f"width is {width:g} inches; allowed: {NARROWEST:g} to {WIDEST:g}. A column of a paper is "
            "mostly 3.3 to 3.5 inches wide, and a page 6 to 7."
        )
    with settings(SIZES):
        canvas = PaperCanvas(width, titled=titled)
        draw(figure, canvas)
        canvas.finish()
    drawn: MatplotlibFigure = canvas.figure
    return drawn
