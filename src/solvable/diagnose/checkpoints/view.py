"""Display of a series of checkpoints in a notebook, and as a data frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from solvable.diagnose.checkpoints import figures as drawn
from solvable.diagnose.checkpoints import words
from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints
from solvable.diagnose.checkpoints.output import matrix_table
from solvable.plots.figure import Figure
from solvable.plots.tables import Table


def line(found: DiagnosedCheckpoints) -> str:
    """Name and main result."""
    return f"{found.name}, {words.span(found)}: {words.answer(found)}"


def tables(found: DiagnosedCheckpoints) -> list[Table]:
    """One table with a row per matrix."""
    return [matrix_table(found, None)[0]]


def rows(found: DiagnosedCheckpoints) -> list[dict[str, Any]]:
    """Records for a data frame, one per matrix and checkpoint."""
    records = []
    for row in found.histories:
        pairs = zip(row.measurements, row.changes, strict=True)
        for place, (numbers, change) in enumerate(pairs):
            if numbers is None:
                continue
            records.append(
                {
                    "matrix": row.name,
                    "checkpoint": found.labels[place],
                    "step": found.steps[place],
                    "shape": "x".join(map(str, row.shape)),
                    "directions_at_least": numbers.directions,
                    "norm": numbers.norm,
                    "largest": numbers.largest,
                    "stable_rank": numbers.stable_rank,
                    "dead_rows": numbers.dead_rows,
                    "change": change.previous,
                    "distance_to_last": change.last,
                    "overlap_with_last": change.overlap,
                    "stopped": row.stopped is not None and place >= row.stopped.place,
                    "reason": numbers.reason,
                }
            )
    return records


def figures(found: DiagnosedCheckpoints) -> Iterator[Figure]:
    """Yield a figure for each quantity."""
    yield from drawn.figures(found)
