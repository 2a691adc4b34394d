"""What sequential feature recovery claims: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.estimates import Estimate, Slope
from solvable.frame.points import Point
from solvable.models.sequential.parameters import AXIS

PAPER = "arXiv:2605.14567"

RESOLVED = 0.5
"""Predicted squared overlap above which a feature counts as recovered."""

ASYMPTOTIC = 30
"""Samples per feature, n/D, from which heavy tails no longer matter."""


def asymptotic(cell: Cell) -> bool:
    """Whether corrections beyond the formula are small; later where the bulk is skewed."""
    return cell.setting.samples_per_feature >= ASYMPTOTIC * (2 if cell.setting.skewed else 1)


def recovered(cell: Cell) -> bool:
    """Whether the feature of the cell is predicted to be recovered, far from heavy tails."""
    return asymptotic(cell) and cell.predicted("squared_overlap") > RESOLVED


def fitted(kind: str, low: float) -> Callable[[Cell | Point], bool]:
    """Whether n/D is enough, the bulk not skewed, and the second layer of this kind."""

    def judged(cell: Cell | Point) -> bool:
        # Eigenvalues of unbounded labels, squared in this error, have heavy tails four times as long.
        unbounded = kind != "least-squares" and cell.setting.label_map == "identity"
        enough = cell.setting.samples_per_feature >= low * (4 if unbounded else 1)
        return cell.setting.second_layer == kind and enough and not cell.setting.skewed

    return judged


def bulk_edges(point: Point) -> np.ndarray:
    """Edges of the bulk, where the whole spectrum was computed."""
    return np.array([metrics["bulk_edges"] or (np.nan, np.nan) for metrics in point.metrics])


def around_threshold(point: Point, *, predicted: bool = False) -> np.ndarray:
    """Mean overlap of features between half and four times their threshold; NaN without any."""
    overlaps = point.predicted("squared_overlap") if predicted else point.values("squared_overlap")
    ratio = point.setting.samples / point.predicted("threshold_samples")
    near = (ratio > 0.5) & (ratio < 4)
    if near.shape != overlaps.shape[-1:] or not near.any():
        return np.full(() if predicted else point.replicates, np.nan)
    return np.asarray(overlaps[..., near].mean(axis=-1))


def kernels(point: Point) -> np.ndarray:
    """Errors of both kernels, where they were fitted."""
    names = ("polynomial_kernel_normalised_mse", "rbf_kernel_normalised_mse")
    return np.stack([point.values(name) for name in names], axis=1)


def crossings(samples: np.ndarray, overlaps: np.ndarray) -> np.ndarray:
    """Sample size at which each column of overlaps first passes one half; NaN where it does not."""
    sizes, logs = np.full(overlaps.shape[1], np.nan), np.log(samples)
    for i, column in enumerate(overlaps.T):
        k = int(np.argmax(column >= RESOLVED))
        if k:
            part = (RESOLVED - column[k - 1]) / (column[k] - column[k - 1])
            sizes[i] = np.exp(logs[k - 1] + part * (logs[k] - logs[k - 1]))
    return sizes


ALONG = (AXIS.parameter, *AXIS.ignore)
"""Parameters in which the points of one curve differ."""


def rank_exponent(points: Sequence[Point]) -> tuple[float, float] | None:
    """Slopes of log(crossing) against log(rank), measured and predicted."""
    curve = sorted(points, key=AXIS.coordinate)
    overlaps = [
        np.array([np.atleast_1d(number(point)) for point in curve])
        for number in (
            lambda point: point.mean("squared_overlap"),
            lambda point: point.predicted("squared_overlap"),
        )
    ]
    if overlaps[0].shape != overlaps[1].shape:
        return None
    x = np.array([AXIS.coordinate(point) for point in curve])
    sizes = [crossings(x, table) for table in overlaps]
    rank = np.arange(1.0, sizes[0].size + 1)
    # The first feature is close to the whole label: it is left out, as in the paper's law; and so is
    # what crosses among heavy tails.
    setting = curve[0].setting
    rank[: 1 if setting.decay > 0 else None] = np.nan
    rank[sizes[1] < ASYMPTOTIC * setting.n_features_total] = np.nan
    rows = np.log([rank, *sizes])
    logs, *places = rows[:, np.isfinite(rows).all(axis=0)]
    if logs.size < 5:
        return None
    measured, expected = (float(np.polyfit(logs, place, 1)[0]) for place in places)
    return measured, expected


def mixing_pairs(point: Point) -> np.ndarray:
    """Pairs of neighbours that mix measurably far from the bulk."""
    mixing, overlap = point.predicted("neighbour_mixing"), point.predicted("squared_overlap")
    if not (np.isfinite(mixing).any() and np.isfinite(overlap).any()):
        return np.zeros(0, dtype=bool)
    # Below 0.003 noise directions count as much.
    return np.asarray((mixing > 0.003) & (overlap[1:] > 0.8) & (overlap[:-1] > 0.8))


def mean_mixing(points: Sequence[Point]) -> tuple[float, float] | None:
    """Mean ratio of the mixing of neighbours far from the bulk, over all points, to its prediction."""
    ratios = []
    for point in points:
        pairs, mixing = mixing_pairs(point), point.predicted("neighbour_mixing")
        rows = point.values("neighbour_mixing")[:, pairs] / mixing[pairs]
        ratios.append(np.nan_to_num(rows).mean(axis=0))
    return (float(np.concatenate(ratios).mean()), 1.0) if ratios else None


# fmt: off
CLAIMS = (
    Agreement("overlap-of-each-feature",
        "The squared overlap of every recovered feature is on its predicted curve.",
        "squared_overlap", f"{PAPER} eq. 2.10 with the constant derived here", within=0.04,
        because="0.04 covers corrections of relative order (D/n)^(1/2) beyond the formula.",
        where=recovered, entry="feature", scatter=overlap_scatter,
        missing="no feature is found at n/D >= 30; raise samples"),
    Agreement("mean-overlap",
        "The mean squared overlap is on its predicted curve once all features are recovered.",
        "mean_squared_overlap", "derived", within=0.03,
        because="0.03: finite-size corrections average out over features.",
        where=lambda c: asymptotic(c) and min(c.point.predicted("squared_overlap")) > RESOLVED,
        missing="no point has every feature above one half at n/D >= 30; raise samples"),
    Agreement("loss-far-above-threshold",
        "Far above threshold the lost overlap falls as D/n with the predicted constant "
        "(1/(2 lambda^2) + 2 for an unbounded label).",
        lambda point: 1 - point.values("squared_overlap"),
        f"{PAPER} Theorem 3.1 (1) with its constant derived here", within=0.15,
        because="15 % of the loss for higher orders in D/n.", relative=True, entry="feature",
        expected=lambda point: 1 - point.predicted("squared_overlap"),
        where=lambda cell: asymptotic(cell)
        and cell.setting.samples > 8 * cell.predicted("threshold_samples"),
        missing="no feature is eight times above its threshold; raise samples"),
    Agreement("least-squares-error",
        "The normalised error is that of least squares on features of the predicted overlaps.",
        "normalised_mse", "derived", within=0.05, relative=True, power=0.15,
        because="5 % for what the overlaps miss: an error is twice as sensitive.",
        where=fitted("least-squares", ASYMPTOTIC),
        missing="no point has n/D >= 30, least squares and no skewed bulk; raise samples"),
    Agreement("outlier-positions", "The eigenvalue of every recovered feature is where predicted.",
        "eigenvalues", "derived", within=0.05, relative=True, entry="feature",
        because="5 % for terms of order (D/n)^(3/2).",
        where=recovered, missing="no point has a recovered feature at n/D >= 30"),
    Agreement("bulk-edges", "The rest of the spectrum ends at the predicted edges.",
        bulk_edges, f"{PAPER} eq. 2.9 with its constant derived here", expected="bulk_edges",
        within=lambda cell: 0.04 * float(np.ptp(cell.point.predicted("bulk_edges"))),
        because="4 % of the width: fluctuations of order D^(-2/3) and the population bulk.",
        entry=lambda _: ("lower edge", "upper edge"),
        where=lambda cell: cell.setting.samples_per_feature >= ASYMPTOTIC,
        missing="no point has a stored spectrum at n/D >= 30; set spectrum_samples"),
    Agreement("kernel-sees-nothing",
        "At the sample size at which the layered learner has an error below 0.8, a kernel has "
        "above 0.9.",
        kernels, f"{PAPER} section 3", within=0.05, expected=0.9, kind="at least", power=0.3,
        because="A one-sided statement; 0.05 for one sample of the label.",
        where=lambda cell: cell.setting.dimension >= 40
        and float(cell.point.mean("normalised_mse")) <= 0.8,
        entry=lambda _: ("polynomial kernel", "rbf kernel"),
        missing="no kernel (kernel_samples >= samples) at dimension >= 40 and layered error < 0.8"),
    Agreement("kernel-ceiling",
        "No kernel beats the part of the label that lies in degree 2 of the input.",
        kernels, "derived", within=0.02, expected="polynomial_kernel_normalised_mse",
        because="0.02 for the first samples of degree four.", kind="at least", power=0.2,
        entry=lambda _: ("polynomial kernel", "rbf kernel"),
        missing="no point has a kernel baseline below d^4/24 samples; set kernel_samples"),
    Estimate("threshold-exponent",
        "The sample size at which feature i crosses one half grows as a power of i: i^(2 gamma) "
        "in the limit, with the predicted effective exponent here.",
        f"{PAPER} eq. 2.10 at finite size",
        estimate=rank_exponent, apart=ALONG, within=0.15, power=0.15,
        because="0.15: interpolation between sizes.",
        missing="no five features cross one half; run with --preset exponents"),
    Slope("error-exponent", "The error falls with the slope of the predicted sum at these sizes.",
        f"{PAPER} Theorem 3.2 at finite size",
        metric="normalised_mse", along="samples", ignore=AXIS.ignore, fewest=4, within=0.05,
        because="0.05: terms of order D/n.", where=fitted("least-squares", ASYMPTOTIC),
        missing="no curve has four sizes n/D >= 30; run with --preset exponents"),
    Agreement("in-sample-error",
        "A second layer made of the eigenvalues has the predicted, larger error.",
        "normalised_mse", "derived", within=0.06, relative=True, power=0.15,
        because="6 %: overlaps and eigenvalues.", where=fitted("in-sample", ASYMPTOTIC),
        missing="no such layer at n/D >= 30 (120 for unmapped labels); run with --preset gaussian"),
    Agreement("shrinkage-error",
        "Shrunk eigenvalues make a second layer of the predicted error.",
        "normalised_mse", "derived", within=0.06, relative=True,
        because="6 %: overlaps and eigenvalues.", where=fitted("shrinkage", ASYMPTOTIC),
        missing="no such layer at n/D >= 30 (120 for unmapped labels); run with --preset gaussian"),
    Estimate("neighbour-mixing",
        "Neighbours on the same side of the spectrum mix as two levels in noise do.",
        f"derived from {PAPER} eq. 3.2",
        estimate=mean_mixing, where=lambda point: bool(mixing_pairs(point).any()), within=0.25,
        because="A quarter of the mean over pairs: a third feature close by.", power=0.5,
        missing="no neighbours are predicted to mix by more than 0.003; run with --preset gaussian"),
    Agreement("overlap-around-threshold",
        "Between half and four times their threshold features have the predicted mean overlap: the "
        "transition is rounded, and features and noise compete for the directions.",
        around_threshold, "derived (spiked random matrices)", within=0.05,
        expected=lambda point: around_threshold(point, predicted=True),
        because="0.05: heavy tails of the label, targets whose background differs.", power=0.15,
        scatter=overlap_scatter,
        missing="no feature is between half and four times its threshold; choose samples there"),
)
