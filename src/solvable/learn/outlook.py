"""What more rows are expected to buy."""

from __future__ import annotations

from collections.abc import Sequence

from solvable.forecast import LearningCurve, forecast
from solvable.learn.results import CurvePoint, Expected, Outlook

FACTORS = (1.0, 2.0, 4.0)
"""Multiples of the rows at hand that are forecast."""


def outlook_of(curve: Sequence[CurvePoint], rows: int, *, seed: int = 0) -> Outlook:
    """Extrapolate the measured learning curve.

    Parameters
    ----------
    curve : sequence of CurvePoint
        Errors by training rows, one per fold.
    rows : int
        Rows of the data set; the curve ends below, as test rows are held back.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Outlook
        At 1, 2 and 4 times the rows; without numbers, and with the reason, where the curve must not
        be extrapolated.

    Examples
    --------
    >>> points = [CurvePoint(n, tuple(n**-0.5 * one for one in (0.9, 1, 1.1)), (1, 1, 1))
    ...           for n in (50, 100, 200, 400, 800)]
    >>> found = outlook_of(points, 1000)
    >>> [one.rows for one in found.expected]
    [1000, 2000, 4000]
    """
    points = [
        (point.rows, error, fold) for point in curve for fold, error in enumerate(point.errors)
    ]
    if not points:
        return Outlook((), verdict="There is no learning curve: too few rows.")
    sizes, errors, folds = zip(*points, strict=True)
    measured = LearningCurve(sizes, errors, tuple(f"fold {one}" for one in folds))  # type: ignore[arg-type]
    found = forecast(measured, at=[one * rows for one in FACTORS], seed=seed)
    return Outlook(
        tuple(curve),
        tuple(
            Expected(factor, round(one.samples), one.mean, one.lower, one.upper)
            for factor, one in zip(FACTORS, found.predictions, strict=False)
        ),
        tuple((one.samples, one.mean, one.lower, one.upper) for one in found.band),
        found.confidence,
        found.verdict,
        found.diagnostics.notes,
    )
