"""Exact phase diagrams of a sample exponent, without a grid and with rational corners.

The exponent is the least, over patterns of feature learning, of the largest of a few linear forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from solvable.errors import InvalidParameter, unknown_choice
from solvable.plots.words import listed
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.phases.envelope import Piece, components, lower_envelope
from solvable.scale.phases.line_equations import equation, power_equation
from solvable.scale.phases.polygons import (
    Affine,
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
INFINITESIMAL = (
    "+0"  # symbol of the infinitesimal, a positive number below all other positive numbers
)
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
    powers: str  # equation in sizes, such as "N_1 = sqrt(N_2 d)"
    start: Point
    end: Point
    cells: tuple[
        int, int
    ]  # numbers of the cells on the sides of small and large first symbol (else second symbol)
    change: str  # how exponent and patterns change as this symbol grows

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, with fractions as text."""
        ends = [[str(x) for x in point] for point in (self.start, self.end)]
        named = {"equation": self.equation, "powers": self.powers, "change": self.change}
        return {**named, "from": ends[0], "to": ends[1], "cells": list(self.cells)}


@dataclass(frozen=True)
class Limit:
    """Line beyond which the theory is not valid."""

    name: str  # description of the invalid side, such as "width of layer 1 below d"
    equation: str
    segment: tuple[
        Point, ...
    ]  # ends of the line within the box, or one point; empty on the box's border
    outside: Polygon  # polygon, within the box, in which the theory is not valid


@dataclass(frozen=True)
class PhaseDiagram:
    """Diagram of the pattern of feature learning that needs the fewest samples, over two exponents."""

    x: str  # symbols of the two axes
    y: str
    box: Box  # lower and upper end of both axes
    point: dict[str, Fraction]  # values of symbols that are not axes
    cells: tuple[Cell, ...]  # cells that cover the box without overlap, the largest first
    edges: tuple[Edge, ...]
    limits: tuple[Limit, ...] = ()  # limits of validity of the theory

    @property
    def area(self) -> Fraction:
        """Area of the box."""
        return area(rectangle(*self.box))

    def at(self, x: Fraction, y: Fraction) -> tuple[Fraction, tuple[str, ...]]:
        """Return the exponent at a point of the box, and the patterns that attain it there."""
        point = (Fraction(x), Fraction(y))
        around = [c for c in self.cells if any(contains(piece, point) for piece in c.pieces)]
        if not around:
            raise InvalidParameter(
                f"({x}, {y}) is outside the phase diagram; allowed: {self.x} {_ends(self.box[0])} and "
                f"{self.y} {_ends(self.box[1])}. Ask for a larger box."
            )
        names = sorted({name for cell in around for name in cell.names})
        return around[0].form(dict(zip((self.x, self.y), point, strict=True))), tuple(names)

    def to_dict(self) -> dict[str, Any]:
        """Return cells, edges and limits for JSON, with fractions as text."""
        return {
            "x": self.x,
            "y": self.y,
            "box": [[str(end) for end in ends] for ends in self.box],
            "at": {symbol: str(x) for symbol, x in self.point.items()},
            "cells": [cell.to_dict() for cell in self.cells],
            "edges": [edge.to_dict() for edge in self.edges],
            "limits": [{"name": limit.name, "equation": limit.equation} for limit in self.limits],
        }


@dataclass(frozen=True)
class PhaseLine:
    """Pattern of feature learning that needs the fewest samples, along one exponent."""

    x: str
    box: Box
    point: dict[str, Fraction]  # values of symbols that are not axes
    cells: tuple[Cell, ...]  # segments, in order along the axis
    limits: tuple[Limit, ...] = ()

    @property
    def breakpoints(self) -> tuple[Fraction, ...]:
        """Values of the symbol at which the exponent's form or the patterns change."""
        return tuple(max(cell.pieces[0])[0] for cell in self.cells[:-1])

    def at(self, x: Fraction) -> Fraction:
        """Return the exponent at a point of the line."""
        for cell in self.cells:
            if contains(cell.pieces[0], (x,)):
                return cell.form({self.x: x})
        raise InvalidParameter(
            f"{x} is outside the phase line; allowed: {self.x} {_ends(self.box[0])}. Ask for a wider "
            "range."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return cells and breakpoints for JSON, with fractions as text."""
        return {
            "x": self.x,
            "box": [[str(end) for end in ends] for ends in self.box],
            "at": {symbol: str(x) for symbol, x in self.point.items()},
            "cells": [cell.to_dict() for cell in self.cells],
            "breakpoints": [str(place) for place in self.breakpoints],
            "limits": [{"name": limit.name, "equation": limit.equation} for limit in self.limits],
        }


def phase_diagram(
    candidates: Candidates,
    x: str,
    y: str,
    *,
    box: Mapping[str, tuple[Fraction, Fraction]] | None = None,
    point: Mapping[str, Fraction] | None = None,
    limits: Sequence[tuple[str, LinearForm]] = (),
) -> PhaseDiagram:
    r"""Subdivide a rectangle by :math:`\min_c \max_{f \in c} f(x, y)`, exactly.

    Parameters
    ----------
    candidates : sequence of (str, tuple of LinearForm)
        Patterns, each with forms; the exponent of a pattern is its largest form. If a name occurs more
        than once, the least exponent counts.
    x, y : str
        Symbols of the axes.
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
        If x and y are the same or unknown, a symbol has no value, or the box is empty.

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
    if x == y:
        raise InvalidParameter(
            f"both axes of the phase diagram are {x!r}; allowed: two different symbols."
        )
    axes, fixed, sides = _checked(candidates, (x, y), box, point)
    pieces = _envelope(candidates, axes, fixed, sides)
    numbers = components(pieces)
    cells = [_cell(pieces, members, axes) for members in numbers]
    order = sorted(range(len(cells)), key=lambda i: (-cells[i].area, cells[i].pieces))
    cells = [cells[i] for i in order]
    edges = [_edge(border, cells, axes) for border in borders(_owned(cells))]
    found = _limits(limits, axes, fixed, sides)
    return PhaseDiagram(x, y, sides, fixed, tuple(cells), tuple(edges), found)


def phase_line(
    candidates: Candidates,
    x: str,
    *,
    box: Mapping[str, tuple[Fraction, Fraction]] | None = None,
    point: Mapping[str, Fraction] | None = None,
    limits: Sequence[tuple[str, LinearForm]] = (),
) -> PhaseLine:
    r"""Subdivide an interval by :math:`\min_c \max_{f \in c} f(x)`, exactly."""
    axes, fixed, sides = _checked(candidates, (x,), box, point)
    pieces = _envelope(candidates, axes, fixed, sides)
    cells = [_cell(pieces, [i], axes) for i in range(len(pieces))]
    cells.sort(key=lambda cell: min(cell.pieces[0]))
    return PhaseLine(x, sides, fixed, tuple(cells), _limits(limits, axes, fixed, sides))


def _checked(
    candidates: Candidates,
    axes: tuple[str, ...],
    box: Mapping[str, tuple[Fraction, Fraction]] | None,
    point: Mapping[str, Fraction] | None,
) -> tuple[tuple[str, ...], dict[str, Fraction], Box]:
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
    return axes, fixed, tuple(sides)


def _affine(form: LinearForm, axes: Sequence[str], fixed: Mapping[str, Fraction]) -> Affine:
    """Write a form as a constant, its slopes along the axes, and a multiple of the infinitesimal."""
    held = form.at(fixed)
    slopes = dict(held.coefficients)
    return (held.constant, *(slopes.get(axis, Fraction(0)) for axis in (*axes, INFINITESIMAL)))


def _linear(form: Affine, axes: Sequence[str]) -> LinearForm:
    return LinearForm.of(form[0], dict(zip(axes, form[1:], strict=False)))


def _envelope(
    candidates: Candidates, axes: Sequence[str], fixed: Mapping[str, Fraction], sides: Box
) -> list[Piece]:
    named = (
        (name, frozenset(_affine(form, axes, fixed) for form in forms))
        for name, forms in candidates
    )
    return lower_envelope(named, rectangle(*sides))


def _cell(pieces: Sequence[Piece], members: Sequence[int], axes: Sequence[str]) -> Cell:
    first = pieces[members[0]]
    polygons = sorted((pieces[i].polygon for i in members), key=lambda part: (-area(part), part))
    return Cell(_linear(first.form, axes), tuple(sorted(first.names)), tuple(polygons))


def _owned(cells: Sequence[Cell]) -> list[tuple[int, Polygon]]:
    return [(i, piece) for i, cell in enumerate(cells) for piece in cell.pieces]


def _edge(border: Any, cells: Sequence[Cell], axes: Sequence[str]) -> Edge:
    """Describe an edge: what changes as the first symbol (or else the second) grows."""
    line = line_through(border.start, border.end)
    rising = border.end[1] > border.start[1]
    # The first symbol is small on the left of a rising line.
    small, large = (
        (border.left, border.right)
        if rising or border.start[0] == border.end[0]
        else (border.right, border.left)
    )
    grows = axes[0] if line[1] else axes[1]
    change = f"as {grows} grows, {_change(cells[small], cells[large])}"
    texts = equation(_linear(line, axes), axes), power_equation(_linear(line, axes), axes)
    return Edge(*texts, border.start, border.end, (small, large), change)


def _change(before: Cell, after: Cell) -> str:
    gone = [name for name in before.names if name not in after.names]
    new = [name for name in after.names if name not in before.names]
    if before.form == after.form:
        said = [f"{listed(gone)} no longer {_verb('tie', gone)}"] if gone else []
        said += [f"{listed(new)} {_verb('tie', new)} as well"] if new else []
        return " and ".join(said)
    forms = f"the exponent is {after.form} instead of {before.form}"
    if gone and new and len(gone) == len(before.names):
        return f"{listed(gone)} {_verb('give', gone)} way to {listed(new)}: {forms}"
    said = [f"{listed(gone)} {_verb('cost', gone)} more"] if gone else []
    said += [f"{listed(new)} {_verb('tie', new)}"] if new else []
    return f"{forms}{'; ' if said else ''}{' and '.join(said)}"


def _verb(verb: str, names: Sequence[str]) -> str:
    return verb if len(names) > 1 else f"{verb}s"


def _limits(
    limits: Iterable[tuple[str, LinearForm]],
    axes: Sequence[str],
    fixed: Mapping[str, Fraction],
    sides: Box,
) -> tuple[Limit, ...]:
    lines = (_limit(name, _affine(form, axes, fixed), axes, sides) for name, form in limits)
    return tuple(line for line in lines if line is not None)


def _limit(name: str, form: Affine, axes: Sequence[str], sides: Box) -> Limit | None:
    """Return a limit of validity within the box, or None if the whole box is valid."""
    box = rectangle(*sides)
    outside = clip(box, tuple(-c for c in form))
    if not outside or min(value(form, corner) for corner in box) >= 0:
        return None
    on_line = tuple(corner for corner in outside if value(form, corner) == 0)
    segment = on_line if len(on_line) == len(axes) else ()
    return Limit(
        name, equation(_linear(form, axes), axes) if any(form[1:]) else "", segment, outside
    )


def _ends(ends: tuple[Fraction, Fraction]) -> str:
    return f"from {ends[0]} to {ends[1]}"
