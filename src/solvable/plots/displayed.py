"""What results have in common: a short text, tables in a notebook, a data frame, figures."""

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
    """The module that says how one kind of result is shown."""

    def line(self, found: Any) -> str:
        """The result in one line."""

    def tables(self, found: Any) -> Iterable[Table]:
        """What a notebook shows."""

    def rows(self, found: Any) -> Sequence[Mapping[str, Any]]:
        """Rows of the data frame, by name of the column."""

    def figures(self, found: Any) -> Iterable[Figure]:
        """Figures by their names."""


class Shown:
    """A result that a notebook, a data frame and matplotlib can show.

    A class names the module of its :class:`View`, ``class Result(Shown, view="package.view")``: it
    is imported when something is shown, because words and figures are built on the result.
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
        """The numbers as a ``pandas.DataFrame``; pandas must be installed."""
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
        """What :meth:`figure` can draw."""
        return [figure.name for figure in self._viewed().figures(self)]

    def figure(self, name: str) -> MatplotlibFigure:
        """Draw one of the figures with matplotlib; :attr:`figure_names` lists them."""
        for figure in self._viewed().figures(self):
            if figure.name == name:
                return draw_matplotlib(figure)
        raise InvalidParameter(unknown_choice("figure", name, self.figure_names))
