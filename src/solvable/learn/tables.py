"""Results of learning as tables in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from solvable.learn import words

if TYPE_CHECKING:
    from solvable.learn.results import LayerFound, Learned


def _table(*columns: str, left: int = 1) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < left else "right", no_wrap=place >= left)
    return table


def signal_table(layer: LayerFound) -> Table:
    """Draw the strongest directions, or the classes where there are many.

    Parameters
    ----------
    layer : LayerFound
        What a filter found.

    Returns
    -------
    rich.table.Table
        With the rows at which each direction is expected to emerge.
    """
    if len(layer.signals) > 1:
        table = _table("class", "strongest direction", "emerges at rows", "directions")
        for label, ratio, rows, count in words.class_rows(layer):
            table.add_row(label, f"{ratio} its null", rows, count)
        return table
    table = _table("direction", "strength", "emerges at rows", left=0)
    for one in layer.strongest:
        strength = f"{words.ratio_text(one.ratio)} its null"
        table.add_row(str(one.number), strength, words.emergence_text(one.emergence_rows))
    return table


def method_table(found: Learned) -> Table:
    """Draw the errors of all methods.

    Parameters
    ----------
    found : Learned
        Result.

    Returns
    -------
    rich.table.Table
        One row per method, learned features first.
    """
    table = _table("method", "error", "95 % interval", "difference, points", "")
    table.columns[-1].justify = "left"
    for one in found.methods:
        value, interval = words.percents(one.error, one.lower, one.upper)
        difference = words.difference_text(one)
        verdict = words.VERDICTS[one.verdict] if one.verdict else one.remark and "not measured"
        style = "bold" if one is found.methods[0] else None
        table.add_row(one.title, value, interval, difference, verdict, style=style)
    return table


def outlook_table(found: Learned) -> Table:
    """Draw the error expected with more rows.

    Parameters
    ----------
    found : Learned
        Result.

    Returns
    -------
    rich.table.Table
        One row per multiple of the rows.
    """
    level = f"{100 * found.outlook.confidence:g} % interval"
    table = _table("data", "rows", f"{words.error_name(found)}, expected", level)
    for row in words.expected_rows(found):
        table.add_row(*row)
    return table
