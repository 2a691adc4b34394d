"""Sentences, tables and figures of a probe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import PanelFunction
from solvable.plots.figure import Figure, Series
from solvable.plots.numbers import format_number
from solvable.plots.tables import Column, Table
from solvable.plots.words import counted
from solvable.probes.references import BAYES, KERNEL, SPECTRAL, half_samples
from solvable.probes.results import (
    LearnerCurve,
    ProbeResult,
    curves_in_time,
    curves_of_points,
    references_of,
)
from solvable.probes.system import feature_names
from solvable.probes.targets import LABELS, STRINGS

MOST_LINES = 5
"""Features that a figure shows."""


def line(found: ProbeResult) -> str:
    """Return the answer in one sentence: rows at one half, and ratios to those of theory."""
    in_time = _longest(found.in_time)
    curves = [c for c in found.curves if c.sizes.size > 1 or not in_time]
    sentences = [_sentence(found, curve) for curve in (*curves, *in_time)]
    if found.failures:
        first = found.failures[0]
        sentences.append(
            f"{counted(len(found.failures), 'fit')} failed, the first by {first['learner']} on "
            f"{first['samples']:,} rows: {first['error']}."
        )
    return " ".join(sentences) or "nothing was measured."


def _longest(curves: Sequence[LearnerCurve]) -> list[LearnerCurve]:
    """Return the curve in time with the most rows of each learner."""
    return list({curve.learner: curve for curve in curves}.values())


def _sentence(found: ProbeResult, curve: LearnerCurve) -> str:
    centres, _, _ = curve.halves()
    shown = [k for k, name in enumerate(found.names) if name.startswith("feature")]
    shown = list(dict.fromkeys([shown[0], shown[-1]])) if shown else list(range(len(centres)))[:3]
    what = "reaches one half of" if found.target == STRINGS else "learns half of"
    parts = []
    for place, k in enumerate(shown):
        ratios = []
        for name, owner in ((BAYES, f"the {BAYES} "), (SPECTRAL, f"the {SPECTRAL}'s ")):
            known = not curve.rows and name in found.references
            half = found.half_of(name)[k] if known else np.nan
            if 0 < half < np.inf and 0 < centres[k] < np.inf:
                ratio = format_number(centres[k] / half, 2)
                ratios.append(f"{ratio} times {'' if place else owner}{half:,.0f}")
        text = f"{found.names[k]} {_at(centres[k], curve)}"
        parts.append(text + (f" ({', '.join(ratios)})" if ratios else ""))
    learner = f"On {curve.rows:,} rows {curve.learner}" if curve.rows else curve.learner
    return f"{learner} {what} {', '.join(parts)}."


def _at(half: float, curve: LearnerCurve) -> str:
    if half == 0:
        return f"within {curve.sizes[0]:,.0f} {curve.unit}"
    if not np.isfinite(half):
        return f"not within {curve.sizes[-1]:,.0f} {curve.unit}"
    return f"at {float(f'{half:.3g}'):,.0f} {curve.unit}"


def share_table(found: ProbeResult, curve: LearnerCurve) -> Table:
    """Tabulate learned shares of one learner: a row a number of rows, a column a feature."""
    further = [
        (name, title)
        for name, title in (
            ("together_share", "together"), ("rest", "rest"),
            ("excess_rest", "excess"), ("error", "error"), ("gradient_inside", "gradient inside"),
            ("common_rest", "common rest"),
        )
        if np.isfinite(curve.others.get(name, np.array(np.nan))).any()
    ]  # fmt: skip
    heads = [Column("rows n", right=True), *_heads(found)]
    heads += [Column(title, right=True) for _, title in further]
    table = Table(*heads, title=f"{curve.learner}: learned share")
    for i, n in enumerate(curve.sizes):
        cells = [
            f"{mean:.2f} ± {error:.2f}" if np.isfinite(error) else f"{mean:.2f}"
            for mean, error in zip(curve.mean[i], curve.error[i], strict=True)
        ]
        values = (float(curve.others[name][i]) for name, _ in further)
        cells += [f"{value:.2f}" if np.isfinite(value) else "-" for value in values]
        table.add(f"{n:,.0f}", *cells)
    return table


def _heads(found: ProbeResult) -> list[Column]:
    """Columns of the features; many have short names."""
    short = len(found.names) > MOST_LINES
    names = [name.removeprefix("feature ") if short else name for name in found.names]
    return [Column(name.replace(" features", ""), right=True) for name in names]


def half_table(found: ProbeResult, curves: Sequence[LearnerCurve]) -> Table:
    """Tabulate the rows, or steps, at one half of learners, and of references for rows."""
    in_time = bool(curves and curves[0].rows)
    table = Table(
        Column(f"{'steps' if in_time else 'rows'} at half of", wrap=False), *_heads(found)
    )
    for curve in curves:
        cells = []
        for centre, low, high in zip(*curve.halves(), strict=True):
            text = _cell(centre, curve)
            if 0 < centre < np.inf:
                upper = f"{high:,.0f}" if np.isfinite(high) else "?"
                text += f" ({low:,.0f} to {upper})"
            cells.append(text)
        table.add(curve.learner + (f", {curve.rows:,} rows" if in_time else ""), *cells)
    for name in () if in_time else found.references:
        halves = found.half_of(name)
        cells = ["-" if not 0 < half < np.inf else f"{half:,.0f}" for half in halves]
        table.add(f"{name}, theory", *cells)
    return table


def _cell(half: float, curve: LearnerCurve) -> str:
    if half == 0:
        return f"< {curve.sizes[0]:,.0f}"
    return f"> {curve.sizes[-1]:,.0f}" if not np.isfinite(half) else f"{half:,.0f}"


def notes(found: ProbeResult) -> list[str]:
    """Sentences below the tables: what the columns mean, and how the intervals were made."""
    count = min((len(rows) for curve in found.curves for rows in curve.replicates), default=0)
    said = [
        "In brackets: 90 % interval of a bootstrap over replicates."
        if count >= 4
        else "In brackets: smallest and largest of the replicates; from 4 replicates on, an interval.",
    ]
    if found.target not in (STRINGS, LABELS):
        said.append(
            "rest: variance of the fitted function outside the target's parts; excess: the same in units "
            "of a calibrated learner with these shares (about 1; above: noise was fitted)."
        )
    chance = next((c.others["gradient_chance"][0] for c in found.curves
                   if "gradient_chance" in c.others), None)  # fmt: skip
    if chance is not None:
        said.append(
            "gradient inside: part of the average gradient outer product in the hidden subspace, "
            f"{chance:.2f} by chance."
        )
    observed = {curve.learner for curve in found.in_time}
    silent = [c.learner for c in found.curves if found.steps and c.learner not in observed]
    if silent:
        said.append(f"Not observed in training, as they cannot be: {', '.join(silent)}.")
    if any("common_rest" in curve.others for curve in found.curves):
        said.append("common rest: correlation of the rests of two starts on the same rows.")
    return said


def tables(found: ProbeResult) -> list[Table]:
    """Return the tables of the result."""
    shares = [share_table(found, curve) for curve in found.curves]
    halves = [half_table(found, curves) for curves in (found.curves, found.in_time) if curves]
    return [*shares, *halves]


def rows(found: ProbeResult) -> Sequence[Mapping[str, Any]]:
    """Return a row for each learner, number of rows and feature."""
    return found.table


def figures(found: ProbeResult) -> list[Figure]:
    """Return a figure of shares for each learner, and one of the rows at one half."""
    return drawn(found.curves, found.in_time, found.names, found.references, found.target)


def drawn(
    curves: Sequence[LearnerCurve],
    in_time: Sequence[LearnerCurve],
    names: tuple[str, ...],
    references: Mapping[str, tuple[np.ndarray, np.ndarray]],
    target: str,
) -> list[Figure]:
    """Draw all figures of a probe."""
    made = [_shares(curve, names, references, target) for curve in curves]
    made += [_shares(curve, names, {}, target) for curve in _longest(in_time)]
    if curves and target not in (STRINGS,):
        made.append(_halves(curves, names, references, target))
    return made


def _shares(
    curve: LearnerCurve,
    names: tuple[str, ...],
    references: Mapping[str, tuple[np.ndarray, np.ndarray]],
    target: str,
) -> Figure:
    """Draw learned shares against the number of rows, points for the learner and lines for theory."""
    chosen = np.unique(np.linspace(0, len(names) - 1, min(MOST_LINES, len(names))).astype(int))
    reference = next((name for name in (SPECTRAL, BAYES, KERNEL) if name in references), None)
    series = []
    for colour, k in enumerate(chosen):
        series.append(
            Series(names[k], curve.sizes, curve.mean[:, k], "points", curve.error[:, k], colour)
        )
        if reference is not None:
            sizes, shares = references[reference]
            near = (sizes > curve.sizes[0] / 2) & (sizes < curve.sizes[-1] * 2)
            series.append(Series("", sizes[near], shares[near, k], "line", colour=colour))
    said = f"Points: {curve.learner}, with standard errors."
    if reference is not None:
        said += f" Lines: {reference}, theory."
    label = "invariance, share of the label" if target == STRINGS else "learned share"
    title = f"What {curve.learner} learns of {target}"
    if curve.rows:
        title += f" in time, {curve.rows:,} rows"
    return Figure(
        f"{'steps' if curve.rows else 'shares'}-{_slug(curve.learner)}",
        title + (f" (lines: {reference}, theory)" if reference else ""),
        "training steps" if curve.rows else "training rows n",
        label,
        series,
        said,
        x_scale="log",
        y_range=(-0.1, 1.25),
    )


def _halves(
    curves: Sequence[LearnerCurve],
    names: tuple[str, ...],
    references: Mapping[str, tuple[np.ndarray, np.ndarray]],
    target: str,
) -> Figure:
    """Draw the rows at one half of each feature, for learners and theory."""
    kept = [k for k, name in enumerate(names) if not name.startswith("low")]
    x = np.arange(1, len(kept) + 1)
    series = []
    for colour, curve in enumerate(curves):
        centre, low, high = (part[kept] for part in curve.halves())
        known = np.isfinite(centre) & (centre > 0)
        spread = np.where(np.isfinite(high), high, np.nan) - np.where(low > 0, low, np.nan)
        series.append(
            Series(curve.learner, x[known], centre[known], "points", spread[known] / 3.29, colour)
        )
    for colour, (name, (sizes, shares)) in enumerate(references.items(), len(curves)):
        halves = np.array([half_samples(sizes, shares[:, k]) for k in kept])
        halves[~(np.isfinite(halves) & (halves > 0))] = np.nan
        kind: Literal["line", "dashed"] = "line" if name != KERNEL else "dashed"
        series.append(Series(f"{name}, theory", x, halves, kind, colour=colour))
    return Figure(
        "half-shares",
        f"Rows at which half of a feature of {target} is learned",
        "products of inputs, by size" if target == LABELS else "feature, the strongest first",
        "training rows n",
        series,
        "Points: learners; error bars are standard errors from replicates. Lines: theory.",
        y_scale="log",
    )


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name).strip("-")[:60] or "learner"


def _panel(curves: Sequence[Curve]) -> list[Figure]:
    """Draw the figures of a run directory's report."""
    points = [point for curve in curves for point in curve.points]
    target, settings = (str(points[0].parameters[name]) for name in ("target", "settings"))
    names, own = feature_names(target, settings), curves_of_points(points)
    sizes = np.concatenate([curve.sizes for curve in own])
    references = references_of(target, settings, names, sizes)
    return drawn(own, curves_in_time(points), names, references, target)


PANELS: Iterable[PanelFunction] = (_panel,)
