"""Show a comparison of activations: a sentence, tables, rows of a data frame, and a figure."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from solvable.frame.traces import spread_entries
from solvable.models.multi_index.activations import (
    Activation,
    Activations,
    Ratio,
    compare_activations,
)
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
    needed: dict[str, list[str]] = {}
    hard: list[str] = []
    unknown: list[str] = []
    for row in ordered(found):
        last = _last(row.threshold_ratio)
        if last is not None:
            needed.setdefault(format_number(last, 4), []).append(row.name)
        else:
            (unknown if row.generative_exponent is None else hard).append(row.name)
    values = [f"n/d > {ratio} with {listed(names, 20)}" for ratio, names in needed.items()]
    parts = [f"at {listed(values, 9)}"] if values else []
    parts += [f"at no fixed n/d with {listed(hard, 9)}"] if hard else []
    parts += [f"at an unknown n/d with {listed(unknown, 9)}"] if unknown else []
    noise = format_number(found.noise)
    return f"At noise {noise} a first-order method finds {goal} {'; '.join(parts)}."


def ordered(found: Activations) -> list[Activation]:
    """Activations by what differs: thresholds, then exponent, then its coefficient, the largest first."""

    def key(row: Activation) -> tuple[float, ...]:
        values = (_last(row.threshold_ratio), _last(row.information_threshold_ratio),
                  row.noise_sensitivity_exponent)  # fmt: skip
        # thresholds that are equal up to rounding do not order
        known = (inf if value is None else float(f"{value:.6g}") for value in values)
        return (*known, -(row.coefficient or 0.0))

    return sorted(found.rows, key=key)


def _last(ratio: Ratio) -> float | None:
    return ratio[-1] if isinstance(ratio, tuple) else ratio


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
    # rows with the same thresholds and exponent differ in the coefficient alone
    kinds = {(*map(str, _ratios(row)), row.noise_sensitivity_exponent) for row in found.rows}
    names = ["c"] if len(kinds) < len(found.rows) else []
    names = ["parity", "information", "generative", "c"] if details else names
    table = Table("activation", *(Column(name, right=True) for name in [*ratios, "β*", *names]))
    for row in ordered(found):
        power = row.noise_sensitivity_exponent
        exponent = "infinite" if power == inf else format_number(power)
        thresholds = [] if many else _ratios(row)
        more = _exponents(row)[-len(names) :] if names else []
        table.add(row.name, *thresholds, exponent, *more)
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
