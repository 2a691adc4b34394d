"""Labels of vertical lines in rows above the axes, for measured widths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Flag(NamedTuple):
    """Place of one label: its row above the axes, and the side of its line on which it stands."""

    row: int
    left: bool


def arrange(
    places: Sequence[float], widths: Sequence[float], ends: tuple[float, float]
) -> list[Flag] | None:
    """Return the flags in the fewest rows, or None if labels would overlap or leave the ends.

    Places must ascend. The first labels stand to the right of their lines, the others to the left.
    """
    best: list[Flag] | None = None
    for first in range(len(places), -1, -1):
        found = _arranged(places, widths, ends, first)
        if found is not None and (best is None or _height(found) < _height(best)):
            best = found
    return best


def _height(flags: Sequence[Flag]) -> int:
    return 1 + max((flag.row for flag in flags), default=-1)


def _arranged(
    places: Sequence[float], widths: Sequence[float], ends: tuple[float, float], first: int
) -> list[Flag] | None:
    spans = [
        (at, at + width) if i < first else (at - width, at)
        for i, (at, width) in enumerate(zip(places, widths, strict=True))
    ]
    if any(low < ends[0] or high > ends[1] for low, high in spans):
        return None
    rows: dict[int, int] = {}

    def free(i: int, row: int) -> bool:
        for j, other in rows.items():
            apart = spans[i][1] <= spans[j][0] or spans[j][1] <= spans[i][0]
            # a line reaches up to its label, and runs through no text below it
            covers = spans[i][0] < places[j] < spans[i][1] and row <= other
            covered = spans[j][0] < places[i] < spans[j][1] and row >= other
            if (row == other and not apart) or covers or covered:
                return False
        return True

    for i in [*reversed(range(first)), *range(first, len(places))]:
        row = next((row for row in range(len(places) + 1) if free(i, row)), None)
        if row is None:
            return None
        rows[i] = row
    return [Flag(rows[i], i >= first) for i in range(len(places))]
