"""Tables and figure of a forecast, for the terminal, a notebook and a data frame."""

from __future__ import annotations

from typing import Any

from solvable.forecast.fit_quality import fits
from solvable.forecast.results import Forecast, Needed
from solvable.plots.figure import Figure, Marker, Series
from solvable.plots.numbers import format_number
from solvable.plots.tables import Cell, Column, Table
from solvable.plots.words import listed


def line(found: Forecast) -> str:
    """Return one line with the prediction at the largest size, or the refusal."""
    if found.refusal is not None:
        return f"refused: {found.refusal}"
    if not found.predictions:
        return f"by the {found.model}"
    last = found.predictions[-1]
    interval = f"{format_number(last.lower, 3)} to {format_number(last.upper, 3)}"
    return f"error {format_number(last.mean, 3)} ({interval}) at n = {format_number(last.samples)}"


def tables(found: Forecast) -> list[Table]:
    """Return tables of errors and, if there is a forecast, of the models and their parameters."""
    if found.refusal is not None:
        return [prediction_table(found)]
    return [prediction_table(found), model_table(found), parameter_table(found)]


def summary(found: Forecast, name: str, *, details: bool = False) -> list[str | Cell | Table]:
    """Return the text that the command prints; ``name`` names the curve, details add the models."""
    what = "mean error" if found.of == "mean" else "error of one new measurement"
    last = found.predictions[-1]
    mean, lower, upper = (format_number(value, 3) for value in (last.mean, last.lower, last.upper))
    answer = (
        f"at n = {format_number(last.samples)} the {what} is predicted to be {mean} "
        f"({100 * found.confidence:g} % interval: {lower} to {upper})."
    )
    if fits(found.diagnostics.fit_chance) is False:
        answer = f"neither model fits the measured errors. By their average, {answer}"
    parts: list[str | Cell | Table] = [Cell(f"{name}: {answer}", "bold")]
    for table in tables(found) if details else [prediction_table(found)]:
        parts += ["", table]
    said = (*outcome_sentences(found), found.verdict, *found.diagnostics.notes)
    return [*parts, "", *map(Cell, said)]


def outcome_sentences(found: Forecast) -> list[str]:
    """State whether the error falls at all, the floor, and the samples for a wanted error."""
    sentences = []
    level = f"{100 * found.confidence:g} % interval"
    if found.unclear:
        sizes = listed([f"n = {format_number(size)}" for size in found.unclear])
        sentences.append(
            f"Whether the error falls at all is not clear: the interval at {sizes} holds today's error "
            f"of {format_number(found.today or 0.0, 3)}."
        )
    if found.floor is not None:
        value, lower, upper = (
            format_number(end, 2)
            for end in (found.floor.value, found.floor.lower, found.floor.upper)
        )
        sentences.append(
            f"The floor, which remains for any number of samples, is {value} "
            f"({level}: {lower} to {upper})."
        )
    if found.needed is not None:
        error = format_number(found.needed.error, 3)
        last = found.diagnostics.sizes[-1]
        sentences.append(needed_sentence(found.needed, level, last, error=error))
    return sentences


def needed_sentence(
    needed: Needed, level: str, last: float, *, error: str, what: str = "samples"
) -> str:
    """State the number of samples for an error, such as "between 3,000 and never"."""

    def text(size: float | None, never: str) -> str:
        return never if size is None else f"{float(f'{size:.2g}'):,.0f}"

    if needed.fewest is None:
        return (
            f"An error of {error} is not reached, at up to 1,000 times the largest size ({level})."
        )
    if needed.most is not None and needed.most <= last:
        return f"An error of {error} is already reached at {last:,.0f} {what}."
    return (
        f"An error of {error} needs {text(needed.samples, 'more than 1,000 times the measured')} "
        f"{what} ({level}: between {text(needed.fewest, 'never')} and {text(needed.most, 'never')})."
    )


def rows(found: Forecast) -> list[dict[str, Any]]:
    """Return measured errors with standard errors, and predicted errors with intervals."""
    known = found.diagnostics
    measured = [
        {"n": n, "kind": "measured", "error": mean, "standard_error": spread}
        for n, mean, spread in zip(known.sizes, known.means, known.standard_errors, strict=True)
    ]
    predicted = [
        {
            "n": point.samples,
            "kind": "forecast",
            "error": point.mean,
            "lower": point.lower,
            "upper": point.upper,
        }
        for point in found.predictions
    ]
    return [*measured, *predicted]


def figures(found: Forecast) -> list[Figure]:
    """Return the figure of the curve with its forecast, or none after a refusal."""
    return [] if found.refusal is not None else [forecast_figure(found, "learning curve")]


def _numbers(*names: str) -> list[Column]:
    return [Column(name, right=True) for name in names]


def prediction_table(found: Forecast) -> Table:
    """Tabulate measured and predicted errors by sample size."""
    table = Table(*_numbers("n", "error", "lower", "upper"), Column("", wrap=False))
    measured = found.diagnostics
    spread = measured.standard_errors
    for n, mean, error in zip(measured.sizes, measured.means, spread, strict=True):
        known = f"measured, ± {format_number(error, 2)}" if error else "measured"
        table.add(format_number(n), format_number(mean), "", "", known)
    for point in found.predictions:
        values = (point.samples, point.mean, point.lower, point.upper)
        table.add(*(format_number(value) for value in values), "forecast", style="bold")
    return table


def model_table(found: Forecast) -> Table:
    """Tabulate the quality of each model's fit and of each model's prediction for the largest sizes."""
    columns = _numbers("weight", "log score", "chi² / freedom", "misfit")
    table = Table(Column("model", wrap=False), *columns)
    for name, score in found.scores.items():
        fit = "–" if score.chi_square is None else f"{score.chi_square:.1f} / {score.freedom}"
        log_score = format_number(score.log_predictive, 3)
        weight, misfit = f"{100 * score.weight:.0f} %", f"{100 * score.misfit:.1f} % of the error"
        table.add(name, weight, log_score, fit, misfit)
    return table


def parameter_table(found: Forecast) -> Table:
    """Tabulate the parameters of each model with their intervals."""
    meanings = {
        "offset": "error at infinite n",
        "amplitude": "factor of the contribution that falls with n",
        "exponent": "b of n^-b",
        "decay": "strength of feature i ~ i^-decay",
        "first_threshold": "n at which the first feature emerges",
        "features": "number of features (256: unlimited)",
    }
    names = (Column(name, wrap=False) for name in ("model", "parameter"))
    table = Table(*names, *_numbers("value", "lower", "upper"), "meaning")
    for name, parameters in found.parameters.items():
        for label, estimate in parameters.items():
            values = (estimate.value, estimate.lower, estimate.upper)
            numbers = (format_number(value, 3) for value in values)
            table.add(name, label, *numbers, meanings[label])
    return table


def forecast_figure(found: Forecast, name: str) -> Figure:
    """Draw the measured means, the forecast and its interval; ``name`` is used in the title."""
    n = [point.samples for point in found.band]
    # The two ends of the interval form one series with a gap, so that the legend has one entry.
    ends = [point.lower for point in found.band] + [float("nan")]
    ends += [point.upper for point in found.band]
    measured = found.diagnostics
    return Figure(
        name="forecast",
        title=f"{name}: measured and forecast",
        x_label="samples n",
        y_label="error",
        series=(
            Series("forecast", n, [point.mean for point in found.band], colour=0),
            Series(
                f"{100 * found.confidence:g} % interval",
                [*n, n[-1], *n],
                ends,
                kind="dashed",
                colour=1,
            ),
            Series(
                "measured, mean ± standard error",
                measured.sizes,
                measured.means,
                kind="points",
                error=measured.standard_errors if any(measured.standard_errors) else None,
                colour=0,
            ),
        ),
        caption=found.verdict,
        markers=(Marker(measured.sizes[-1], "largest measured"),),
        x_scale="log",
        # A logarithmic axis cannot show an error of zero.
        y_scale="log" if min(measured.means) > 0 else "linear",
    )
