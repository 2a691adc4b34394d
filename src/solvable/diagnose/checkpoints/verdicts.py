"""Verdicts on the history of a matrix: when it stopped changing, and signs of overfitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from solvable.diagnose.checkpoints.changes import Change
from solvable.diagnose.checkpoints.fits import Fit
from solvable.diagnose.checkpoints.history import History, Sign, Stop

STILL = 0.01  # distance to the last weights, relative to their norm, below which nothing changes
MOST = 0.3  # the same distance above which changes are no fluctuations
TRAP = 1.1  # largest singular value of the shuffled matrix over the edge of noise
GROWTH = 1.05  # norm at the end over the norm when the features settled


def judged(history: History) -> History:
    """Complete a history by its verdicts."""
    settled = settled_features(history.fits, history.changes)
    signs = (rule(history, settled) for rule in (_trap, _growth))
    stopped = stopped_weights(history.changes)
    if stopped is not None and stopped.fluctuates:
        # Weights in which features appear or turn do not only fluctuate.
        last = history.fits[-1]
        if last is not None and last.features:
            stopped = None if settled is None or settled.place > stopped.place else stopped
    return replace(
        history,
        stopped=stopped,
        settled=settled,
        signs=tuple(sign for sign in signs if sign is not None),
    )


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


def settled_features(fits: Sequence[Fit | None], changes: Sequence[Change]) -> Stop | None:
    """Return the first checkpoint from which on number and directions of the features stay."""
    places = [place for place, fit in enumerate(fits) if fit is not None]
    last = fits[places[-1]] if places else None
    if last is None or not last.features:
        return None
    final = last.features

    def same(place: int) -> bool:
        fit, change = fits[place], changes[place]
        if fit is None or fit.features is None or abs(fit.features - final) > max(1, final // 10):
            return False
        if place == places[-1] or change.overlap is None or change.expected is None:
            return place == places[-1]
        return change.overlap >= change.expected - 3 * (change.error or 0.0)

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


def _trap(history: History, settled: Stop | None) -> Sign | None:
    """Single large entries in a matrix whose norm has grown: weight decay makes them in good networks."""
    traps, norms = history.values("trap"), [norm for norm in history.values("norm") if norm]
    high = _tail_of(range(len(traps)), lambda place: (traps[place] or 0.0) > TRAP)
    if len(high) < 2 or norms[-1] <= norms[0]:
        return None
    text = f"the shuffled entries have a singular value {traps[-1]:.2f} times the edge of noise"
    return Sign("trap", high[0], text)


def _growth(history: History, settled: Stop | None) -> Sign | None:
    """Growth of the norm after number and directions of the features settled."""
    norms = history.values("norm")
    start, end = (None, None) if settled is None else (norms[settled.place], norms[-1])
    if settled is None or start is None or end is None or end < GROWTH * start:
        return None
    text = f"the norm grew by {100 * (end / start - 1):.0f} % after the features settled"
    return Sign("growth", settled.place, text)
