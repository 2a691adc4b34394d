"""Claims of the system `neural-lofi-images`, and metrics of its figures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import at_least
from solvable.frame.points import Point
from solvable.models.lofi_images.parameters import USUAL_DIRECTIONS

LAYER_ENTRIES = tuple(
    f"{layer} layer, {basis}"
    for layer in ("first", "second")
    for basis in ("filter", "principal components")
)

SHAPE_NAMES = ("blob", "derivative down the rows", "derivative across the columns")

Values = Callable[[Point], np.ndarray]
"""Function from a point to one number per replicate; NaN stands for values not measured."""


def by_directions(point: Point, name: str) -> np.ndarray:
    """Metric for each replicate and number of kept directions; NaN stands for values not measured."""
    values = point.values(name)
    shape = (point.replicates, len(point.setting.kept))
    return values if values.shape == shape else np.full(shape, np.nan)


def kept(name: str, k: float = USUAL_DIRECTIONS) -> Values:
    """Return a function that gives a metric at one number of kept directions."""

    def values(point: Point) -> np.ndarray:
        directions = [float(count) for count in point.setting.kept]
        if k not in directions:
            return np.full(point.replicates, np.nan)
        return by_directions(point, name)[:, directions.index(k)]

    return values


def null_ratio(point: Point, count: float) -> np.ndarray:
    """Null ratio after removal of ``count`` directions; NaN if not tested (lofi 29)."""
    tested = [
        dict(zip(_listed(metrics["null_counts"]), _listed(metrics["null_ratios"]), strict=False))
        for metrics in point.metrics
    ]
    return np.array([ratios.get(count, np.nan) for ratios in tested], dtype=float)


def _listed(value: object) -> list[float | None]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def tested_counts(point: Point) -> list[float]:
    """Numbers of removed directions at which every replicate was tested."""
    counts = [one for one in _listed(point.metrics[0]["null_counts"]) if one is not None]
    return [count for count in counts if np.isfinite(null_ratio(point, count)).all()]


def ratio_of(values: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Ratio of two means over the same replicates, and the standard error of the ratio."""
    each = paired_ratio(values, reference)
    return float(each.mean()), float(
        each.std(ddof=1) / np.sqrt(each.size)
    ) if each.size > 1 else 0.0


def paired_ratio(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Contribution of each replicate to the ratio of two means (lofi 31)."""
    ratio = values.mean() / reference.mean()
    return np.asarray(ratio + (values - ratio * reference) / reference.mean())


def first_error(point: Point) -> np.ndarray:
    """Squared error of each replicate at the first number of kept directions."""
    return by_directions(point, "squared_error")[:, 0]


def growth_in_samples(point: Point) -> np.ndarray | None:
    """Growth of the second null ratio from n_1 to n_2 samples, over sqrt(n_2 / n_1) (lofi 30)."""
    if point.other is None or point.setting.width or point.setting.task != "even-odd":
        return None
    few, many = null_ratio(point, 1.0), null_ratio(point.other, 1.0)
    if not (np.isfinite(few).all() and np.isfinite(many).all()):
        return None
    each = min(few.size, many.size)
    root = np.sqrt(point.other.setting.samples / point.setting.samples)
    return paired_ratio(many[:each], few[:each]) / root


def whole(name: str) -> Values:
    """Return a function that gives a metric which does not depend on kept directions."""
    return lambda point: point.values(name)


def found_shape(cell: Cell) -> bool:
    """Return True for the derivative across the columns, and on MNIST for the blob."""
    # Strokes of digits of 8 x 8 pixels are as wide as their patches, which have no blob.
    return cell.entry in ((2,) if cell.setting.data == "digits" else (0, 2))


# fmt: off
CLAIMS = (
    Agreement(
        "rate-in-width",
        "The relative distance of the Gram matrix of random features from its kernel equals the "
        "prediction, which falls as P^(-1/2).",
        "gram_deviation", "derivations/lofi (28)", within=0.1, relative=True, power=0.3,
        because="10 % of the distance, because the prediction is computed from other images.",
        missing="no point has a finite width; set width",
    ),
    Agreement(
        "meaningless-labels-have-a-ratio-of-one",
        "With permuted labels the strongest direction has the mean strength of random labels: a null "
        "ratio of 1.",
        "permuted_ratio", "derivations/lofi (29)", within=0.15, power=0.5,
        because="Three quarters of the standard deviation of a single null ratio.",
        missing="no point is infinitely wide; set width=0",
    ),
    Agreement(
        "first-directions-stand-out",
        "After removal of the first direction, the strength of the second over that of random labels "
        "grows as sqrt(n).",
        growth_in_samples, "derivations/lofi (30)", within=0.1, expected=1.0, power=0.3,
        because="10 %, because the strength of random labels depends on the split.", pairs="samples",
        missing="no two points of task even-odd with width=0 differ in samples alone",
    ),
    Agreement(
        "emerged-directions",
        "The number of directions stronger than 1.5 times random labels is the number forecast from "
        "the null ratios of a fit to 1,500 images.",
        "emerged", "derivations/lofi (37)", within=0.15, relative=True, power=0.3,
        because="15 % of the number, because ratios are tested on a grid of counts in steps of sqrt(2) "
        "and the forecast has its own fluctuations.",
        # At 200 digits the forecast is a third too high: few directions lie between tested counts.
        where={"task": "even-odd", "samples": at_least(300)},
        missing="set width=0 samples=400",
    ),
    Agreement(
        "patch-filters-are-derivatives",
        "The first six filters of pixel patches contain the derivative across the columns, and on MNIST "
        "also a blob.",
        "patch_shapes", "derivations/lofi (36)", within=0.1, expected=0.9, kind="at least", power=0.3,
        because="0.1: eigenvectors close to each other mix.", entry=lambda setting: SHAPE_NAMES,
        where=({"patch": at_least(5), "samples": at_least(500)}, found_shape),
        missing="no point has patch of at least 5 and 500 images; run with --preset patches",
    ),
    Agreement(
        "first-gradient-step",
        "The first step of gradient descent changes the weights of a ReLU network in directions whose "
        "overlaps with the filter and with principal components are those of an infinitely wide network.",
        "first_step_alignment", "derivations/lofi (27), (35)", within=0.04, power=0.1,
        because="0.04: the network has 1,000 neurons, and the prediction is computed from other images.",
        entry=lambda setting: ("filter", "principal components"),
        missing="no infinitely wide point of task even-odd has activation=relu",
    ),
    Agreement(
        "first-step-of-two-layers",
        "The first step of gradient descent changes the weights of both of two hidden layers in "
        "directions whose overlaps with the filter of the layer and with principal components are those "
        "of infinitely wide layers.",
        "layers_first_step", "derivations/lofi (35), (38)", within=0.05, power=0.1,
        because="0.05: layers have 1,000 neurons, and the prediction is computed from other images.",
        entry=lambda setting: LAYER_ENTRIES,
        missing="no infinitely wide point of task even-odd has activation=relu, filters of at least 2 "
        "and 500 images; set width=0 samples=600",
    ),
)
