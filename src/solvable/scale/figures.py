"""Figure of a phase diagram: labelled cells, edges, and hatching where the theory is not valid."""

from __future__ import annotations

import string
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from solvable.plots.figure import Figure, Marker, Region, Series
from solvable.plots.words import listed
from solvable.scale.exponents.linear_forms import power
from solvable.scale.phases.diagram import Cell, Limit, PhaseDiagram, PhaseLine
from solvable.scale.phases.polygons import Point, Polygon, area, centroid, clip, line_through, sides

SIZE = (5.2, 3.5)  # width and height of the axes in inches
LINE, CHARACTER = (
    0.155,
    0.075,
)  # height of a text line and width of a character in a label, in inches


def mark(number: int) -> str:
    """Return the letter that names a cell in the figure and the tables: A to Z, then A1, ..."""
    letters = string.ascii_uppercase
    return letters[number % 26] + (str(number // 26) if number >= 26 else "")


def phase_figure(diagram: PhaseDiagram, *, comparison: bool = False) -> Figure:
    """Draw cells, edges and limits of validity; cells are coloured by exponent or winning network."""
    kinds: list[Hashable] = [c.names if comparison else c.form for c in diagram.cells]
    colours = _colours(kinds, diagram)
    regions, small = [], []
    for number, (cell, kind) in enumerate(zip(diagram.cells, kinds, strict=True)):
        text, place = _label(mark(number), cell, diagram)
        small += [] if place else [mark(number)]
        label = f"{mark(number)}: {power('d', cell.form)} samples, {listed(cell.names, 3)}"
        polygons = [_array(piece) for piece in cell.pieces]
        # A longer legend would exceed the height of the axes; the table lists all cells.
        shown = label if number < 20 else ""
        regions.append(Region(shown, polygons, colours[kind], mark=text, at=place))
    outside = [_array(limit.outside) for limit in diagram.limits]
    if outside:
        names = listed([limit.name for limit in diagram.limits])
        regions.append(Region(f"hatched: {names}", outside, -1, hatched=True))
    edges = _edges(kinds, diagram)
    return Figure(
        "phase-diagram",
        f"{'Fewest samples' if comparison else 'Phases'} over {diagram.x} and {diagram.y}",
        f"{diagram.x} (exponent of d)",
        f"{diagram.y} (exponent of d)",
        edges,
        _caption(diagram, small, comparison=comparison, dashes=len(edges[1].x) > 0),
        regions=regions,
    )


def _caption(diagram: PhaseDiagram, small: Sequence[str], *, comparison: bool, dashes: bool) -> str:
    solid, dashed = (
        ("the winner changes", "exponents")
        if comparison
        else ("the exponent changes its form", "ties")
    )
    text = f"On a solid line {solid}" if diagram.edges else "One cell fills the range"
    text += f"; on a dashed line only {dashed} change." if dashes else "."
    if diagram.point:
        at = ", ".join(f"{symbol} = {number}" for symbol, number in sorted(diagram.point.items()))
        text += f" At {at}."
    if small:
        text += f" Cells too small for a label: {listed(small, 8)}; see the table."
    return text


def line_figure(line: PhaseLine) -> Figure:
    """Draw the sample exponent along one symbol, with its breakpoints."""
    places = [line.box[0][0], *line.breakpoints, line.box[0][1]]
    curve = [float(line.at(place)) for place in places]
    markers = [Marker(float(place), f"{line.x} = {place}") for place in line.breakpoints]
    markers += [
        Marker(
            float(end), f"{'left' if (end,) == max(limit.outside) else 'right'}: {limit.name}", 1
        )
        for limit in line.limits
        for (end,) in limit.segment
    ]
    named = (f"{power('d', cell.form)}: {listed(cell.names, 3)}" for cell in line.cells)
    return Figure(
        "phase-line",
        f"Samples along {line.x}",
        f"{line.x} (exponent of d)",
        "exponent of the number of samples",
        [Series("", [float(place) for place in places], curve)],
        f"From the left: {'; '.join(named)}.",
        markers=markers,
    )


def _colours(kinds: Sequence[Hashable], diagram: PhaseDiagram) -> dict[Hashable, int]:
    """Choose few, distinct colours: each kind gets the least used colour that no neighbour has."""
    neighbours: dict[Hashable, set[Hashable]] = {kind: set() for kind in kinds}
    for edge in diagram.edges:
        first, second = (kinds[number] for number in edge.cells)
        if first != second:
            neighbours[first].add(second)
            neighbours[second].add(first)
    colours: dict[Hashable, int] = {}
    for kind in neighbours:
        used = list(colours.values())
        taken = {colours[other] for other in neighbours[kind] if other in colours}
        # With one more colour than neighbours, a colour is always free; the first six differ when pale.
        free = [i for i in range(max(6, len(taken) + 1)) if i not in taken]
        colours[kind] = min(free, key=lambda i: (used.count(i), i))
    return colours


def _edges(kinds: Sequence[Hashable], diagram: PhaseDiagram) -> list[Series]:
    """Draw the edges as two series: solid where the kind of cell changes, dashed elsewhere."""
    parts: dict[bool, list[tuple[Point, ...]]] = {True: [], False: []}
    for edge in diagram.edges:
        first, second = (kinds[number] for number in edge.cells)
        parts[first != second].append((edge.start, edge.end))
    return [_broken(parts[True], "line"), _broken(parts[False], "dashed")]


def _label(
    letter: str, cell: Cell, diagram: PhaseDiagram
) -> tuple[str, tuple[float, float] | None]:
    """Choose a cell's label (letter with or without exponent) that fits, and the label's position."""
    per_inch = [
        (high - low) / Fraction(inches).limit_denominator(100)
        for (low, high), inches in zip(diagram.box, SIZE, strict=True)
    ]
    for lines in ((letter, str(cell.form)), (letter,)):
        inches = (CHARACTER * (max(map(len, lines)) + 1), LINE * (len(lines) + 0.4))
        size = [
            Fraction(length).limit_denominator(1000) * scale
            for length, scale in zip(inches, per_inch, strict=True)
        ]
        # Positions that do not cross a limit of validity are tried first.
        for parts in (_parts(cell.pieces, diagram.limits), cell.pieces):
            places = [_places(part, size) for part in parts]
            widest = max((place for place in places if place), key=area, default=None)
            if widest:
                x, y = centroid(widest)
                return "\n".join(lines), (float(x), float(y))
    return "", None


def _parts(pieces: Iterable[Polygon], limits: Sequence[Limit]) -> list[Polygon]:
    """Cut the pieces of a cell along the limits of validity."""
    parts = list(pieces)
    for limit in limits:
        if limit.segment:
            line = line_through(*limit.segment)
            halves = [
                clip(part, side) for part in parts for side in (line, tuple(-c for c in line))
            ]
            parts = [half for half in halves if half]
    return parts


def _places(polygon: Polygon, size: Sequence[Fraction]) -> Polygon:
    """Return all points around which a box of this size lies inside a convex polygon."""
    places = polygon
    for first, second in sides(polygon):
        # The polygon lies on the left of each side: a x + b y + c >= 0.
        a, b = first[1] - second[1], second[0] - first[0]
        inset = (abs(a) * size[0] + abs(b) * size[1]) / 2
        side = (-(a * first[0] + b * first[1]) - inset, a, b)
        places = clip(places, side) if places else places
    return places


def _array(polygon: Polygon) -> np.ndarray:
    return np.array([[float(x) for x in corner] for corner in polygon])


def _broken(segments: Sequence[tuple[Point, ...]], kind: Literal["line", "dashed"]) -> Series:
    """Join the segments into one series with gaps between them."""
    gap = (np.nan, np.nan)
    rows = [row for ends in segments for row in (*_array(ends), gap)]
    x, y = np.array(rows).T if rows else np.empty((2, 0))
    return Series("", x, y, kind, colour=-1)
