"""Exact phase diagrams of a sample exponent, without a grid and with rational corners.

The exponent is the least, over patterns of feature learning, of the largest of a few linear forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from solvable.errors import InvalidParameter, unknown_choice
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.phases.envelope import Piece, components, lower_envelope
from solvable.scale.phases.polygons import (
    Affine,
    Border,
    Point,
    Polygon,
    area,
    borders,
    clip,
    contains,
    line_through,
    rectangle,
    value,
)

Candidates = Sequence[tuple[str, tuple[LinearForm, ...]]]
Box = tuple[tuple[Fraction, Fraction], ...]  # lower and upper end of each axis
INFINITESIMAL = "+0"  # symbol of a positive number below all other positive numbers
OPEN_BOX = (Fraction(0), Fraction(4))  # default ends of an axis


@dataclass(frozen=True)
class Cell:
    """Connected region in which a single linear form is the exponent and the same patterns attain it."""

    form: LinearForm  # exponent as a function of the symbols of the axes
    names: tuple[str, ...]  # names of all patterns that attain the exponent
    pieces: tuple[Polygon, ...]  # convex polygons with rational corners, or segments of a line

    @property
    def area(self) -> Fraction:
        """Area of the cell, or its length on a line."""
        return sum((area(piece) for piece in self.pieces), Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """Return the form, patterns and corners as JSON, with fractions as text."""
        return {
            "exponent": str(self.form),
            "patterns": list(self.names),
            "polygons": [[[str(x) for x in corner] for corner in piece] for piece in self.pieces],
        }


@dataclass(frozen=True)
class Edge:
    """Segment of the border between two cells."""

    equation: str  # equation in exponents, such as "n1 = (1 + n2)/2"
    start: Point
    end: Point
    # numbers of the cells on the sides of small and large first symbol (else second symbol)
    cells: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, with fractions as text."""
        ends = [[str(x) for x in point] for point in (self.start, self.end)]
        return {"equation": self.equation, "from": ends[0], "to": ends[1], "cells": [*self.cells]}


@dataclass(frozen=True)
class Limit:
    """Line beyond which the theory is not valid."""

    name: str  # description of the invalid side, such as "width of layer 1 below d"
    equation: str
    outside: Polygon  # polygon, within the box, in which the theory is not valid


@dataclass(frozen=True)
class PhaseDiagram:
    """Pattern of feature learning that needs the fewest samples, over one or two exponents."""

    axes: tuple[str, ...]  # symbols of the axes
    box: Box  # lower and upper end of each axis
    point: dict[str, Fraction]  # values of symbols that are not axes
    # cells that cover the box without overlap: the largest first, or in order along a single axis
    cells: tuple[Cell, ...]
    edges: tuple[Edge, ...] = ()  # borders of cells; empty with a single axis
    limits: tuple[Limit, ...] = ()  # limits of validity of the theory

    @property
    def area(self) -> Fraction:
        """Area of the box."""
        return area(rectangle(*self.box))

    @property
    def breakpoints(self) -> tuple[Fraction, ...]:
        """Values of a single axis at which the exponent's form or the patterns change."""
        if len(self.axes) > 1:
            return ()
        return tuple(max(cell.pieces[0])[0] for cell in self.cells[:-1])

    def at(self, *place: Fraction) -> tuple[Fraction, tuple[str, ...]]:
        """Return the exponent at a point of the box, and the patterns that attain it there."""
        point = tuple(map(Fraction, place))
        around = [c for c in self.cells if any(contains(piece, point) for piece in c.pieces)]
        if not around:
            ends = (
                f"{axis} from {low} to {high}"
                for axis, (low, high) in zip(self.axes, self.box, strict=True)
            )
            raise InvalidParameter(
                f"({', '.join(map(str, point))}) is outside the phase diagram; allowed: "
                f"{' and '.join(ends)}. Ask for a larger box."
            )
        names = sorted({name for cell in around for name in cell.names})
        return around[0].form(dict(zip(self.axes, point, strict=True))), tuple(names)

    def to_dict(self) -> dict[str, Any]:
        """Return cells, edges and limits for JSON, with fractions as text."""
        return {
            "axes": list(self.axes),
            "box": [[str(end) for end in ends] for ends in self.box],
            "at": {symbol: str(x) for symbol, x in self.point.items()},
            "cells": [cell.to_dict() for cell in self.cells],
            "edges": [edge.to_dict() for edge in self.edges],
            "breakpoints": [str(place) for place in self.breakpoints],
            "limits": [{"name": limit.name, "equation": limit.equation} for limit in self.limits],
        }


def phase_diagram(
    candidates: Candidates,
    *axes: str,
    box: Mapping[str, tuple[Fraction, Fraction]] | None = None,
    point: Mapping[str, Fraction] | None = None,
    limits: Sequence[tuple[str, LinearForm]] = (),
) -> PhaseDiagram:
    r"""Subdivide an interval or a rectangle by :math:`\min_c \max_{f \in c} f(x, y)`, exactly.

    Parameters
    ----------
    candidates : sequence of (str, tuple of LinearForm)
        Patterns, each with forms; the exponent of a pattern is its largest form. If a name occurs more
        than once, the least exponent counts.
    *axes : str
        Symbols of one or two axes.
    box : mapping of str to (Fraction, Fraction), optional
        Ends of the axes; default 0 to 4.
    point : mapping of str to Fraction, optional
        Values of all other symbols.
    limits : sequence of (str, LinearForm), optional
        The theory is valid where these forms are not negative; the name describes the invalid side.

    Returns
    -------
    PhaseDiagram
        Convex polygons with rational corners, and the edges between them as equations.

    Raises
    ------
    InvalidParameter
        If axes are the same or unknown, a symbol has no value, or the box is empty.

    Notes
    -----
    The method uses no grid. Its time grows like the number of candidates that win somewhere times the
    number of polygons, and is milliseconds for three layers. Backed by
    ``tests/scale/phases/test_diagram.py``.

    Examples
    --------
    >>> one, n1, n2 = (LinearForm.parse(text) for text in ("1", "(n1 + 1)/2", "(n2 + 1)/2"))
    >>> diagram = phase_diagram([("Sp-GP", (one, n1)), ("GP-Sp", (one, n2))], "n1", "n2")
    >>> sorted({edge.equation for edge in diagram.edges})
    ['n1 = 1', 'n1 = n2', 'n2 = 1']
    >>> diagram.at(Fraction(2), Fraction(3))
    (Fraction(3, 2), ('Sp-GP',))
    """
    if len(set(axes)) < len(axes):
        raise InvalidParameter(
            f"both axes of the phase diagram are {axes[0]!r}; allowed: two different symbols."
        )
    fixed, sides = _checked(candidates, axes, box, point)
    region = rectangle(*sides)
    named = (
        (name, frozenset(_affine(form, axes, fixed) for form in forms))
        for name, forms in candidates
    )
    pieces = lower_envelope(named, region)
    found = tuple(
        limit
        for name, form in limits
        if (limit := _limit(name, _affine(form, axes, fixed), axes, region)) is not None
    )
    if len(axes) == 1:
        cells = [_cell(pieces, [i], axes) for i in range(len(pieces))]
        cells.sort(key=lambda cell: min(cell.pieces[0]))
        return PhaseDiagram(axes, sides, fixed, tuple(cells), (), found)
    cells = [_cell(pieces, members, axes) for members in components(pieces)]
    cells.sort(key=lambda cell: (-cell.area, cell.pieces))
    owned = [(i, piece) for i, cell in enumerate(cells) for piece in cell.pieces]
    edges = tuple(_edge(border, axes) for border in borders(owned))
    return PhaseDiagram(axes, sides, fixed, tuple(cells), edges, found)


def _checked(
    candidates: Candidates,
    axes: tuple[str, ...],
    box: Mapping[str, tuple[Fraction, Fraction]] | None,
    point: Mapping[str, Fraction] | None,
) -> tuple[dict[str, Fraction], Box]:
    """Check the axes, their ends, and the values of all other symbols."""
    symbols = sorted(
        {s for _, forms in candidates for form in forms for s in form.symbols - {INFINITESIMAL}}
    )
    for axis in axes:
        if axis not in symbols:
            raise InvalidParameter(unknown_choice("symbol of an axis", axis, symbols))
    fixed = {s: Fraction(v) for s, v in (point or {}).items() if s not in axes}
    missing = [symbol for symbol in symbols if symbol not in axes and symbol not in fixed]
    if missing:
        raise InvalidParameter(
            f"without value: {', '.join(missing)}; allowed: numbers for symbols"
            f" other than {' and '.join(axes)}."
        )
    sides = []
    for axis in axes:
        low, high = (Fraction(end) for end in (box or {}).get(axis, OPEN_BOX))
        if low >= high:
            raise InvalidParameter(
                f"the range of {axis} is {low} to {high}, which is empty; allowed: a lower end below the "
                "upper end."
            )
        sides.append((low, high))
    return fixed, tuple(sides)


def _affine(form: LinearForm, axes: Sequence[str], fixed: Mapping[str, Fraction]) -> Affine:
    """Write a form as a constant, its slopes along the axes, and a multiple of the infinitesimal."""
    held = form.at(fixed)
    slopes = dict(held.coefficients)
    return (held.constant, *(slopes.get(axis, Fraction(0)) for axis in (*axes, INFINITESIMAL)))


def _linear(form: Affine, axes: Sequence[str]) -> LinearForm:
    return LinearForm.of(form[0], dict(zip(axes, form[1:], strict=False)))


def _equation(line: Affine, axes: Sequence[str]) -> str:
    """Write the line on which a form is zero, solved for its first axis, as in n1 = (n2+1)/2."""
    form = _linear(line, axes)
    slopes = dict(form.coefficients)
    symbol = next(axis for axis in axes if axis in slopes)
    return f"{symbol} = {LinearForm.symbol(symbol) - form / slopes[symbol]}"


def _cell(pieces: Sequence[Piece], members: Sequence[int], axes: Sequence[str]) -> Cell:
    first = pieces[members[0]]
    polygons = sorted((pieces[i].polygon for i in members), key=lambda part: (-area(part), part))
    return Cell(_linear(first.form, axes), tuple(sorted(first.names)), tuple(polygons))


def _edge(border: Border[int], axes: Sequence[str]) -> Edge:
    # The first symbol is small on the left of a rising line.
    rising = border.end[1] > border.start[1] or border.start[0] == border.end[0]
    cells = (border.left, border.right) if rising else (border.right, border.left)
    equation = _equation(line_through(border.start, border.end), axes)
    return Edge(equation, border.start, border.end, cells)


def _limit(name: str, form: Affine, axes: Sequence[str], region: Polygon) -> Limit | None:
    """Return a limit of validity within the box, or None if the whole box is valid."""
    outside = clip(region, tuple(-c for c in form))
    if not outside or min(value(form, corner) for corner in region) >= 0:
        return None
    return Limit(name, _equation(form, axes) if any(form[1:]) else "", outside)
