"""Claims on the emergence of features in online gradient descent; each row is one claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solvable.frame.agreement import Agreement
from solvable.frame.conditions import at_most
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point

PAGE = "derivations/multi-index"

MOST_NEGLECTED = 0.025
"""Largest neglected term of first order, half of the tolerance 0.05; the rest is for higher orders."""


def relative_to(theory: str, point: Point) -> np.ndarray:
    """Ratio of the measured loss to the loss predicted from the same starts, with little scatter."""
    # The ratio is 1 + (L - L_theory) / mean(L_theory). The difference L - L_theory cancels the scatter
    # of starts, which is larger than the difference between the theories.
    measured, expected = point.values("loss"), point.values(theory)
    return np.asarray(1 + (measured - expected) / expected.mean())


def times_over_theory(point: Point) -> np.ndarray | None:
    """Ratio of measured escape times to those of gradient descent on the population loss."""
    times, theory = point.values("escape_time"), point.values("flow_escape_time")
    return np.asarray(times / theory) if times.shape == theory.shape else None


def quiet(point: Point) -> bool:
    """Return True if gradient noise hardly delays the features that emerge in this time."""
    delays, weights = np.atleast_1d(point.predicted("noise_delay")), point.setting.strengths**2
    known = np.isfinite(delays)
    if not known.any():
        return True
    return bool(np.average(delays[known], weights=weights[known]) <= MOST_NEGLECTED)


def independent(point: Point) -> bool:
    """Return True if pairs of students and features hardly change the loss from these starts."""
    # Both losses are theory. Their difference is the term that independent features neglect.
    pairs, alone = point.values("flow_loss"), point.values("ode_loss")
    return bool(np.abs((pairs - alone).mean()) <= MOST_NEGLECTED * alone.mean())


def mean_loss_over(theory: str) -> Callable[[Sequence[Point]], tuple[float, float]]:
    """Make a function that averages the measured loss divided by a theory's loss over points."""
    return lambda points: (float(np.mean([relative_to(theory, p).mean() for p in points])), 1.0)


def much_left(theory: str, least: float) -> Callable[[Point], bool]:
    """Make a predicate that is True if a theory's mean loss is above `least`."""
    return lambda point: bool(
        np.isfinite(relative_to(theory, point)).all() and point.mean(theory) > least
    )


def compute(setting: Any) -> float:
    """Return the compute m t / eta, the number of students times the number of steps."""
    return float(setting.width / setting.rate * setting.time)


def slopes_of_the_loss(
    points: Sequence[Point], places: Sequence[float]
) -> tuple[float, float] | None:
    """Measured and predicted slope of log loss in log places, corrected for the measured starts."""
    names = ("loss", "flow_loss")
    losses = np.array(
        [[*(p.mean(name) for name in names), p.predicted("loss")] for p in points], dtype=float
    )
    if not (losses > 0).all():
        return None
    slopes = np.polyfit(np.log(places), np.log(losses), 1)[0]
    # The scatter of starts cancels in the difference between training and flow.
    return float(slopes[2] + slopes[0] - slopes[1]), float(slopes[2])


def exponent_in(
    place: Callable[[Any], float],
) -> Callable[[Sequence[Point]], tuple[float, float] | None]:
    """Make a function that estimates the exponent of the loss in a function of the setting."""
    return lambda points: slopes_of_the_loss(points, [place(p.setting) for p in points])


def exponent_in_samples(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured exponent of the loss in samples, and half of the predicted exponent in time."""
    samples = slopes_of_the_loss(points, [point.setting.samples for point in points])
    time = slopes_of_the_loss(points, [point.setting.time for point in points])
    return None if samples is None or time is None else (samples[0], time[1] / 2)


def at_best_widths(points: Sequence[Point]) -> list[Point]:
    """Keep the point of lowest predicted loss at each compute, if wider and narrower ones exist."""
    levels: dict[str, list[Point]] = {}
    for point in points:
        levels.setdefault(f"{compute(point.setting):.3g}", []).append(point)
    kept = []
    for level in levels.values():
        widths = [point.setting.width for point in level]
        best = min(level, key=lambda point: float(point.predicted("loss")))
        if min(widths) < best.setting.width < max(widths):
            kept.append(best)
    return kept


def exponent_in_compute(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted exponent of the loss in compute, along the best widths."""
    best = at_best_widths(points)
    if len(best) < 3:
        return None
    return slopes_of_the_loss(best, [compute(point.setting) for point in best])


def all_learned(point: Point) -> bool:
    """Return True if fewer students than features have had time to learn one feature each."""
    times = np.atleast_1d(point.predicted("escape_time"))
    known = times[np.isfinite(times)]
    narrow = point.setting.width < point.setting.features
    return bool(narrow and known.size and point.setting.time > 2 * known.max())


def between_escapes(point: Point) -> bool:
    """Return True if theory predicts that the first feature is learned and the last feature is not."""
    shares = np.atleast_1d(point.predicted("captured"))
    learned = shares[0] > 0.5 and point.predicted("loss") > 2 * point.predicted("width_floor")
    return bool(learned and shares[-1] < 0.4)


def growing(point: Point) -> np.ndarray:
    """Return a mask of the features that are predicted to be partly captured."""
    mean = np.atleast_1d(point.predicted("captured"))
    return np.asarray((mean > 0.05) & (mean < 0.98))


def law_known(point: Point) -> bool:
    """Return True if some feature is predicted to be partly captured and the theory is valid here."""
    known = point.predicted("coupling") > 0 or point.setting.dimension >= 100
    return bool(known and growing(point).any())


def shares_over_law(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured shares of partly captured features, divided by the shares predicted for random starts."""
    pairs = [(growing(point), point) for point in points]
    expected = sum(np.atleast_1d(p.predicted("captured"))[k].sum() for k, p in pairs)
    measured = sum(p.values("captured")[:, k].sum(axis=1).mean() for k, p in pairs)
    return (float(measured / expected), 1.0) if expected else None


# fmt: off
CLAIMS = (
    Estimate(
        "sgd-follows-flow",
        "The loss of online gradient descent, averaged over times, equals that of gradient descent on "
        "the population loss from the same start.",
        f"{PAGE} (37)", within=0.05, because="5 %: only the mean effect of gradient noise is kept.",
        estimate=mean_loss_over("flow_loss"), power=0.15,
        where=(much_left("flow_loss", 0.03), quiet),
        missing="no point has a predicted flow_loss above 0.03 and features that gradient noise delays "
        "by up to 2.5 %; lower time or raise batch",
    ),
    Estimate(
        "loss-of-independent-features",
        "While the first features emerge, the loss equals that of independent features from the same "
        "start.",
        f"{PAGE} (29), (30), (38)", within=0.05,
        because="5 %: half for features that share students (at points where theory from the same starts "
        "predicts a larger effect, the claim is not made), half for gradient noise.",
        estimate=mean_loss_over("ode_loss"), power=0.15,
        where=(much_left("ode_loss", 0.1), quiet, independent),
        missing="no point has a predicted ode_loss above 0.1 that neither pairs of students nor gradient "
        "noise change by more than 2.5 %; lower time or features, raise dimension or batch",
    ),
    Agreement(
        "escape-times",
        "The time at which half of a feature is captured equals that of gradient descent on the "
        "population loss from the same start, plus the predicted delay by gradient noise.",
        times_over_theory, f"{PAGE} (37), (40)", within=0.05, entry="feature",
        expected=lambda point: 1 + np.atleast_1d(point.predicted("noise_delay")),
        because="5 %: of the delay by gradient noise only the first order is kept; the claim covers no "
        "feature for which it is above 5 %.",
        where={"expected": at_most(1 + 2 * MOST_NEGLECTED)}, power=0.15,
        missing="a feature that every replicate learns must be delayed by gradient noise by up to 5 %; "
        "raise time or batch",
    ),
    Estimate(
        "law-of-starts",
        "The captured shares of partly learned features equal their predicted means over random starts.",
        f"{PAGE} (29), (30)", within=0.05, because="5 %: several students may share a feature.",
        estimate=shares_over_law, where=law_known, power=0.3,
        missing="no feature is predicted to be partly captured; add values of time",
    ),
    Estimate(
        "exponent-of-the-loss",
        "Between the first and the last escape the exponent of the loss in time equals the prediction at "
        "this number of features.",
        f"{PAGE} (32)", estimate=exponent_in(lambda setting: setting.time), apart=("time",), fewest=3,
        within=0.05, relative=True, because="5 %: the gradient is noisy.", power=0.2,
        where=({"tuned": False}, between_escapes),
        missing="no setting has three times between the first and the last escape; add values of time",
    ),
    Estimate(
        "exponent-in-width",
        "At the end of training the exponent of the loss in the number of students equals the prediction "
        "at this number of features.",
        f"{PAGE} (32)", estimate=exponent_in(lambda setting: setting.width), apart=("width",), fewest=3,
        within=0.05, relative=True, because="5 %: the gradient is noisy.", where=all_learned, power=0.2,
        missing="no time is twice the last escape time of three widths below the number of features; "
        "run with --preset width",
    ),
    Estimate(
        "exponent-in-compute",
        "Along the best width for each compute the exponent of the loss equals the prediction at this "
        "number of features.",
        f"{PAGE} (32)", estimate=exponent_in_compute, apart=("width", "time"), fewest=6,
        within=0.05, relative=True, because="5 %: the gradient is noisy.", power=0.2,
        where={"tuned": False},
        missing="no three values of the compute have wider and narrower networks than the best; run with "
        "--preset width",
    ),
    Estimate(
        "exponent-in-samples",
        "With a learning rate for the weakest wanted feature the exponent of the loss in samples is half "
        "of the exponent in time.",
        f"{PAGE} (32)", estimate=exponent_in_samples, apart=("time",), fewest=3,
        within=0.05, relative=True, because="5 %: the gradient is noisy.", power=0.2,
        where=({"tuned": True}, between_escapes),
        missing="no setting with tuned=true has three times between the first and the last escape; run "
        "with --preset samples",
    ),
)
