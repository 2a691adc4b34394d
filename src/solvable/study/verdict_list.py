"""Lists of verdicts and of power rows that show themselves as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypeVar

from solvable.frame.claims import Verdict
from solvable.frame.power import PowerRow
from solvable.plots.frames import imported
from solvable.plots.table_text import to_latex, to_markdown
from solvable.plots.tables import Table
from solvable.study.tables import power_table, verdict_fields, verdict_table

Row = TypeVar("Row")


class TableList(list[Row], ABC):
    """A list whose rows are shown as a table; a copy or a slice of it is a plain list."""

    @abstractmethod
    def table(self, *, details: bool = False) -> Table:
        """Return the rows as a table of text, as the terminal shows them."""

    @abstractmethod
    def _rows(self) -> Iterable[dict[str, Any]]:
        """Return one row per entry for a data frame."""

    def __repr__(self) -> str:
        return self.table().to_text() if self else "[]"

    def _repr_html_(self) -> str:
        return self.table().to_html()

    def to_dataframe(self) -> Any:
        """Return the numbers, not rounded, as a ``pandas.DataFrame``; pandas must be installed."""
        return imported("pandas", "a data frame").DataFrame(list(self._rows()))

    def to_latex(self, *, details: bool = False) -> str:
        r"""Return a LaTeX ``tabular``; the document needs ``\usepackage{booktabs}``."""
        return to_latex(self.table(details=details))

    def to_markdown(self, *, details: bool = False) -> str:
        """Return a Markdown table."""
        return to_markdown(self.table(details=details))


class Verdicts(TableList[Verdict]):
    r"""Verdicts of a study: a list of :class:`~solvable.frame.claims.Verdict` that is also a table.

    Numbers are rounded by their standard errors, as in the terminal. ``details=True`` adds the
    column "replicates" to LaTeX and Markdown; ``to_dataframe()`` has every
    field, not rounded.

    Examples
    --------
    >>> import solvable
    >>> found = solvable.run(
    ...     "quadratic-network", preset=None, dimension=10, samples=[40, 60], seeds=2, workers=1
    ... )
    >>> print(found.verdicts.to_markdown().splitlines()[0])
    | verdict | claim | measured | predicted | tolerance | would notice |
    >>> found.verdicts.to_latex().splitlines()[0]
    '\\begin{tabular}{llrrrr}'
    """

    def table(self, *, details: bool = False) -> Table:
        """Return the table of the terminal; details are the replicates of each claim."""
        return verdict_table(self, details=details)

    def _rows(self) -> Iterable[dict[str, Any]]:
        return [{"claim": row.claim, "outcome": row.outcome, **verdict_fields(row)} for row in self]


class PowerRows(TableList[PowerRow]):
    """Smallest errors of predictions with which claims fail: a list that is also a table."""

    def table(self, *, details: bool = False) -> Table:
        """Return the table of ``solvable verify --power``; it has no details."""
        return power_table(self)

    def _rows(self) -> Iterable[dict[str, Any]]:
        return [asdict(row) for row in self]
