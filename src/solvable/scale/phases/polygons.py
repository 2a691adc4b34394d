"""Exact clipping, joining and shared borders of convex polygons with rational corners.

A point is a tuple of fractions. A polygon is a tuple of points, counter-clockwise and without corners of
180 degrees. A segment of a line is a polygon of two points in one dimension.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

Point = tuple[Fraction, ...]
Polygon = tuple[Point, ...]
Affine = tuple[
    Fraction, ...
]  # constant, slope per coordinate, and further entries that are ignored here

Owner = TypeVar("Owner", bound=Hashable)
Corner = TypeVar("Corner")


class Border(NamedTuple, Generic[Owner]):
    """Segment of positive length on the border between polygons of two owners."""

    start: Point
    end: Point  # end of the segment, to the right of the start or straight above the start
    left: Owner  # owner on the left when going from start to end: above, or left of a vertical line
    right: Owner


def value(form: Affine, point: Point) -> Fraction:
    """Compute the value of an affine function at a point."""
    return form[0] + sum((c * x for c, x in zip(form[1:], point, strict=False)), Fraction(0))


def difference(first: Affine, second: Affine) -> Affine:
    """Compute the difference of two affine functions."""
    return tuple(a - b for a, b in zip(first, second, strict=True))


def rectangle(*sides: tuple[Fraction, Fraction]) -> Polygon:
    """Return the box of these sides: a segment for one side, a rectangle for two."""
    if len(sides) == 1:
        return tuple((x,) for x in sides[0])
    (left, right), (low, high) = sides
    return (left, low), (right, low), (right, high), (left, high)


def clip(polygon: Polygon, form: Affine) -> Polygon:
    """Return the piece of a polygon where an affine function is not negative; may be empty."""
    values = [value(form, point) for point in polygon]
    if min(values) >= 0:
        return polygon
    if max(values) <= 0:
        return ()
    kept: list[Point] = []
    for here, there in sides(range(len(polygon))):
        if values[here] >= 0:
            kept.append(polygon[here])
        if values[here] * values[there] < 0:
            share = values[here] / (values[here] - values[there])
            ends = zip(polygon[here], polygon[there], strict=True)
            kept.append(tuple(p + share * (q - p) for p, q in ends))
    # Both sides of a segment meet the boundary in the same point.
    return tuple(dict.fromkeys(kept))


def area(polygon: Polygon) -> Fraction:
    """Compute the area of a polygon, or the length of a segment."""
    if len(polygon[0]) == 1:
        return abs(polygon[1][0] - polygon[0][0])
    return sum((_cross(*side) for side in sides(polygon)), Fraction(0)) / 2


def centroid(polygon: Polygon) -> Point:
    """Compute the centre of mass of a polygon in the plane."""
    parts = [(_cross(*side), side) for side in sides(polygon)]
    whole = 3 * sum((weight for weight, _ in parts), Fraction(0))
    return tuple(
        sum((weight * (first[i] + second[i]) for weight, (first, second) in parts), Fraction(0))
        / whole
        for i in (0, 1)
    )


def contains(polygon: Polygon, point: Point) -> bool:
    """Return True if a point is in a polygon or on its border."""
    if len(point) == 1:
        return min(polygon) <= point <= max(polygon)
    return all(turn(*side, point) >= 0 for side in sides(polygon))


def joined(polygons: Iterable[Polygon]) -> list[Polygon]:
    """Join pairs of polygons whose union is convex until no such pair is left."""
    rest, done = list(polygons), []
    while rest:
        first = rest.pop()
        for place, second in enumerate(rest):
            whole = _union(first, second)
            if whole:
                rest[place] = whole
                break
        else:
            done.append(first)
    return done


def borders(owned: Sequence[tuple[Owner, Polygon]]) -> list[Border[Owner]]:
    """Return the longest segments between polygons of different owners."""
    # Each line has segments (low, high, owner) in two lists: upward (owner on the left) and downward.
    lines: dict[Affine, tuple[list, list]] = defaultdict(lambda: ([], []))
    for owner, polygon in owned:
        for first, second in sides(polygon):
            low, high = sorted((first, second))
            lines[line_through(first, second)][first > second].append((low, high, owner))
    found = []
    for upwards, downwards in lines.values():
        shared = [
            Border(max(a[0], b[0]), min(a[1], b[1]), a[2], b[2])
            for a in upwards
            for b in downwards
            if a[2] != b[2] and max(a[0], b[0]) < min(a[1], b[1])
        ]
        found += _chained(shared)
    return sorted(found, key=lambda border: (border.start, border.end))


def line_through(first: Point, second: Point) -> Affine:
    """Return the normalised affine function that is zero on the line through two points."""
    slopes = (first[1] - second[1], second[0] - first[0])
    scale = slopes[0] or slopes[1]
    across, up = slopes[0] / scale, slopes[1] / scale
    return -(across * first[0] + up * first[1]), across, up


def _chained(shared: list[Border[Owner]]) -> list[Border[Owner]]:
    """Join consecutive segments of a line that have the same owners."""
    done: list[Border[Owner]] = []
    for border in sorted(shared, key=lambda border: border.start):
        if done and done[-1].end == border.start and done[-1][2:] == border[2:]:
            border = done.pop()._replace(end=border.end)
        done.append(border)
    return done


def _union(first: Polygon, second: Polygon) -> Polygon:
    """Return the union of two disjoint polygons if the union is convex, else an empty tuple."""
    if len(first[0]) == 1:
        ends = sorted([*first, *second])
        return (ends[0], ends[-1]) if ends[1] == ends[2] else ()
    # The union is convex only if the polygons share a whole side.
    places = {side: place for place, side in enumerate(sides(second))}
    for place, (start, end) in enumerate(sides(first)):
        other = places.get((end, start))
        if other is not None:
            around = (first + first)[place + 1 : place + 1 + len(first)]
            around += (second + second)[other + 2 : other + len(second)]
            return _convex(around)
    return ()


def _convex(around: Polygon) -> Polygon:
    """Drop corners of 180 degrees; return an empty tuple if the polygon is not convex."""
    before = (around[-1], *around[:-1])
    turns = [
        turn(first, second, third)
        for first, second, third in zip(before, around, (*around[1:], around[0]), strict=True)
    ]
    if min(turns) < 0:
        return ()
    return tuple(corner for corner, turn in zip(around, turns, strict=True) if turn)


def sides(corners: Sequence[Corner]) -> Iterable[tuple[Corner, Corner]]:
    """Return pairs of neighbouring corners of a polygon."""
    return itertools.pairwise([*corners, corners[0]])


def _cross(first: Point, second: Point) -> Fraction:
    return first[0] * second[1] - first[1] * second[0]


def turn(first: Point, second: Point, third: Point) -> Fraction:
    """Compute a number that is positive if the path over three points turns left."""
    along = second[0] - first[0], second[1] - first[1]
    return _cross(along, (third[0] - first[0], third[1] - first[1]))
