"""The phase diagram as a figure: marked cells, edges as lines, hatched where the theory ends."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from solvable.plots.figure import Figure, Region, Series
from solvable.scale.phases import Cell, Limit, PhaseDiagram, listed
from solvable.scale.polygons import Point, Polygon, area, centroid, clip, line_through, sides
from solvable.scale.words import power

SIZE = (5.2, 3.5)  # inches of the axes
LINE, CHARACTER = 0.155, 0.075  # inches: height of a line of a mark, width of one of its characters


def mark(number: int) -> str:
    """Letter of a cell in the figure and in the tables: A to Z, then A1, ..."""
    letters = string.ascii_uppercase
    return letters[number % 26] + (str(number // 26) if number >= 26 else "")


def phase_figure(diagram: PhaseDiagram, *, title: str = "", quantity: str = "samples") -> Figure:
    """Cells, edges and limits of validity of a phase diagram."""
    # Cells of one exponent have one colour, whatever the patterns that tie.
    forms = list(dict.fromkeys(cell.form for cell in diagram.cells))
    regions, small = [], []
    for number, cell in enumerate(diagram.cells):
        text, place = _label(mark(number), cell, diagram)
        small += [] if place else [mark(number)]
        label = f"{mark(number)}: {quantity} {power('d', cell.form)}, {listed(cell.names, 3)}"
        polygons = [_array(piece) for piece in cell.pieces]
        regions.append(Region(label, polygons, forms.index(cell.form), mark=text, at=place))
    outside = [_array(limit.outside) for limit in diagram.limits]
    names = [limit.name for limit in diagram.limits]
    if outside:
        regions.append(Region(f"hatched: {listed(names)}", outside, -1, hatched=True))
    caption = "A line is where the exponent changes its form, a dashed one where only ties do."
    if diagram.point:
        at = ", ".join(f"{symbol} = {number}" for symbol, number in sorted(diagram.point.items()))
        caption += f" At {at}."
    if small:
        caption += f" Too small for a mark: {listed(small, 8)}; see the table."
    return Figure(
        "phase-diagram",
        title or f"Phases over {diagram.x} and {diagram.y}",
        f"{diagram.x} (exponent of d)",
        f"{diagram.y} (exponent of d)",
        _edges(diagram),
        caption,
        regions=regions,
    )


def _edges(diagram: PhaseDiagram) -> list[Series]:
    """Edges as two broken lines: where the form changes, and where only the patterns that tie do."""
    parts: dict[bool, list[tuple[Point, ...]]] = {True: [], False: []}
    for edge in diagram.edges:
        first, second = (diagram.cells[number] for number in edge.cells)
        parts[first.form != second.form].append((edge.start, edge.end))
    return [
        _broken("", parts[True], "line"),
        _broken("", parts[False], "dashed"),
    ]


def _label(
    letter: str, cell: Cell, diagram: PhaseDiagram
) -> tuple[str, tuple[float, float] | None]:
    """What fits into a cell, the letter with its exponent or alone, and where; else nothing."""
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
        rooms = [_room(part, size) for part in _parts(cell.pieces, diagram.limits)]
        widest = max((room for room in rooms if room), key=area, default=None)
        if widest:
            x, y = centroid(widest)
            return "\n".join(lines), (float(x), float(y))
    return "", None


def _parts(pieces: Iterable[Polygon], limits: Sequence[Limit]) -> list[Polygon]:
    """Pieces cut along the limits of validity, so that no mark stands on such a line."""
    parts = list(pieces)
    for limit in limits:
        if limit.segment:
            line = line_through(*limit.segment)
            halves = [
                clip(part, side) for part in parts for side in (line, tuple(-c for c in line))
            ]
            parts = [half for half in halves if half]
    return parts


def _room(polygon: Polygon, size: Sequence[Fraction]) -> Polygon:
    """Where the middle of a box of this size can be so that all of it is inside a convex polygon."""
    room = polygon
    for first, second in sides(polygon):
        # The inside is on the left of each side: a x + b y + c >= 0.
        a, b = first[1] - second[1], second[0] - first[0]
        inset = (abs(a) * size[0] + abs(b) * size[1]) / 2
        room = clip(room, (-(a * first[0] + b * first[1]) - inset, a, b)) if room else room
    return room


def _array(polygon: Polygon) -> np.ndarray:
    return np.array([[float(x) for x in corner] for corner in polygon])


def _broken(label: str, segments: Sequence[tuple[Point, ...]], kind: str) -> Series:
    """Segments as one series with gaps."""
    gap = (np.nan, np.nan)
    rows = [row for segment in segments for row in (*(map(float, end) for end in segment), gap)]
    x, y = zip(*map(tuple, rows), strict=True) if rows else ((), ())
    return Series(label, x, y, kind, colour=-1)  # type: ignore[arg-type]
