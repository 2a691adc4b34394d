"""Verdicts on the history of a matrix: when it stopped changing, and when its directions settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from solvable.diagnose.checkpoints.changes import Change
from solvable.diagnose.checkpoints.history import History, Stop
from solvable.diagnose.diagnosis import Measurement

STILL = 0.01  # distance to the last weights, relative to their norm, below which nothing changes
SAME = 0.9  # squared overlap with the last directions from which on they are the same
MOST = 0.3  # the same distance above which changes are no fluctuations


def judged(history: History) -> History:
    """Complete a history by its verdicts."""
    settled = settled_directions(history.measurements, history.changes)
    stopped = stopped_weights(history.changes)
    if stopped is not None and stopped.fluctuates:
        # Weights in which directions appear or turn do not only fluctuate.
        last = history.measurements[-1]
        if last is not None and last.directions:
            stopped = None if settled is None or settled.place > stopped.place else stopped
    return replace(history, stopped=stopped, settled=settled)


def stopped_weights(changes: Sequence[Change]) -> Stop | None:
    """Return the first checkpoint from which on the weights stay within the noise of the last."""
    places = [place for place, change in enumerate(changes) if change.last is not None]
    distances = {place: changes[place].last or 0.0 for place in places}
    if len(places) < 2:
        return None
    # Rounding to a relative spacing moves an entry by at most half a spacing.
    limit = max(STILL, *(changes[place].rounding for place in places))
    still = _tail_of(places, lambda place: distances[place] <= limit)
    if len(still) >= 2:
        return Stop(still[0], False, max(distances[place] for place in still))
    # Weights that only fluctuate around a fixed point are as far from the last ones a long time
    # before as a short time before: their squared distance does not grow with the separation.
    nearest = distances[places[-2]]
    if nearest > MOST:
        return None
    flat = _tail_of(places[:-1], lambda place: distances[place] ** 2 <= 1.25 * nearest**2)
    if len(flat) >= 3:
        return Stop(flat[0], True, max(distances[place] for place in flat))
    return None


def settled_directions(
    measurements: Sequence[Measurement | None], changes: Sequence[Change]
) -> Stop | None:
    """Return the first checkpoint from which on the directions and their number stay."""
    places = [place for place, row in enumerate(measurements) if row is not None]
    last = measurements[places[-1]] if places else None
    if last is None or not last.directions:
        return None
    final = last.directions

    def same(place: int) -> bool:
        row, overlap = measurements[place], changes[place].overlap
        if row is None or row.directions is None:
            return False
        near = abs(row.directions - final) <= max(1, final // 10)
        return near and (place == places[-1] or (overlap is not None and overlap >= SAME))

    kept = _tail_of(places, same)
    return Stop(kept[0], False, 0.0) if len(kept) >= 2 else None


def _tail_of(places: Sequence[int], holds: Callable[[int], bool]) -> list[int]:
    """Return the last places for which a condition holds without a gap."""
    kept: list[int] = []
    for place in reversed(places):
        if not holds(place):
            break
        kept.insert(0, place)
    return kept
