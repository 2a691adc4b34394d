"""Claims on single-index models; each row gives the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.conditions import above, at_least, below, inside, one_of
from solvable.frame.estimates import Contrast, Estimate, Lead
from solvable.frame.points import Point
from solvable.models.multi_index.equal_directions import large_noise_information_ratio
from solvable.models.multi_index.exponents import exponents_of

PAGE = "derivations/multi-index"


def away_from_threshold(cell: Cell) -> bool:
    """Return True away from the threshold, where finite-size effects are small."""
    threshold = cell.predicted("threshold_ratio")
    return not 0.6 * threshold < cell.setting.sample_ratio < 1.3 * threshold


def algorithm_threshold(point: Point) -> np.ndarray:
    """Threshold of the best label map, from the overlap measured in each replicate."""
    moments, q = point.setting.moments, np.clip(point.values("squared_overlap"), 1e-6, 1 - 1e-6)
    G, chance = moments.second[:, 0], moments.probabilities
    # 1 = alpha (1 - q) E[G² / (1 + q G)] above the threshold 1 / E[G²]   (multi-index 9)
    information = (G**2 / np.maximum(1 + q[:, None] * G, 1e-6)) @ chance
    ratio = point.setting.sample_ratio * (1 - q) * information
    return np.asarray(ratio * float(moments.weak_recovery_ratio[0]))


def information_threshold(point: Point) -> np.ndarray:
    """Threshold of any method, from the overlap of message passing with a good start."""
    noise = _large_noise(point, point.values("informed_overlap"))
    unit = large_noise_information_ratio(point.setting.channel.links[0], 1.0)
    return np.asarray(noise * unit)


def _large_noise(point: Point, overlaps: np.ndarray) -> np.ndarray:
    """Noise at which message passing has these overlaps, if the noise is large."""
    link, q = point.setting.channel.links[0], np.clip(overlaps, 1e-6, 0.9999)
    # Delta = alpha (1 - q) kappa'(q) / q, in units of the link   (multi-index 15)
    return np.asarray(point.setting.sample_ratio * (1 - q) * link.correlation_slope(q) / q)


def shows_information(point: Point) -> bool:
    """Return True for message passing at large noise that keeps a good start above the threshold."""
    setting, name = point.setting, "information_threshold_ratio"
    known = setting.prior == "gaussian" and point.prediction.get(name) is not None
    if setting.estimator != "amp" or setting.linear or not known:
        return False
    threshold = float(point.predicted(name))
    kept = 0.3 < float(point.predicted("informed_overlap")) < 0.99
    near = 1.1 * threshold < setting.sample_ratio < 4 * threshold
    if not (setting.noise >= LARGE_NOISE and kept and near):
        return False
    # The law of large noise must give back the noise from the predicted overlap.
    given = _large_noise(point, np.array(point.predicted("informed_overlap")))
    return bool(abs(float(given) / setting.noise - 1) < 0.15)


def noise_power(
    metric: str, measure: Callable[[Point], np.ndarray], expected: Callable[[Point], float]
) -> Callable[[Sequence[Point]], tuple[float, float] | None]:
    """Return the function that estimates the power of the noise in a threshold, from this metric."""

    def estimate(points: Sequence[Point]) -> tuple[float, float] | None:
        noises = np.array(sorted({point.setting.noise for point in points}))
        found = all(float(point.mean(metric)) > 0.2 for point in points)
        if noises[-1] < 1.9 * noises[0] or not found:  # overlaps by chance show no threshold
            return None
        logs = [
            np.mean([np.log(measure(p)).mean() for p in points if p.setting.noise == noise])
            for noise in noises
        ]
        return float(np.polyfit(np.log(noises), logs, 1)[0]), expected(points[0])

    return estimate


def noise_sensitivity(point: Point) -> float:
    """Noise sensitivity exponent of the link."""
    found = exponents_of(point.setting.channel.links[0]).noise_sensitivity
    return np.nan if found is None else float(found)


LARGE_NOISE = 5.0
"""Noise from which thresholds of bounded links follow the large-noise laws."""

SHOWS_ALGORITHM = {
    "estimator": "optimal", "linear": False, "noise": at_least(LARGE_NOISE),
    "sample_ratio": above(1.5, "threshold_ratio"), "squared_overlap": inside(0.3, 0.95),
}  # fmt: skip
"""The best label map at large noise, with an overlap that determines the threshold."""

NO_PAIR = (
    "no setting has both estimators {} and {} with a predicted difference of 0.03; run with "
    "--preset quick"
)


# fmt: off
CLAIMS = (
    Agreement(
        "overlap-of-label-maps",
        "The squared overlap of the leading eigenvector with the direction equals the prediction "
        "below, at and above the threshold.",
        "squared_overlap", f"{PAGE} (7), (8), (24)", within=0.04, scatter=overlap_scatter,
        because="Corrections of relative order 1/d, and the approximate profile at the threshold.",
        where={"estimator": one_of("optimal", "tanh", "square", "identity"), "linear": False},
    ),
    Agreement(
        "overlap-of-linearised-message-passing",
        "The overlap of linearised message passing equals that of the label map G / (theta + G), where "
        "theta is its outlier.",
        "squared_overlap", f"{PAGE} (10), (11)", within=0.04, scatter=overlap_scatter,
        because="Corrections of relative order 1/d, and fluctuations of the outlier.",
        where={"estimator": "lamp"},
    ),
    Agreement(
        "overlap-of-message-passing",
        "The overlap of Bayes message passing equals the fixed point of state evolution.",
        "squared_overlap", f"{PAGE} (12), (13)", within=0.05, scatter=overlap_scatter,
        because="Terms of order d^(-1/2); points near a jump are left out.",
        where={"estimator": "amp", "steepness": below(0.1),
               "sample_ratio below 0.6 or above 1.3 times the threshold": away_from_threshold},
        missing="widen sample_ratio",
    ),
    Agreement(
        "linear-where-signs-are-told",
        "If labels carry the sign of the direction, the overlap of the linear estimator equals the "
        "prediction, which is above 0 at any n/d.",
        "squared_overlap", f"{PAGE} (5)", within=0.03, scatter=overlap_scatter,
        because="Terms of order 1/d.",
        where={"linear": True, "estimator": "optimal"},
        missing="run with --preset signs",
    ),
    Agreement(
        "outlier-at-one",
        "The outlier of the best label map is 1 for every channel and every number of samples.",
        "outlier", f"{PAGE} (9)", within=0.05, expected=1.0,
        because="Fluctuations at finite dimension, since the weights have no lower bound.", power=0.2,
        where={"estimator": "optimal", "linear": False, "squared_overlap": above(0.25)},
        missing="raise sample_ratio",
    ),
    Agreement(
        "outlier-of-linearised-message-passing",
        "The outlier of linearised message passing equals n/d divided by its threshold.",
        "outlier", f"{PAGE} (10)", within=0.1, relative=True,
        because="The outlier fluctuates by d^(-1/2), and with the largest labels.", power=0.2,
        where={"estimator": "lamp", "squared_overlap": above(0.2)},
        missing="raise sample_ratio, or run with --preset paper",
    ),
    Agreement(
        "disc-of-linearised-message-passing",
        "The other eigenvalues of linearised message passing fill a disc whose radius is the square root "
        "of n/d divided by the threshold.",
        "bulk_edge", f"{PAGE} (10)", within=0.06, relative=True,
        because="Eigenvalues at the rim of the disc fluctuate at finite dimension.", power=0.15,
        where={"estimator": "lamp", "samples": at_least(200)},
        missing="raise sample_ratio",
    ),
    Contrast(
        "nothing-below-threshold",
        "The overlap is close to 0 below 0.7 times the threshold and equals the prediction above twice "
        "the threshold.",
        f"{PAGE} (6), (9), (13)", metric="squared_overlap", across="threshold_ratio",
        along="sample_ratio", below=(0.0, 0.7), above=(2.0, inf), within=0.03,
        because="0.03 for overlaps by chance at finite dimension.",
        where={"estimator": one_of("optimal", "amp"), "linear": False},
        missing="no points of the estimators optimal or amp below 0.7 and above 2 times the threshold; "
        "widen sample_ratio",
    ),
    Lead(
        "best-map-beats-linearised-message-passing",
        "Above their common threshold the overlap of the best label map exceeds that of linearised "
        "message passing by the predicted difference.",
        f"{PAGE} (9), (11)", metric="squared_overlap", of={"estimator": "optimal"},
        over={"estimator": "lamp"}, least=0.03, within=0.25, relative=True,
        because="25 % of the predicted difference.", where={"linear": False}, power=0.5,
        missing=NO_PAIR.format("optimal", "lamp"),
    ),
    Lead(
        "message-passing-beats-best-map",
        "Message passing that starts from the best label map increases the overlap by the predicted "
        "difference.",
        f"{PAGE} (9), (13)", metric="squared_overlap", of={"estimator": "amp"},
        over={"estimator": "optimal"}, least=0.03, within=0.25, relative=True,
        because="25 % of the predicted difference.", where={"linear": False}, power=0.5,
        missing=NO_PAIR.format("amp", "optimal"),
    ),
    Agreement(
        "information-without-algorithm",
        "Between the information-theoretic and the algorithmic threshold, message passing from a start "
        "near the direction keeps the predicted overlap, while an uninformed start finds nothing.",
        "informed_overlap", f"arXiv:2603.17896, Theorem 3.2; {PAGE} (13)", within=0.05,
        scatter=overlap_scatter, because="Terms of order d^(-1/2).",
        where={"estimator": "amp", "squared_overlap": below(0.02), "expected": above(0.6),
               "sample_ratio": above(1.1, "information_threshold_ratio")},
        missing="run with --preset quick",
    ),
    Estimate(
        "algorithms-against-noise",
        "The threshold of the best label map grows as the power beta of the noise, with the noise "
        "sensitivity exponent beta.",
        f"arXiv:2603.17896, Theorem 3.2; {PAGE} (14)",
        estimate=noise_power("squared_overlap", algorithm_threshold, noise_sensitivity),
        apart=("noise", "sample_ratio"), where=SHOWS_ALGORITHM, within=0.15, relative=True, power=0.4,
        because="15 %: at noise 7 thresholds are 12 % below the large-noise law.",
        missing="no link has overlaps of 0.3 to 0.95 at two noises of 5 or more that differ by a factor "
        "of 2; run with --preset noise",
    ),
    Estimate(
        "information-against-noise",
        "The threshold of any method grows in proportion to the noise, whatever the link.",
        f"arXiv:2603.17896, Theorem 3.2; {PAGE} (15)",
        estimate=noise_power("informed_overlap", information_threshold, lambda point: 1.0),
        apart=("noise", "sample_ratio"), where=shows_information, within=0.2, power=0.6,
        because="0.2: the formula for large noise has corrections of order 1 / noise.",
        missing="no link has message passing near its information threshold at two noises of 5 or more "
        "that differ by a factor of 2; run with --preset noise",
    ),
)
