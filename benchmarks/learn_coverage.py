"""Measure the coverage of the intervals of `solvable learn` on rows that were held out beforehand.

The interval is for a model fitted to four fifths of the rows, as in five folds; one such model predicts
the held-out rows. The learned features of all rows ("stored") are mostly better; the coverage of their
error is counted too.

Public tables (fetched as for learn_tables.py) are split at random into at most 500 training rows and
held-out rows; for planted tables (learn_planted.py) 4,000 new rows are drawn. The first split of each
table is used as it is, and with every row three times. A held-out error is noisy too: it counts as
covered if the interval of the difference of both errors (MOVER, Zou and Donner 2008) contains zero.

    python benchmarks/learn_coverage.py tables results.jsonl

For the model that is named in the first sentence, the tables are simulated (learn_simulated.py):

    python benchmarks/learn_coverage.py simulated rows.csv 100     all methods
    python benchmarks/learn_coverage.py fast rows.csv 240          five fast methods, at most 200 rows
    python benchmarks/learn_coverage.py heavy rows.csv 330         three methods, heavy tails only
"""

from __future__ import annotations

import csv
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from learn_planted import TABLES, Planted, columns_and_rows, draw
from learn_simulated import FAST_SEED, HEAVY_SEED, fast, measure
from learn_tables import COMMANDS
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from solvable.data import load
from solvable.learn import Request, learn
from solvable.learn.plan import Plan
from solvable.learn.prediction import apply_model
from solvable.networks.files import save_model

BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast-cancer": load_breast_cancer,
    "diabetes": load_diabetes,
}
SPLITS = 2
MOST_ROWS = 500
FRESH = 4000
COPIES = (1, 3)

Rows = list[list[str]]


def public(folder: Path) -> Iterator[tuple[str, str, list[str], Rows]]:
    """Yield name, target, header and rows of each public table of 100 or more rows without groups."""
    for name, read in BUNDLED.items():
        frame = read(as_frame=True).frame
        yield name, "target", list(frame.columns), frame.astype(str).to_numpy().tolist()
    for command in COMMANDS:
        if " --target " not in command or "--time" in command or "--groups" in command:
            continue
        file, _, target = shlex.split(command)
        with (folder / file).open(newline="") as stream:
            header, *rows = csv.reader(stream)
        if len(rows) >= 100:
            yield file, target, header, rows


def planted(number: int) -> tuple[list[str], Rows, Rows]:
    """Draw header, training rows and new rows of a planted table."""
    table = Planted(number)
    n = min(columns_and_rows(table)[1], MOST_ROWS)
    columns, _, y = draw(table, n, "table")
    fresh, _, true = draw(table, FRESH, "fresh")
    header = [*(f"x{j}" for j in range(columns.shape[1])), "y"]

    def cells(X: np.ndarray, labels: np.ndarray) -> Rows:
        return [[*map("{:.6g}".format, row), str(t)] for row, t in zip(X, labels, strict=True)]

    return header, cells(columns, y), cells(fresh, true)


def written(path: Path, header: list[str], rows: Rows) -> str:
    """Write a CSV."""
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return str(path)


def compared(
    header: list[str], target: str, known: Rows, held: Rows, copies: int
) -> dict[str, Any]:
    """Return the reported error, the errors on held-out rows, and if its interval covers them."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        fresh = written(home / "held.csv", header, held)
        data = load(written(home / "known.csv", header, known * copies), target=target)
        result = learn(data, Request())
        part = load(written(home / "part.csv", header, known[: 4 * len(known) // 5]), target=target)
        fitted = Plan(part, Request()).design.fitted_network(part.X, part.y)
        errors = {}
        for name, model, table in (("stored", result.features, data), ("part", fitted, part)):
            # Errors of numbers are divided by the same variance.
            notes = {"preparation": table.preparation.to_dict(), "variance": float(np.var(data.y))}
            path = save_model(model, home / f"{name}.safetensors", notes=notes)
            errors[name] = apply_model(path, fresh).error
    score = result.learned
    found: dict[str, Any] = {"told": [score.error, score.lower, score.upper], "rows": len(known)}
    for name, seen in errors.items():
        assert seen is not None
        value = seen.get("wrong", seen.get("unexplained_variance"))
        below = np.hypot(score.error - score.lower, seen["upper"] - value)
        above = np.hypot(score.upper - score.error, value - seen["lower"])
        covered = bool(-above <= score.error - value <= below)
        found[name] = {"held": [value, seen["lower"], seen["upper"]], "covered": covered}
    return found


def main(folder: Path, path: Path) -> None:
    """Measure the missing tables, then print the coverage."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["name"], row["split"], row["copies"]) for row in rows}

    def one(name: str, split: int, header: list[str], target: str, known: Rows, held: Rows) -> None:
        for copies in COPIES[: 1 + (split == 0)]:
            if (name, split, copies) in done:
                continue
            found = {"name": name, "split": split, "copies": copies}
            try:
                found |= compared(header, target, known, held, copies)
            except ValueError as error:
                found |= {"refused": str(error)}
            rows.append(found)
            with path.open("a") as stream:
                stream.write(json.dumps(found) + "\n")
            print(found, flush=True)

    for name, target, header, cells in public(folder):
        for split in range(SPLITS):
            order = np.random.default_rng([41, split]).permutation(len(cells))
            number = min(len(cells) // 2, MOST_ROWS)
            known, held = ([cells[i] for i in part] for part in np.split(order, [number]))
            one(name, split, header, target, known, held)
    for number in range(TABLES):
        header, known, fresh = planted(number)
        one(f"planted {number}", 0, header, "y", known, fresh)
    for kind, some in (
        ("public", [row for row in rows if "planted" not in row["name"]]),
        ("planted", [row for row in rows if "planted" in row["name"]]),
    ):
        for copies in COPIES:
            judged = [row for row in some if row["copies"] == copies and "told" in row]
            counts = [sum(row[name]["covered"] for row in judged) for name in ("part", "stored")]
            print(
                f"{kind}, each row {copies} times: {counts[0]} of {len(judged)} covered, "
                f"of the stored models {counts[1]}"
            )


if __name__ == "__main__":
    if sys.argv[1] in ("simulated", "fast", "heavy"):
        path, numbers = Path(sys.argv[2]), range(int(sys.argv[3]))
        if sys.argv[1] == "fast":
            measure(path, numbers, fast, seed=FAST_SEED, most_rows=200)
        elif sys.argv[1] == "heavy":
            judge = partial(fast, seed=HEAVY_SEED, keys=("ridge", "rbf", "nngp"))
            measure(path, numbers, judge, seed=HEAVY_SEED, heavy=True)
        else:
            measure(path, numbers)
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
