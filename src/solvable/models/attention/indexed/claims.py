"""What attention-indexed models claim: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.claims import Claim, Finding, NotTestable
from solvable.frame.points import Point
from solvable.models.attention.indexed.theory import peakedness

SOURCE = "arXiv:2506.01582; first order in 1/d derived"


def told(cell: Cell) -> bool:
    """Whether there is an error to speak of, in enough dimensions."""
    return cell.setting.dimension >= 30 and cell.predicted("finite_size_matrix_error") > 0.005


def allowed(cell: Cell) -> float:
    """Four hundredths, and the second order in 1/d."""
    grown = cell.predicted("finite_size_matrix_error") / cell.predicted("matrix_error") - 1
    return float(0.04 + min(1.5 * grown**2, 0.06))


SECOND = "0.04, and one and a half times the square of the first order in 1/d for the second."


def recovery(points: Sequence[Point]) -> Finding | NotTestable:
    """Mean error from 0.5 to 0.9 recovery ratios, less that beyond it."""
    name, theory = "matrix_error", "finite_size_matrix_error"
    below: list[Point] = []
    above: list[Point] = []
    for point in points:
        threshold = point.prediction.get("recovery_ratio")
        known = point.prediction.get(theory) is not None and np.isfinite(point.values(name)).all()
        if threshold is None or not known or point.replicates < 2:
            continue
        ratio = point.setting.sample_ratio / float(point.predicted("recovery_ratio"))
        if ratio > 1 or 0.5 < ratio < 0.9:
            (above if ratio > 1 else below).append(point)
    if not (below and above):
        return NotTestable(
            "no points without noise at 0.5 to 0.9 and beyond recovery_ratio; set noise=0 and widen "
            "sample_ratio"
        )
    measured, expected = (
        float(np.mean([of(p) for p in below]) - np.mean([of(p) for p in above]))
        for of in (lambda p: float(p.mean(name)), lambda p: float(p.predicted(theory)))
    )
    errors = [float(p.standard_error(name)) / len(s) for s in (below, above) for p in s]
    error = float(np.linalg.norm(errors))
    return Finding(measured, expected, 0.06 * expected + 2.6 * error, error, below[0].replicates)


CLAIMS = (
    Agreement(
        "error-of-weights",
        "Message passing estimates the weights of attention as well as a Bayesian can, with the error of "
        "state evolution and its first order in 1/d.",
        "matrix_error", SOURCE, expected="finite_size_matrix_error", within=allowed, relative=True,
        because=SECOND, where=told, power=0.2,
        missing="no point has 30 dimensions and an error above 0.005; lower sample_ratio or raise noise",
    ),
    Agreement(
        "error-of-attention",
        "The mean attention matrix over what is not known of the weights has the predicted error on "
        "fresh samples.",
        "test_error", "derived", expected="finite_size_test_error", relative=True,
        within=lambda cell: allowed(cell) + 0.02 * peakedness(cell.setting),
        because=SECOND + " And 0.02 times the excess kurtosis of an index.",
        where=lambda cell: told(cell) and cell.setting.activation != "linear", power=0.2,
        missing="no point has activation softmax or hardmax, 30 dimensions and an error above 0.005",
    ),
    Claim(
        "recovery-without-noise",
        "Without noise softmax tells T (T + 1) / 2 - 1 numbers of each sample, and the weights are "
        "recovered exactly from as many samples as count their free parameters.",
        "derived (note 4.2)", "0.06 for finite dimensions.", recovery, power=0.2,
    ),
)  # fmt: skip
