"""Exact lower envelope, without a grid, of maxima of affine forms over a convex region.

Functions are added one by one to the envelope. A convex piece with one form is cut along the lines on
which this form equals a form of the new function. Pieces of equal form and equal names are joined.

The last entry of a form multiplies an infinitesimal, which decides only between forms that are otherwise
equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from solvable.scale.phases.polygons import Affine, Polygon, borders, clip, difference, joined, value


class Piece(NamedTuple):
    """Convex piece of the region on which the envelope has a single form."""

    form: Affine
    names: frozenset[str]  # names of all functions that attain the envelope here
    polygon: Polygon


def lower_envelope(
    functions: Iterable[tuple[str, frozenset[Affine]]], region: Polygon
) -> list[Piece]:
    """Compute the pieces of the minimum of named functions; a function is the largest of its forms."""
    grouped: dict[frozenset[Affine], set[str]] = {}
    for name, forms in functions:
        grouped.setdefault(_needed(forms, region), set()).add(name)
    # Functions that are low at the centre come first, so that most others are discarded early.
    middle = tuple(sum(places, Fraction(0)) / len(region) for places in zip(*region, strict=True))
    (forms, names), *rest = sorted(
        grouped.items(), key=lambda item: (max(value(f, middle) for f in item[0]), sorted(item[0]))
    )
    pieces = [Piece(form, frozenset(names), part) for form, part in _upper(forms, region)]
    for forms, names in rest:
        lowered = [part for piece in pieces for part in _lowered(piece, forms, names)]
        pieces = _merged(lowered) if len(lowered) > 1 else lowered
    # The infinitesimal is dropped from a function if no other function equals it otherwise.
    return _merged(piece._replace(form=(*piece.form[:-1], Fraction(0))) for piece in pieces)


def _needed(forms: frozenset[Affine], region: Polygon) -> frozenset[Affine]:
    """Keep the forms that are not exceeded by another form in the whole region."""
    corners = {form: [value(form, corner) for corner in region] for form in forms}
    return frozenset(
        form
        for form in forms
        if not any(
            all(a <= b for a, b in zip(corners[form], corners[other], strict=True))
            and (form[:-1] != other[:-1] or form[-1] < other[-1])
            for other in forms
        )
    )


def _upper(forms: Iterable[Affine], region: Polygon) -> Iterable[tuple[Affine, Polygon]]:
    """Yield, for each form, the piece of the region in which the form is the largest."""
    forms = sorted(forms)
    for form in forms:
        part = region
        for other in forms:
            part = clip(part, difference(form, other)) if part and other != form else part
        if part:
            yield form, part


def _lowered(piece: Piece, forms: Iterable[Affine], names: set[str]) -> Iterable[Piece]:
    """Update a piece of the envelope with one more function, the largest of its forms."""
    above = [difference(form, piece.form) for form in forms]
    if any(
        min(value(rise, p) for p in piece.polygon) >= 0 if any(rise[:-1]) else rise[-1] > 0
        for rise in above
    ):
        yield piece
        return
    for form, part in _upper(forms, piece.polygon):
        rise = difference(form, piece.form)
        if not any(rise[:-1]):
            yield Piece(form, frozenset(names) if rise[-1] else piece.names | names, part)
            continue
        kept, lower = clip(part, rise), clip(part, difference(piece.form, form))
        if kept:
            yield piece._replace(polygon=kept)
        if lower:
            yield Piece(form, frozenset(names), lower)


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    """Join pieces of equal form and names whose union is a convex polygon."""
    alike: dict[tuple[Affine, frozenset[str]], list[Polygon]] = {}
    for piece in pieces:
        alike.setdefault(piece[:2], []).append(piece.polygon)
    return [Piece(*key, part) for key, parts in alike.items() for part in joined(parts)]


def components(pieces: Sequence[Piece]) -> list[list[int]]:
    """Group the pieces into connected regions of equal form and names."""
    root = list(range(len(pieces)))

    def find(i: int) -> int:
        while root[i] != i:
            i = root[i]
        return i

    for border in borders([(i, piece.polygon) for i, piece in enumerate(pieces)]):
        if pieces[border.left][:2] == pieces[border.right][:2]:
            root[find(border.left)] = find(border.right)
    members: dict[int, list[int]] = {}
    for i in range(len(pieces)):
        members.setdefault(find(i), []).append(i)
    return list(members.values())
