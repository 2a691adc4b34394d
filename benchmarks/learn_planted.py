"""Planted directions: share found by `solvable learn` at each signal, and errors against rivals.

Forty tables have 1 to 6 directions in 20 to 200 Gaussian columns of unequal means and scales, with even,
odd and mixed links, and numbers or classes as targets. The same forty are drawn again with correlated,
discrete or heavy-tailed columns. The signal of a direction is the predicted eigenvalue along it in
Gaussian inputs, divided by that with shuffled labels: 1 to 4 for the strongest direction of a table.

    python benchmarks/learn_planted.py results.jsonl            all tables that are not in the file
    python benchmarks/learn_planted.py results.jsonl 3 17 44    these tables only
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from solvable.data import load, load_new
from solvable.learn import Request, learn

TABLES = 40
MOST_ROWS = 2400
FRESH = 2000
SIDES = ("correlated", "discrete", "heavy-tailed")
FOUND = 0.5
"""A direction is found if the learned coordinates explain this share of its coordinate's variance."""


@dataclass(frozen=True)
class Planted:
    """One table, from its number."""

    number: int

    @property
    def kind(self) -> str:
        """Law of the columns."""
        return "gaussian" if self.number < TABLES else SIDES[self.number % len(SIDES)]

    @property
    def rng(self) -> np.random.Generator:
        """Generator of all choices other than the rows, the same for both laws of the columns."""
        return np.random.default_rng([23, self.number % TABLES])

    def choices(self) -> dict[str, Any]:
        """Link, number of directions, columns, classes, label noise, and the aimed signal."""
        rng = self.rng
        return {
            "link": ("even", "odd", "mixed")[self.number % 3],
            "directions": int(rng.integers(1, 7)),
            "columns": int(np.exp(rng.uniform(np.log(20), np.log(200)))),
            "classes": int(rng.choice([0, 0, 2, 3])),
            "noise": float(rng.uniform(0.1, 0.5)),
            "signal": float(np.exp(rng.uniform(0, np.log(4)))),
            "weights": rng.uniform(0.6, 1.4, 6).tolist(),
        }


def link(name: str, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Target without noise, a function of the hidden coordinates z of shape (n, k)."""
    k = z.shape[1]
    pairs = [(j, (j + 1) % k) for j in range(0, k - 1, 2)]
    squares = [j for j in range(k) if j >= 2 * len(pairs)]
    if name == "odd":
        return np.tanh(2 * z @ weights[:k] / np.linalg.norm(weights[:k])) + 0.3 * z[:, 0]
    total = sum(weights[i] * np.tanh(2 * z[:, i]) * z[:, j] for i, j in pairs)
    total = total + sum(weights[j] * (z[:, j] ** 2 - 1) / 2 for j in squares)
    if name == "mixed":
        total = total + 0.7 * z[:, 0] + 0.4 * np.maximum(z[:, -1], 0)
    return np.asarray(total)


def labels(chosen: dict[str, Any], z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw noisy targets: numbers, or classes of equal size."""
    y = link(chosen["link"], z, np.array(chosen["weights"]))
    y = y + chosen["noise"] * np.std(y) * rng.standard_normal(len(y))
    if not chosen["classes"]:
        return y
    ends = np.quantile(y, np.arange(1, chosen["classes"]) / chosen["classes"])
    return np.array(list("abc"))[np.searchsorted(ends, y)]


def population(chosen: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Strengths and directions of second and first moments in the hidden space, for unit labels."""
    k, rng = chosen["directions"], np.random.default_rng(5)
    z = rng.standard_normal((400_000, k))
    y = labels(chosen, z, rng)
    if chosen["classes"]:
        signals = (y[:, None] == np.unique(y)).astype(float)[:, chosen["classes"] == 2 :]
    else:
        signals = np.tanh((y - y.mean()) / y.std())[:, None]
    signals = (signals - signals.mean(axis=0)) / signals.std(axis=0)
    second = [z.T @ (s[:, None] * z) / len(z) for s in signals.T]
    total = sum(moment @ moment for moment in second) / len(second)
    vectors = np.linalg.eigh(total)[1]
    # Each class has its own null, so the strength of a direction is its largest over classes.
    sizes = np.array([max(np.linalg.norm(m @ v) for m in second) for v in vectors.T])
    means = z.T @ signals / len(z)
    U, lengths, _ = np.linalg.svd(means, full_matrices=False)
    return sizes, vectors, lengths, U


def ratio_of(size: np.ndarray, noise: float) -> np.ndarray:
    """Predicted outlier divided by the bulk edge: (l / s + s / l) / 2 above the threshold l = s."""
    relative = np.maximum(size / noise, 1.0)
    return np.asarray((relative + 1 / relative) / 2)


def draw(planted: Planted, n: int, which: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw columns, hidden coordinates and labels."""
    chosen = planted.choices()
    d, k = columns_and_rows(planted)[0], chosen["directions"]
    fixed = np.random.default_rng([29, planted.number % TABLES])
    W = np.linalg.qr(fixed.standard_normal((d, k)))[0]
    means, scales = fixed.normal(0, 3, d), np.exp(fixed.normal(0, 1, d))
    rng = np.random.default_rng([31, planted.number, which == "fresh"])
    G = rng.standard_normal((n, d))
    covariance = np.eye(d)
    if planted.kind == "correlated":
        covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
        G = G @ np.linalg.cholesky(covariance).T
    elif planted.kind == "discrete":
        levels = fixed.integers(2, 7, d)
        G = (np.floor(rng.random((n, d)) * levels) - (levels - 1) / 2) / np.sqrt(
            (levels**2 - 1) / 12
        )
    elif planted.kind == "heavy-tailed":
        G = rng.standard_t(5, (n, d)) / np.sqrt(5 / 3)
    # Uncorrelated coordinates of unit variance
    Z = G @ W @ np.linalg.inv(np.linalg.cholesky(W.T @ covariance @ W)).T
    return G * scales + means, Z, labels(chosen, Z, rng)


def columns_and_rows(planted: Planted) -> tuple[int, int]:
    """Numbers of columns and rows such that the strongest direction has the aimed signal."""
    chosen = planted.choices()
    sizes, _, lengths, _ = population(chosen)
    aimed = chosen["signal"]
    relative = aimed + np.sqrt(aimed**2 - 1)
    # s = sqrt(d / n) for labels of power one; a first moment is sqrt(1 + m² n / d) times its null.
    if chosen["link"] == "odd":
        per_column = (aimed**2 - 1) / max(lengths) ** 2
    else:
        per_column = relative**2 / max(sizes) ** 2
    d = int(np.clip(MOST_ROWS / max(per_column, 1e-9), 20, chosen["columns"]))
    return d, int(np.clip(per_column * d, 200, MOST_ROWS))


def table_file(columns: np.ndarray, y: np.ndarray, path: Path) -> str:
    """Write a CSV."""
    head = ",".join([*(f"x{j}" for j in range(columns.shape[1])), "y"])
    cells = (
        ",".join([*map("{:.6g}".format, row), str(label)])
        for row, label in zip(columns, y, strict=True)
    )
    path.write_text("\n".join([head, *cells]) + "\n")
    return str(path)


def measured(number: int) -> dict[str, Any]:
    """Return the directions found in a table, and the errors of all methods."""
    planted = Planted(number)
    chosen = planted.choices()
    d, n = columns_and_rows(planted)
    columns, _, y = draw(planted, n, "table")
    fresh, Z, true = draw(planted, FRESH, "fresh")
    with tempfile.TemporaryDirectory() as folder:
        data = load(table_file(columns, y, Path(folder) / "t.csv"), target="y")
        result = learn(data, Request(folds=3))
        new = load_new(table_file(fresh, true, Path(folder) / "f.csv"), data.preparation)
    kept = result.features.transform(new.X)[:, : result.found[0].directions]
    sizes, vectors, lengths, U = population(chosen)
    noise = np.sqrt(d / n)
    second = [
        (float(r), v) for r, v in zip(ratio_of(sizes, noise), vectors.T, strict=True) if r > 1
    ]
    first = [
        (float(np.sqrt(1 + (length / noise) ** 2)), u)
        for length, u in zip(lengths, U.T, strict=True)
        if length > 0.02
    ]
    found = [
        {"signal": r, "moment": kind, "explained": explained(Z @ v, kept)}
        for kind, directions in (("second", second), ("first", first))
        for r, v in directions
    ]
    scores = {
        score.key: [
            score.error,
            score.difference,
            (score.difference_upper or 0) - (score.difference_lower or 0),
        ]
        for score in result.methods
    }
    return {
        "number": number, "kind": planted.kind, **chosen, "columns": d, "rows": n, "found": found,
        "count": result.found[0].directions, "scores": scores,
    }  # fmt: skip


def standard_error(row: dict[str, Any], rival: str) -> float:
    """Standard error of the difference between a method and learned features, from its interval."""
    # Holm: r differences that are not significant are tested at 5 % / r each, the others at 5 % / 7 or
    # more.
    halves = {key: width / 2 for key, (_, gap, width) in row["scores"].items() if gap is not None}
    open_ones = [key for key in halves if abs(row["scores"][key][1]) <= halves[key]]
    number = len(open_ones) if rival in open_ones else len(halves)
    return float(halves[rival] / NormalDist().inv_cdf(1 - 0.025 / number))


def explained(coordinate: np.ndarray, kept: np.ndarray) -> float:
    """Share of the variance of a coordinate that a linear function of the learned ones explains."""
    if not kept.shape[1]:
        return 0.0
    A = np.column_stack([np.ones(len(kept)), kept])
    left = coordinate - A @ np.linalg.lstsq(A, coordinate, rcond=None)[0]
    return float(1 - left.var() / coordinate.var())


def print_shares(rows: list[dict[str, Any]]) -> None:
    """Print shares of directions by signal, and tables that are lost to a rival."""
    for kind in ("gaussian", *SIDES):
        of_kind = [row for row in rows if row["kind"] == kind]
        if not of_kind:
            continue
        print(f"{kind}: {len(of_kind)} tables")
        every = [one for row in of_kind for one in row["found"]]
        for low, high in ((1, 1.2), (1.2, 1.5), (1.5, 2), (2, 3), (3, np.inf)):
            here = [one["explained"] > FOUND for one in every if low < one["signal"] <= high]
            if here:
                print(f"  signal {low} to {high}: {sum(here)} of {len(here)} directions found")
        lost = [row["number"] for row in of_kind if is_lost(row)]
        print(
            f"  within a standard error of the best rival: {len(of_kind) - len(lost)}; not: {lost}"
        )


def best_rival(row: dict[str, Any]) -> tuple[str, float, float]:
    """Return key and error of the best other method, and the standard error of its difference."""
    known = {key: s[0] for key, s in row["scores"].items() if s[0] is not None}
    key = min((one for one in known if one != "learned-features"), key=lambda one: known[one])
    return key, known[key], standard_error(row, key)


def is_lost(row: dict[str, Any]) -> bool:
    """Return True if the error of the best rival is smaller by more than one standard error."""
    _, error, spread = best_rival(row)
    return bool(row["scores"]["learned-features"][0] > error + spread)


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """Write all tables as Markdown, lost tables first (docs/learn-tables.md)."""
    lines = [
        "| | columns, link | directions | rows × columns | classes | signal: explained variance, % | "
        "error of learned features, % | error of best rival, % | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (not is_lost(row), row["number"])):
        key, error, spread = best_rival(row)
        shown = sorted(row["found"], key=lambda one: -one["signal"])
        found = ", ".join(f"{one['signal']:.1f}: {100 * one['explained']:.0f}" for one in shown)
        lines.append(
            f"| {row['number']} | {row['kind']}, {row['link']} | {row['directions']} | "
            f"{row['rows']} × {row['columns']} | {row['classes'] or 'number'} | {found} | "
            f"{100 * row['scores']['learned-features'][0]:.1f} | {key} {100 * error:.1f} ± "
            f"{100 * spread:.1f} | {'lost' if is_lost(row) else ''} |"
        )
    return "\n".join(lines)


def main(path: Path, numbers: list[int]) -> None:
    """Measure the missing tables, then print the results."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {row["number"] for row in rows}
    for number in numbers or range(2 * TABLES):
        if number not in done:
            rows.append(measured(number))
            with path.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(summary(rows[-1]), flush=True)
    print_shares(rows)
    print(as_markdown(rows))


def summary(row: dict[str, Any]) -> str:
    """Write one table in a line."""
    found = " ".join(f"{one['signal']:.1f}:{one['explained']:.2f}" for one in row["found"])
    scores = " ".join(f"{key} {s[0]:.3f}" for key, s in row["scores"].items() if s[0] is not None)
    head = f"{row['number']} {row['kind']} {row['link']} k={row['directions']} d={row['columns']}"
    return (
        f"{head} n={row['rows']} classes={row['classes']} count={row['count']} [{found}] {scores}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(one) for one in sys.argv[2:]])
