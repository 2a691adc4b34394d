"""Claims of the system `neural-lofi`, each with the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.conditions import above, covers, not_
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point

SINGLE, HIDDEN, SUBSPACE = (
    {"target": target, "lift": "none"} for target in ("single-index", "hidden", "subspace")
)
LIFTED = {"lift": not_("none")}
FOUND = {**SUBSPACE, "subspace_overlap": above(0.7)}


def ratios_to_kernels(point: Point) -> np.ndarray | None:
    """Test error over those of unfiltered networks of one and three layers, as ratios of means."""
    # Errors of unfiltered networks above 0.4 count as 0.4: a badly chosen penalty leads to an error of
    # one half, which would add scatter to an upper bound.
    if not covers(FOUND, point):
        return None
    kernels = np.stack([point.values("kernel_error"), point.values("deep_kernel_error")], axis=1)
    kernels = np.minimum(kernels, 0.4)
    errors = point.values("error")[:, None]
    ratios = errors.mean(axis=0) / kernels.mean(axis=0)
    # contribution of each replicate to the ratio of two means   (lofi 31)
    return np.asarray(ratios + (errors - ratios * kernels) / kernels.mean(axis=0))


def mean_hidden_overlap(points: Sequence[Point]) -> tuple[float, float] | None:
    """Sum of the measured best overlaps over all points of a hidden target, over the predicted sum."""
    name = "best_squared_overlap"
    expected = sum(float(point.predicted(name)) for point in points)
    return (sum(float(p.mean(name)) for p in points) / expected, 1.0) if expected else None


STANDS_OUT = 1.5
"""A direction stands out if its eigenvalue exceeds the mean null eigenvalue by this factor."""


def standing_out(group: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted values of log(n/d) above which a direction stands out."""
    group = sorted(group, key=lambda point: point.setting.ratio)
    if not group:
        return None
    x = np.log([point.setting.ratio for point in group])
    names = ("eigenvalue", "null_eigenvalue")
    means = np.array([[abs(float(point.mean(name))) for point in group] for name in names])
    theory = np.array([[abs(float(point.predicted(name))) for point in group] for name in names])
    measured, predicted = (np.log(a[0] / a[1] / STANDS_OUT) for a in (means, theory))
    # index k of the last sample ratio at which the prediction is that the direction does not stand out
    below = np.flatnonzero(predicted < 0)
    if not below.size or below[-1] + 1 == x.size:
        return None
    k = int(below[-1])
    share = predicted[k] / (predicted[k] - predicted[k + 1])
    place = float(x[k] + share * (x[k + 1] - x[k]))
    # fit delta in y(x) = y_predicted(x - delta), to first order by least squares, within a factor 3 of k
    near = np.abs(x - place) < np.log(3)
    slope = np.gradient(predicted, x)[near]
    delta = float(np.sum((predicted - measured)[near] * slope) / np.sum(slope**2))
    return place + delta, place


def saved_by_centring(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted factor by which centring lowers the samples that a direction needs."""
    # The factor is the crossing as published over the crossing with centring; about
    # n = d² c_0² (c_1² + c_*²) tau_2 / (c_1⁴ theta²) over alpha_c d (lofi 15).
    plain, centred = (
        standing_out([point for point in points if point.setting.features == name])
        for name in ("as-published", "centred")
    )
    if plain is None or centred is None:
        return None
    measured, expected = np.exp(np.subtract(plain, centred))
    return float(measured), float(expected)


def bounded(cell: Cell) -> bool:
    """Return True if the labels are bounded, so that the bulk has an edge."""
    raw = (cell.setting.label_map, cell.setting.channel)
    return raw not in (("raw", "square"), ("raw", "absolute"))


# fmt: off
CLAIMS = (
    Agreement(
        "overlap-through-emergence",
        "The squared overlap of the leading eigenvector with the direction equals the predicted value "
        "below, at and above the threshold.",
        "squared_overlap", "derivations/lofi (6), (9)", within=0.04,
        because="0.04, for corrections of relative order 1/d and for the smooth onset of the overlap at "
        "finite d.",
        entry="direction",
        scatter=overlap_scatter,
        where=SINGLE,
    ),
    Agreement(
        "place-of-the-outlier",
        "The outlier eigenvalue of a recovered direction equals the prediction psi(lambda*).",
        "eigenvalue", "derivations/lofi (6), (9)", within=0.04, relative=True,
        because="4 % of the eigenvalue, for corrections at finite d.",
        where={**SINGLE, "subspace_overlap": above(0.2)},
        missing="raise ratio",
    ),
    Agreement(
        "edge-of-the-bulk",
        "At the end of the spectrum without a direction, the mean extreme eigenvalue is the edge of the "
        "bulk with its Tracy-Widom shift.",
        "opposite_edge", "derivations/lofi (5), (9)", within=0.04, relative=True,
        because="4 % of the edge: terms of order d^(-2/3).", where=(SINGLE, bounded),
        missing="no point has the target single-index with bounded labels; set target=single-index",
    ),
    Agreement(
        "lift-as-label-map",
        "With an infinitely wide lift (random features) before the filter, the squared overlap is that "
        "of a filter of the inputs with a transformed label.",
        "squared_overlap", "derivations/lofi (11), (16), (18)", within=0.05, entry="direction",
        because="0.05, for terms of order 1/d from the inputs' norms and for the smooth onset of the "
        "overlap.",
        scatter=overlap_scatter, where=LIFTED, power=0.15,
        missing="run with --preset lift",
    ),
    Agreement(
        "null-of-a-lift",
        "With shuffled labels the largest eigenvalue comes from the constant part of the activation; "
        "with centred features it is the edge of the bulk.",
        "null_eigenvalue", "derivations/lofi (13), (14)",
        within=lambda cell: 0.03 + 1.5 / cell.setting.n_inputs,
        relative=True, power=0.3,
        because="3 % of the eigenvalue, and the fraction 1.5/d because the norms of the inputs vary.",
        where=LIFTED,
        missing="run with --preset centring",
    ),
    Agreement(
        "first-moment",
        "The squared overlap of the first moment of the lifted features equals that of the inputs, "
        "without a threshold.",
        "first_moment_overlap", "derivations/lofi (17)", within=0.03,
        because="0.03: corrections of order 1/d.",
        scatter=overlap_scatter, where={**LIFTED, "expected": above(0.2)},
        missing="run with --preset centring --set channel=sign features=deflated",
    ),
    Estimate(
        "centring-saves-samples",
        "Centring the features lowers the samples needed for a direction to exceed shuffled labels by "
        "the predicted factor, which grows like d if the activation has a constant part.",
        "derivations/lofi (14), (15)", estimate=saved_by_centring, apart=("ratio", "features"),
        within=0.15, relative=True, because="15 % of the factor: terms of order 1/d.",
        where=LIFTED, power=0.5,
        missing="no lift is measured with both features=as-published and features=centred at sample "
        "ratios below and above those at which its direction stands out; run with --preset centring",
    ),
    Estimate(
        "hidden-overlap",
        "With strong irrelevant directions, the largest squared overlap of any eigenvector equals the "
        "prediction on average over sample sizes.",
        "derivations/lofi (19)", estimate=mean_hidden_overlap, where=HIDDEN,
        within=0.2,
        because="20 %, because the theory treats the repulsion of eigenvalues in a bulk only "
        "approximately.",
        power=0.3,
    ),
    Agreement(
        "hidden-rank",
        "The eigenvector closest to a weak feature has the predicted rank by modulus, behind those of "
        "strong irrelevant directions.",
        "best_rank", "derivations/lofi (19)", within=lambda cell: 0.25 * cell.setting.nuisance,
        because="A quarter of the number of strong directions.",
        # At low overlap any eigenvector may be the closest one.
        where={**HIDDEN, "deflated_squared_overlap": above(0.5)}, power=0.5,
        missing="raise ratio",
    ),
    Agreement(
        "deflation-restores",
        "After removal of the strong directions the squared overlap equals the overlap of isotropic "
        "inputs with "
        "fewer samples.",
        "deflated_squared_overlap", "derivations/lofi (6), (20)",
        within=lambda cell: min(0.05, 0.2 * (1 - cell.expected)),
        because="0.05, and at most a fifth of the loss 1 - c²: corrections of order 1/d.",
        scatter=overlap_scatter,
        where={**HIDDEN, "deflated_squared_overlap": above(0.2)},
        missing="raise ratio",
    ),
    Agreement(
        "subspace-overlap",
        "The mean squared overlap of the kept eigenvectors with the subspace of the label equals the "
        "prediction.",
        "subspace_overlap", "derivations/lofi (23), (24)", within=0.05, scatter=overlap_scatter,
        because="0.05: eigenvectors at the same end of the spectrum mix.",
        where=SUBSPACE, power=0.15,
        missing="run with --set target=subspace",
    ),
    Agreement(
        "both-signs-needed",
        "A filter of positive eigenvalues alone finds only the directions with positive strength.",
        "upper_subspace_overlap", "derivations/lofi (1), (25)", within=0.04, scatter=overlap_scatter,
        because="0.04: eigenvectors at the same end of the spectrum mix.", power=0.2,
        where=FOUND,
        missing="raise ratio",
    ),
    Agreement(
        "filter-beats-kernels",
        "The test error with one filter before an infinitely wide layer is at most two thirds of the "
        "errors of unfiltered networks with one and three layers.",
        ratios_to_kernels, "derivations/lofi (26)", within=0.08, expected=2 / 3, kind="at most",
        because="0.08 of the ratio, because the error of a network depends on the chosen penalty.",
        power=0.5,
        entry=lambda setting: ("one layer", "three layers"),
        missing="no subspace target has a predicted overlap above 0.7 and fitted networks "
        "(kernel_samples >= n); raise ratio or kernel_samples",
    ),
    Agreement(
        "error-of-learned-coordinates",
        "The test error of the network after the filter equals the Bayes error given coordinates with "
        "the predicted overlaps.",
        "error", "derivations/lofi (26)", within=0.025, expected="error_floor",
        because="2.5 percentage points, because overlaps vary between samples and the readout is fitted.",
        power=0.15,
        missing="no subspace target has fitted networks; raise kernel_samples",
    ),
)
