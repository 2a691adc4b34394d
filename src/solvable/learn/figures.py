"""Figures of learning: strengths beside their nulls, and the learning curve with its forecast."""

from __future__ import annotations

from solvable.learn.results import LayerFound, Learned
from solvable.learn.words import error_name
from solvable.plots.figure import Figure, Marker, Series


def learn_figures(found: Learned) -> list[Figure]:
    """All figures of a result.

    Parameters
    ----------
    found : Learned
        Result.

    Returns
    -------
    list of Figure
        The learning curve if there is one, and the strengths of each filter.
    """
    figures = [strength_figure(found, layer) for layer in found.found if layer.signals]
    if len(found.outlook.curve) > 1:
        figures.append(curve_figure(found))
    return figures


def strength_figure(found: Learned, layer: LayerFound) -> Figure:
    """Strength of each direction over that of meaningless labels.

    Parameters
    ----------
    found : Learned
        Result.
    layer : LayerFound
        One of its filters.

    Returns
    -------
    Figure
        One curve per class, and the threshold.
    """
    series = []
    for number, one in enumerate(layer.signals):
        x, y = list(one.tested), list(one.ratios)
        # The line that leads the eye has no entry of its own in the legend.
        series.append(Series("", x, y, colour=number))
        series.append(Series(one.label, x, y, kind="points", colour=number))
    last = max((max(one.tested, default=1) for one in layer.signals), default=1)
    limit = [layer.threshold, layer.threshold]
    series.append(Series("as strong as chance", [1, max(last, 2)], limit, kind="dashed", colour=-1))
    which = f" of filter {layer.number}" if len(found.found) > 1 else ""
    what = "One curve per class. " if len(layer.signals) > 1 else ""
    return Figure(
        name=f"learn-strengths-{layer.number}" if len(found.found) > 1 else "learn-strengths",
        title=f"Which directions{which} carry signal",
        x_label="direction, the strongest first",
        y_label="strength / strength with shuffled targets",
        series=series,
        caption=(
            f"{what}Above the dashed line (a ratio of {layer.threshold:g}) a direction is stronger "
            "than shuffled targets would make it, with all stronger directions removed first."
        ),
        x_scale="log",
        y_scale="log",
    )


def curve_figure(found: Learned) -> Figure:
    """Error against training rows: measured, and forecast.

    Parameters
    ----------
    found : Learned
        Result.

    Returns
    -------
    Figure
        In percent; logarithmic where no mean is zero.
    """
    outlook = found.outlook
    rows = [point.rows for point in outlook.curve]
    means = [100 * point.mean for point in outlook.curve]
    measured = Series(
        "measured on unseen rows",
        rows,
        means,
        kind="points",
        error=[100 * point.standard_error for point in outlook.curve],
        colour=0,
    )
    series = [measured]
    caption = "Points: mean over folds with its standard error."
    if outlook.band:
        n = [one[0] for one in outlook.band]
        # Both ends of the interval are one series with a gap, so that the legend names them once.
        ends = [100 * one[2] for one in outlook.band] + [float("nan")]
        ends += [100 * one[3] for one in outlook.band]
        level = f"{100 * outlook.confidence:g} % interval of the forecast"
        series = [
            Series("forecast", n, [100 * one[1] for one in outlook.band], colour=0),
            Series(level, [*n, n[-1], *n], ends, kind="dashed", colour=1),
            measured,
        ]
        caption += " Line: fitted and extrapolated, with its interval (dashed)."
    logarithmic = min(means) > 0
    return Figure(
        name="learn-curve",
        title="What more rows buy",
        x_label="training rows",
        y_label=f"{error_name(found)} (%)",
        series=series,
        caption=caption,
        markers=(Marker(found.n_samples, "all rows"),),
        x_scale="log",
        y_scale="log" if logarithmic else "linear",
    )
