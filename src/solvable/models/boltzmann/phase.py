"""Phases of a Boltzmann machine: one spike per unit, a shared spike, weights 0, or many maxima."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from solvable.models.boltzmann.evolution import (
    LARGEST_COUPLING,
    UnitState,
    bulk_edge,
    outlier,
    unit_state,
)
from solvable.models.boltzmann.shared_directions import apart_growth, shared_state


@dataclass(frozen=True)
class Phase:
    """Phase of the units with the predicted states, or the reason for no prediction."""

    units: tuple[UnitState, ...] = ()  # states of the units, in the order of `spikes`
    spikes: tuple[int, ...] = ()
    norm: float | None = None
    replicon: float | None = None
    reason: str = ""
    shared: bool = False  # True if two units share a direction


@lru_cache(maxsize=1024)
def phase_of(
    strengths: tuple[float, ...], ratio: float, hidden_units: int, weight_decay: float
) -> Phase:
    """Determine the phase of the units and its stability."""
    order = np.argsort(strengths)[::-1]
    learned = tuple(int(spike) for spike in order[:hidden_units])
    units = tuple(unit_state(strengths[spike], ratio, weight_decay) for spike in learned)
    spare = hidden_units - len(units)
    everyone = units + (unit_state(0.0, ratio, weight_decay),) * spare
    replicon: float | None = max(unit.replicon for unit in everyone)
    apart = all(unit.stable for unit in everyone)
    growths = [apart_growth(*pair, ratio) for pair in combinations(everyone, 2)]
    growth, turning = np.max([(0.0, 0.0), *growths], axis=0)
    # above these measured values some starts end in another state, although both growths are below 1
    mixed = growth > 0.7 or turning > 0.9
    if all(unit.q == 0 for unit in everyone):
        return Phase(norm=0.0, replicon=replicon, reason=(
            f"the weights are 0: weight_decay is {weight_decay:g}, and no eigenvalue of the sample "
            "covariance exceeds 1 + weight_decay. Set weight_decay below "
            f"{outlier(max(strengths), ratio) - 1:.3g}."
        ))  # fmt: skip
    if hidden_units == 2:
        second = strengths[order[1]] if len(order) > 1 else 0.0
        shared = shared_state(strengths[order[0]], ratio, weight_decay, second)
        if shared.stable and (not apart or max(growth, turning) > 1):
            return Phase(
                (shared.unit,), learned[:1], 2 * shared.unit.q, shared.replicon, shared=True
            )
        if shared.stable or (apart and mixed):
            return Phase(reason=(
                "two units learn different spikes or share one, depending on the start: the shared "
                f"part grows by {growth:.2g} in a step; allowed: up to 0.7 or above 1. Set another "
                "weight_decay."
            ))  # fmt: skip
    if not apart:
        if any(u.V >= LARGEST_COUPLING or not np.isfinite(u.replicon) for u in everyone):
            replicon = None  # message passing has no fixed point
        return Phase(replicon=replicon, reason=_unstable(everyone, ratio, weight_decay))
    if mixed:
        return Phase(reason=(
            f"units may share directions: the shared part of two units grows by {growth:.2g} in a step; "
            "allowed: up to 0.7. Lower weight_decay or hidden_units."
        ))  # fmt: skip
    return Phase(units, learned, sum(unit.q for unit in units), replicon)


def _unstable(units: tuple[UnitState, ...], ratio: float, weight_decay: float) -> str:
    """Return the message for a likelihood with many maxima."""
    edge = bulk_edge(ratio) - 1
    hint = "Raise sample_ratio or spike" + (
        f", or set weight_decay near {edge:.3g}." if edge <= 100 else "."
    )
    if any(unit.spike == 0 for unit in units):
        hint = f"Lower hidden_units, or set weight_decay above {edge:.3g}."
    return (
        "the prediction is unstable: the likelihood has many maxima, because a small change grows in a "
        "step of message "
        f"passing (replicon above 1). {hint}"
    )
