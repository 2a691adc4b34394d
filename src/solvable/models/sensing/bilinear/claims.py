"""What bilinear sequence regression claims: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.claims import Claim, Finding, NotTestable
from solvable.frame.points import Point

SOURCE = "arXiv:2410.18858, arXiv:2503.14121"


def finite(cell: Cell) -> float:
    """Terms of order 1/d, and where message passing stops."""
    return (0.02 + 0.8 / cell.setting.dimension) * cell.expected + 1e-3


def gain(point: Point) -> np.ndarray | None:
    """How much less than ridge message passing errs."""
    values = point.values("ridge_error") - point.values("matrix_error")
    return values if np.isfinite(values).all() else None


def expected_gain(point: Point) -> np.ndarray:
    """The same of the prediction."""
    return point.predicted("ridge_error") - point.predicted("matrix_error")


def recovery(points: Sequence[Point]) -> Finding | NotTestable:
    """Mean error without noise below recovery, less that between it and the nuclear norm's."""
    below, between = [], []
    for point in points:
        known = np.isfinite(point.values("matrix_error")).all()
        if not known or point.setting.noise > 0 or point.replicates < 2:
            continue
        ratio = point.setting.sample_ratio / float(point.predicted("recovery_ratio"))
        error = float(point.predicted("matrix_error"))
        if ratio < 1 and error > 0.1:
            below.append(point)
        if ratio > 1.1 and point.setting.sample_ratio < float(
            point.predicted("nuclear_norm_ratio")
        ):
            between.append(point)
    if not (below and between):
        return NotTestable(
            "no points without noise below recovery_ratio and between it and nuclear_norm_ratio, of two "
            "replicates each; set noise=0 and vary sample_ratio"
        )

    def mean(which: Sequence[Point], *, predicted: bool) -> float:
        name = "matrix_error"
        return float(np.mean([p.predicted(name) if predicted else p.mean(name) for p in which]))

    measured = mean(below, predicted=False) - mean(between, predicted=False)
    expected = mean(below, predicted=True) - mean(between, predicted=True)
    errors = [
        float(point.standard_error("matrix_error")) / len(side)
        for side in (below, between)
        for point in side
    ]
    error = float(np.linalg.norm(errors))
    return Finding(measured, expected, 0.03 * expected + 2.6 * error, error, below[0].replicates)


# fmt: off
CLAIMS = (
    Agreement(
        "matrix-error",
        "Bayes message passing errs as state evolution says, at any aspect, rank and noise.",
        "matrix_error", SOURCE, within=finite,
        because="Terms of order 1/d of denoiser and sensors; a loop that stops at 1e-3.",
        where=lambda cell: cell.setting.samples >= 100,
        missing="no point has 100 samples and a prediction; raise sample_ratio or dimension",
    ),
    Agreement(
        "test-error",
        "Its answers to fresh sequences err as its matrix does.",
        "test_error", SOURCE, within=lambda cell: 1.5 * finite(cell),
        because="Half as much again for the finite number of fresh sequences.",
        where=lambda cell: cell.setting.samples >= 100,
        missing="no point has 100 samples and a prediction; raise sample_ratio or dimension",
    ),
    Agreement(
        "ridge-error",
        "Ridge regression on all entries, at its best penalty, errs as if there were no structure.",
        "ridge_error", "arXiv:2410.18858", within=0.02, relative=True,
        because="Terms of order 1/(dL).",
        where=lambda cell: cell.expected > 0.01 and cell.setting.samples >= 100,
        missing="ridge makes errors below 0.01 everywhere; lower sample_ratio or raise noise",
    ),
    Agreement(
        "gain",
        "Knowing that the matrix is a product of two lowers the error by what is predicted.",
        gain, SOURCE, expected=expected_gain,
        within=lambda cell: 0.05 * cell.expected + 0.8 / cell.setting.dimension * cell.expected,
        because="Terms of order 1/d of both errors.",
        where=lambda cell: cell.expected > 0.1 and cell.setting.samples >= 100,
        missing="no point has a predicted gain of 0.1; lower rank_ratio",
    ),
    Claim(
        "recovery-before-the-nuclear-norm",
        "Without noise the matrix is found exactly from fewer samples than the nuclear norm needs, and "
        "not from fewer than its degrees of freedom.",
        "arXiv:2410.18858", "3 % of the difference, and scatter.", recovery,
    ),
)
