"""Diagnoses of weights as tables in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from solvable.report import diagnose_words as words

if TYPE_CHECKING:
    from solvable.report.diagnose_words import Diagnosed


def matrix_table(found: Diagnosed) -> Table:
    """Draw a row per weight matrix.

    Parameters
    ----------
    found : Diagnosed
        With one matrix at least.

    Returns
    -------
    rich.table.Table
        In the order of the file.
    """
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("matrix", "size", "phase"):
        table.add_column(column, no_wrap=True)
    for column in ("noise", "shrinkage", "features", "strongest", "tail exponent"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found.matrices:
        cells = (
            words.noise_text(one),
            words.shrinkage_text(one),
            words.features_text(one),
            words.strongest_text(one),
            words.tail_text(one),
        )
        style = None if one.fitted else "dim"
        table.add_row(one.name, words.size_text(one), one.phase, *cells, style=style)
    return table
