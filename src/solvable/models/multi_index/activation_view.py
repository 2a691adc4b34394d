"""Activations as tables, rows and a figure, for a terminal, a notebook and a page."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from solvable.frame.traces import spread_entries
from solvable.models.multi_index.activations import Activation, Activations, compare_activations
from solvable.plots.figure import Figure, Series
from solvable.plots.numbers import MISSING, format_number
from solvable.plots.tables import Column, Table


def line(found: Activations) -> str:
    """How many, and at which noise."""
    names = ", ".join(row.name for row in found.rows)
    sums = "" if found.directions == 1 else f", {found.directions} directions"
    return f"{names} at noise {format_number(found.noise)}{sums}"


def rows(found: Activations) -> list[dict[str, Any]]:
    """One row for each activation."""
    return [row.to_dict() for row in found.rows]


def figures(found: Activations) -> list[Figure]:
    """Samples against noise, of the activations that have a threshold."""
    noises = np.logspace(-1, 4, 6)
    names = [row.name for row in found.rows if row.threshold_ratio]
    if not names or found.decay is not None:
        return []
    points = [compare_activations(names, noise=n, directions=found.directions).rows for n in noises]
    series = []
    for colour, name in enumerate(names):
        parts = [at[colour] for at in points]
        for kind, label, metric in (
            ("line", name, "threshold_ratio"),
            ("dashed", f"{name}, by information", "information_threshold_ratio"),
        ):
            values = np.array([getattr(part, metric) for part in parts], dtype=float)
            series.append(Series(label, noises, values, kind, colour=colour))  # type: ignore[arg-type]
    return [
        Figure(
            "samples",
            "What noise costs",
            "variance of the label noise (the activation has variance 1)",
            "samples per dimension n/d",
            series,
            "Solid: from which samples the best first-order method finds the direction. Dashed: from "
            "which any method could.",
            x_scale="log",
            y_scale="log",
        )
    ]


def tables(found: Activations) -> list[Table]:
    """Exponents and thresholds; with a decay, the thresholds of some features below."""
    many = found.decay is not None
    names = ["parity", "information", "generative", "β*", "c"]
    ratios = [] if many else ["n/d", "n/d by information"]
    table = Table("activation", *(Column(name, right=True) for name in [*names, *ratios]))
    for row in found.rows:
        table.add(row.name, *_exponents(row), *([] if many else _ratios(row)))
    return [table, _features(found)] if many else [table]


def _exponents(row: Activation) -> list[str]:
    power = row.noise_sensitivity_exponent
    return [
        row.parity,
        format_number(row.information_exponent),
        format_number(row.generative_exponent),
        "infinite" if power == inf else format_number(power),
        format_number(row.coefficient),
    ]


def _ratios(row: Activation) -> list[str]:
    values = (row.threshold_ratio, row.information_threshold_ratio)
    return [MISSING if isinstance(v, tuple) else format_number(v, 4) for v in values]


def _features(found: Activations) -> Table:
    """Thresholds n/d of some features, a column for each activation."""
    table = Table(
        Column("feature", right=True), *(Column(row.name, right=True) for row in found.rows),
        title="n/d from which a first-order method finds each feature",
    )  # fmt: skip
    for k in spread_entries(found.directions):
        values = [row.threshold_ratio for row in found.rows]
        table.add(
            str(k + 1), *(format_number(v[k]) if isinstance(v, tuple) else MISSING for v in values)
        )
    return table
