"""Claims about strings with blanks: correlations of single leaves, and strings that learners need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point
from solvable.models.hierarchy.grammar.accuracy import ALONG, classifies, crossing_ratio

PAPER = "arXiv:2404.10727"


def sparsity_power(points: Sequence[Point]) -> tuple[float, float] | None:
    """Slope of the log of the crossing sample size against log(s_0 + 1), and the predicted power."""
    groups: dict[int, list[Point]] = {}
    for point in points:
        groups.setdefault(point.setting.width, []).append(point)
    sizes = {width: crossing_ratio(group) for width, group in groups.items()}
    found = [(width, size) for width, size in sizes.items() if size is not None]
    if len(found) < 3:
        return None
    x, y = np.log(np.array(found)).T
    return float(np.polyfit(x, y, 1)[0]), float(points[0].setting.sparsity_power)


SPARSE_CLAIMS = (
    Agreement("leaf-counts",
        "The counts of one leaf contain the predicted share of correlations with the label.",
        "leaf_counts", "derivations/hierarchy (36)", relative=True,
        within=lambda cell: 0.08 + 0.5 / cell.setting.vocabulary,
        because="8 %, plus 0.5/V: one grammar differs from the mean over grammars.",
        where=lambda cell: classifies(cell.setting) and cell.expected >= 1.5, power=0.3,
        missing="no point has so many strings that the counts of a leaf are 1.5 times those of sampling "
        "alone; raise sample_ratio"),
    Estimate("blanks-multiply-strings",
        "With s_0 blanks per symbol a learner needs (s_0 + 1)^k times as many strings. The power k is 2 "
        "for convolutional networks at any depth and L without shared weights; it is s for tuples that "
        "are counted at all positions together, and s + L - 1 at the first one.",
        f"{PAPER}, Section 6; derivations/hierarchy (35), (36)",
        estimate=sparsity_power, apart=(*ALONG, "blanks"), fewest=6, within=0.45, power=0.3,
        because="0.45: the power of networks is empirical, and crossings are interpolated between few "
        "sizes.",
        where=lambda point: (
            classifies(point.setting) and point.setting.ensemble == "first"
            and point.setting.sparsity_power is not None
        ),
        missing="needed: cnn, locally-connected or count-cluster with positions=first or pooled, at "
        "three numbers of blanks and on both sides of P*; run with --preset sparse"),
)  # fmt: skip
