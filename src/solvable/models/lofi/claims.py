"""What low-degree filters claim: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell, Kind, overlap_scatter
from solvable.frame.claims import Claim, Finding, NotTestable, worst
from solvable.frame.points import Point

LU_LI = "Lu and Li, arXiv:1702.06435"

PAPER = "arXiv:2605.13612"


def at(point: Point | Cell, target: str, **above: float) -> bool:
    """Whether a point has a target, without a lift, and predictions above given values."""
    fits = (point.setting.target, point.setting.lift) == (target, "none")
    return fits and all(float(point.predicted(name)) > value for name, value in above.items())


def compared(
    measured: Callable[[Point], np.ndarray | None],
    expected: float | str,
    kind: Kind,
    missing: str,
    *,
    within: float | Callable[[Point], float] = 0.0,
    errors: float = 0.0,
) -> Callable[[Sequence[Point]], Finding | NotTestable]:
    """Check of means with a tolerance and standard errors of each point, wherever there are any.

    For what is no row of agreement: bounds without a stated tolerance, and quantities whose scatter
    in a transition is neither small beside the tolerance nor in proportion to them.
    """

    def check(points: Sequence[Point]) -> Finding | NotTestable:
        findings = []
        for point in points:
            values = measured(point)
            if values is None or not np.isfinite(values).all():
                continue
            level = float(point.predicted(expected)) if isinstance(expected, str) else expected
            stated = within(point) if callable(within) else within
            for column in values.reshape(len(values), -1).T:
                mean, n = float(column.mean()), column.size
                error = float(column.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
                tolerance = stated + errors * error
                place = f"Closest to failing: {point.setting.place}."
                findings.append(Finding(mean, level, tolerance, error, n, kind, place))
        return worst(findings) if findings else NotTestable(missing)

    return check


def values_at(name: str, target: str, **above: float) -> Callable[[Point], np.ndarray | None]:
    """A metric at a target and predictions above given values."""
    return lambda point: point.values(name) if at(point, target, **above) else None


def _far_below(point: Point) -> np.ndarray | None:
    if not at(point, "single-index") or point.setting.n_inputs < 50:
        return None  # corrections of order 1/d exceed the limit
    threshold = point.predicted("emergence_ratio")[0]
    return point.values("squared_overlap") if point.setting.ratio <= 0.6 * threshold else None


def _largest_rank(point: Point) -> np.ndarray | None:
    ranked = at(point, "hidden", deflated_squared_overlap=0.5)
    return point.values("deflated_rank").max(keepdims=True) if ranked else None


def _gaps_to_kernels(point: Point) -> np.ndarray | None:
    """Errors of the networks of one and three layers without filter, less that with one."""
    if not at(point, "subspace", subspace_overlap=0.7):
        return None
    kernels = np.stack([point.values("kernel_error"), point.values("deep_kernel_error")], axis=1)
    return np.asarray(kernels - point.values("error")[:, None])


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
    Claim(
        "place-of-the-outlier", "The eigenvalue of a found direction is at psi(lambda*).", LU_LI,
        "3 % of the edge for finite d, plus three standard errors.",
        compared(
            values_at("eigenvalue", "single-index", subspace_overlap=0.2), "eigenvalue", "equal",
            "no point of a single-index target has a predicted squared overlap above 0.2; raise ratio",
            within=lambda point: 0.03 * abs(float(point.predicted("bulk_edge"))), errors=3,
        ),
    ),
    Agreement(
        "edge-of-the-bulk",
        "The extreme eigenvalue at the end without a direction is at the edge of the bulk.",
        "opposite_edge", LU_LI, within=lambda cell: 0.05 * abs(cell.expected) + 0.01,
        because="5 % and 0.01: an extreme eigenvalue lies a Tracy-Widom fluctuation, d^(-2/3), inside.",
        where=lambda cell: at(cell, "single-index") and (cell.setting.label_map, cell.setting.channel)
        not in (("raw", "square"), ("raw", "absolute")),
        missing="no point has the target single-index with bounded labels; set target=single-index",
    ),
    Claim(
        "nothing-below-threshold",
        "Far below the threshold the leading eigenvector is unrelated to the direction.", LU_LI,
        "Three standard errors above 0.1.",
        compared(
            _far_below, 0.1, "at most",
            "no point of a single-index target has ratio below 0.6 of its threshold", errors=3,
        ),
    ),
    Agreement(
        "lift-as-label-map",
        "An infinitely wide lift before the filter acts like a map of the label.",
        "squared_overlap", "derived", within=0.05, entry="direction",
        because="Terms of order d^(-1/2) from fluctuating norms.",
        # The transition after a lift is predicted without its rounding.
        where=lambda cell: cell.setting.lift != "none" and cell.expected > 0.3,
        missing="no point has a lift and a predicted squared overlap above 0.3; run with --preset lift",
    ),
    Agreement(
        "hidden-overlap",
        "Among strong irrelevant directions the best eigenvector has the predicted overlap.",
        "best_squared_overlap", "derived", within=0.1, scatter=overlap_scatter,
        because="0.1: levels of a bulk repel one another, which the theory treats roughly.",
        where=lambda cell: at(cell, "hidden"),
        missing="no point has the target hidden; run with --set target=hidden",
    ),
    Agreement(
        "hidden-rank",
        "A weak feature is found behind the strong irrelevant directions in the ranking by modulus.",
        "best_rank", "derived", within=lambda cell: 0.25 * cell.setting.nuisance,
        because="A quarter of the number of strong directions.",
        # Without a feature the best of the eigenvectors may be any.
        where=lambda cell: at(cell, "hidden", deflated_squared_overlap=0.5),
        missing="no point of a hidden target has a feature to be found; raise ratio",
    ),
    Agreement(
        "deflation-restores", "Without the strong directions the overlap is that of isotropic inputs.",
        "deflated_squared_overlap", "derived", within=0.05, because="Corrections of order 1/d.",
        scatter=overlap_scatter,
        where=lambda cell: at(cell, "hidden", deflated_squared_overlap=0.2),
        missing="no point of a hidden target has a predicted overlap above 0.2; raise ratio",
    ),
    Claim(
        "deflation-leads", "Without the strong directions a found feature leads the ranking.",
        "derived", "Every replicate counts.",
        compared(
            _largest_rank, 0.0, "at most",
            "no point of a hidden target has a predicted overlap above 0.5; raise ratio",
        ),
    ),
    Agreement(
        "subspace-overlap",
        "The overlap of the kept eigenvectors with the subspace of the label is the predicted one.",
        "subspace_overlap", "derived", within=0.05, scatter=overlap_scatter,
        because="0.05 for d = 60.", where=lambda cell: at(cell, "subspace"),
        missing="no point has the target subspace; run with --set target=subspace",
    ),
    Agreement(
        "both-signs-needed", "Eigenvectors of one sign hold half of the subspace at most.",
        "upper_subspace_overlap", f"{PAPER}: ranking by modulus", within=0.05, because="Chance.",
        expected=0.5, kind="at most", where=lambda cell: at(cell, "subspace", subspace_overlap=0.7),
        missing="no subspace target has a predicted overlap above 0.7; raise ratio",
    ),
    Claim(
        "filter-beats-kernels",
        "One filter before an infinitely wide layer lowers the error by ten points below networks of one "
        "and three layers without filter.",
        f"{PAPER}; figures of note 3.4", "A one-sided statement.",
        compared(
            _gaps_to_kernels, 0.1, "at least",
            "no subspace target has a predicted overlap above 0.7 and fitted networks "
            "(kernel_samples >= n); raise ratio or kernel_samples",
        ),
    ),
    Agreement(
        "error-above-its-floor",
        "No readout of the learned coordinates beats the Bayes error given their overlaps.",
        "error", "derived", within=0.02, expected="error_floor", kind="at least",
        because="Overlaps differ between directions and samples.",
        missing="no subspace target has fitted networks; raise kernel_samples",
    ),
)
