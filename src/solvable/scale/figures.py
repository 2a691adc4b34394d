"""Figure of a phase diagram: labelled cells, edges, and hatching where the theory is not valid."""

from __future__ import annotations

import string
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from solvable.plots.figure import Figure, Marker, Region, Series
from solvable.plots.words import listed
from solvable.scale.exponents.linear_forms import LinearForm, power
from solvable.scale.phases.diagram import PhaseDiagram
from solvable.scale.phases.polygons import Point, Polygon, area, centroid

LEAST = Fraction(
    1, 150
)  # share of the box from which a piece of a cell is large enough for its letter


def mark(number: int) -> str:
    """Return the letter that names a cell in the figure and the tables: A to Z, then A1, ..."""
    letters = string.ascii_uppercase
    return letters[number % 26] + (str(number // 26) if number >= 26 else "")


def phase_figure(diagram: PhaseDiagram) -> Figure:
    """Draw cells, edges and limits of validity; cells are coloured by exponent."""
    if len(diagram.axes) == 1:
        return _line_figure(diagram)
    colours = _colours(diagram)
    regions, small = [], []
    for number, cell in enumerate(diagram.cells):
        x, y = centroid(cell.pieces[0])
        large = area(cell.pieces[0]) >= LEAST * diagram.area
        small += [] if large else [mark(number)]
        label = f"{mark(number)}: {power('d', cell.form)} samples, {listed(cell.names, 3)}"
        regions.append(
            Region(
                # A longer legend would exceed the height of the axes; the table lists all cells.
                label if number < 20 else "",
                [_array(piece) for piece in cell.pieces],
                colours[cell.form],
                mark=mark(number) if large else "",
                at=(float(x), float(y)) if large else None,
            )
        )
    outside = [_array(limit.outside) for limit in diagram.limits]
    if outside:
        names = listed([limit.name for limit in diagram.limits])
        regions.append(Region(f"hatched: {names}", outside, -1, hatched=True))
    edges = _edges(diagram)
    x_axis, y_axis = diagram.axes
    return Figure(
        "phase-diagram",
        f"Phases over {x_axis} and {y_axis}",
        f"{x_axis} (exponent of d)",
        f"{y_axis} (exponent of d)",
        edges,
        _caption(diagram, small, dashes=len(edges[1].x) > 0),
        regions=regions,
    )


def _caption(diagram: PhaseDiagram, small: Sequence[str], *, dashes: bool) -> str:
    text = "On a solid line the exponent changes its form"
    text = text if diagram.edges else "One cell fills the range"
    text += "; on a dashed line only ties change." if dashes else "."
    if diagram.point:
        at = ", ".join(f"{symbol} = {number}" for symbol, number in sorted(diagram.point.items()))
        text += f" At {at}."
    if small:
        text += f" Cells too small for a label: {listed(small, 8)}; see the table."
    return text


def _line_figure(line: PhaseDiagram) -> Figure:
    """Draw the sample exponent along one symbol, with its breakpoints."""
    (axis,), ((low, high),) = line.axes, line.box
    places = [low, *line.breakpoints, high]
    markers = [Marker(float(place), f"{axis} = {place}") for place in line.breakpoints]
    markers += [
        Marker(
            float(end), f"{'left' if (end,) == max(limit.outside) else 'right'}: {limit.name}", 1
        )
        for limit in line.limits
        for (end,) in limit.outside
        if low < end < high
    ]
    named = (f"{power('d', cell.form)}: {listed(cell.names, 3)}" for cell in line.cells)
    return Figure(
        "phase-line",
        f"Samples along {axis}",
        f"{axis} (exponent of d)",
        "exponent of the number of samples",
        [Series("", [float(x) for x in places], [float(line.at(x)[0]) for x in places])],
        f"From the left: {'; '.join(named)}.",
        markers=markers,
    )


def _colours(diagram: PhaseDiagram) -> dict[LinearForm, int]:
    """Choose few, distinct colours: each exponent gets the least used colour that no neighbour has."""
    neighbours: dict[LinearForm, set[LinearForm]] = {cell.form: set() for cell in diagram.cells}
    for edge in diagram.edges:
        first, second = (diagram.cells[number].form for number in edge.cells)
        if first != second:
            neighbours[first].add(second)
            neighbours[second].add(first)
    colours: dict[LinearForm, int] = {}
    for form, near in neighbours.items():
        used = list(colours.values())
        taken = {colours[other] for other in near if other in colours}
        # With one more colour than neighbours, a colour is always free; the first six differ when pale.
        free = [i for i in range(max(6, len(taken) + 1)) if i not in taken]
        colours[form] = min(free, key=lambda i: (used.count(i), i))
    return colours


def _edges(diagram: PhaseDiagram) -> list[Series]:
    """Draw the edges as two series: solid where the exponent changes, dashed elsewhere."""
    parts: dict[bool, list[tuple[Point, ...]]] = {True: [], False: []}
    for edge in diagram.edges:
        first, second = (diagram.cells[number].form for number in edge.cells)
        parts[first != second].append((edge.start, edge.end))
    return [_broken(parts[True], "line"), _broken(parts[False], "dashed")]


def _array(polygon: Polygon) -> np.ndarray:
    return np.array([[float(x) for x in corner] for corner in polygon])


def _broken(segments: Sequence[tuple[Point, ...]], kind: Literal["line", "dashed"]) -> Series:
    """Join the segments into one series with gaps between them."""
    gap = (np.nan, np.nan)
    rows = [row for ends in segments for row in (*_array(ends), gap)]
    x, y = np.array(rows).T if rows else np.empty((2, 0))
    return Series("", x, y, kind, colour=-1)
