"""Claims of `curse-of-detail` about the few strong neurons that carry a parity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement
from solvable.frame.claims import Claim, Finding, NotTestable
from solvable.frame.estimates import Slope, grouped_but
from solvable.frame.points import Point
from solvable.models.two_layer_posterior.equilibrium import PAGE, UNSETTLED, settled
from solvable.models.two_layer_posterior.parity import CARRIERS, carrier_strength, quarter_root

PARITY = "run with --preset parity"


def squared_strength(point: Point) -> np.ndarray | None:
    """Sum of the squared strengths of a parity's neurons over its prediction, for each replicate."""
    if point.setting.target != "parity":
        return None
    total = point.values("carriers") * point.values("carrier_strength") ** 2
    return np.asarray(total / (CARRIERS * expected_strength(point) ** 2))


def expected_strength(point: Point) -> float:
    """Predicted strength of each of four neurons that carry the measured alignment of outliers."""
    s = point.setting
    carried = round(float(point.mean("carried_alignment")), 6)
    if s.target != "parity" or not carried > 0:
        return np.nan
    return carrier_strength(carried, s.dimension, s.width, s.readout)


def growth_of_carriers(points: Sequence[Point]) -> Finding | NotTestable:
    """Judge the number of neurons that carry a parity, at the widest over the narrowest layer."""
    chosen = [p for p in points if p.setting.target == "parity" and settled(p)]
    rows = []
    for group in grouped_but(chosen, ("width_ratio",)):
        ends = [pick(group, key=lambda p: p.setting.width) for pick in (min, max)]
        few, many = (float(p.mean("carriers")) for p in ends)
        errors = [float(p.standard_error("carriers") / p.mean("carriers")) for p in ends]
        # fourth root of the growth of chi N / d
        most = quarter_root(ends[1].setting) / quarter_root(ends[0].setting)
        replicates = min(p.replicates for p in ends)
        if most > 1.5 and replicates > 1:
            error = many / few * float(np.hypot(errors[0], errors[1]))
            rows.append((many / few / most, many / few, most, error, replicates))
    if not rows:
        return NotTestable(f"{PARITY}, at widths whose χN/d differs by a factor of 5; {UNSETTLED}")
    _, growth, most, error, replicates = max(rows)
    return Finding(growth, most, 0.0, error, replicates, kind="at most")


# fmt: off
PARITY_CLAIMS = (
    Agreement(
        "squared-strength-of-few-neurons",
        "The sum of the squared strengths of the neurons that carry a parity is the one of least cost at "
        "their alignment, and tends to √(8χN/d) times the alignment.",
        squared_strength, f"arXiv:2512.04165, Figure 7; {PAGE} (24)", within=0.06, expected=1.0,
        power=0.15,
        because="Some neurons that do not carry the parity are counted, and neurons fluctuate.",
        where=settled, missing=PARITY,
    ),
    Claim(
        "few-neurons-carry-a-parity",
        "From the narrowest to the widest layer, the number of neurons that carry a parity grows by at "
        "most the fourth root of the growth of χN/d.",
        f"arXiv:2512.04165, Figure 7; {PAGE} (24)",
        "A few strong neurons stay few; the number of many equal neurons grows as the square root.",
        growth_of_carriers, power=0.9,
    ),
    Slope(
        "strength-grows-with-width",
        "The strength of the neurons that carry a parity grows with the width by the predicted exponent, "
        "which tends to 1/4 in χN/d: 1/2 in N with a mean-field readout.",
        f"arXiv:2512.04165, Figure 7; {PAGE} (24)", metric="carrier_strength",
        expected=expected_strength, along="width_ratio", fewest=3, within=0.05, power=0.2,
        because="A neuron may be split into two at a small cost.",
        where=({"target": "parity"}, settled), missing=PARITY,
    ),
)
