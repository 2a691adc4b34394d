"""Claims on features that emerge in online gradient descent, one row each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.claims import Claim, Finding, NotTestable
from solvable.frame.points import Point

PAPER = "arXiv:2504.19983"


def relative_to(theory: str, point: Point) -> np.ndarray:
    """Losses over the mean loss of a theory from the same starts, less what the starts scatter by."""
    # Losses of one start to the next differ by more than theories do: 1 + (L - L_theory) / mean
    measured, expected = point.values("loss"), point.values(theory)
    return np.asarray(1 + (measured - expected) / expected.mean())


def times_over_theory(point: Point) -> np.ndarray:
    """Escape times of the features over those of independent features from the same start."""
    return np.asarray(point.values("escape_time") / point.values("ode_escape_time"))


def large(cell: Cell) -> bool:
    """Whether some of the loss is left, in a dimension in which features are nearly independent."""
    return float(cell.point.mean("ode_loss")) > 0.02 and cell.setting.dimension >= 24


def falling(points: Sequence[Point]) -> list[list[Point]]:
    """Points of each setting at times between the first and the last escape, three or more."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        shares = np.asarray(point.prediction["captured"], dtype=float)
        learned = shares[0] > 0.5 and point.predicted("loss") > 2 * point.predicted("width_floor")
        if learned and shares[-1] < 0.5 and point.setting.dimension >= 24 and point.replicates > 1:
            key = str({k: v for k, v in point.parameters.items() if k != "time"})
            groups.setdefault(key, []).append(point)
    return [group for group in groups.values() if len(group) >= 3]


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
        times = np.log([point.setting.time for point in group])
        weights = (times - times.mean()) / np.sum((times - times.mean()) ** 2)
        expected = weights @ np.log([point.mean("ode_loss") for point in group])
        excess = [relative_to("ode_loss", point) for point in group]
        measured = expected + weights @ np.log([values.mean() for values in excess])
        scatter = [values.std(ddof=1) / values.size**0.5 / values.mean() for values in excess]
        ratios.append(measured / expected)
        errors.append(np.linalg.norm(weights * scatter) / abs(expected))
    error = float(np.linalg.norm(errors) / len(errors))
    return Finding(
        float(np.mean(ratios)), 1.0, 0.08 + 2.6 * error, error, groups[0][0].replicates,
        detail=f"Mean over {len(groups)} settings.",
    )  # fmt: skip


def shares_over_law(points: Sequence[Point]) -> Finding | NotTestable:
    """Shares of features that are being learned, over their mean over the law of starts."""
    measured, expected, variance, count = 0.0, 0.0, 0.0, 0
    for point in points:
        mean = np.asarray(point.prediction["captured"], dtype=float)
        growing = (mean > 0.05) & (mean < 0.98)
        if point.replicates < 2 or point.setting.dimension < 24 or not growing.any():
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
    Agreement(
        "sgd-follows-flow",
        "The loss of online gradient descent is that of the flow of all overlaps from the same start.",
        lambda point: relative_to("flow_loss", point), "derived", within=0.05, expected=1.0,
        because="Overlaps scatter by the noise of the gradient, and steps are finite.",
        where=lambda cell: bool(cell.point.mean("flow_loss") > 0.02),
        missing="no point has a loss above 0.02 left, or width and features are too many for the flow; "
        "lower time",
    ),
    Agreement(
        "loss-of-independent-features",
        "The loss is that of features learned independently, from the same start.",
        lambda point: relative_to("ode_loss", point), PAPER, within=0.08, expected=1.0,
        because="Features share students, of relative order log(m)/d.", where=large, power=0.15,
        missing="no point has a loss above 0.02 left in dimension 24 or more; lower time",
    ),
    Agreement(
        "escape-times",
        "Each feature is half learned when its own equation says, from the start of its student.",
        times_over_theory, PAPER, within=0.05, expected=1.0, entry="feature",
        because="Features share students, of relative order log(m)/d; noise of the gradient.",
        where=lambda cell: cell.setting.dimension >= 24, power=0.15,
        missing="no feature is learned in every replicate in dimension 24 or more; raise time",
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
        PAPER, "0.08: features share students, late ones the most.", exponent_over_theory, power=0.2,
    ),
)
