"""Claims on low-degree filters, one row each, with the reason of its tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point

LU_LI = "Lu and Li, arXiv:1702.06435"

PAPER = "arXiv:2605.13612"


def at(point: Point | Cell, target: str, **above: float) -> bool:
    """Whether a point has a target, without a lift, and predictions above given values."""
    fits = (point.setting.target, point.setting.lift) == (target, "none")
    return fits and all(float(point.predicted(name)) > value for name, value in above.items())


def gaps_to_kernels(point: Point) -> np.ndarray | None:
    """Errors of the networks of one and three layers without filter, less that with one."""
    if not at(point, "subspace", subspace_overlap=0.7):
        return None
    kernels = np.stack([point.values("kernel_error"), point.values("deep_kernel_error")], axis=1)
    return np.asarray(kernels - point.values("error")[:, None])


def mean_hidden_overlap(points: Sequence[Point]) -> tuple[float, float] | None:
    """Best overlaps of all points of a hidden target, over their predictions."""
    name = "best_squared_overlap"
    expected = sum(float(point.predicted(name)) for point in points)
    return (sum(float(p.mean(name)) for p in points) / expected, 1.0) if expected else None


STANDS_OUT = 1.5
"""A direction stands out where its eigenvalue is so many times the mean of the null."""


def standing_out(group: Sequence[Point]) -> tuple[float, float] | None:
    """Logarithms of n/d from which a direction stands out: measured, predicted."""
    group = sorted(group, key=lambda point: point.setting.ratio)
    if not group:
        return None
    x = np.log([point.setting.ratio for point in group])
    names = ("eigenvalue", "null_eigenvalue")
    means = np.array([[abs(float(point.mean(name))) for point in group] for name in names])
    theory = np.array([[abs(float(point.predicted(name))) for point in group] for name in names])
    measured, predicted = (np.log(a[0] / a[1] / STANDS_OUT) for a in (means, theory))
    # The last place at which it does not stand out by prediction, and the next one
    below = np.flatnonzero(predicted < 0)
    if not below.size or below[-1] + 1 == x.size:
        return None
    k = int(below[-1])
    share = predicted[k] / (predicted[k] - predicted[k + 1])
    place = float(x[k] + share * (x[k + 1] - x[k]))
    # y(x) = y_predicted(x - delta) to first order, least squares, within a factor of 3 of that place
    near = np.abs(x - place) < np.log(3)
    slope = np.gradient(predicted, x)[near]
    delta = float(np.sum((predicted - measured)[near] * slope) / np.sum(slope**2))
    return place + delta, place


def saved_by_centring(points: Sequence[Point]) -> tuple[float, float] | None:
    """Factor between the samples from which a direction stands out, as published and centred."""
    plain, centred = (
        standing_out([point for point in points if point.setting.features == name])
        for name in ("as-published", "centred")
    )
    if plain is None or centred is None:
        return None
    measured, expected = np.exp(np.subtract(plain, centred))
    return float(measured), float(expected)


def bounded(cell: Cell) -> bool:
    """Whether labels of a single-index target are bounded, so that the bulk has an edge."""
    raw = (cell.setting.label_map, cell.setting.channel)
    return at(cell, "single-index") and raw not in (("raw", "square"), ("raw", "absolute"))


# fmt: off
CLAIMS = (
    Agreement(
        "overlap-through-emergence",
        "The squared overlap of the first filter with its direction is on the predicted curve, below, at "
        "and above the threshold.",
        "squared_overlap", f"{LU_LI}; rounding at finite d derived", within=0.04,
        because="Corrections of relative order 1/d, and the profile at threshold.", entry="direction",
        scatter=overlap_scatter,
        where=lambda cell: at(cell, "single-index"),
        missing="no point has the target single-index without lift; set target=single-index",
    ),
    Agreement(
        "place-of-the-outlier", "The eigenvalue of a found direction is at psi(lambda*).",
        "eigenvalue", f"{LU_LI}; means at finite d derived", within=0.04, relative=True,
        because="4 % for finite d.",
        where=lambda cell: at(cell, "single-index", subspace_overlap=0.2),
        missing="no single-index target has a predicted squared overlap above 0.2; raise ratio",
    ),
    Agreement(
        "edge-of-the-bulk",
        "The extreme eigenvalue at the end without a direction is a Tracy-Widom fluctuation inside the "
        "edge of the bulk.",
        "opposite_edge", f"{LU_LI}; means at finite d derived", within=0.04, relative=True,
        because="4 %: terms of order d^(-2/3) of the edge.", where=bounded,
        missing="no point has the target single-index with bounded labels; set target=single-index",
    ),
    Agreement(
        "lift-as-label-map",
        "An infinitely wide lift before the filter acts like a map of the label.",
        "squared_overlap", "derived", within=0.05, entry="direction",
        because="Terms of order 1/d from fluctuating norms, and the profile at threshold.",
        scatter=overlap_scatter, where=lambda cell: cell.setting.lift != "none", power=0.15,
        missing="no point has a lift; run with --preset lift",
    ),
    Agreement(
        "null-of-a-lift",
        "With shuffled labels the largest eigenvalue is that of the constant times the noise of the "
        "first moment, and of centred features the edge of the bulk.",
        "null_eigenvalue", "derived", within=lambda cell: 0.03 + 1.5 / cell.setting.n_inputs,
        because="Three per cent and 1.5/d, from fluctuating norms.", relative=True, power=0.3,
        where=lambda cell: cell.setting.lift != "none",
        missing="no point has a lift; run with --preset centring",
    ),
    Agreement(
        "first-moment", "The first moment of a lift has the overlap of that of the inputs: no threshold.",
        "first_moment_overlap", "derived", within=0.03, because="Corrections of order 1/d.",
        scatter=overlap_scatter, where=lambda cell: cell.setting.lift != "none" and cell.expected > 0.2,
        missing="no lift has a label with a linear part; run with --preset centring --set channel=sign "
        "features=deflated",
    ),
    Estimate(
        "centring-saves-samples",
        "Centred features show a direction above shuffled labels from fewer samples, by a factor that "
        "grows like d where the activation has a constant part.",
        "derived", estimate=saved_by_centring, apart=("ratio", "features"), within=0.15, relative=True,
        because="15 %: terms of order 1/d.", where=lambda point: point.setting.lift != "none", power=0.5,
        missing="no lift is measured with features as published and centred at sample ratios on both "
        "sides of where its direction stands out; run with --preset centring",
    ),
    Estimate(
        "hidden-overlap",
        "Among strong irrelevant directions the best eigenvector has the predicted overlap, on average "
        "over sample sizes.",
        "derived", estimate=mean_hidden_overlap, where=lambda point: at(point, "hidden"), within=0.2,
        because="A fifth: levels of a bulk repel one another, which the theory treats roughly.",
        power=0.3, missing="no point has the target hidden; run with --set target=hidden",
    ),
    Agreement(
        "hidden-rank",
        "A weak feature is found behind the strong irrelevant directions in the ranking by modulus.",
        "best_rank", "derived", within=lambda cell: 0.25 * cell.setting.nuisance,
        because="A quarter of the number of strong directions.",
        # Without a feature the best of the eigenvectors may be any.
        where=lambda cell: at(cell, "hidden", deflated_squared_overlap=0.5), power=0.5,
        missing="no point of a hidden target has a feature to be found; raise ratio",
    ),
    Agreement(
        "deflation-restores", "Without the strong directions the overlap is that of isotropic inputs.",
        "deflated_squared_overlap", "derived", within=0.05, because="Corrections of order 1/d.",
        scatter=overlap_scatter,
        where=lambda cell: at(cell, "hidden", deflated_squared_overlap=0.2),
        missing="no point of a hidden target has a predicted overlap above 0.2; raise ratio",
    ),
    Agreement(
        "subspace-overlap",
        "The overlap of the kept eigenvectors with the subspace of the label is the predicted one.",
        "subspace_overlap", "derived", within=0.05, scatter=overlap_scatter,
        because="0.05: directions of one end mix.", where=lambda cell: at(cell, "subspace"), power=0.15,
        missing="no point has the target subspace; run with --set target=subspace",
    ),
    Agreement(
        "both-signs-needed", "The upper end holds no more of the subspace than its own directions.",
        "upper_subspace_overlap", f"{PAPER}: ranking by modulus", within=0.04, scatter=overlap_scatter,
        because="0.04: directions of one end mix.", power=0.2,
        where=lambda cell: at(cell, "subspace", subspace_overlap=0.7),
        missing="no subspace target has a predicted overlap above 0.7; raise ratio",
    ),
    Agreement(
        "filter-beats-kernels",
        "One filter before an infinitely wide layer lowers the error by fourteen points below networks "
        "of one and three layers without filter.",
        gaps_to_kernels, f"{PAPER}; figures of note 3.4", within=0.025, expected=0.14, kind="at least",
        because="Two points and a half.", power=0.5,
        missing="no subspace target has a predicted overlap above 0.7 and fitted networks "
        "(kernel_samples >= n); raise ratio or kernel_samples",
    ),
    Agreement(
        "error-of-learned-coordinates",
        "The network behind the filter reaches the Bayes error of coordinates of the learned overlaps.",
        "error", "derived", within=0.025, expected="error_floor",
        because="Overlaps differ between directions and samples; the readout is a fit.",
        power=0.15,
        missing="no subspace target has fitted networks; raise kernel_samples",
    ),
)
