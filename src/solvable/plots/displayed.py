"""Display of results: a short text, tables in a notebook, a data frame, figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from solvable.errors import InvalidParameter, unknown_choice
from solvable.plots.figure import Figure
from solvable.plots.matplotlib_backend import draw_matplotlib
from solvable.plots.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


class View(Protocol):
    """Interface of the module that displays one kind of result."""

    def line(self, found: Any) -> str:
        """Return the result in one line."""

    def tables(self, found: Any) -> Iterable[Table]:
        """Return the tables that a notebook shows."""

    def rows(self, found: Any) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the data frame."""

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

    def to_dataframe(self) -> Any:
        """Return the numbers as a ``pandas.DataFrame``; pandas must be installed."""
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise InvalidParameter(
                f"a data frame needs pandas, which cannot be imported ({error}). Install it: "
                "pip install pandas"
            ) from error
        return pandas.DataFrame(list(self._viewed().rows(self)))

    @property
    def figure_names(self) -> list[str]:
        """Names that :meth:`figure` accepts."""
        return [figure.name for figure in self._viewed().figures(self)]

    def figure(self, name: str) -> MatplotlibFigure:
        """Draw a figure with matplotlib; :attr:`figure_names` lists the names."""
        for figure in self._viewed().figures(self):
            if figure.name == name:
                return draw_matplotlib(figure)
        raise InvalidParameter(unknown_choice("figure", name, self.figure_names))
