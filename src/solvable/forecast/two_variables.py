"""Forecast of a loss over two variables: predictions with intervals, and the best split of a budget."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.errors import InvalidData, InvalidParameter, NotConverged, quoted
from solvable.forecast.curve_file import ERRORS
from solvable.forecast.results import Estimate
from solvable.forecast.surface import (
    FamilyName,
    Runs,
    Surface,
    check_fit,
    check_sizes,
    drawn_surfaces,
    fit_surface,
    held_out_rows,
    log_ratio_spread,
)
from solvable.paths import check_path
from solvable.plots.displayed import Shown
from solvable.plots.words import counted, listed, quoted_names

MOST_ROWS = 100_000
# losses on rows that were not trained on come first
LOSSES = tuple(sorted(ERRORS, key=lambda name: not name.startswith(("val", "test", "eval"))))
ENDED = ("crashed", "failed", "killed", "running", "preempted", "scheduled")
FAMILIES: tuple[FamilyName, ...] = ("sum", "joint")
JOINT_BETTER = 0.7  # share of the held-out error of the sum below which the joint form is taken


@dataclass(frozen=True)
class CellForecast:
    """Predicted loss of one run at a pair of sizes."""

    sizes: tuple[float, float]
    loss: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Split:
    """Split of a budget with the least loss."""

    budget: float
    sizes: tuple[Estimate, Estimate]
    loss: Estimate


@dataclass(frozen=True, repr=False)
class SurfaceForecast(Shown, view="solvable.forecast.surface_view"):
    """Forecast of a loss over two variables.

    Attributes
    ----------
    runs : Runs
        Measured runs.
    surface : Surface
        Fit to all runs.
    parameters : dict of str to Estimate
        E, A, B, alpha, beta, and the exponent of the first variable in the best split, with intervals.
    predictions : tuple of CellForecast
        Losses at the asked pairs of sizes, with intervals of one new run.
    split : Split or None
        Best split of the budget.
    spread : float
        Relative deviation of the runs from the surface.
    inflation : float
        Factor by which held-out runs widened the intervals.
    confidence : float
        Confidence of all intervals.
    notes : tuple of str
        Rows left out, the held-out test, and warnings.
    """

    runs: Runs
    surface: Surface
    parameters: dict[str, Estimate]
    predictions: tuple[CellForecast, ...]
    split: Split | None
    spread: float
    inflation: float
    confidence: float
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the runs for JSON."""
        return {
            "variables": list(self.runs.names),
            "runs": len(self.runs.losses),
            "family": self.surface.family,
            "parameters": {name: asdict(value) for name, value in self.parameters.items()},
            "predictions": [asdict(row) for row in self.predictions],
            "split": None if self.split is None else asdict(self.split),
            "spread": self.spread,
            "inflation": self.inflation,
            "confidence": self.confidence,
            "notes": list(self.notes),
        }


def read_runs(path: str | PathLike[str], variables: Sequence[str], loss: str | None = None) -> Runs:
    """Read runs from a table of rows, such as an export of W&B or MLflow.

    Parameters
    ----------
    path : path
        CSV file with a header and a row for each run.
    variables : sequence of str
        Names of the columns of the two variables; "params.width" matches "width".
    loss : str, optional
        Name of the column of losses; by default one called loss, val_loss, eval/loss and so on.

    Returns
    -------
    Runs
        Rows with three numbers; those without are counted in ``notes``.

    Raises
    ------
    InvalidData
        If a column is missing or ambiguous, or no row has numbers.
    """
    if len(variables) != 2 or variables[0] == variables[1]:
        raise InvalidParameter(
            f"--variables names {listed(list(variables)) or 'nothing'}; allowed: two columns, as in "
            "--variables params tokens."
        )
    path = check_path(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=max(",;\t", key=first.count))
            header = next(reader, [])
            rows = [row for row, _ in zip(reader, range(MOST_ROWS + 1), strict=False)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidData(f"{path} cannot be read as CSV ({error}).") from error
    if len(rows) > MOST_ROWS:
        raise InvalidData(f"{path} has more than {MOST_ROWS:,} rows; allowed: a row for each run.")
    places = [_column(path.name, header, [name]) for name in variables]
    places.append(_column(path.name, header, [loss] if loss else list(LOSSES)))
    if places[2] in places[:2]:
        raise InvalidParameter(
            f"{header[places[2]]} is a variable and the loss; allowed: --loss NAME."
        )
    state = next(
        (k for k, name in enumerate(header) if name.strip().lower() in ("state", "status")), None
    )
    kept, ended, empty = [], 0, 0
    for row in rows:
        if state is not None and state < len(row) and row[state].strip().lower() in ENDED:
            ended += 1
            continue
        numbers = [_number(row[place]) if place < len(row) else None for place in places]
        if any(number is None or number <= 0 for number in numbers):
            empty += 1
        else:
            kept.append(numbers)
    if not kept:
        raise InvalidData(
            f"{path}: no row has numbers above 0 in {listed([header[p] for p in places])}."
        )
    notes = [f"Losses: column {header[places[2]]!r}."]
    if ended:
        notes.append(f"Left out: {counted(ended, 'run')} that did not finish.")
    if empty:
        notes.append(f"Left out: {counted(empty, 'row')} without three numbers above 0.")
    table = np.array(kept, dtype=float)
    names = str(variables[0]), str(variables[1])
    return Runs(names, table[:, :2], table[:, 2], tuple(notes))


def _column(file: str, header: Sequence[str], names: Sequence[str]) -> int:
    """Find a column by its name, or by the last part of its name after a dot or a slash."""
    lowered = [title.strip().lower() for title in header]
    last = [title.replace("/", ".").rpartition(".")[2] for title in lowered]
    for wanted in (name.strip().lower() for name in names):
        for titles in (lowered, last):
            found = [place for place, title in enumerate(titles) if title == wanted]
            if len(found) > 1:
                raise InvalidData(
                    f"{file}: {len(found)} columns are called {quoted(wanted)}; allowed: the whole "
                    "name of one."
                )
            if found:
                return found[0]
    wanted = quoted(names[0]) if len(names) == 1 else "of losses (loss, val_loss, test_error, ...)"
    raise InvalidData(
        f"{file}: no column {wanted} among {quoted_names(list(header), 8)}; allowed: one of these."
    )


def _number(text: str) -> float | None:
    try:
        value = float(text.strip().removesuffix("%").replace(",", "").replace("_", ""))
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def forecast_surface(
    runs: Runs,
    *,
    at: Sequence[Sequence[float]] = (),
    budget: float | None = None,
    cost: float = 1.0,
    confidence: float = 0.9,
    resamples: int = 200,
    seed: int = 0,
) -> SurfaceForecast:
    r"""Fit a loss over two variables, predict it at other sizes, and split a budget.

    Two forms are fitted (:class:`Surface`). The one that better predicts runs at the largest sizes from
    the others is kept. Intervals follow from a bootstrap over pairs of sizes and the deviation of single
    runs, and are widened if the held-out runs deviate more.

    Parameters
    ----------
    runs : Runs
        Runs that vary both variables.
    at : sequence of pairs
        Sizes at which the loss is predicted, at most 30 times outside the measured ones.
    budget : float, optional
        Budget ``cost * x * y``, above 0.
    cost : float
        Cost of one unit of the product, such as 6 operations for each parameter and token.
    confidence : float
        Confidence of the intervals, 0.5 to 0.99.
    resamples : int
        Bootstrap surfaces, 50 to 10,000.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    SurfaceForecast
        Surface, exponents, predictions and split, with intervals.

    Raises
    ------
    InvalidData
        If the runs do not determine a surface.
    InvalidParameter
        If sizes, or the split of the budget, lie more than 30 times outside the measured ones.

    Notes
    -----
    arXiv:2203.15556, Section 3.3; the fit is that of arXiv:2404.10102, whose exponents of the published
    runs it gives (``tests/forecast/test_surface.py``). Coverage: ``benchmarks/forecast_surfaces.py``.

    Examples
    --------
    >>> x, y = (part.ravel() for part in np.meshgrid([10, 40, 160, 640], [100, 400, 1600, 6400]))
    >>> runs = Runs(("width", "rows"), np.column_stack([x, y]), 0.1 + 2 * x**-0.5 + 5 * y**-0.4)
    >>> found = forecast_surface(runs, budget=1e7, resamples=50)
    >>> [round(size.value) for size in found.split.sizes]
    [598, 16725]
    """
    if not 0.5 <= confidence <= 0.99:
        raise InvalidParameter(f"confidence is {confidence!r}; allowed: 0.5 to 0.99.")
    check_integer("resamples", resamples, 50, 10_000)
    for name, value in (("budget", budget), ("cost", cost)):
        if value is not None and not 0 < value < np.inf:
            raise InvalidParameter(f"{name} is {value!r}; allowed: numbers above 0.")
    if (refusal := runs.refusal) is not None:
        raise InvalidData(f"the loss over two variables is not determined: {refusal}")
    asked = np.asarray(at, dtype=float).reshape(-1, 2) if len(at) else np.empty((0, 2))
    check_sizes(runs, asked)
    family, inflation, tested = _tested(runs)
    best = fit_surface(runs, family)
    check_fit(runs, best)
    draws = drawn_surfaces(runs, best, resamples, seed)
    if len(draws) < resamples / 2:
        raise NotConverged(
            "most resampled runs determine no surface; more pairs of sizes are needed."
        )
    spread = log_ratio_spread(runs, best, slice(None))
    ends = ((1 - confidence) / 2, (1 + confidence) / 2)
    parameters = {
        name: _interval([_value(one, name) for one in (best, *draws)], ends) for name in _NAMES
    }
    split = None if budget is None else _split(runs, best, draws, budget, cost, ends, inflation)
    cells = _cells(best, draws, asked, spread, inflation, ends, seed)
    return SurfaceForecast(
        runs, best, parameters, cells, split, spread, inflation, confidence, (*runs.notes, *tested)
    )


_NAMES = ("E", "A", "B", "alpha", "beta", "split exponent")


def _value(surface: Surface, name: str) -> float:
    alpha, beta = surface.alpha, surface.beta
    # x = G budget^a: a = beta / (alpha + beta) for both forms
    own = {
        "E": surface.floor,
        "A": surface.first,
        "B": surface.second,
        "alpha": alpha,
        "beta": beta,
    }
    return own.get(name, beta / (alpha + beta))


def _interval(values: Sequence[float], ends: tuple[float, float]) -> Estimate:
    """Estimate with the percentiles of the draws; the first value is the estimate."""
    lower, upper = np.quantile(values[1:], ends)
    return Estimate(float(values[0]), float(min(lower, values[0])), float(max(upper, values[0])))


def _tested(runs: Runs) -> tuple[FamilyName, float, list[str]]:
    """Choose the form by runs at the largest sizes, and the factor by which they widen intervals."""
    held = held_out_rows(runs)
    rest = Runs(runs.names, runs.sizes[~held], runs.losses[~held])
    rows = np.flatnonzero(held)
    family: FamilyName
    errors, widths = {}, {}
    for family in FAMILIES:
        fitted = fit_surface(rest, family)
        errors[family] = np.log(runs.losses[rows] / fitted.losses(runs.sizes[rows]))
        draws = drawn_surfaces(rest, fitted, 60, 0)
        logs = np.log([one.losses(runs.sizes[rows]) for one in draws])
        noise = log_ratio_spread(rest, fitted, slice(None))
        widths[family] = np.sqrt(logs.var(axis=0) + noise**2)
    means = {name: float(np.abs(errors[name]).mean()) for name in FAMILIES}
    # few held-out runs: the usual form stays unless the other one is clearly better
    family = "joint" if means["joint"] < JOINT_BETTER * means["sum"] else "sum"
    ratio = float(np.sqrt(np.mean((errors[family] / np.maximum(widths[family], 1e-12)) ** 2)))
    off = float(np.expm1(means[family]))
    note = (
        f"The {family} form predicts the {len(rows)} runs at the largest sizes from the others within "
        f"{100 * off:.2g} % on average."
    )
    return family, max(1.0, ratio), [note]


def _split(
    runs: Runs,
    best: Surface,
    draws: Sequence[Surface],
    budget: float,
    cost: float,
    ends: tuple[float, float],
    inflation: float,
) -> Split:
    """Best sizes and loss at a budget, with intervals that are widened in the logarithm."""
    pairs = np.array([one.best_split(budget / cost) for one in (best, *draws)])
    small = min(best.first * runs.sizes[:, 0].min() ** -best.alpha,
                best.second * runs.sizes[:, 1].min() ** -best.beta)  # fmt: skip
    hint = "" if best.family == "joint" or small > 1e-3 * runs.losses.min() else (
        "(the loss hardly depends on one of the variables, so that a budget has no split) "
    )  # fmt: skip
    check_sizes(runs, pairs[:1], f"in the best split {hint}")
    losses = [
        float(one.losses(pair[None])[0]) for one, pair in zip((best, *draws), pairs, strict=True)
    ]
    estimates = []
    for values in (*pairs.T, np.array(losses)):
        wide = values[0] * (np.asarray(values) / values[0]) ** inflation
        estimates.append(_interval(wide.tolist(), ends))
    return Split(budget, (estimates[0], estimates[1]), estimates[2])


def _cells(
    best: Surface,
    draws: Sequence[Surface],
    sizes: np.ndarray,
    spread: float,
    inflation: float,
    ends: tuple[float, float],
    seed: int,
) -> tuple[CellForecast, ...]:
    """Losses at pairs of sizes, with intervals of one new run."""
    stream = random_stream(seed, "surface noise")
    found = []
    for pair in sizes:
        loss = float(best.losses(pair[None])[0])
        logs = np.log([one.losses(pair[None])[0] / loss for one in draws])
        noise = spread * stream.standard_normal((20, len(logs)))
        lower, upper = np.exp(inflation * np.quantile(logs + noise, ends))
        found.append(
            CellForecast((float(pair[0]), float(pair[1])), loss, loss * lower, loss * upper)
        )
    return tuple(found)
