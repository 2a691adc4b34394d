"""Claims that compare networks: with and without correlations, deep and shallow, with shared weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.conditions import between, one_of
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point
from solvable.models.hierarchy.grammar.accuracy import (
    ALONG,
    crossing_ratio,
    log_strings,
    reach,
    scarce,
)

PAPER = "arXiv:2307.02129"
SIZES = ("vocabulary", "rules", "branching", "depth", "classes")


EQUAL = {"task": "classification", "zipf": 0, "blanks": 0}


def correlated_lead(points: Sequence[Point]) -> tuple[float, float] | None:
    """Accuracy with correlated rules minus that with a Latin square, in units of perfect minus chance."""
    accuracy = {p.setting.ensemble: float(p.mean("test_accuracy")) for p in points}
    if not {"first", "latin"} <= accuracy.keys():
        return None
    return (accuracy["first"] - accuracy["latin"]) / reach(points[0].setting), 1.0


def sizes_at(
    points: Sequence[Point], estimator: str, left: float
) -> dict[str, tuple[Point, float]]:
    """First point and logarithm of the strings at which an error is left, for each grammar."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        if point.setting.estimator == estimator:
            key = str([getattr(point.setting, name) for name in SIZES])
            groups.setdefault(key, []).append(point)
    found = {key: crossing_ratio(group, left) for key, group in groups.items()}
    return {
        key: (groups[key][0], float(np.log(ratio * groups[key][0].setting.threshold)))
        for key, ratio in found.items()
        if ratio is not None
    }


def factor_per_level(points: Sequence[Point]) -> tuple[float, float] | None:
    """Factor per level by which a network without shared weights needs more strings; expected 2."""
    shared, full = (sizes_at(points, name, 0.5) for name in ("cnn", "fully-connected"))
    rows = [(shared[k][0].setting.depth, full[k][1] - shared[k][1]) for k in shared if k in full]
    depths = np.array([depth for depth, _ in rows], dtype=float)
    if len(rows) < 2 or np.ptp(depths) < 1:
        return None
    return float(np.exp(np.polyfit(depths, [ratio for _, ratio in rows], 1)[0])), 2.0


def power_of_strings(points: Sequence[Point]) -> tuple[float, float] | None:
    """Slope of the logarithm of the strings that a shallow network needs, against that of all strings."""
    rows = [
        (log_strings(point.setting), size)
        for point, size in sizes_at(points, "shallow", 0.1).values()
    ]
    table = np.array(rows).reshape(-1, 2)
    if len(table) < 3 or np.ptp(table[:, 0]) < np.log(64):
        return None
    return float(np.polyfit(table[:, 0], table[:, 1], 1)[0]), 1.0


NETWORK_CLAIMS = (
    Estimate("learning-needs-correlations",
        "A network learns if single symbols are correlated with the label, and not if they are not.",
        f"{PAPER}, Figure 9; derivations/hierarchy (5)", estimate=correlated_lead,
        apart=("ensemble",), fewest=2, within=0.2, power=0.5,
        because="0.2: at a few P* the hierarchy is not learned perfectly.",
        where=(
            {**EQUAL, "estimator": "cnn", "ratio": between(4, 64)}, lambda p: scarce(p.setting)
        ),
        missing="needed: estimator=cnn and ensemble=first,latin at a sample ratio of at least 4, far "
        "from all strings; run with --preset quick --set estimator=cnn ensemble=first,latin "
        "vocabulary=6 rules=6 sample_ratio=4"),
    Estimate("factor-of-shared-weights",
        "The factor by which a fully connected network needs more strings than a convolutional one "
        "doubles with each level.", f"{PAPER}, Section IV", estimate=factor_per_level,
        apart=(*ALONG, "estimator", "depth"), fewest=8, relative=True, within=0.2, power=0.6,
        because="20 %: the law is empirical, and crossings are interpolated between few sizes.",
        where={**EQUAL, "ensemble": "first", "estimator": one_of("cnn", "fully-connected")},
        missing="needed: estimator=cnn,fully-connected at two depths, on both sides of their thresholds; "
        "run with --preset networks"),
    Estimate("shallow-networks-need-all-strings",
        "A network of one hidden layer needs a fixed share of all strings of the grammar.",
        f"{PAPER}, Figure 2", estimate=power_of_strings, apart=(*ALONG, *SIZES), fewest=9,
        within=0.2,
        power=0.45,  # a deep network would have the power 3/7
        because="0.2: the share depends on the size of the grammar, by a factor of about two.",
        where={**EQUAL, "ensemble": "first", "estimator": "shallow"},
        missing="fewer than three grammars with estimator=shallow whose numbers of strings span a factor "
        "of 64; run with --preset shallow"),
)  # fmt: skip
