"""Figures of `solvable learn`: strengths of directions, learning curve, pictures of directions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from solvable.learn.results import LayerFound, Learned, Roc
from solvable.learn.words import error_name, with_the
from solvable.plots.figure import Figure, Marker, Series
from solvable.plots.files import saved, write_atomically
from solvable.plots.numbers import format_number
from solvable.plots.palette import COLOURS
from solvable.plots.print_settings import INK, settings

CAPTION = (
    "Covariance of each pixel with the coordinate along a direction, over all images: red pixels are "
    "brighter and blue pixels darker where the coordinate is large. The sign of a direction is "
    "arbitrary, so red and blue may be exchanged."
)
"""Caption below the pictures of directions."""


def judged_figures(found: Learned) -> list[Figure]:
    """Draw predictions against the target, or observed shares against probabilities and the ROC curve."""
    who = with_the(found.chosen)
    if found.is_regression and len(found.truth) > 1:
        ends = [float(found.truth.min()), float(found.truth.max())]
        step = -(-len(found.truth) // 1000)  # more points than a thousand cover each other
        points = Series(
            "rows", found.predictions[::step], found.truth[::step], kind="points", colour=0
        )
        return [
            Figure(
                name="learn-predictions",
                title="Predictions of unseen rows",
                x_label=f"predicted {found.target}",
                y_label=found.target,
                series=(
                    Series("prediction = target", ends, ends, kind="dashed", colour=-1),
                    points,
                ),
                caption=f"Each point is a row, predicted by {who} fitted without it.",
            )
        ]
    curve = [] if found.roc is None else [roc_figure(found, found.roc)]
    if found.reliability is None or not found.reliability.bins:
        return curve
    stated, observed, errors = (list(one) for one in zip(*found.reliability.bins, strict=True))
    what = f"class {found.class_labels[1]!r}" if len(found.class_labels) == 2 else "predicted class"
    return [
        Figure(
            name="learn-calibration",
            title="Probabilities against observed shares",
            x_label=f"probability of the {what}",
            y_label="observed share",
            series=(
                Series("equal", [0.0, 1.0], [0.0, 1.0], kind="dashed", colour=-1),
                Series("bins of rows", stated, observed, kind="points", error=errors, colour=0),
            ),
            caption=f"Ten bins of unseen rows by their probability of the {what}, with standard errors, "
            f"for {who}.",
        ),
        *curve,
    ]


def roc_figure(found: Learned, roc: Roc) -> Figure:
    """Draw the share of found rows of the second class against that of false alarms."""
    first, second = found.class_labels
    area, low, high = (format_number(one, 3) for one in (roc.area, roc.lower, roc.upper))
    return Figure(
        name="learn-roc",
        title="ROC curve",
        x_label=f"share of class {first!r} taken for {second!r}",
        y_label=f"share of class {second!r} found",
        series=(
            Series("chance", [0.0, 1.0], [0.0, 1.0], kind="dashed", colour=-1),
            Series(f"AUC {area}", roc.false_positives, roc.true_positives, colour=0),
        ),
        caption=f"Unseen rows, for {with_the(found.chosen)}; mean of the curves of the folds. The area "
        f"under it (AUC) is {area} (95 % interval: {low} to {high}). Each point belongs to a limit of "
        "the probability above which a row is assigned to the second class.",
    )


def effect_figures(found: Learned) -> list[Figure]:
    """Draw the mean prediction along each important column of numbers."""
    figures = []
    for number, effect in enumerate(found.explained.effects, start=1):
        if effect.is_text:
            continue
        what = f"probability of {effect.label}" if effect.label else f"prediction of {found.target}"
        figures.append(
            Figure(
                name=f"learn-effect-{number}",
                title=f"Effect of {effect.column}",
                x_label=effect.column,
                y_label=f"mean {what}",
                series=(
                    Series("", effect.numbers, effect.means, colour=0),
                    Series("mean over rows", effect.numbers, effect.means, kind="points", colour=0),
                ),
                caption=f"Mean {what} by {with_the(found.chosen)} if {effect.column} has this value in "
                "all rows, from its 5 % to its 95 % quantile. Correlated columns have their quantile at "
                "the same level, and all others stay as they are.",
            )
        )
    return figures


def strength_figure(found: Learned, layer: LayerFound) -> Figure:
    """Draw each direction's strength divided by its null, one curve per class, and the threshold."""
    series = []
    for place, signal in enumerate(layer.signals):
        # digits have ten classes: the tenth is grey, as a scale of colours would hardly separate them
        number = -1 if place == len(COLOURS) == len(layer.signals) - 1 else place
        x, y = list(signal.tested), list(signal.ratios)
        # The line between the points has no entry in the legend.
        series.append(Series("", x, y, colour=number))
        series.append(Series(signal.label, x, y, kind="points", colour=number))
    last = max((max(signal.tested, default=1) for signal in layer.signals), default=1)
    limit = [layer.threshold, layer.threshold]
    series.append(Series("threshold", [1, max(last, 2)], limit, kind="dashed", colour=-1))
    which = f" of filter {layer.number}" if len(found.found) > 1 else ""
    what = "One curve per class. " if len(layer.signals) > 1 else ""
    above = (
        f"Above the dashed line (a ratio of {layer.threshold:g}) a direction is stronger than with "
        "shuffled targets. All stronger directions are removed before the comparison."
        if layer.directions
        else "No direction is clearly stronger than with shuffled targets, whose strengths scatter about "
        "the dashed line, most for rare classes and heavy-tailed targets."
    )
    return Figure(
        name=f"learn-strengths-{layer.number}" if len(found.found) > 1 else "learn-strengths",
        title=f"Which directions{which} carry signal",
        x_label="direction (strongest first)",
        y_label="strength / strength with shuffled targets",
        series=series,
        caption=what + above,
        x_scale="log",
        y_scale="log",
    )


def curve_figure(found: Learned) -> Figure:
    """Draw the measured error and the forecast error in percent against the number of training rows."""
    outlook = found.outlook
    means = [100 * point.mean for point in outlook.curve]
    measured = Series(
        "measured on unseen rows",
        [point.rows for point in outlook.curve],
        means,
        kind="points",
        error=[100 * point.standard_error for point in outlook.curve],
        colour=0,
    )
    series = [measured]
    caption = "Points: mean error over folds, with its standard error."
    if outlook.band:
        n, middle, lower, upper = (list(column) for column in zip(*outlook.band, strict=True))
        # The ends of the interval are a single series with a gap, so that the legend has one entry.
        ends = [100 * error for error in [*lower, float("nan"), *upper]]
        level = f"{100 * outlook.confidence:g} % interval of the forecast"
        series = [
            Series("forecast", n, [100 * error for error in middle], colour=0),
            Series(level, [*n, n[-1], *n], ends, kind="dashed", colour=1),
            measured,
        ]
        caption += " Line: fit and its extrapolation; dashed lines: interval."
    return Figure(
        name="learn-curve",
        title="Error against training rows",
        x_label="training rows n",
        y_label=f"{error_name(found)} (%)",
        series=series,
        caption=caption,
        markers=(Marker(found.n_samples, "all rows"),),
        x_scale="log",
        y_scale="log" if min(means) > 0 else "linear",
    )


def draw_pictures(found: Learned) -> bytes:
    """Draw the strongest directions of the first filter as SVG, each with its own colour scale."""
    from matplotlib.figure import Figure as Drawing

    assert found.pictures is not None
    pictures = np.asarray(found.pictures)
    columns = min(6, len(pictures))
    lines = -(-len(pictures) // columns)
    with settings():
        drawn = Drawing(figsize=(1.05 * columns, 1.25 * lines))
        for number, picture in enumerate(pictures):
            axes = drawn.add_subplot(lines, columns, number + 1)
            limit = float(np.max(np.abs(picture))) or 1.0
            axes.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
            axes.set_title(f"{number + 1}", fontsize=9, color=INK, pad=2.5)
            axes.set(xticks=[], yticks=[])
            axes.grid(visible=False)
            for spine in axes.spines.values():
                spine.set_visible(False)
        drawn.subplots_adjust(0, 0, 1, 0.94, wspace=0.08, hspace=0.2)
    return saved(drawn, "svg")


def write_pictures(found: Learned, directory: Path) -> list[Path]:
    """Write ``learn-filters.svg`` if the data are images."""
    if found.pictures is None or not len(found.pictures):
        return []
    path = directory / "learn-filters.svg"
    write_atomically(path, draw_pictures(found))
    return [path]
