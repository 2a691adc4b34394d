"""Claims on single-index models, one row each, with the reason of its tolerance."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.estimates import Contrast, Lead
from solvable.frame.points import Point

SPECTRAL = "arXiv:2502.01583, arXiv:1702.06435; finite dimension derived"
PASSING = "arXiv:2405.15480"
SENSITIVITY = "arXiv:2603.17896"


def of(*estimators: str) -> Callable[[Cell], bool]:
    """Cells of estimators that have a spectrum."""
    return lambda cell: cell.setting.estimator in estimators and not cell.setting.linear


def outlying(estimator: str, overlap: float) -> Callable[[Cell], bool]:
    """Cells of an estimator whose predicted overlap is above a value."""
    chosen = of(estimator)
    return lambda cell: chosen(cell) and cell.predicted("squared_overlap") > overlap


def away_from_jumps(cell: Cell) -> bool:
    """Whether samples of a finite size are near the limit: not at a threshold, not at a jump."""
    setting = cell.setting
    if setting.estimator != "amp" or not cell.predicted("steepness") < 0.1:
        return False
    threshold = cell.predicted("threshold_ratio")
    return not 0.6 * threshold < setting.sample_ratio < 1.3 * threshold


def in_the_gap(cell: Cell) -> bool:
    """Whether a good start stays good, by prediction, where message passing finds nothing."""
    if cell.setting.estimator != "amp":
        return False
    lost = cell.predicted("squared_overlap") < 0.02 and cell.expected > 0.6
    return bool(
        lost and cell.setting.sample_ratio > 1.1 * cell.predicted("information_threshold_ratio")
    )


def curved(point: Point) -> bool:
    """Whether labels do not show the sign of the direction."""
    return not point.setting.linear


NO_PAIR = (
    "no setting has both estimators {} and {} with a predicted lead of 0.03; run with "
    "--preset quick"
)


# fmt: off
CLAIMS = (
    Agreement(
        "overlap-of-label-maps",
        "The squared overlap of the leading eigenvector with the direction is on the predicted curve, "
        "below, at and above the threshold.",
        "squared_overlap", SPECTRAL, within=0.04, scatter=overlap_scatter,
        because="Corrections of relative order 1/d, and the profile at threshold.",
        where=of("optimal", "tanh", "square", "identity"),
        missing="no point has the estimator optimal, tanh, square or identity with E[z | y] = 0",
    ),
    Agreement(
        "overlap-of-linearised-message-passing",
        "The leading eigenvector of linearised message passing has the overlap of the label map "
        "G / (theta + G) at its own outlier theta.",
        "squared_overlap", "derived (note eq. 3.5)", within=0.04, scatter=overlap_scatter,
        because="Corrections of relative order 1/d, and the fluctuation of the outlier.",
        where=of("lamp"), missing="no point has the estimator lamp",
    ),
    Agreement(
        "overlap-of-message-passing",
        "Bayes message passing reaches the fixed point of state evolution.",
        "squared_overlap", PASSING, within=0.05, scatter=overlap_scatter,
        because="Samples of finite size near a jump are left out; elsewhere terms of order d^(-1/2).",
        where=away_from_jumps,
        missing="no point of the estimator amp is away from threshold and jump; widen sample_ratio",
    ),
    Agreement(
        "linear-where-signs-are-told",
        "Where a label tells the sign of the direction, the linear estimator finds it from any number of "
        "samples.",
        "squared_overlap", "note eq. 3.1", within=0.03, scatter=overlap_scatter,
        because="Terms of order 1/d.",
        where=lambda cell: cell.setting.linear and cell.setting.estimator == "optimal",
        missing="no point has a link with E[z | y] not 0 and the estimator optimal; set link=relu",
    ),
    Agreement(
        "outlier-at-one",
        "The outlier of the best label map sits at 1, whatever the channel and the number of samples.",
        "outlier", "derived (note 3.3)", within=0.05, expected=1.0,
        because="Fluctuations of weights without lower bound at a finite dimension.",
        where=outlying("optimal", 0.25),
        missing="no point of the estimator optimal has a predicted overlap above 0.25; raise "
        "sample_ratio",
    ),
    Agreement(
        "outlier-of-linearised-message-passing",
        "The outlier of linearised message passing is the number of samples over that at threshold.",
        "outlier", "arXiv:2502.02545", within=0.1, relative=True,
        because="It fluctuates by d^(-1/2), and by the largest labels.", power=0.2,
        where=outlying("lamp", 0.2),
        missing="no point of the estimator lamp has a predicted overlap above 0.2; raise sample_ratio",
    ),
    Agreement(
        "disc-of-linearised-message-passing",
        "Its other eigenvalues fill a disc of the square root of that radius.",
        "bulk_edge", "arXiv:2502.02545", within=0.06, relative=True,
        because="Moduli at the rim of a disc at a finite dimension.", power=0.15,
        where=lambda cell: of("lamp")(cell) and cell.setting.samples >= 200,
        missing="no point of the estimator lamp has 200 samples; raise sample_ratio",
    ),
    Contrast(
        "nothing-below-threshold",
        "Below 0.7 thresholds next to nothing is found, beyond two thresholds what is predicted.",
        PASSING, metric="squared_overlap", across="threshold_ratio", along="sample_ratio",
        below=(0.0, 0.7), above=(2.0, inf), within=0.03,
        because="0.03 for what is found by chance at a finite dimension.",
        where=lambda p: p.setting.estimator in ("optimal", "amp") and not p.setting.linear,
        missing="no points of the estimators optimal or amp below 0.7 and above 2 thresholds; widen "
        "sample_ratio",
    ),
    Lead(
        "best-map-beats-linearised-message-passing",
        "Both have one threshold, but the best label map has the larger overlap beyond it.",
        "derived (note eqs. 3.4, 3.5)", metric="squared_overlap", of={"estimator": "optimal"},
        over={"estimator": "lamp"}, least=0.03, within=0.25, relative=True,
        because="A quarter of the lead.", where=curved, power=0.5,
        missing=NO_PAIR.format("optimal", "lamp"),
    ),
    Lead(
        "message-passing-beats-best-map",
        "Message passing that starts from the best label map goes beyond it.",
        PASSING, metric="squared_overlap", of={"estimator": "amp"}, over={"estimator": "optimal"},
        least=0.03, within=0.25, relative=True, because="A quarter of the lead.", where=curved,
        power=0.5, missing=NO_PAIR.format("amp", "optimal"),
    ),
    Agreement(
        "information-without-algorithm",
        "Between the information-theoretic threshold and that of algorithms a good start stays good, "
        "where message passing by itself finds nothing.",
        "informed_overlap", f"{SENSITIVITY}, note eq. 3.7", within=0.05, scatter=overlap_scatter,
        because="Terms of order d^(-1/2).", where=in_the_gap,
        missing="no point of the estimator amp is between both thresholds; run with --preset gap",
    ),
)
