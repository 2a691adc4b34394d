"""Claims on features that emerge in online gradient descent, one row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solvable.frame.agreement import Agreement
from solvable.frame.claims import Claim, Finding, NotTestable
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


def always(setting: Any) -> bool:
    """Whether the flow of all pairs says what happens."""
    return True


def loss_over(
    theory: str, least_loss: float, where: Callable[[Any], bool] = always
) -> Callable[[Sequence[Point]], Finding | NotTestable]:
    """Check of the loss over that of a theory, averaged over the points where much is left."""

    def check(points: Sequence[Point]) -> Finding | NotTestable:
        excess, errors, count = [], [], 0
        for point in points:
            if point.replicates < 2 or not where(point.setting):
                continue
            values = relative_to(theory, point)
            if np.isfinite(values).all() and point.mean(theory) > least_loss:
                excess.append(values.mean())
                errors.append(values.std(ddof=1) / values.size**0.5)
                count = max(count, values.size)
        if not excess:
            return NotTestable(
                f"no point with two replicates has a loss above {least_loss} left by this theory"
                f"{'' if where is always else APART}; lower time"
            )
        error = float(np.linalg.norm(errors) / len(errors))
        words = f"Mean over {len(excess)} points."
        return Finding(float(np.mean(excess)), 1.0, 0.05 + 2.6 * error, error, count, detail=words)

    return check


def falling(points: Sequence[Point]) -> list[list[Point]]:
    """Points of each setting at times between the first and the last escape, three or more."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        shares = np.atleast_1d(point.predicted("captured"))
        learned = shares[0] > 0.5 and point.predicted("loss") > 2 * point.predicted("width_floor")
        known = point.replicates > 1 and np.isfinite(point.mean("flow_loss") + point.mean("loss"))
        if learned and shares[-1] < 0.5 and known:
            key = str({k: v for k, v in point.parameters.items() if k != "time"})
            groups.setdefault(key, []).append(point)
    return [group for group in groups.values() if len(group) >= 3]


def slope_weights(x: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Weights whose sum with values is the slope of a fitted line."""
    precision = 1 / variance
    centred = x - precision @ x / precision.sum()
    return np.asarray(precision * centred / (precision @ centred**2))


def exponent_over_theory(points: Sequence[Point]) -> Finding | NotTestable:
    """Slope of the loss against time in logarithms, over that of the theory at this size."""
    groups = falling(points)
    if not groups:
        return NotTestable(
            "no setting has three times between the escape of the first and of the last feature; more "
            "values of time"
        )
    ratios, errors = [], []
    for group in groups:
        excess = [relative_to("flow_loss", point) for point in group]
        scatter = np.array([v.std(ddof=1) / v.size**0.5 / v.mean() for v in excess])
        # Late points scatter most; few replicates do not know their scatter well.
        weights = slope_weights(
            np.log([point.setting.time for point in group]), scatter**2 + np.mean(scatter**2) / 4
        )
        expected = weights @ np.log([point.mean("flow_loss") for point in group])
        measured = expected + weights @ np.log([values.mean() for values in excess])
        ratios.append(measured / expected)
        errors.append(np.linalg.norm(weights * scatter) / abs(expected))
    error = float(np.linalg.norm(errors) / len(errors))
    return Finding(
        float(np.mean(ratios)), 1.0, 0.05 + 2.6 * error, error, groups[0][0].replicates,
        detail=f"Mean over {len(groups)} settings.",
    )  # fmt: skip


def shares_over_law(points: Sequence[Point]) -> Finding | NotTestable:
    """Shares of features that are being learned, over their mean over the law of starts."""
    measured, expected, variance, count = 0.0, 0.0, 0.0, 0
    for point in points:
        mean = np.atleast_1d(point.predicted("captured"))
        growing = (mean > 0.05) & (mean < 0.98)
        known = point.predicted("coupling") > 0 or point.setting.dimension >= 100
        if point.replicates < 2 or not known or not growing.any():
            continue
        values = point.values("captured")[:, growing].sum(axis=1)
        measured, expected = measured + values.mean(), expected + mean[growing].sum()
        variance += values.var(ddof=1) / values.size
        count = max(count, values.size)
    if not expected:
        return NotTestable("no feature is predicted to be partly captured; more values of time")
    error = float(np.sqrt(variance) / expected)
    finding = Finding(measured / expected, 1.0, 0.05 + 2.6 * error, error, count)
    if finding.holds and 2.6 * error > 0.2:
        return NotTestable("shares scatter by more than 8 % between starts: more replicates")
    return finding


# fmt: off
CLAIMS = (
    Claim(
        "sgd-follows-flow",
        "The loss of online gradient descent is, on average over times, that of the flow of all overlaps "
        "from the same start.",
        "derived", "A twentieth: noise of the gradient beyond its mean, and finite steps.",
        loss_over("flow_loss", 0.02), power=0.15,
    ),
    Claim(
        "loss-of-independent-features",
        "While the first features emerge, the loss is that of features learned independently, from the "
        "same start.",
        PAPER, "A twentieth: features share students, of relative order log(m)/d.",
        loss_over("ode_loss", 0.1, independent), power=0.15,
    ),
    Agreement(
        "escape-times",
        "Each feature is half learned when its own equation says, from the start of its student.",
        times_over_theory, PAPER, within=0.05, expected=1.0, entry="feature",
        because="Features share students, of relative order log(m)/d; noise of the gradient.",
        where=lambda cell: independent(cell.setting), power=0.15,
        missing=f"no feature is learned in every replicate{APART}; raise time",
    ),
    Claim(
        "law-of-starts",
        "Shares of features between nothing and all are, on average, those of the law of random starts.",
        "derived", "A twentieth; starts scatter.", shares_over_law, power=0.3,
    ),
    Claim(
        "exponent-of-the-loss",
        "Between the first and the last escape the loss falls against time with the exponent of the "
        "theory at this number of features.",
        PAPER, "A twentieth.", exponent_over_theory, power=0.2,
    ),
)
