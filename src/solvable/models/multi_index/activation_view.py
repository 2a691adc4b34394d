"""Show a comparison of activations: a sentence, tables, rows of a data frame, and a figure."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from solvable.frame.traces import spread_entries
from solvable.models.multi_index.activations import Activation, Activations, compare_activations
from solvable.plots.figure import Figure, Series
from solvable.plots.numbers import MISSING, format_number
from solvable.plots.tables import Column, Table
from solvable.plots.words import listed


def line(found: Activations) -> str:
    """Return a line that names the activations and the noise level."""
    names = ", ".join(row.name for row in found.rows)
    sums = "" if found.directions == 1 else f", {found.directions} directions"
    return f"{names} at noise {format_number(found.noise)}{sums}"


def answer(found: Activations) -> str:
    """Return a sentence on the samples per dimension that each activation needs."""
    if found.decay is not None:
        goal = f"the weakest of {found.directions} features"
    else:
        goal = "the direction" if found.directions == 1 else f"all {found.directions} directions"
    needed: list[tuple[float, str]] = []
    hard: list[str] = []
    unknown: list[str] = []
    for row in found.rows:
        ratio = row.threshold_ratio
        last = ratio[-1] if isinstance(ratio, tuple) else ratio
        if last is not None:
            needed.append((last, row.name))
        else:
            (unknown if row.generative_exponent is None else hard).append(row.name)
    values = [f"n/d > {format_number(n, 4)} with {name}" for n, name in sorted(needed)]
    parts = [f"at {listed(values, 9)}"] if values else []
    parts += [f"at no fixed n/d with {listed(hard, 9)}"] if hard else []
    parts += [f"at an unknown n/d with {listed(unknown, 9)}"] if unknown else []
    noise = format_number(found.noise)
    return f"At noise {noise} a first-order method finds {goal} {'; '.join(parts)}."


def rows(found: Activations) -> list[dict[str, Any]]:
    """Return one row per activation for a data frame."""
    return [row.to_dict() for row in found.rows]


def figures(found: Activations) -> list[Figure]:
    """Draw the threshold n/d against noise for the activations that have a threshold."""
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
            ("dashed", f"{name}, any method", "information_threshold_ratio"),
        ):
            values = np.array([getattr(part, metric) for part in parts], dtype=float)
            series.append(Series(label, noises, values, kind, colour=colour))  # type: ignore[arg-type]
    return [
        Figure(
            "samples",
            "Samples per dimension against noise",
            "noise variance / activation variance",
            "sample ratio n/d",
            series,
            "Solid: n/d from which the best first-order method finds the direction. Dashed: n/d from "
            "which a method of unlimited computing time finds it.",
            x_scale="log",
            y_scale="log",
        )
    ]


def tables(found: Activations, *, details: bool = True) -> list[Table]:
    """Tables of thresholds and exponents; with a decay, also a table of each feature's threshold."""
    many = found.decay is not None
    ratios = [] if many else ["n/d", "n/d, any method"]
    names = ["parity", "information", "generative", "c"] if details else []
    table = Table("activation", *(Column(name, right=True) for name in [*ratios, "β*", *names]))
    for row in found.rows:
        power = row.noise_sensitivity_exponent
        exponent = "infinite" if power == inf else format_number(power)
        thresholds = [] if many else _ratios(row)
        table.add(row.name, *thresholds, exponent, *(_exponents(row) if details else []))
    return [table, _features(found)] if many else [table]


def _exponents(row: Activation) -> list[str]:
    return [
        row.parity,
        format_number(row.information_exponent),
        format_number(row.generative_exponent),
        format_number(row.coefficient),
    ]


def _ratios(row: Activation) -> list[str]:
    values = (row.threshold_ratio, row.information_threshold_ratio)
    return [MISSING if isinstance(v, tuple) else format_number(v, 4) for v in values]


def _features(found: Activations) -> Table:
    """Table of the thresholds n/d of selected features, two columns per activation."""
    columns = []
    for row in found.rows:
        columns.append((row.name, row.threshold_ratio, 4))
        if isinstance(row.information_threshold_ratio, tuple):
            # state evolution of all features determines these to about 2 %
            columns.append((f"{row.name}, any method", row.information_threshold_ratio, 2))
    table = Table(
        Column("feature", right=True), *(Column(name, right=True) for name, *_ in columns),
        title="n/d above which a first-order method, or any method, finds each feature",
    )  # fmt: skip
    for k in spread_entries(found.directions):
        values = [
            format_number(ratio[k], digits) if isinstance(ratio, tuple) else MISSING
            for _, ratio, digits in columns
        ]
        table.add(str(k + 1), *values)
    return table
