"""Claims on sums of equal directions; each row gives the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.conditions import above, at_least, inside, one_of
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point

PAPER = "arXiv:2603.17896, Section 4"

PAGE = "derivations/multi-index"

# Finite dimension rounds the transition. For eight directions of he2 in 60 dimensions, the estimate is
# 0.79 times the threshold if n/d is 1.37 times the threshold, and 1.09 times if n/d is 2.7 times.
SHOWS_THRESHOLD = {
    "label_map": "optimal",
    "sample_ratio": above(1.5, "optimal_threshold_ratio"),
    "single_overlap": inside(0.4, 0.95),
}
"""Points at which the measured overlap of the best label map determines the map's threshold."""


def share(cell: Cell) -> float:
    """Ratio of the number of directions to the dimension."""
    return float(cell.setting.directions / cell.setting.dimension)


def odd(cell: Cell) -> bool:
    """Return True if the sum of directions and the single directions have different moments."""
    return bool(cell.setting.model.pair.any())


def thresholds_measured(point: Point) -> np.ndarray:
    """Threshold of single directions, computed from the overlap measured in each replicate."""
    # The span of p random vectors contains a share p / d of the squared norm of any direction.
    chance = point.setting.directions / point.setting.dimension
    missed = (1 - point.values("single_overlap")) / (1 - chance)
    # The test of the claim's power raises measured overlaps by a tenth, which may exceed 1.
    missed = np.maximum(missed, 1e-6)
    model = point.setting.model
    G, weights = model.single_moment, model.channel.moments.probabilities
    q = np.clip(1 - missed, 0.0, 1.0)[:, None]
    # 1 = alpha (1 - q) E[G² / (1 + q G)] above the threshold 1 / E[G²]   (multi-index 9)
    information = (G**2 / np.maximum(1 + q * G, 1e-6)) @ weights
    ratio = point.setting.sample_ratio * missed * information
    return np.asarray(ratio * model.weak_recovery_ratio)


def mean_eigenvalue(point: Point) -> np.ndarray | None:
    """Mean of the leading eigenvalues for an even link; None otherwise."""
    values = point.values("eigenvalues")
    if point.setting.model.pair.any() or values.ndim == 1:
        return None
    return np.asarray(values.mean(axis=1))


def growth_with_directions(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted power of p with which the threshold of single directions grows."""
    numbers = sorted({point.setting.directions for point in points})
    if numbers[-1] < 4 * numbers[0]:
        return None
    measured = [thresholds_measured(point) for point in points]
    if not all((sizes > 0).all() for sizes in measured):  # an overlap of 1 has no finite threshold
        return None
    fewest, most = (
        np.mean(
            [
                np.log(sizes).mean()
                for point, sizes in zip(points, measured, strict=True)
                if point.setting.directions == n
            ]
        )
        for n in (numbers[0], numbers[-1])
    )
    slope = (most - fewest) / np.log(numbers[-1] / numbers[0])
    return float(slope), float(points[-1].predicted("exponent"))


def in_the_gap(place: Cell | Point) -> bool:
    """Return True where the labels determine the directions but second moments find nothing."""
    point = place.point if isinstance(place, Cell) else place
    overlap = point.prediction.get("informed_overlap")
    known = all("informed_overlap" in metrics for metrics in point.metrics)
    if overlap is None or not known or not float(point.predicted("informed_overlap")) > 0.6:
        return False
    threshold = float(point.predicted("information_threshold_ratio"))
    return bool(point.setting.sample_ratio > 1.05 * threshold)


def information_measured(point: Point) -> np.ndarray:
    """Threshold of any method, from the overlap of message passing in each replicate."""
    # At a fixed point 1 - q is about inversely proportional to n / (d p), as q = alpha E / (1 + alpha E).
    missed = np.maximum(1 - point.values("informed_overlap"), 1e-6)
    # The test of the claim's power raises predicted overlaps, which may exceed 1.
    expected = max(1 - float(point.predicted("informed_overlap")), 1e-6)
    return np.asarray(missed / expected * float(point.predicted("information_threshold_ratio")))


def information_growth(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted power of p in the threshold of any method."""
    numbers = sorted({point.setting.directions for point in points})
    kept = all(float(point.mean("informed_overlap")) > 0.5 for point in points)
    if len(numbers) < 2 or not kept:  # a lost start does not show the threshold
        return None
    means = [
        np.mean(
            [np.log(information_measured(q)).mean() for q in points if q.setting.directions == n]
        )
        for n in numbers
    ]
    return float((means[-1] - means[0]) / np.log(numbers[-1] / numbers[0])), 1.0


# fmt: off
CLAIMS = (
    Agreement(
        "overlap",
        "The squared overlap of single directions equals the prediction below, at and above their "
        "threshold.",
        "single_overlap", f"{PAGE} (8), (16), (24)", within=lambda cell: 0.03 + 0.2 * share(cell),
        because="0.03 for the approximate profile at the threshold, and terms of order p/d.",
        scatter=overlap_scatter,
        missing="no point has a prediction",
    ),
    Agreement(
        "sum-overlap",
        "If the link is not even, the squared overlap of the sum of directions equals the prediction.",
        "sum_overlap", f"{PAGE} (8), (16), (24)", within=lambda cell: 0.04 + 0.2 * share(cell),
        because="0.04 for the approximate profile at the threshold, and terms of order p/d.",
        scatter=overlap_scatter,
        where={"a link that is not even": odd,
               "a sum with twice the overlap of chance": lambda c: c.expected > 2 * share(c)},
        missing="run with --preset odd",
    ),
    Agreement(
        "place-of-the-outliers",
        "The mean eigenvalue of the leading directions equals the predicted outlier psi(lambda*).",
        mean_eigenvalue, f"{PAGE} (7)", expected=lambda point: np.mean(point.predicted("eigenvalues")),
        within=lambda cell: 0.05 + share(cell), relative=True,
        because="5 % for finite d, and terms of order p/d for p equal directions.",
        # The best map has rare values of -1e4, which shift all eigenvalues.
        where={"label_map": one_of("tanh", "square"), "single_overlap": above(0.7)}, power=0.2,
        missing="run with --preset maps",
    ),
    Agreement(
        "constant",
        "The threshold of single directions equals its leading order beta! (1 + noise)^beta p^beta / c².",
        thresholds_measured, f"{PAPER}; {PAGE} (17)", expected="leading_threshold_ratio",
        within=0.12,
        because="Exact thresholds of four directions are up to 7 % lower; terms of order p/d.",
        relative=True, power=0.3,
        where={**SHOWS_THRESHOLD, "directions": at_least(4), "an even link": lambda c: not odd(c)},
        missing="set label_map=optimal or raise sample_ratio",
    ),
    Estimate(
        "growth-with-directions",
        "The threshold of single directions grows as p^beta in their number p, with the predicted "
        "exponent beta.",
        f"{PAPER}; {PAGE} (17), (18)", estimate=growth_with_directions,
        apart=("sample_ratio", "directions"),
        where=SHOWS_THRESHOLD, within=0.08, relative=True,
        because="8 %: thresholds of few directions are below their leading order.", power=0.3,
        missing="no two curves with label_map=optimal differ only in their number of directions, by a "
        "factor of four, with overlaps of 0.4 to 0.95 above the threshold; run with --preset quick",
    ),
    Agreement(
        "information-without-algorithm",
        "Between the threshold of any method and that of second moments, message passing that starts "
        "near the directions keeps the predicted overlap.",
        "informed_overlap", f"{PAPER}; {PAGE} (34)", within=0.05, scatter=overlap_scatter,
        because="Terms of order d^(-1/2).", where=in_the_gap,
        missing="no point is between the two thresholds; run with --preset quick",
    ),
    Estimate(
        "information-grows-with-directions",
        "The threshold of any method grows in proportion to the number of directions.",
        f"{PAPER}; {PAGE} (20), (34)", estimate=information_growth,
        apart=("sample_ratio", "directions"), where=in_the_gap, within=0.15, power=0.6,
        because="0.15: the proportionality holds to leading order in p.",
        missing="no two numbers of directions have points between the two thresholds; run with --preset "
        "quick",
    ),
)
