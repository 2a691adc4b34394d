"""``solvable forecast``: a learning curve extrapolated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from rich.table import Table

    from solvable.forecast import Forecast
    from solvable.plots.figure import Figure

Numbers = Annotated[list[float] | None, Parameter(consume_multiple=True, negative=())]


def forecast(
    curve: Path,
    /,
    *,
    at: Numbers = None,
    factor: Numbers = None,
    confidence: float = 0.9,
    of: Literal["mean", "measurement"] = "mean",
    seed: int = 0,
    json: Flag = False,
    output: Path | None = None,
) -> int:
    """Extrapolate a measured learning curve, with intervals.

    For example:
      solvable forecast curve.csv
      solvable forecast curve.csv --at 1e4 2e4 --confidence 0.95
      solvable forecast curve.csv --factor 2 4 --output forecast

    The file has columns n and error (and replicate), or n and a column per
    replicate, or a column per n and a row per replicate. An offset power law and
    a cascade of emerging features are fitted, and compared on the largest n.

    Parameters
    ----------
    curve
        CSV file: errors of 0 or more, at 4 or more sample sizes.
    at
        Sample sizes to predict.
    factor
        Multiples of the largest measured size; 2 and 4 unless --at is given.
    confidence
        Of the intervals, 0.5 to 0.99.
    of
        What the interval is for: the mean error, or one new measurement.
    seed
        Of the bootstrap.
    json
        Print everything as one JSON object.
    output
        Directory for forecast.json and the figure (SVG and PDF).
    """
    from threadpoolctl import threadpool_limits

    from solvable.cli.terminal import status_line, write, write_json
    from solvable.errors import InvalidData
    from solvable.forecast import LearningCurve
    from solvable.forecast import forecast as extrapolate

    read = LearningCurve.from_csv(curve)
    _check_output(output)
    with threadpool_limits(limits=1), status_line("fitting", shown=not json):
        found = extrapolate(
            read,
            at=tuple(at or ()),
            factors=None if factor is None else tuple(factor),
            confidence=confidence,
            of=of,
            seed=seed,
        )
    if found.refusal is not None:
        raise InvalidData(f"{curve}: {found.refusal}")
    written = [] if output is None else _write_files(found, curve.stem, output)
    if json:
        write_json(found.to_dict() | {"files": [str(path) for path in written]})
        return 0
    _write_tables(found, curve.name)
    write("", found.verdict, *found.diagnostics.notes)
    if written:
        write("", *(str(path) for path in written))
    return 0


def _write_tables(found: Forecast, name: str) -> None:
    from solvable.cli.terminal import write, write_title

    write_title(f"{name}: forecast")
    what = "mean error" if found.of == "mean" else "one new measurement"
    write(f"{100 * found.confidence:g} % intervals for the {what}", "", _prediction_table(found))
    write("", _model_table(found), "", _parameter_table(found))


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        left = column in ("", "model", "parameter", "meaning")
        table.add_column(column, justify="left" if left else "right", no_wrap=column != "meaning")
    return table


def _prediction_table(found: Forecast) -> Table:
    from solvable.plots.numbers import format_number

    table = _table("n", "error", "lower", "upper", "")
    measured = found.diagnostics
    spread = measured.standard_errors
    for n, mean, error in zip(measured.sizes, measured.means, spread, strict=True):
        known = f"measured, ± {format_number(error, 2)}" if error else "measured"
        table.add_row(format_number(n), format_number(mean), "", "", known)
    for point in found.predictions:
        values = (point.samples, point.mean, point.lower, point.upper)
        table.add_row(*(format_number(value) for value in values), "forecast", style="bold")
    return table


def _model_table(found: Forecast) -> Table:
    from solvable.plots.numbers import format_number

    table = _table("model", "share", "log score", "chi² / freedom", "misfit")
    for name, score in found.scores.items():
        fit = "–" if score.chi_square is None else f"{score.chi_square:.1f} / {score.freedom}"
        table.add_row(
            name,
            f"{score.weight:.0%}",
            format_number(score.log_predictive, 3),
            fit,
            f"{score.misfit:.1%}",
        )
    return table


def _parameter_table(found: Forecast) -> Table:
    from solvable.plots.numbers import format_number

    meanings = {
        "offset": "error that more data does not remove",
        "amplitude": "size of what it does remove",
        "exponent": "b of n^-b",
        "decay": "strength of feature i ~ i^-decay",
        "first_threshold": "n at which the first feature emerges",
        "features": "number of features (256: no end seen)",
    }
    table = _table("model", "parameter", "value", "lower", "upper", "meaning")
    for name, parameters in found.parameters.items():
        for label, estimate in parameters.items():
            ends = (estimate.value, estimate.lower, estimate.upper)
            numbers = (format_number(value, 3) for value in ends)
            table.add_row(name, label, *numbers, meanings[label])
    return table


def _check_output(output: Path | None) -> None:
    from solvable.errors import InvalidParameter

    if output is not None and output.exists() and not output.is_dir():
        raise InvalidParameter(f"--output is {str(output)!r}, a file; allowed: a directory.")


def _write_files(found: Forecast, name: str, output: Path) -> list[Path]:
    """Write the numbers and the figure; files of an earlier forecast there are replaced."""
    import json

    from solvable.plots.files import write_atomically, write_figures

    numbers: dict[str, Any] = found.to_dict()
    path = output / "forecast.json"
    write_atomically(path, (json.dumps(numbers, indent=2, allow_nan=False) + "\n").encode())
    return [path, *write_figures([forecast_figure(found, name)], output)]


def forecast_figure(found: Forecast, name: str) -> Figure:
    """Describe the figure: the means measured, the forecast and its interval."""
    from solvable.plots.figure import Figure, Marker, Series

    n = [point.samples for point in found.band]
    # Both ends of the interval are one series with a gap, so that the legend names them once.
    ends = [point.lower for point in found.band] + [float("nan")]
    ends += [point.upper for point in found.band]
    measured = found.diagnostics
    level = f"{100 * found.confidence:g} % interval"
    lowest = min(measured.means)
    return Figure(
        name="forecast",
        title=f"{name}: measured and forecast",
        x_label="samples n",
        y_label="error",
        series=(
            Series("forecast", n, [point.mean for point in found.band], colour=0),
            Series(level, [*n, n[-1], *n], ends, kind="dashed", colour=1),
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
        y_scale="log" if lowest > 0 else "linear",
    )
