"""Display of results: a short text, tables in a notebook, a data frame, figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.plots.figure import Figure, Series
from solvable.plots.figure_data import FigureData, figure_data
from solvable.plots.frames import flat_rows, imported
from solvable.plots.matplotlib_backend import draw_matplotlib
from solvable.plots.paper import draw_paper
from solvable.plots.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


STYLES = ("report", "paper")


class View(Protocol):
    """Interface of the module that displays one kind of result."""

    def line(self, found: Any) -> str:
        """Return the result in one line."""

    def tables(self, found: Any) -> Iterable[Table]:
        """Return the tables that a notebook shows."""

    def rows(self, found: Any) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the data frame, with lists as they are."""

    def figures(self, found: Any) -> Iterable[Figure]:
        """Return the figures by their names."""


class Shown:
    """Base class of results that notebooks, data frames and matplotlib can show.

    A subclass names the module of its :class:`View`, ``class Result(Shown, view="package.view")``.
    The module is imported when the result is first shown.
    """

    _view: ClassVar[str]

    def __init_subclass__(cls, *, view: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        if view:
            cls._view = view

    @classmethod
    def _viewed(cls) -> View:
        return cast(View, import_module(cls._view))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._viewed().line(self)}>"

    def _repr_html_(self) -> str:
        view = self._viewed()
        tables = "".join(table.to_html() for table in view.tables(self))
        return f"<p><b>{escape(view.line(self))}</b></p>{tables}"

    def to_dataframe(self, *, arrays: bool = False) -> Any:
        """Return the numbers as a ``pandas.DataFrame``; pandas must be installed.

        Lists are left out, or with ``arrays=True`` have a column ``name[i]`` for each entry.
        """
        pandas = imported("pandas", "a data frame")
        return pandas.DataFrame(flat_rows(self._viewed().rows(self), arrays=arrays))

    @property
    def figure_names(self) -> list[str]:
        """Names that :meth:`figure` accepts."""
        return [figure.name for figure in self._viewed().figures(self)]

    def figure(
        self,
        name: str,
        *,
        width: float | None = None,
        style: Literal["report", "paper"] | None = None,
        add: Mapping[str, Sequence[Any]] | None = None,
    ) -> MatplotlibFigure:
        """Draw a figure with matplotlib; :attr:`figure_names` lists the names.

        The style "report" has a title and a caption; "paper" has neither, and is laid out for a
        `width` in inches, 1.7 to 7 (default 3.4). A width alone chooses "paper", which keeps fonts and
        sizes that ``matplotlib.rcParams`` changes. `add` draws points of your own, with their names in
        the legend: ``{"my simulation": (x, y)}`` or ``(x, y, standard_error)``.
        """
        found = with_points(self._described(name), add or {})
        style = style or ("report" if width is None else "paper")
        if style not in STYLES:
            raise InvalidParameter(unknown_choice("style", style, STYLES))
        if style == "paper":
            return draw_paper(found, 3.4 if width is None else width)
        if width is not None:
            raise InvalidParameter(
                f"style is 'report' with width {width:g}; allowed: a width with the style 'paper'. "
                "Leave out one of the two."
            )
        return draw_matplotlib(found)

    def figure_data(self, name: str) -> FigureData:
        """Return the series and vertical lines of a figure as arrays."""
        return figure_data(self._described(name))

    def _described(self, name: str) -> Figure:
        for figure in self._viewed().figures(self):
            if figure.name == name:
                return figure
        raise InvalidParameter(unknown_choice("figure", name, self.figure_names))


def with_points(figure: Figure, added: Mapping[str, Sequence[Any]]) -> Figure:
    """Return the figure with further sets of points, in colours that it does not use."""
    series = list(figure.series)
    for label, columns in added.items():
        arrays = [np.atleast_1d(np.asarray(column, dtype=float)) for column in columns]
        if len(arrays) not in (2, 3) or len({array.shape for array in arrays}) > 1:
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise InvalidParameter(
                f"add[{label!r}] holds arrays of shapes {shapes or 'nothing'}; allowed: x and y, or x, y "
                "and standard errors, of equal length."
            )
        colour = 1 + max((one.colour for one in series), default=-1)
        error = arrays[2] if len(arrays) == 3 else None
        series.append(Series(label, arrays[0], arrays[1], "points", error, colour))
    return replace(figure, series=series)
