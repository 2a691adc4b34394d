"""Claims on features that emerge in online gradient descent, one row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solvable.frame.agreement import Agreement
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point

PAPER = "arXiv:2504.19983"

APART = " where dimension >= 24 and 7 width <= dimension features"


def relative_to(theory: str, point: Point) -> np.ndarray:
    """Losses over the mean loss of a theory from the same starts, less what the starts scatter by."""
    # Losses of one start to the next differ by more than theories do: 1 + (L - L_theory) / mean
    measured, expected = point.values("loss"), point.values(theory)
    return np.asarray(1 + (measured - expected) / expected.mean())


def times_over_theory(point: Point) -> np.ndarray | None:
    """Escape times of the features over those of independent features from the same start."""
    times, alone = point.values("escape_time"), point.values("ode_escape_time")
    return np.asarray(times / alone) if times.shape == alone.shape else None


def independent(setting: Any) -> bool:
    """Whether few students have nearly the largest overlap with a feature, so that one learns it."""
    few = 7 * setting.width <= setting.dimension * setting.features
    return bool(few and setting.dimension >= 24)


def mean_loss_over(theory: str) -> Callable[[Sequence[Point]], tuple[float, float]]:
    """Loss over that of a theory, averaged over points."""
    return lambda points: (float(np.mean([relative_to(theory, p).mean() for p in points])), 1.0)


def much_left(theory: str, least: float) -> Callable[[Point], bool]:
    """Whether a theory leaves a loss above a value."""
    return lambda point: bool(
        np.isfinite(relative_to(theory, point)).all() and point.mean(theory) > least
    )


def exponents_of_the_loss(points: Sequence[Point]) -> tuple[float, float] | None:
    """Exponent of the loss in time, with the flow of the same starts as a control; predicted."""
    names = ("loss", "flow_loss")
    losses = np.array(
        [[*(p.mean(name) for name in names), p.predicted("loss")] for p in points], dtype=float
    )
    if not (losses > 0).all():
        return None
    slopes = np.polyfit(np.log([p.setting.time for p in points]), np.log(losses), 1)[0]
    # What starts scatter by cancels in the difference of the first two.
    return float(slopes[2] + slopes[0] - slopes[1]), float(slopes[2])


def between_escapes(point: Point) -> bool:
    """Whether the first feature is learned and the last is not."""
    shares = np.atleast_1d(point.predicted("captured"))
    learned = shares[0] > 0.5 and point.predicted("loss") > 2 * point.predicted("width_floor")
    return bool(learned and shares[-1] < 0.4)


def growing(point: Point) -> np.ndarray:
    """Features that are predicted to be partly captured."""
    mean = np.atleast_1d(point.predicted("captured"))
    return np.asarray((mean > 0.05) & (mean < 0.98))


def law_known(point: Point) -> bool:
    """Whether some feature is partly captured, in dimensions enough for the law of starts."""
    known = point.predicted("coupling") > 0 or point.setting.dimension >= 100
    return bool(known and growing(point).any())


def shares_over_law(points: Sequence[Point]) -> tuple[float, float] | None:
    """Shares of features that are being learned, over their mean over the law of starts."""
    pairs = [(growing(point), point) for point in points]
    expected = sum(np.atleast_1d(p.predicted("captured"))[k].sum() for k, p in pairs)
    measured = sum(p.values("captured")[:, k].sum(axis=1).mean() for k, p in pairs)
    return (float(measured / expected), 1.0) if expected else None


# fmt: off
CLAIMS = (
    Estimate(
        "sgd-follows-flow",
        "The loss of online gradient descent is, on average over times, that of the flow of all overlaps "
        "from the same start.",
        "derived", within=0.05, because="5 %: noise of the gradient beyond its mean, and finite steps.",
        estimate=mean_loss_over("flow_loss"), where=much_left("flow_loss", 0.03), power=0.15,
        missing="no point has a loss above 0.03 left by this theory; lower time",
    ),
    Estimate(
        "loss-of-independent-features",
        "While the first features emerge, the loss is that of features learned independently, from the "
        "same start.",
        PAPER, within=0.05, because="5 %: features share students, of relative order log(m)/d.",
        estimate=mean_loss_over("ode_loss"), power=0.15,
        where=lambda point: independent(point.setting) and much_left("ode_loss", 0.1)(point),
        missing=f"no point has a loss above 0.1 left by this theory{APART}; lower time",
    ),
    Agreement(
        "escape-times",
        "Each feature is half learned when its own equation says, from the start of its student.",
        times_over_theory, PAPER, within=0.05, expected=1.0, entry="feature",
        because="Features share students, of relative order log(m)/d; noise of the gradient.",
        where=lambda cell: independent(cell.setting), power=0.15,
        missing=f"no feature is learned in every replicate{APART}; raise time",
    ),
    Estimate(
        "law-of-starts",
        "Shares of features between nothing and all are, on average, those of the law of random starts.",
        "derived", within=0.05, because="5 %: students that share a feature.",
        estimate=shares_over_law, where=law_known, power=0.3,
        missing="no feature is predicted to be partly captured; more values of time",
    ),
    Estimate(
        "exponent-of-the-loss",
        "Between the first and the last escape the loss falls against time with the exponent of the "
        "theory at this number of features.",
        PAPER, estimate=exponents_of_the_loss, apart=("time",), fewest=3, within=0.05, relative=True,
        because="5 %: noise of the gradient.", where=between_escapes, power=0.2,
        missing="no setting has three times between the escape of the first and of the last feature; "
        "more values of time",
    ),
)
