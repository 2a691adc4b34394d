"""Claims on hierarchical multi-index models; each row gives the reason for its tolerance."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.conditions import above, at_least, at_most, one_of
from solvable.frame.estimates import Contrast, Estimate, Slope
from solvable.frame.points import Point
from solvable.models.multi_index.best_overlaps import oracle_ratio
from solvable.models.multi_index.exponents import exponents_of
from solvable.models.multi_index.overlaps import mapped_labels, permuted_edges

PAGE = "derivations/multi-index"

SLOW = {"trained": True, "learning_rate": at_most(0.01)}
"""Gradient descent on the first layer at a small learning rate."""


def near_threshold(cell: Cell) -> bool:
    """Return True up to 1.5 times the threshold, which may be infinite (then NaN here)."""
    return not cell.setting.sample_ratio >= 1.5 * cell.predicted("threshold_ratio")


def above_chance(cell: Cell) -> bool:
    """Return True if the prediction is above twice the overlap of random directions."""
    # Far below the threshold the predicted overlap is that of random directions, so that a comparison
    # tests nothing.
    return cell.expected > 2 * share(cell)


def share(cell: Cell) -> float:
    """Share p/d of each feature that random directions contain."""
    return float(cell.setting.features / cell.setting.dimension)


def outlying(cell: Cell) -> bool:
    """Return True if there is one pass and the predicted eigenvalue is 15 % or more beyond the edge."""
    edge, place = float(cell.point.predicted("bulk_edge")), cell.expected
    return not cell.setting.deflation and abs(place) > 1.15 * abs(edge) and place * edge > 0


def over_permuted_edge(point: Point) -> np.ndarray | None:
    """Measured edge divided by the predicted edge at the same end; None where either is missing."""
    setting, known = point.setting, [*point.metrics, point.prediction]
    if any(found.get("bulk_edge") is None for found in known):
        return None
    moments = setting.channel.moments
    law = moments.law(mapped_labels(moments, setting.label_map))
    low, high = permuted_edges(law, setting.samples / setting.dimension, setting.dimension)
    # The measured edge is at the end of the eigenvalue farthest from the bulk. If no eigenvalue is an
    # outlier, that end is random and may be the other one than predicted.
    edge = point.values("bulk_edge")
    return np.asarray(edge / np.where(edge > 0, high, low))


def between_thresholds(point: Point) -> bool:
    """Return True if n/d is between the first and the last threshold, where the error is a power law."""
    setting = point.setting
    first, last = first_and_last(point)
    inside = 3 * first <= setting.sample_ratio <= 2 * last
    return bool(inside and setting.decay > 0.5 and not setting.deflation)


def least_sensitive(point: Point) -> bool:
    """Return True if the link's noise sensitivity exponent is 1."""
    return exponents_of(point.setting.channel.links[0]).noise_sensitivity == 1


def first_and_last(point: Point) -> tuple[float, float]:
    """Return the smallest and the largest finite threshold; infinity and 0 if there is none."""
    thresholds = np.asarray(point.predicted("threshold_ratio"), dtype=float)
    finite = thresholds[np.isfinite(thresholds)]
    return float(np.min(finite, initial=np.inf)), float(np.max(finite, initial=0.0))


def above_all_thresholds(point: Point) -> bool:
    """Return True from 1.5 times the last threshold on, if every feature has a threshold."""
    known = np.isfinite(np.asarray(point.predicted("threshold_ratio"), dtype=float)).all()
    beyond = point.setting.sample_ratio >= 1.5 * first_and_last(point)[1]
    return bool(known and beyond and not point.setting.deflation)


def unlearned_error(point: Point) -> float:
    """Error of a span of p random directions, which contains a share p/d of each feature."""
    share = point.setting.features / point.setting.dimension
    return float(np.sum(np.array(point.setting.channel.amplitudes) ** 2) * (1 - share))


def flat_or_learned(point: Point) -> bool:
    """Return True if theory at this dimension has the plateau, or if the threshold is passed."""
    if point.setting.deflation or point.setting.sample_ratio >= first_and_last(point)[0]:
        return not point.setting.deflation
    return bool(point.predicted("subspace_error") >= 0.9 * unlearned_error(point))


def oracle_samples(point: Point) -> np.ndarray:
    """Ratio n/d at which the oracle bound has the measured error, for each replicate."""
    errors = np.minimum(point.values("subspace_error"), 0.999 * unlearned_error(point))
    return oracle_ratio(point.setting.channel, errors)


def over_best_error(point: Point) -> np.ndarray | None:
    """Measured error divided by the Bayes-optimal error; None where the latter is not known."""
    best = point.prediction.get("best_error")
    learned = point.setting.sample_ratio >= 2 * first_and_last(point)[0]
    if point.setting.deflation or not best or not learned:
        return None
    return np.asarray(point.values("subspace_error") / float(point.predicted("best_error")))


def bounded_below(point: Point) -> bool:
    """Return True from eight times the first threshold on, with one pass, exponent 1 and a bound."""
    known = point.prediction.get("oracle_error") is not None and not point.setting.deflation
    # At larger noise sensitivity exponents the factor grows with the number of samples.
    beyond = point.setting.sample_ratio >= 8 * first_and_last(point)[0]
    return bool(known and beyond and least_sensitive(point))


def thresholds_measured(point: Point) -> np.ndarray:
    """Threshold of each feature from its overlap, shape (replicates, features); NaN if unclear."""
    overlap = np.asarray(point.predicted("squared_overlap"), dtype=float)
    threshold = np.asarray(point.predicted("threshold_ratio"), dtype=float)
    clear = (overlap > 0.2) & (overlap < 0.95) & (point.setting.sample_ratio > 1.3 * threshold)
    # 1 - rho_k² is proportional to alpha_k   (multi-index 22)
    missed = np.maximum(1 - point.values("squared_overlap"), 1e-6)
    return np.where(clear, threshold * missed / (1 - overlap), np.nan)


def has_measured_thresholds(point: Point) -> bool:
    """Return True with one pass, equal links of finite exponent, and two or more clear overlaps."""
    setting = point.setting
    if setting.deflation or setting.channel.links[0].parity != "even" or setting.decay == 0:
        return False
    exponent = exponents_of(setting.channel.links[0]).noise_sensitivity
    if exponent is None or not np.isfinite(exponent) or setting.label_map == "optimal":
        return False
    return bool(np.isfinite(thresholds_measured(point)[0]).sum() >= 2)


def threshold_power(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted power of k in the thresholds of the features after the first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # features that no point determines
        logs = np.array([np.nanmean(np.log(thresholds_measured(p)), axis=0) for p in points])
        found = np.nanmean(logs, axis=0)
    # The first feature has few other features as noise, so its threshold is below the power law.
    k = np.arange(2, found.size + 1)
    known = np.isfinite(found[1:])
    if known.sum() < 2 or k[known][-1] < 1.9 * k[known][0]:
        return None
    slope = np.polyfit(np.log(k[known]), found[1:][known], 1)[0]
    beta = exponents_of(points[0].setting.channel.links[0]).noise_sensitivity
    assert beta is not None
    return float(slope), 2 * points[0].setting.decay * beta


def error_slope(points: Sequence[Point]) -> float:
    """Slope of the logarithm of the measured error against that of n/d (multi-index 23)."""
    x = np.log([point.setting.sample_ratio for point in points])
    return float(np.polyfit(x, np.log([point.mean("subspace_error") for point in points]), 1)[0])


def ratio_of_exponents(points: Sequence[Point]) -> tuple[float, float] | None:
    """Smallest divided by largest exponent of the error over the links; 1 is expected."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.setting.link, []).append(point)
    shared = set.intersection(*({p.setting.sample_ratio for p in g} for g in groups.values()))
    if len(groups) < 2 or len(shared) < 3:
        return None
    kept = [[p for p in g if p.setting.sample_ratio in shared] for g in groups.values()]
    slopes = -np.array([error_slope(group) for group in kept])
    if slopes.max() < 0.01:  # an error that does not fall has no exponent
        return 0.0, 1.0
    return float(slopes.min() / slopes.max()), 1.0


# fmt: off
CLAIMS = (
    Agreement(
        "overlap-above-threshold",
        "Above 1.5 times its threshold the squared overlap of a feature equals the prediction.",
        "squared_overlap", f"{PAGE} (7), (8), (24)", within=0.03, entry="feature",
        scatter=overlap_scatter,
        because="0.03: the theory neglects terms of order 1/d and the mixing of features near the edge.",
        where={"deflation": 0, "sample_ratio": at_least(1.5, "threshold_ratio")},
        missing="raise sample_ratio",
    ),
    Agreement(
        "overlap-near-threshold",
        "Near and below its threshold the squared overlap of a feature equals the mean predicted at this "
        "dimension.",
        "squared_overlap", f"{PAGE} (24)", within=0.08, entry="feature", scatter=overlap_scatter,
        because="0.08: the theory orders eigenvalues near the edge by their means.",
        where={"deflation": 0, "expected": above(0.15), "n/d below 1.5 times a threshold": near_threshold,
               "an overlap above twice that of random directions": above_chance},
        missing="lower sample_ratio", power=0.5,
    ),
    Agreement(
        "overlap-deflated",
        "After a second pass on the residuals the squared overlap of each feature equals the prediction.",
        "squared_overlap", f"{PAGE} (27)", within=0.08, entry="feature", scatter=overlap_scatter,
        because="0.08: the second pass treats projections of the features as independent directions.",
        where={"deflation": 1}, power=0.3,
    ),
    Agreement(
        "outlier-places", "The eigenvalue of a detected feature equals the outlier psi(lambda*).",
        "eigenvalues", f"{PAGE} (7)", within=0.05, relative=True, entry="eigenvalue", where=outlying,
        because="5 %: eigenvalues fluctuate at finite d.",
        missing="no eigenvalue lies 15 % beyond the edge; raise sample_ratio",
    ),
    Agreement(
        "permuted-edge",
        "With permuted labels the edge of the spectrum equals the predicted edge at the same end.",
        over_permuted_edge, f"{PAGE} (7)", within=lambda cell: cell.setting.dimension ** (-2 / 3),
        expected=1.0, relative=True,
        where={"label_map": one_of("tanh", "square"), "sample_ratio": at_least(2)}, power=0.15,
        because="d^(-2/3): the largest of d eigenvalues fluctuates by this order.",
    ),
    Agreement(
        "subspace-error", "The weighted error of the subspace equals the prediction.",
        "subspace_error", f"{PAGE} (23), (24)", within=0.05, relative=True,
        because="5 %: predictions are less accurate near a threshold.", power=0.15,
    ),
    Slope(
        "error-exponent",
        "Between the first and the last threshold the exponent of the subspace error in n equals the "
        "prediction at this number of features.",
        f"arXiv:2602.05846, Theorems 3.2 and 3.6; {PAGE} (23)",
        metric="subspace_error", along="sample_ratio", ignore=("test_samples",), span=3.9,
        within=0.03, because="0.03: predictions are less accurate near a threshold.",
        where=between_thresholds, power=0.15,
        missing="no curve has three values of sample_ratio between three times the first threshold and "
        "twice the last; run with --preset scaling",
    ),
    Contrast(
        "plateau",
        "Below 0.6 times the first threshold the subspace error is that of random directions up to 10 %, "
        "and from twice the threshold on it is below by the predicted difference.",
        f"arXiv:2602.05846, Theorem 3.2; {PAGE} (23)", metric="subspace_error",
        across="first_threshold_ratio", along="sample_ratio",
        below=(0.0, 0.6), above=(2.0, np.inf), within=0.05, power=0.15,
        because="0.05: predictions are less accurate near a threshold.",
        where=flat_or_learned,
        missing="no points are above twice the first threshold and below 0.6 times of it, where errors "
        "must be those of random directions; widen sample_ratio, or raise dimension",
    ),
    Slope(
        "last-regime",
        "Above the last threshold the subspace error is inversely proportional to n.",
        f"arXiv:2602.05846, Theorem 3.2; {PAGE} (23)",
        metric="subspace_error", expected=lambda point: 1 / point.setting.sample_ratio,
        along="sample_ratio", ignore=("test_samples",), fewest=2, span=1.9, within=0.1,
        because="0.1: within a factor of 5 of the last threshold overlaps are still rising.",
        where=above_all_thresholds, power=0.4,
        missing="no curve has two values of sample_ratio above 1.5 times the last threshold, a factor of "
        "2 apart; raise sample_ratio or take fewer features",
    ),
    Agreement(
        "distance-from-best-error",
        "The error of the spectral estimator is the predicted multiple, above 1, of the Bayes-optimal "
        "error.",
        over_best_error, f"arXiv:2602.05846, Theorem 3.2; {PAGE} (34), (35)", relative=True,
        expected=lambda point: (
            float(point.predicted("subspace_error")) / float(point.predicted("best_error"))
        ),
        within=0.08, power=0.2,
        because="8 %: predictions of the spectral estimator are less accurate near a threshold.",
        missing="no point from twice the first threshold on has a known Bayes-optimal error, which needs "
        "an even link, noise above 0 and up to 64 features",
    ),
    Slope(
        "constant-factor",
        "For links of exponent 1, from eight times the first threshold on, the spectral estimator needs "
        "a constant multiple of the samples at which an oracle, which knows all other directions, has "
        "the same error.",
        f"arXiv:2602.05846, Theorems 3.2 and 3.6; {PAGE} (36)",
        metric=oracle_samples, expected=lambda point: point.setting.sample_ratio,
        along="sample_ratio", ignore=("test_samples",), span=3.9, within=0.15, where=bounded_below,
        because="0.15: the factor approaches its limit from below, as single features are found.",
        power=0.3,
        missing="no curve of a link of exponent 1 has three values of sample_ratio from eight times the "
        "first threshold on; run with --preset quick",
    ),
    Agreement(
        "best-error-reached",
        "Bayes message passing from a start near the true directions has the error of state evolution.",
        "message_passing_error", f"{PAGE} (34)", within=0.08, relative=True,
        because="8 %: terms of order d^(-1/2).", power=0.3,
        where={"message_passing": True, "expected": above(0)},
        missing="run with --preset bayes",
    ),
    Estimate(
        "threshold-exponent",
        "Thresholds of the features grow as the power 2 gamma beta of their rank k.",
        f"arXiv:2603.17896, Theorem 5.2; {PAGE} (22)", estimate=threshold_power,
        apart=("sample_ratio", "test_samples", "readout"), where=has_measured_thresholds,
        within=0.1, relative=True, power=0.3,
        because="10 %: the power law holds for weak features, and these are features 2 to p.",
        missing="no curve with an even link and decay above 0 has overlaps of 0.2 to 0.95 for features "
        "that differ by a factor of 2 in rank; run with --preset quick",
    ),
    Estimate(
        "same-exponent-for-all-links",
        "The exponents of the error in n are equal for all links of the same noise sensitivity exponent.",
        f"arXiv:2602.05846, Theorems 3.2 and 3.6; {PAGE} (23)", estimate=ratio_of_exponents,
        apart=("sample_ratio", "test_samples", "link"), fewest=6,
        where=lambda point: between_thresholds(point) and least_sensitive(point),
        within=0.15, power=0.4,
        because="0.15: with few features the predicted exponents of these links differ by up to 12 %.",
        missing="no two links have three common values of sample_ratio between their thresholds; run "
        "with --preset universality",
    ),
    Agreement(
        "risk-monomials",
        "The excess risk of a readout on monomials, fitted to the same samples as its directions, equals "
        "the prediction.",
        "risk", f"{PAGE} (25), (26)", within=0.08,
        relative=True, because="8 %: overlaps differ between replicates, and enter squared.",
        where={"readout": "monomials", "deflation": 0}, power=0.2,
    ),
    Agreement(
        "risk-deflated", "After a second pass the excess risk equals the prediction.",
        "risk", f"{PAGE} (26), (27)", within=0.1, relative=True,
        because="10 %: the number of features that the first pass detects varies.",
        where={"readout": "monomials", "deflation": 1}, power=0.3,
    ),
    Agreement(
        "risk-random-neurons",
        "The excess risk of a readout with 300 random neurons equals the prediction.",
        "risk", f"{PAGE} (25), (26)", within=0.1, relative=True,
        because="10 %: each replicate draws its own neurons.",
        where={"readout": "relu", "deflation": 0}, power=0.3,
        missing="run with --preset links",
    ),
    Agreement(
        "gradient-ends-at-the-estimator",
        "At small learning rates, gradient descent on the first layer finds the directions that the "
        "spectral estimator detects on the same samples.",
        "estimator_overlap", f"{PAGE} (33)", within=0.02, power=0.1,
        because="0.02: at a finite learning rate the output of the network is not 0.",
        where=SLOW, missing="set learning_rate=0.01, deflation=0 and n up to trained_samples",
    ),
    Agreement(
        "gradient-overlap",
        "The squared overlap of a feature with the directions of gradient descent at a small learning "
        "rate equals the prediction for the eigenvectors of largest modulus.",
        "gradient_overlap", f"{PAGE} (24), (33)", within=0.03,
        entry="feature", scatter=overlap_scatter,
        because="0.03: the theory neglects terms of order 1/d and the mixing of features near the edge.",
        where={**SLOW, "an overlap above twice that of random directions": above_chance},
        missing="set learning_rate=0.01 and raise sample_ratio",
    ),
)
