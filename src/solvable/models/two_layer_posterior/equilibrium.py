"""Selection of points at which Langevin networks reached their posterior, for claims."""

from __future__ import annotations

import numpy as np

from solvable.frame.agreement import Cell
from solvable.frame.points import Point
from solvable.models.two_layer_posterior.langevin import STEP_TOLERANCE

PAGE = "derivations/two-layer-posterior"
UNSETTLED = (
    "no point with both starts is in equilibrium: the two starts disagree, the second half of the run "
    "is worth fewer than ten independent draws, the run is too short, or the step is too large. Raise "
    "steps; at N near d, and from d = 20 on, neurons specialise after times that grow exponentially "
    "with d, longer than any run here. Layers narrower than their inputs are not tested either: raise "
    "width_ratio"
)

UNSPECIALISED = UNSETTLED + "; or fewer than one specialised neuron is predicted"


def ran_long(place: Cell | Point) -> bool:
    """Return True if the runs from both starts used small steps and lasted several relaxation times."""
    point = place.point if isinstance(place, Cell) else place
    if point.setting.start != "both" or point.setting.gain:
        return False
    long = float(point.mean("duration")) >= 4 and float(point.mean("effective_samples")) >= 10
    return long and float(point.mean("step_error")) < 2 * STEP_TOLERANCE


def in_equilibrium(place: Cell | Point) -> bool:
    """Return True if the prior start and the planted start reached the same alignment."""
    point = place.point if isinstance(place, Cell) else place
    if not ran_long(point):
        return False
    prior, planted = point.values("alignment_prior"), point.values("alignment_planted")
    gap = float(np.mean(planted - prior))
    return abs(gap) <= max(0.02, 0.15 * float(np.mean(planted + prior)) / 2)


def settled(place: Cell | Point) -> bool:
    """Return True if the point is in equilibrium and the layer is at least as wide as its inputs."""
    # In a layer narrower than its inputs the kernel fluctuates from network to network.
    return in_equilibrium(place) and place.setting.width >= place.setting.dimension
