"""Curves of several runs on one axis: figures of equal names, with a colour for each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from solvable.frame.panels import suffix_of
from solvable.plots.figure import Figure, Marker, Series
from solvable.study.results import StudyResult

MOST_RUNS = 8
"""Largest number of runs in a figure; the first run is in every figure."""

MOST_COLOURS = 6
"""Largest number of colours in a figure of several quantities; otherwise each has its own figure."""


class Part(NamedTuple):
    """A figure of one run, with the label and the colour of the run."""

    label: str
    figure: Figure


def overlaid(labels: Sequence[str], results: Sequence[StudyResult]) -> list[Figure]:
    """Return one figure for each name that two runs share; :func:`single` lists the other names."""
    made: list[Figure] = []
    systems = {result.system.name for result in results}
    for (system, name), parts in _groups(labels, results).items():
        own = name if len(systems) == 1 else f"{system}-{name}"
        for number, chunk in enumerate(_chunks(parts), start=1):
            for suffix, quantity in _quantities(chunk):
                ending = suffix + (f"-{number}" if number > 1 else "")
                taken = {figure.name.lower() for figure in made}
                made.append(_together(_free(own[: 99 - len(ending)] + ending, taken), quantity))
    return made


def single(labels: Sequence[str], results: Sequence[StudyResult]) -> list[tuple[str, str]]:
    """Return label and title of each figure that only one run has."""
    seen = _all(labels, results).values()
    return [(parts[0].label, parts[0].figure.title) for parts in seen if len(parts) == 1]


def _groups(
    labels: Sequence[str], results: Sequence[StudyResult]
) -> dict[tuple[str, str], list[Part]]:
    return {key: parts for key, parts in _all(labels, results).items() if len(parts) > 1}


def _all(
    labels: Sequence[str], results: Sequence[StudyResult]
) -> dict[tuple[str, str], list[Part]]:
    """Return the figures of equal system, name and axes."""
    groups: dict[tuple[str, str], list[Part]] = {}
    for label, result in zip(labels, results, strict=True):
        for figure in result.drawn:
            if not figure.series:  # a panel that raised
                continue
            parts = groups.setdefault((result.system.name, figure.name), [])
            axes = [(one.figure.x_label, one.figure.y_label) for one in parts[:1]]
            if axes in ([], [(figure.x_label, figure.y_label)]):
                parts.append(Part(label, figure))
    return groups


def _chunks(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Split many runs into several figures, each with the first run."""
    step = MOST_RUNS - 1
    for start in range(1, len(parts), step):
        yield [parts[0], *parts[start : start + step]]


def _measured(parts: Sequence[Part]) -> dict[int, str]:
    """Return the colours that have measured points, with the first label of each."""
    found: dict[int, str] = {}
    for part in parts:
        for row in part.figure.series:
            if row.kind in ("points", "histogram"):
                found.setdefault(row.colour, row.label)
    return found


def _quantities(parts: Sequence[Part]) -> Iterator[tuple[str, list[Part]]]:
    """Split figures with too many colours into one for each measured quantity."""
    measured = _measured(parts)
    if len(measured) <= 1 or len(measured) * len(parts) <= MOST_COLOURS:
        yield "", list(parts)
        return
    for colour, word in measured.items():
        kept = []
        for label, figure in parts:
            rows = [row for row in figure.series if row.colour == colour]
            lines = [line for line in figure.markers if line.colour in (-1, colour)]
            if rows:
                title = f"{figure.title}: {word}"
                own = replace(figure, title=title, series=rows, markers=lines)
                kept.append(Part(label, own))
        yield suffix_of(word)[:40], kept


def _free(name: str, taken: set[str]) -> str:
    """Return the name, or the name with a number if it is taken."""
    own, count = name, 1
    while own.lower() in taken:
        count += 1
        own = f"{name[: 98 - len(str(count))]}-{count}"
    return own


def _together(name: str, parts: Sequence[Part]) -> Figure:
    """Draw the same figure of several runs on one axis."""
    first = parts[0].figure
    measured = _measured(parts)
    colours = list(measured)
    step = max(len(colours), 1)
    series: list[Series] = []
    for place, (run, figure) in enumerate(parts):
        for row in figure.series:
            shared = all(any(_equal(row, line) for line in p.figure.series) for p in parts)
            if shared and place:
                continue
            # a prediction and its measurement share an entry of the legend
            plain = row.kind != "dashed" and row.colour in measured
            own = row.label if shared or not plain else measured[row.colour] * (step > 1)
            words = f"{own}, all runs" if shared else ", ".join(filter(None, [run, own]))
            number = colours.index(row.colour) if row.colour in measured else 0
            colour = -1 if shared else place * step + number
            series.append(_as_points(replace(row, label=words, colour=colour)))
    titles = {part.figure.title for part in parts}
    title = first.title if len(titles) == 1 else first.title.split(" (")[0]
    scales = {(part.figure.x_scale, part.figure.y_scale) for part in parts}
    return replace(
        first,
        name=name,
        title=title,
        caption=" ".join(filter(None, [first.caption, "Each run has its own colour."])),
        series=series,
        markers=_markers(parts, step),
        x_scale="linear" if len(scales) > 1 else first.x_scale,
        y_scale="linear" if len(scales) > 1 else first.y_scale,
        y_range=_range([part.figure.y_range for part in parts]),
    )


def _equal(one: Series, other: Series) -> bool:
    """Return True for the same line of the theory, up to the values between which it is drawn."""
    if (one.label, one.kind, one.colour) != (other.label, other.kind, other.colour):
        return False
    if one.kind not in ("line", "dashed") or one.error is not None:
        return False
    a, x = np.asarray(one.x, dtype=float), np.asarray(other.x, dtype=float)
    b, y = np.asarray(one.y, dtype=float), np.asarray(other.y, dtype=float)
    if a.shape == x.shape and np.allclose(a, x, rtol=1e-9, equal_nan=True):
        return bool(np.allclose(b, y, rtol=1e-6, atol=1e-12, equal_nan=True))
    known = np.isfinite(x) & np.isfinite(y)
    if not (np.isfinite(a).all() and known.any() and np.all(np.diff(x[known]) > 0)):
        return False
    if not np.allclose([a.min(), a.max()], [x[known].min(), x[known].max()], rtol=1e-6):
        return False
    return bool(np.allclose(b, np.interp(a, x[known], y[known]), rtol=5e-3, atol=1e-9))


def _as_points(row: Series) -> Series:
    """Replace a histogram by points at the centres of its bins, as bars would hide each other."""
    if row.kind != "histogram":
        return row
    edges, heights = np.asarray(row.x, dtype=float), np.asarray(row.y, dtype=float)
    shown = heights > 0
    centres = (edges[:-1] + edges[1:]) / 2
    return replace(row, x=centres[shown], y=heights[shown], kind="points")


def _markers(parts: Sequence[Part], step: int) -> list[Marker]:
    """Return the vertical lines; those that not all runs have are named by their run."""
    made: list[Marker] = []
    for place, (run, figure) in enumerate(parts):
        for line in figure.markers:
            everywhere = all(
                any(
                    other.label == line.label and np.isclose(other.x, line.x, rtol=1e-6)
                    for other in part.figure.markers
                )
                for part in parts
            )
            if everywhere and place:
                continue
            words = line.label if everywhere else ", ".join(filter(None, [line.label, run]))
            made.append(Marker(line.x, words, -1 if everywhere else place * step))
    return made


def _range(limits: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    """Return limits that hold all given ones; None if a figure has none."""
    given = [pair for pair in limits if pair is not None]
    if len(given) < len(limits):
        return None
    return min(low for low, _ in given), max(high for _, high in given)
