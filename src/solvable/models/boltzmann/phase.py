"""Phases of the units of a Boltzmann machine: a spike each, a shared one, no weights, many maxima."""

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
    """Phase of the units: directions that they learn and numbers, or the reason why there are none."""

    units: tuple[UnitState, ...] = ()  # in the order of the spikes that they found
    spikes: tuple[int, ...] = ()
    norm: float | None = None
    replicon: float | None = None
    reason: str = ""
    shared: bool = False  # two units have one direction


@lru_cache(maxsize=1024)
def phase_of(
    strengths: tuple[float, ...], ratio: float, hidden_units: int, weight_decay: float
) -> Phase:
    """Whether units learn a spike each, or two of them one, and whether that is stable."""
    order = np.argsort(strengths)[::-1]
    learned = tuple(int(spike) for spike in order[:hidden_units])
    units = tuple(unit_state(strengths[spike], ratio, weight_decay) for spike in learned)
    spare = hidden_units - len(units)
    everyone = units + (unit_state(0.0, ratio, weight_decay),) * spare
    replicon: float | None = max(unit.replicon for unit in everyone)
    apart = all(unit.stable for unit in everyone)
    growths = [apart_growth(*pair, ratio) for pair in combinations(everyone, 2)]
    growth, turning = np.max([(0.0, 0.0), *growths], axis=0)
    # Simulated: beyond these some starts end elsewhere although both are below 1.
    mixed = growth > 0.7 or turning > 0.9
    if all(unit.q == 0 for unit in everyone):
        return Phase(norm=0.0, replicon=replicon, reason=(
            f"weight decay {weight_decay:g} leaves no weights: no eigenvalue of the sample covariance "
            "exceeds 1 + weight_decay. Lower weight_decay below "
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
                f"two units may learn a spike each, or share one, and which depends on the start "
                f"(what they share grows by {growth:.2g} in a step; predicted: up to 0.7, or above 1). "
                "Change weight_decay."
            ))  # fmt: skip
    if not apart:
        if any(unit.V >= LARGEST_COUPLING for unit in everyone):
            replicon = None  # message passing has no answer at all
        return Phase(replicon=replicon, reason=_unstable(everyone, ratio, weight_decay))
    if mixed:
        return Phase(reason=(
            f"units may share directions (what two of them share grows by {growth:.2g} in a step; "
            "predicted: up to 0.7). Lower weight_decay or hidden_units."
        ))  # fmt: skip
    return Phase(units, learned, sum(unit.q for unit in units), replicon)


def _unstable(units: tuple[UnitState, ...], ratio: float, weight_decay: float) -> str:
    """Why the likelihood has many maxima."""
    edge = bulk_edge(ratio) - 1
    hint = "Raise sample_ratio or spike" + (
        f", or set weight_decay near {edge:.3g}." if edge <= 100 else "."
    )
    if any(unit.spike == 0 for unit in units):
        hint = f"Lower hidden_units, or set weight_decay above {edge:.3g}."
    return (
        "unstable: the likelihood has many maxima (a small change grows in a step of message passing; "
        f"see replicon, which is predicted below 1). {hint}"
    )
