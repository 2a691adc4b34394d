"""``solvable forecast``: extrapolate a measured learning curve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from solvable.forecast import Forecast

Numbers = Annotated[list[float] | None, Parameter(consume_multiple=True, negative=())]


def forecast(
    curve: Path,
    /,
    *,
    at: Numbers = None,
    factor: Numbers = None,
    confidence: float = 0.9,
    of: Literal["mean", "measurement"] = "mean",
    error: float | None = None,
    tested: float | None = None,
    fixed_epochs: Flag = False,
    seed: int = 0,
    details: Flag = False,
    json: Flag = False,
    output: Path | None = None,
    variables: Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())] = None,
    loss: str | None = None,
    budget: float | None = None,
    cost: float | None = None,
) -> int:
    """Extrapolate a measured learning curve, or a loss over two variables, with intervals.

    For example:
      solvable forecast curve.csv
      solvable forecast curve.csv --at 1e4 2e4 --confidence 0.95
      solvable forecast curve.csv --factor 2 4 --output forecast
      solvable forecast curve.csv --error 0.02
      solvable forecast runs.csv --variables params tokens --budget 1e20 --cost 6

    The file has columns n and error (and replicate), or n and a column per
    replicate, or a column per n and a row per replicate; n is the number of
    training samples. A power law with an offset and a cascade of emerging
    features are fitted, and compared by their predictions for the largest n,
    which are held out.

    With --variables the file has a row for each run, such as an export of W&B or
    MLflow: two columns of sizes and one of losses. The loss is fitted by
    E + A x^-alpha + B y^-beta; the output gives the exponents, the loss at --at x y
    (and further pairs), and the split of a budget with the least loss.

    Parameters
    ----------
    curve
        CSV file of errors, 0 or larger, at 4 or more sample sizes.
    at
        Sample sizes to predict.
    factor
        Multiples of the largest measured size; 2 and 4 unless --at is given.
    confidence
        Confidence of the intervals, 0.5 to 0.99.
    of
        Quantity that the interval covers: the mean error, or one new measurement.
    error
        Error for which the number of samples is wanted.
    tested
        Number of test rows behind the mean at each size, if errors are shares of
        wrong predictions. Their sampling noise is then included.
    fixed_epochs
        State that every model was trained for the same number of epochs. The
        intervals then allow for a steepening curve, as more samples mean more
        steps.
    seed
        Seed of the bootstrap.
    details
        Print also the parameters of both fitted formulas and the measured means.
    json
        Print everything as one JSON object.
    output
        Directory for forecast.json and the figure (SVG and PDF).
    variables
        Two columns of sizes of a table of runs.
    loss
        Column of losses with --variables, if it has no usual name.
    budget
        Budget that is split between the two variables: cost times their product.
    cost
        Cost of one unit of the product, such as 6 operations for each parameter and token.
        [default: 1]
    """
    from solvable.arrays import check_integer
    from solvable.cli.terminal import status_line, write, write_json
    from solvable.data_verbs import forecast_curve
    from solvable.errors import InvalidData, InvalidParameter, quoted
    from solvable.forecast import LearningCurve
    from solvable.forecast.view import summary

    check_integer("--seed", seed, 0)
    if variables is not None:
        options = {"factor": factor, "error": error, "tested": tested, "fixed-epochs": fixed_epochs}
        if given := [name for name, value in options.items() if value]:
            raise InvalidParameter(f"--{given[0]} is for a learning curve; leave out --variables.")
        return _surface(curve, variables, loss, at, budget, cost, confidence, seed, json, output)
    if budget is not None or cost is not None or loss is not None:
        raise InvalidParameter(
            "--budget, --cost and --loss need two columns of sizes; allowed: with --variables, as in "
            "--variables params tokens."
        )
    read = replace(LearningCurve.from_csv(curve), tested=tested, fixed_epochs=fixed_epochs)
    if output is not None and output.exists() and not output.is_dir():
        raise InvalidParameter(f"--output is {quoted(str(output))}, a file; allowed: a directory.")
    with status_line("fitting", shown=not json):
        found = forecast_curve(
            read,
            at=at or (),
            factors=factor,
            confidence=confidence,
            of=of,
            error=error,
            seed=seed,
        )
    if found.refusal is not None:
        raise InvalidData(f"{curve}: {found.refusal}")
    written = [] if output is None else _write_files(found, curve.stem, output)
    if json:
        write_json(found.to_dict() | {"files": [str(path) for path in written]})
        return 0
    files = ["", *(str(path) for path in written)] if written else []
    write(*summary(found, curve.name, details=details), *files)
    return 0


def _surface(
    path: Path,
    variables: list[str],
    loss: str | None,
    at: list[float] | None,
    budget: float | None,
    cost: float | None,
    confidence: float,
    seed: int,
    json: bool,
    output: Path | None,
) -> int:
    """Forecast a loss over two variables."""
    from threadpoolctl import threadpool_limits

    from solvable.cli.terminal import status_line, write, write_json
    from solvable.errors import InvalidParameter
    from solvable.forecast import forecast_surface, read_runs
    from solvable.forecast.surface_view import summary, surface_figure

    sizes = at or []
    if len(sizes) % 2:
        raise InvalidParameter(
            f"--at has {len(sizes)} numbers; allowed with --variables: pairs, as in --at 1e8 2e9."
        )
    runs = read_runs(path, variables, loss)
    with status_line("fitting", shown=not json), threadpool_limits(limits=1):
        found = forecast_surface(
            runs,
            at=list(zip(sizes[::2], sizes[1::2], strict=True)),
            budget=budget,
            cost=1.0 if cost is None else cost,
            confidence=confidence,
            seed=seed,
        )
    files = [] if output is None else _written(found.to_dict(), [surface_figure(found)], output)
    if json:
        write_json(found.to_dict() | {"files": [str(name) for name in files]})
        return 0
    write(*summary(found, path.name), *(["", *map(str, files)] if files else []))
    return 0


def _write_files(found: Forecast, name: str, output: Path) -> list[Path]:
    """Write the numbers and the figure; replace files of an earlier forecast."""
    from solvable.forecast.view import forecast_figure

    return _written(found.to_dict(), [forecast_figure(found, name)], output)


def _written(content: dict[str, Any], figures: list[Any], output: Path) -> list[Path]:
    import json

    from solvable.paths import whole_directory
    from solvable.plots.files import write_atomically, write_figures

    text = json.dumps(content, indent=2, allow_nan=False)
    with whole_directory(output) as draft:
        written = [draft / "forecast.json"]
        write_atomically(written[0], f"{text}\n".encode())
        written += write_figures(figures, draft)
    return [output / path.name for path in written]
