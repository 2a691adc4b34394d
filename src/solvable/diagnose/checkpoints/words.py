"""Sentences about the histories of matrices, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints, History
from solvable.diagnose.checkpoints.verdicts import SAME, STILL
from solvable.plots.numbers import MISSING, format_number
from solvable.plots.words import counted, listed


def answer(found: DiagnosedCheckpoints) -> str:
    """Main result: matrices that stopped changing, and new directions."""
    total = counted(len(found.histories), "matrix", "matrices")
    texts = []
    stopped = found.stopped
    if stopped:
        names = f": {_with_steps(found, stopped)}" if len(stopped) <= 3 else ""
        texts.append(f"{len(stopped)} of {total} stopped changing{names}.")
    else:
        texts.append(
            f"All {total} still change at the end."
            if len(found.histories) > 1
            else "The matrix still changes at the end."
        )
    learned = [row for row in found.histories if _gained(row) > 0]
    if learned:
        most = max(learned, key=_gained)
        texts.append(
            f"{counted(len(learned), 'matrix', 'matrices')} gained directions; {most.name} gained the "
            f"most ({range_text(most, 'directions')})."
        )
    return " ".join(texts)


def span(found: DiagnosedCheckpoints) -> str:
    """Number of checkpoints and their range, such as "11 checkpoints, step 0 to step 2000"."""
    number = counted(len(found.labels), "checkpoint")
    return f"{number}, {found.at(0)} to {found.at(len(found.labels) - 1)}"


def _with_steps(found: DiagnosedCheckpoints, rows: Sequence[History]) -> str:
    return listed([f"{row.name} from {found.at(row.stopped.place)}" for row in rows if row.stopped])


def _gained(row: History) -> int:
    values = [value for value in row.values("directions") if value is not None]
    return int(values[-1] - values[0]) if values else 0


def row_values(row: History, quantity: str) -> list[float]:
    """Return the known values of a quantity, in order."""
    return [value for value in row.values(quantity) if value is not None]


def range_text(row: History, quantity: str) -> str:
    """First and last value of a quantity, such as "0 to 10"; a dash for a value that is missing."""
    values = row.values(quantity)
    present = [place for place, one in enumerate(row.measurements) if one is not None]
    ends = [format_number(values[place], 3) for place in (present[0], present[-1])]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def stopped_text(found: DiagnosedCheckpoints, row: History) -> str:
    """When a matrix stopped changing: "step 800", "no", or that it only fluctuates."""
    if row.stopped is None:
        return "no" if row_values(row, "last")[1:] else MISSING
    text = found.at(row.stopped.place)
    return f"{text}, fluctuates" if row.stopped.fluctuates else text


def settled_text(found: DiagnosedCheckpoints, row: History) -> str:
    """When the directions of a matrix settled."""
    if row.settled is not None:
        return found.at(row.settled.place)
    last = row.measurements[-1]
    return "no" if last is not None and last.directions else MISSING


def meanings() -> list[str]:
    """Return the criteria, one sentence each."""
    return [
        "stopped: from this checkpoint on the Frobenius distance to the last weights is below "
        f"{100 * STILL:.0f} % of their norm (or the spacing of stored numbers, if that is larger), "
        "or, if it says fluctuates, does not grow with the separation.",
        "settled: from this checkpoint on the number of directions stays within one (or a tenth) of the "
        f"last one, and their squared overlap with the last ones is at least {SAME:g}.",
        "at least: directions above random signs, a lower bound.",
    ]
