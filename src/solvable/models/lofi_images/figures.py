"""Figures of filters on images against kept directions, samples and width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solvable.frame.conditions import above
from solvable.frame.curves import Axis, Curve, varying, words_of
from solvable.frame.maps import MapPanel
from solvable.frame.panels import Panel, suffix_of
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.models.lofi_images.claims import (
    Values,
    by_directions,
    first_error,
    kept,
    null_ratio,
    paired_ratio,
    ratio_of,
    tested_counts,
    whole,
)
from solvable.models.lofi_images.images import images
from solvable.models.lofi_images.parameters import ALIGNED_DIRECTIONS, LAYER_STEPS, USUAL_DIRECTIONS
from solvable.plots.figure import Figure, Map


def subject(curves: Sequence[Curve]) -> str:
    """Return the names of the data set and of the task."""
    setting = curves[0].setting
    data = "Digits" if setting.data == "digits" else "MNIST"
    return f"{data}, {'even or odd' if setting.task == 'even-odd' else 'ten classes'}."


def wide(point: Point) -> bool:
    """Return True for infinitely wide networks."""
    return not point.setting.width


def finite(point: Point) -> bool:
    """Return True for networks of finite width with dense lifts and forward filters."""
    setting = point.setting
    return bool(setting.width and not setting.patch and setting.coupling == "none")


def several_directions(point: Point) -> bool:
    """Return True for infinitely wide networks for which several numbers of directions were tried."""
    return wide(point) and len(point.setting.kept) > 1


def trained(point: Point) -> bool:
    """Return True if a network was trained by gradient descent."""
    return point.values("gradient_alignment").ndim > 1


def layers_trained(point: Point) -> bool:
    """Return True if a network of two hidden layers was trained by gradient descent."""
    name = "layers_alignment"
    measured = all(name in metrics for metrics in point.metrics)
    return measured and point.values(name).ndim > 1


def of_layer(name: str, layer: int) -> Callable[[Point], np.ndarray]:
    """Return a function: a metric of one hidden layer after each number of steps."""
    return lambda point: point.values(name).reshape(point.replicates, 2, -1)[:, layer]


def change_of_layer(layer: int) -> Callable[[Point], np.ndarray]:
    """Return a function: mean relative change of one hidden layer after each number of steps."""
    values = of_layer("layers_change", layer)
    return lambda point: values(point).mean(axis=0)


def chance_overlap(point: Point) -> tuple[float, float]:
    """Return the overlap of random directions with the filter."""
    return ALIGNED_DIRECTIONS / images(point.setting.data)[0].shape[1], np.nan


def directions(point: Point) -> np.ndarray:
    """Numbers of kept directions for which networks were fitted."""
    return np.array(point.setting.kept, dtype=float)


def of_directions(metric: str, **options: Any) -> Trace:
    """Trace of a metric against the number of kept directions."""
    return Trace(metric, value=lambda point: by_directions(point, metric), **options)


def by_number(metric: str, title: str) -> Panel:
    """Panel of an error against the number of kept directions, with one colour for each sample size."""
    y_label = "test error (mean squared)" if metric == "squared_error" else "test error"
    return Panel(
        f"{metric.replace('_', '-')}-by-directions", title, y_label,
        [of_directions(metric, theory=None),
         Trace(f"deep_{metric}", "no filter, {depth} lifts", theory=None, dashed=True)],
        "Infinitely wide networks with filters (points) and without (dashed), each with its own "
        "leave-one-out penalty. The minimum over directions is found on the test images, which is "
        "optimistic.",
        against=directions, x_label="directions kept by each filter",
        where=several_directions, note=subject, x_scale="log", y_scale="log",
    )  # fmt: skip


def number_of_direction(point: Point) -> np.ndarray:
    """Index of each direction that every replicate tested, from 1."""
    return np.array(tested_counts(point), dtype=float) + 1


def null_ratios(point: Point) -> np.ndarray:
    """Null ratios of the tested directions, shape (replicates, length)."""
    rows = [null_ratio(point, count) for count in tested_counts(point)]
    return np.stack(rows, axis=1) if rows else np.full((point.replicates, 0), np.nan)


def ratio_to_deep(values: Values) -> Callable[[Point], np.ndarray]:
    """Return a function: a squared error over the squared error of the deep network without filters."""
    return lambda point: paired_ratio(values(point), point.values("deep_squared_error"))


def strengths_of_layer(layer: int) -> Callable[[Point], np.ndarray | None]:
    """Return a function: strengths of one filter relative to its largest; None for other depths."""

    def values(point: Point) -> np.ndarray | None:
        strengths = point.values("layer_strengths")
        if layer >= point.setting.filters or strengths.ndim != 2:
            return None
        return strengths.reshape(point.replicates, point.setting.filters, -1)[:, layer]

    return values


def index_in_filter(point: Point) -> np.ndarray:
    """Index of the directions of a filter, from 1."""
    strengths = point.values("layer_strengths")
    count = strengths.shape[1] // point.setting.filters if strengths.ndim == 2 else 0
    return np.arange(1.0, count + 1)


def strengths_known(point: Point) -> bool:
    """Return True for infinitely wide networks whose filters all keep the same number of directions."""
    setting = point.setting
    return wide(point) and setting.second_directions == 0 and index_in_filter(point).size > 0


def patches(curves: Sequence[Curve]) -> list[Figure]:
    """Draw the first filters of patches at the largest number of images, as tiles of pixels."""
    figures = []
    chosen = [curve for curve in curves if curve.setting.patch]
    names = varying(chosen)
    for curve in chosen:
        words = words_of(curve, names)
        for metric, title, caption in (
            ("pixel_filters", "Filters of pixel patches",
             "Leading eigenvectors of the label-weighted second moment of patches of pixels."),
            ("patch_filters", "Filters of the first convolutional lift, as pixels",
             "First moment and first directions after the lift, each as its best linear approximation "
             "by the pixels of a patch."),
        ):  # fmt: skip
            figures.append(_tiles(curve, metric, f"{title} ({words})" if words else title, caption))
    return figures


def _tiles(curve: Curve, metric: str, title: str, caption: str) -> Figure:
    """Draw filters of the first replicate in two rows, the strongest at the upper left."""
    point, size = curve.points[-1], curve.setting.patch
    filters = point.values(metric)[0].reshape(-1, size, size)
    columns = -(-len(filters) // 2)
    # one empty pixel between neighbouring filters
    tiles = np.full((2 * size + 1, columns * (size + 1) - 1), np.nan)
    for k, pixels in enumerate(filters):
        top, left = (k // columns) * (size + 1), (k % columns) * (size + 1)
        tiles[top : top + size, left : left + size] = pixels
    largest = float(np.max(np.abs(filters)))
    words = suffix_of(words_of(curve, ("patch", *varying([curve]))))
    caption += (
        f" The strongest filter is at the upper left; signs are arbitrary. {subject([curve])} "
        f"{point.setting.samples} images, one replicate."
    )
    return Figure(
        f"{metric.replace('_', '-')}{words}", title, "columns of pixels", "rows of pixels", [],
        caption,
        map=Map(
            np.arange(tiles.shape[1]), np.arange(tiles.shape[0]), tiles[::-1], "weight of the pixel",
            limits=(-largest, largest),
        ),
    )  # fmt: skip


def with_usual(point: Point) -> bool:
    """Return True for infinitely wide networks that include the usual number of kept directions."""
    return wide(point) and bool(np.isfinite(kept("squared_error")(point)).all())


def pixels(curves: Sequence[Curve]) -> str:
    """Describe in words the squared error of ridge on pixels, which is too large for the figure."""
    last = curves[0].points[-1]
    ratio, _ = ratio_of(last.values("linear_squared_error"), last.values("deep_squared_error"))
    return f"Ridge on pixels: {ratio:.1f} at the largest number of images. {subject(curves)}"


def against_width(metric: str, **options: Any) -> Trace:
    """Trace of the first entry of a metric, for networks with finite width."""

    def first(point: Point) -> np.ndarray:
        return point.values(metric).reshape(point.replicates, -1)[:, 0]

    return Trace(metric, value=first, **options)


def most_first(places: Sequence[float]) -> Sequence[float]:
    """Sample sizes in descending order; with `once`, only the largest is drawn."""
    return places[::-1]


WIDTH = Axis("width", "random features P")

steps = ", ".join(map(str, LAYER_STEPS))

PANELS = (
    by_number("squared_error", "The squared error is lowest at an intermediate number of directions"),
    by_number("error", "The error is lowest at some tens of directions"),
    Panel(
        "null-ratios", "Strength of each direction relative to random labels",
        "strength / strength with random labels",
        [Trace("null_ratios", theory=None, value=null_ratios)],
        "First filter. Stronger directions are removed before the comparison with random labels; "
        "directions are significant while the ratio is above 1.1.",
        against=number_of_direction, x_label="index of the direction",
        where=lambda point: wide(point) and bool(tested_counts(point)),
        once=[Trace("", "random labels", theory=None, value=lambda point: (1.0, np.nan),
                    dashed=True)],
        note=subject, x_scale="log",
    ),
    Panel(
        "emerged-directions", "Directions emerge at the forecast numbers of images",
        "emerged directions", [Trace("emerged")],
        "Directions of the first filter that are 1.5 times as strong as random labels. Line: forecast "
        "from the null ratios of one fit to 1,500 images.",
        x_label="training images n", x_scale="log", y_scale="log", where=strengths_known, note=subject,
    ),
    Panel(
        "layer-strengths", "Strengths of the directions of each filter",
        "modulus of the eigenvalue / largest",
        [Trace("", f"filter {k + 1}", theory=None, value=strengths_of_layer(k), colour=k)
         for k in range(5)],
        "Infinitely wide networks, largest number of images. Each filter acts on the lift of the "
        "coordinates that the filter before it keeps.",
        against=index_in_filter, x_label="index of the direction", where=strengths_known,
        at=lambda places: places[-1:], note=subject, x_scale="log", y_scale="log",
    ),
    MapPanel(
        "two-filters", "Squared error over the directions of both filters",
        Axis("directions", "directions of the first filter"),
        Axis("second_directions", "directions of the second filter"),
        value=first_error,
        label="test error (mean squared)", scale="log",
        where={"second_directions": above(0)},
        caption="Infinitely wide networks with a fixed penalty of the readout, relative to the power of "
        "its features. The squared error of a constant prediction is 1.",
    ),
    patches,
    Panel(
        "random-filters", "Learned and random convolutional filters", "test error (mean squared)",
        [
            Trace("", "learned", theory=None, value=first_error),
            Trace("random_filters_squared_error", "random", theory=None, dashed=True),
        ],
        "Convolutional networks with as many learned as random filters (dashed), on the same splits.",
        x_label="training images n", where={"patch": above(0)}, note=subject,
        y_scale="log",
    ),
    Panel(
        "backward", "Filters coupled backwards", "test error (mean squared)",
        [
            Trace("", "coupled", theory=None, value=first_error),
            Trace("forward_squared_error", "forward", theory=None, dashed=True),
        ],
        "Backward signals replace a fifth of the directions of each filter in up to four passes; dashed: "
        "the same networks with forward filters.",
        x_label="training images n", where=lambda point: point.setting.coupling != "none", note=subject,
        y_scale="log",
    ),
    Panel(
        "residual-dimension", "The residual dimension grows with removed directions",
        "residual effective dimension",
        [of_directions("residual_dimensions")],
        "Variance of the lifted images outside the removed directions, over the largest variance along "
        "one direction there. The samples needed for a weak feature grow in proportion. Lines: "
        "prediction from other images.",
        against=directions, x_label="directions removed", note=subject,
        where=lambda point: wide(point) and not point.setting.second_directions,
        x_scale="log", y_scale="log",
    ),
    Panel(
        "methods", "Networks with and without filters on the same splits",
        "squared error / error of 'deep, no filter'",
        [
            Trace("", label, theory=None, value=ratio_to_deep(values))
            for label, values in (
                (f"filters, {USUAL_DIRECTIONS} directions", kept("squared_error")),
                ("filters, directions chosen", whole("auto_squared_error")),
                ("Gaussian kernel, tuned", whole("rbf_squared_error")),
                ("one lift, no filter", whole("shallow_squared_error")),
            )
        ] + [Trace("", "deep, no filter", theory=None, value=lambda point: (1.0, np.nan), dashed=True)],
        "All networks are infinitely wide. Penalties and the length of the Gaussian kernel are chosen by "
        "leave-one-out on the training images.",
        x_label="training images n", x_scale="linear", where=with_usual,
        when=lambda curve: sum(map(with_usual, curve.points)) > 1, note=pixels,
    ),
    Panel(
        "width", "Wider networks approach their kernel", "test error (mean squared)",
        [against_width("squared_error", theory=None),
         against_width("limit_squared_error", label="infinite", theory=None, dashed=True)],
        f"{USUAL_DIRECTIONS} directions. Dashed: infinitely wide networks, same splits. No filter: ridge "
        "on random features of the same width, at the largest number of images.",
        along=WIDTH, where=finite, at=most_first,
        once=[against_width("lazy_squared_error", label="no filter", theory=None, colour=-1)],
        note=subject, y_scale="log",
    ),
    Panel(
        "gram", "The Gram matrix of random features approaches its kernel as 1/sqrt(P)",
        "relative distance of Gram matrices", [Trace("gram_deviation")],
        "Root mean square over 16 lifts of 200 images, at the largest number of images. Lines: "
        "prediction from the fourth moment of the activation on other images.",
        along=WIDTH, where=finite, at=lambda places: places[-1:],
        note=subject, y_scale="log",
    ),
    Panel(
        "early-gradient", "The first steps of gradient descent follow the filter",
        "squared overlap of the leading directions",
        [Trace("gradient_alignment", "filter", theory=None, colour=0),
         Trace("principal_alignment", "principal components", theory=None, colour=1)],
        "Mean squared overlap of the eleven leading directions of the change of the weights with the "
        "filter (first moment and ten eigenvectors) and with principal components, after 1, 5, 15 and "
        "40 steps. Two-layer network of 1,000 neurons, at the largest number of images. Dashed: "
        "random directions.",
        against="weight_change", x_label="change of the weights / initial weights",
        where=trained, at=lambda places: places[-1:], note=subject, x_scale="log", y_range=(0, 1.02),
        once=[Trace("", "random", theory=None, value=chance_overlap, dashed=True, colour=7)],
    ),
    *(
        Panel(
            f"{word}-layer-gradient", f"First steps of the {word} of two hidden layers",
            "squared overlap of the leading directions",
            [Trace("", "filter", theory=None, value=of_layer("layers_alignment", layer), colour=0),
             Trace("", "principal components", theory=None, colour=1,
                   value=of_layer("layers_principal_alignment", layer))],
            f"Both layers of 1,000 neurons are trained together; {steps} steps. Mean squared overlap "
            "of the eleven leading directions of the change of the weights with the filter and with "
            f"principal components of {below}, at the largest number of images.",
            against=change_of_layer(layer),
            x_label="change of the weights / initial weights", where=layers_trained,
            at=lambda places: places[-1:], note=subject, x_scale="log", y_range=(0, 1.02),
        )
        for layer, word, below in (
            (0, "first", "the pixels"), (1, "second", "the outputs of the first layer"))
    ),
)  # fmt: skip
