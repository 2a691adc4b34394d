"""Draw settings at random from the ranges of usual values, and compare measurement and theory.

    python benchmarks/random_settings.py --seed 20261124

`random_settings/ranges.toml` states the ranges: ten or more dimensions; samples between a third and
thirty times the predicted threshold, if there is one; every choice of a parameter with choices; other
numbers within a factor of about three around the presets. A setting is a curve along one parameter, the
axis. All other parameters are drawn once; the logarithmic range of the axis is divided into --points
equal parts, with one value drawn in each. A setting that the system refuses is drawn again. Each
setting has at least eight replicates and --seconds of CPU time. All settings are written, without
selection:

* random_settings/settings.json, one record per setting: parameters and verdicts;
* random_settings/numbers.csv, one row per number that a claim compares, and per predicted number that no
  claim compares.

`random_settings_page.py` writes the page and its figure from these files.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import multiprocessing
import resource
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args, get_origin

import numpy as np
from gemm import one_thread
from pydantic import ValidationError

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame import registry
from solvable.frame.agreement import Agreement, Comparison, compare
from solvable.frame.parameters import check_limits
from solvable.frame.points_claim import PointsClaim
from solvable.study import Study, StudyResult, run_study

FOLDER = Path(__file__).parent / "random_settings"
RANGES = tomllib.loads((FOLDER / "ranges.toml").read_text())

LINKS = (
    "he2", "abs", "he4", "he3", "cosmix", "relu", "gelu", "tanh", "sin(z)", "cos(2*z)",
    "z**2*exp(-z**2/2)", "step(abs(z) - 1)", "he2 + 0.5*he4", "max(z, 0.3*z)", "z + 0.4*he2", "sign",
)  # fmt: skip
"""Values of a parameter that is a link function, as names and formulas."""

COLUMNS = (
    "system", "setting", "point", "claim", "metric", "entry",
    "measured", "standard_error", "predicted", "stated_tolerance", "allowance", "outcome",
)  # fmt: skip


def between(low: float, high: float, rng: np.random.Generator) -> float:
    """Draw a number uniform in its logarithm, rounded to three digits."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def draw_value(field: Any, stated: Any, rng: np.random.Generator) -> Any:
    """Draw one value of a parameter, or a list of values, from its stated range."""
    if isinstance(stated, dict) and "pick" in stated:
        return [str(v) for v in rng.choice(stated["of"], stated["pick"], replace=False)]
    if isinstance(stated, dict):
        if rng.random() < stated.get("zero", 0):
            return 0.0
        value = between(stated["from"], stated["to"], rng)
        return round(value) if field.annotation is int else value
    if isinstance(stated, list):
        return stated[rng.integers(len(stated))]
    if stated is not None:
        return stated
    if get_origin(field.annotation) is Literal:
        choices = get_args(field.annotation)
        return choices[rng.integers(len(choices))]
    if field.annotation is bool:
        return bool(rng.integers(2))
    return LINKS[rng.integers(len(LINKS))] if field.annotation is str else field.default


def threshold(system: Any, setting: dict[str, Any], name: str) -> float | None:
    """Return the predicted threshold, the first of a list; None if theory predicts none here."""
    try:
        value = system.predict(system.parameters(**setting)).get(name)
    except InvalidParameter:
        return None
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, float) and 0 < value < np.inf else None


def draw_setting(system: Any, points: int, rng: np.random.Generator) -> dict[str, Any]:
    """Draw values of all parameters; lists for the axis and for the parameter that claims compare."""
    ranges = RANGES[system.name]
    axis = ranges["axis"]
    fields = {k: f for k, f in system.parameters.model_fields.items() if k != axis["parameter"]}
    setting = {name: draw_value(field, ranges.get(name), rng) for name, field in fields.items()}
    single = {k: v[0] if isinstance(v, list) else v for k, v in setting.items()}
    system.parameters(**single)  # a combination that the system refuses at every value of the axis
    unit = threshold(system, single, axis["threshold"]) if "threshold" in axis else None
    unit = unit or axis["unit"]
    ends = np.geomspace(
        axis["from"] * unit, min(axis["to"] * unit, axis.get("most", np.inf)), points + 1
    )
    if not ends[0] < ends[-1]:
        raise ValueError("even a third of the threshold takes too much computing time")
    values = [between(low, high, rng) for low, high in pairwise(ends)]
    whole = system.parameters.model_fields[axis["parameter"]].annotation is int
    setting[axis["parameter"]] = sorted({round(v) if whole else v for v in values})
    for parameters in corners(setting):
        check_limits(system.parameters(**parameters))
    return setting


def corners(setting: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return all points of the grid of a setting."""
    lists = {name: value for name, value in setting.items() if isinstance(value, list)}
    for index in np.ndindex(*(len(value) for value in lists.values())):
        chosen = {name: value[i] for (name, value), i in zip(lists.items(), index, strict=True)}
        yield setting | chosen


def draw_settings(system: Any, count: int, points: int, seed: int) -> Iterator[tuple[Any, int]]:
    """Yield settings of a system, each with the number of draws refused before it."""
    rng = random_stream("random-settings", seed, system.name)
    for _ in range(count):
        refused = 0
        while True:
            try:
                setting = draw_setting(system, points, rng)
                break
            except (ValidationError, InvalidParameter, ValueError):
                refused += 1
        yield setting, refused


def rows_of(claim: Agreement, points: list[Any], axis: str, outcome: str) -> list[list[Any]]:
    """Return a row for each number that a claim compares."""
    comparison = compare(claim, points)
    if not isinstance(comparison, Comparison):
        return []
    metric = claim.metric if isinstance(claim.metric, str) else ""
    allowances = comparison.errors.allowances(two_sided=claim.kind == "equal")
    # Relative claims divide by the expected value; the row has the undivided numbers.
    units, sizes = comparison.units, np.abs(comparison.units)
    columns = (
        comparison.measured * units, comparison.errors.standard_error * sizes,
        comparison.expected * units, comparison.within * sizes, allowances * sizes,
    )  # fmt: skip
    return [
        [cell.point.parameters[axis], claim.name, metric, cell.entry, *numbers, outcome]
        for cell, *numbers in zip(comparison.cells, *columns, strict=True)
    ]


def unjudged_rows(points: list[Any], axis: str, names: set[str]) -> Iterator[list[Any]]:
    """Return a row for each predicted number that no claim compares and every replicate measured."""
    for point in points:
        for name in sorted(point.prediction.keys() - names):
            measured = [m.get(name) for m in point.metrics]
            if any(v is None or isinstance(v, str) for v in (*measured, point.prediction[name])):
                continue
            if len({np.shape(v) for v in (*measured, point.prediction[name])}) > 1:
                continue
            numbers = (point.mean(name), point.standard_error(name), point.predicted(name))
            for entry, row in enumerate(zip(*map(np.atleast_1d, numbers), strict=True)):
                if np.isfinite(row).all() and entry < 3:
                    place = entry if point.mean(name).ndim else None
                    yield [point.parameters[axis], "", name, place, *row, "", "", ""]


def makes(claim: Any, points: list[Any]) -> bool:
    """Return True if the claim applies to a setting."""
    if isinstance(claim, Agreement):
        return isinstance(compare(claim, points), Comparison)
    return not isinstance(claim, PointsClaim) or bool(claim.measured(points))


def run(
    name: str, setting: dict[str, Any], replicates: int, seed: int, directory: Path | None
) -> dict[str, Any]:
    """Run a setting and return its record and its rows of numbers."""
    with TemporaryDirectory() as temporary:
        study = Study(registry.load(name), setting, replicates, seed=seed)
        result = run_study(study, directory or temporary, workers=1)
        return judged(result)


def judged(result: StudyResult) -> dict[str, Any]:
    """Return verdicts of the claims that apply to a setting, and rows of numbers."""
    system, axis = result.system, RANGES[result.system.name]["axis"]["parameter"]
    points = system.settled([point for point in result.points if not point.refused])
    refusals = sorted({point.refusal for point in result.points if point.refused})
    verdicts, rows, names = [], [], set()
    for claim, verdict in zip(system.claims, result.verdicts, strict=True):
        if not points or not makes(claim, points):
            continue
        verdicts.append(
            {
                "claim": claim.name,
                "outcome": verdict.outcome,
                "measured": verdict.measured,
                "predicted": verdict.expected,
                "tolerance": verdict.tolerance,
                "reason": verdict.reason,
            }
        )
        if isinstance(claim, Agreement):
            rows += rows_of(claim, points, axis, verdict.outcome)
            names |= {claim.metric} if isinstance(claim.metric, str) else set()
    rows += list(unjudged_rows(points, axis, names))
    failures = [failure.error for failure in result.failures]
    return {"verdicts": verdicts, "refusals": refusals, "failures": failures, "rows": rows}


def child(answer: Connection, seconds: int, *arguments: Any) -> None:
    """Run a study under a limit of CPU time; put its result, or the text of its error, into the queue."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    try:
        answer.send(run(*arguments))
    except Exception as error:  # every error of a setting is part of the data
        answer.send({"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"})


def measure(seconds: int, *arguments: Any) -> dict[str, Any]:
    """Run the study in its own process; return its result, or a sentence with the error."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(sender, seconds, *arguments))
    process.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        answer = {"error": f"no result in {seconds} s of CPU time"}
    process.join()
    return answer


def short(value: Any) -> Any:
    """Round numbers to five digits."""
    return f"{value:.5g}" if isinstance(value, float) else value


def main() -> None:
    """Draw settings, measure them and write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=3, help="number of settings of each system")
    parser.add_argument(
        "--points", type=int, default=4, help="number of points of each setting, along its axis"
    )
    parser.add_argument(
        "--seconds", type=int, default=100, help="CPU time of each setting, in seconds"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder for the two files")
    parser.add_argument("--runs", type=Path, help="folder for run directories, which are resumed")
    parser.add_argument("systems", nargs="*", help="systems to measure (default: all with ranges)")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    settings: list[dict[str, Any]] = []
    with (options.output / "numbers.csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in options.systems or RANGES:
            system = registry.load(name)
            replicates = RANGES[name].get("replicates", 8)
            drawn = draw_settings(system, options.settings, options.points, options.seed)
            for number, (setting, refused) in enumerate(drawn, 1):
                directory = options.runs and options.runs / f"{name}-{number}"
                answer = measure(
                    options.seconds, name, setting, replicates, options.seed, directory
                )
                for row in answer.pop("rows", []):
                    writer.writerow([name, number, *map(short, row)])
                stream.flush()
                record = {"system": name, "setting": number, "parameters": setting}
                record |= {"replicates": replicates, "redrawn": refused} | answer
                settings.append(record)
                outcomes = [v["outcome"] for v in answer.get("verdicts", [])]
                print(name, number, answer.get("error", outcomes), flush=True)
                text = json.dumps({"seed": options.seed, "settings": settings}, indent=1)
                (options.output / "settings.json").write_text(text + "\n")


if __name__ == "__main__":
    with one_thread():
        main()
