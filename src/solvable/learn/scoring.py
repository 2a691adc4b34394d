"""Predictions of all folds turned into errors, intervals and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from solvable.learn.competitors import LEARNED, Method
from solvable.learn.intervals import (
    Interval,
    mean_interval,
    paired_rate_difference,
    wilson_interval,
)
from solvable.learn.measuring import Measured
from solvable.learn.results import MethodScore, Verdict


class Losses:
    """Loss of each test row: wrong or not, or the squared error over the variance of the target.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Targets of all rows.
    folds : ndarray of int, shape (n,)
        Fold that tests each row.
    regression : bool
        Whether targets are numbers.

    Examples
    --------
    >>> losses = Losses(np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1]), regression=False)
    >>> losses.of_fold(0, np.array([0, 0])).tolist()
    [0.0, 1.0]
    """

    def __init__(self, y: np.ndarray, folds: np.ndarray, *, regression: bool) -> None:
        self.y, self.folds, self.regression = y, folds, regression
        self.variance = float(np.var(y)) if regression else 1.0

    def of_fold(self, fold: int, predicted: np.ndarray) -> np.ndarray:
        """Losses of the rows of a fold, in the order of the rows."""
        true = self.y[self.folds == fold]
        if self.regression:
            return np.asarray((predicted - true) ** 2 / self.variance)
        return np.asarray(predicted != true, dtype=np.float64)

    def of_all(self, measured: Sequence[Measured]) -> np.ndarray | None:
        """Losses of all rows from the fits of all folds; None if one of them failed."""
        if any(one.failure for one in measured):
            return None
        losses = np.empty(len(self.y))
        for one in measured:
            losses[self.folds == one.fold] = self.of_fold(one.fold, one.predicted)
        return losses

    def interval(self, losses: np.ndarray) -> Interval:
        """Mean loss with its interval."""
        if self.regression:
            return mean_interval(losses)
        return wilson_interval(int(losses.sum()), len(losses))

    def difference(self, losses: np.ndarray, reference: np.ndarray) -> Interval:
        """Mean loss less that of a reference on the same rows, with its interval."""
        if self.regression:
            return mean_interval(losses - reference)
        return paired_rate_difference(losses > 0, reference > 0)


def score_methods(
    compared: Sequence[Method], measured: Mapping[str, Sequence[Measured]], losses: Losses
) -> tuple[MethodScore, ...]:
    """Errors of all methods, and how they compare with the learned features.

    Parameters
    ----------
    compared : sequence of Method
        The methods, learned features first.
    measured : mapping of str to sequence of Measured
        One fit per fold, by key of the method.
    losses : Losses
        Of the rows.

    Returns
    -------
    tuple of MethodScore
        In the same order.
    """
    reference = losses.of_all(measured[LEARNED])
    assert reference is not None
    scores = []
    for method in compared:
        fits = measured[method.key]
        mine = losses.of_all(fits)
        rows = round(float(np.mean([one.rows for one in fits])))
        seconds = sum(one.seconds for one in fits)
        remark = next((one.failure for one in fits if one.failure), "")
        if mine is None:
            scores.append(
                MethodScore(
                    method.key, method.title, method.meaning, None, None, None,
                    0, rows, seconds, remark=remark,
                )
            )  # fmt: skip
            continue
        available = round(float(np.mean([one.training_rows for one in fits])))
        if rows < available:
            remark = (
                f"fitted to {rows} of {available} training rows, as a kernel of all is too large"
            )
        error = losses.interval(mine)
        gap = None if method.key == LEARNED else losses.difference(mine, reference)
        scores.append(
            MethodScore(
                method.key,
                method.title,
                method.meaning,
                *error,
                test_rows=len(mine),
                training_rows=rows,
                seconds=seconds,
                difference=gap.value if gap else None,
                difference_lower=gap.lower if gap else None,
                difference_upper=gap.upper if gap else None,
                verdict=verdict_of(gap) if gap else None,
                remark=remark,
            )
        )
    return tuple(scores)


def verdict_of(difference: Interval) -> Verdict:
    """What a difference to the learned features shows.

    Parameters
    ----------
    difference : Interval
        Error of a method less that of the learned features.

    Returns
    -------
    str
        "worse" if the interval lies above zero, "better" below, else "no difference".

    Examples
    --------
    >>> verdict_of(Interval(0.02, 0.01, 0.03)), verdict_of(Interval(0.02, -0.01, 0.05))
    ('worse', 'no difference')
    """
    if difference.lower > 0:
        return "worse"
    return "better" if difference.upper < 0 else "no difference"
