"""Simulated tables for `learn_coverage.py`: how often intervals of the named model cover its true error.

Tables have 80 to 450 rows and 3 to 15 columns; the target depends on the columns in six ways, as a
number or as two or three classes. The true error is that of the stored model on 6,000 new rows. Tables
where the constant is named have no interval of a model and are not counted. *Heavy* are tables of
numbers with heavy tails (Student's t, three degrees of freedom): their squared error has no variance,
and no mean either if the target has squares of such columns (the kind *tails*).

*fast* measures the intervals of the named model with a few fast methods only, for many tables.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data import load
from solvable.learn import Request, learn, learning
from solvable.learn.applied import applied
from solvable.learn.blend import blend_of, fitted_blend
from solvable.learn.competitors import BLEND, CONSTANT
from solvable.learn.fold_fits import measure as measure_fit
from solvable.learn.plan import Plan
from solvable.learn.scoring import Losses, score_methods

FRESH = 6000
SEED = 79
FAST_SEED = 4027
HEAVY_SEED = 6101
FAST = ("ridge", "multi-index", "rbf", "nngp", "metric-kernel")
KINDS = ("linear", "smooth", "steps", "pairs", "additive", "tails")
ENDS = ("lower", "upper")
INTERVALS = {
    "own90": "of the method alone, 90 %",
    "own95": "of the method alone, 95 % (table of methods)",
    "named90": "of the named model, 90 %",
    "named95": "of the named model, 95 % (first sentence on errors)",
    "forecast": "forecast at all rows, 90 %",
}


def simulated(number: int, seed: int) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Return settings, columns and target of a table; the last rows are new rows."""
    rng = np.random.default_rng([seed, number])
    n = int(np.exp(rng.uniform(np.log(80), np.log(450))))
    d = int(rng.integers(3, 16))
    kind, classes = KINDS[number % 6], (0, 2, 0, 3, 2)[number % 5]
    noise = float(np.exp(rng.uniform(np.log(0.15), np.log(1.5))))
    weights = rng.standard_normal((d, 3)) / np.sqrt(d)
    total = n + FRESH
    X = rng.standard_normal((total, d))
    if kind == "tails":
        X = rng.standard_t(3, (total, d))
    if number % 4 == 1:
        X[:, d // 2 :] = np.round(X[:, d // 2 :])
    Z = X @ weights
    signal = {
        "linear": Z[:, 0],
        "smooth": np.tanh(2 * Z[:, 0]) * Z[:, 1] + np.sin(2 * Z[:, 2]),
        "steps": (X[:, 0] > 0.3) * 2.0 - (X[:, 1] > 0) * (X[:, 2] > 0),
        "pairs": X[:, 0] * X[:, 1] + X[:, 2],
        "additive": np.abs(X[:, 0]) + np.sin(2 * X[:, 1]) + X[:, 2],
        "tails": Z[:, 0] + 0.3 * Z[:, 1] ** 2,
    }[kind]
    heavy_noise = number % 7 == 3
    errors = rng.standard_t(3, total) / np.sqrt(3) if heavy_noise else rng.standard_normal(total)
    y = signal + noise * np.std(signal) * errors
    if classes:
        balanced = [1 / 2] if number % 3 else [0.7]
        shares = balanced if classes == 2 else [1 / 3, 2 / 3]
        y = np.searchsorted(np.quantile(y, shares), y)
    heavy = not classes and (kind == "tails" or heavy_noise)
    return {"kind": kind, "classes": classes, "rows": n, "heavy": int(heavy)}, X, y


def losses_of(predicted: np.ndarray, true: np.ndarray, variance: float | None) -> np.ndarray:
    """Return 0 or 1 for each row, or squared errors over the variance of the training rows."""
    if variance is None:
        return predicted.astype(str) != true.astype(str)
    return (predicted.astype(float) - true) ** 2 / variance


def judged(number: int) -> dict[str, Any]:
    """Learn from a table; return the intervals, and the true error of the stored model."""
    start = time.process_time()
    table, X, y = simulated(number, SEED)
    n = table["rows"]
    kept: dict[str, Any] = {}
    told = learning.named_error

    def keeping(
        scores: Any, metric: Any, measured: Any, losses: Any, *confidence: float, **curve: Any
    ) -> Any:
        """Keep the intervals of both levels, of the model and of its method alone."""
        name = next(score.key for score in scores if score.recommended)
        for level in (90, 95):
            kept[f"named{level}"] = told(scores, metric, measured, losses, level / 100, **curve)
            kept[f"own{level}"] = losses.interval(losses.of_all(measured[name]), level / 100)
        return told(scores, metric, measured, losses, *confidence, **curve)

    learning.named_error = keeping
    try:
        task = "classification" if table["classes"] else "regression"
        found = learn(load(X[:n], y[:n], task=task), Request(seed=number))
    finally:
        learning.named_error = told
    predicted = applied(found.model, found.preparation, found.notes, X[n:]).predicted
    losses = losses_of(predicted, y[n:], None if table["classes"] else float(np.var(y[:n])))
    row = {"number": number, **table, "method": found.chosen.key, "error": found.chosen.error}
    row["true"] = float(np.mean(losses))
    if found.outlook.expected:
        kept["forecast"] = found.outlook.expected[0]
    return row | ends(kept) | {"cpu_seconds": round(time.process_time() - start, 1)}


def ends(kept: dict[str, Any]) -> dict[str, Any]:
    """Return the ends of all intervals as cells, empty where there is none."""
    found = {}
    for name in INTERVALS:
        one = kept.get(name)
        found |= {f"{name}_{end}": "" if one is None else getattr(one, end) for end in ENDS}
    return found


def fast(number: int, seed: int = FAST_SEED, keys: Sequence[str] = FAST) -> dict[str, Any]:
    """Choose among a few methods and their blend; return the interval and the true error."""
    start = time.process_time()
    table, X, y = simulated(number, seed)
    n, classes = table["rows"], table["classes"]
    data = load(X[:n], y[:n], task="classification" if classes else "regression")
    plan, keys = Plan(data, Request(seed=number)), [*keys, CONSTANT]
    plan.sizes = plan.sizes[-2:]  # the interval uses the last two points of the learning curve
    tasks = [task for task in plan.tasks if task.method in keys and task.fold >= 0]
    fits = [measure_fit(replace(task, attributed=False)) for task in tasks]
    measured = {key: [fit for fit in fits if fit.method == key] for key in keys}
    losses = Losses(plan.y, plan.folds, regression=not classes, columns=data.X[plan.rows])
    compared = [one for one in plan.methods if one.key in keys]
    if blend := blend_of(measured, plan.y, plan.folds, classes=plan.classes):
        compared.insert(-1, blend.method(compared))
        measured |= {BLEND: blend.fits}
    better = bool(blend and blend.is_better)
    scores = score_methods(compared, measured, losses, data.class_labels, blended=better)
    chosen = next(one for one in scores if one.recommended)
    weights = blend.weights if blend and chosen.key == BLEND else {chosen.key: 1.0}
    later = [] if chosen.key == CONSTANT else plan.later_tasks(list(weights))
    fits += [measure_fit(task) for task in later or plan.later_tasks(list(weights))[:1]]
    models = {fit.method: fit.model for fit in fits if fit.fold < 0}
    model = models.get(chosen.key) or fitted_blend(
        weights, models, measured, plan.y, plan.folds, classes=plan.classes, columns=X.shape[1]
    )
    true = losses_of(np.asarray(model.predict(X[n:])), y[n:], None if classes else losses.variance)
    curve = learning.curve_of(plan, fits, losses, chosen.key, blend) if later else ()
    kept = {
        f"named{level}": learning.named_error(
            scores, None, measured, losses, level / 100, curve=curve
        )
        for level in (90, 95)
    }
    row = {"number": number, **table, "method": chosen.key, "error": chosen.error}
    row["true"] = float(np.mean(true))
    return row | ends(kept) | {"cpu_seconds": round(time.process_time() - start, 1)}


def measure(
    path: Path,
    numbers: range,
    judge: Callable[[int], dict[str, Any]] = judged,
    *,
    seed: int = SEED,
    most_rows: int = 450,
    heavy: bool = False,
) -> None:
    """Measure the missing tables, one row of the CSV each, then print the coverage."""
    rows = list(csv.DictReader(path.open(newline=""))) if path.exists() else []
    done = {int(row["number"]) for row in rows}
    for number in sorted(set(numbers) - done):
        table = simulated(number, seed)[0]
        if table["rows"] > most_rows or table["heavy"] < heavy:
            continue
        row = judge(number)
        with path.open("a", newline="") as stream:
            writer = csv.DictWriter(stream, list(row))
            if not stream.tell():
                writer.writeheader()
            writer.writerow(row)
        print(row, flush=True)
    rows = list(csv.DictReader(path.open(newline="")))
    told = [row for row in rows if row["method"] != CONSTANT]
    print(f"{len(rows)} tables; the constant is named in {len(rows) - len(told)}")
    parts: dict[str, Callable[[dict[str, str]], bool]] = {
        "all": lambda row: True,
        "blends": lambda row: row["method"] == BLEND,
        "single methods": lambda row: row["method"] != BLEND,
        "classes": lambda row: row["classes"] != "0",
        "numbers": lambda row: row["classes"] == "0",
        "numbers, light tails": lambda row: row["classes"] == row["heavy"] == "0",
        "heavy tails, finite error": lambda row: row["heavy"] == "1" and row["kind"] != "tails",
        "heavy tails, infinite error": lambda row: row["heavy"] == "1" and row["kind"] == "tails",
    }
    for part, inside in parts.items():
        some = [row for row in told if inside(row)]
        for name, title in INTERVALS.items():
            if any(row[f"{name}_lower"] for row in some):
                print(f"{part}, {title}: {coverage(some, name)}")


def coverage(rows: list[dict[str, str]], name: str) -> str:
    """Count the true errors above, below and inside the intervals of a name."""
    ends = [
        (float(row[f"{name}_lower"]), float(row["true"]), float(row[f"{name}_upper"]))
        for row in rows
        if row[f"{name}_lower"]
    ]
    refused = sum(upper == math.inf for *_, upper in ends)
    ends = [one for one in ends if one[2] < math.inf]
    above = sum(true > upper for _, true, upper in ends)
    below = sum(true < lower for lower, true, _ in ends)
    inside = len(ends) - above - below
    width = np.median([(upper - lower) / true for lower, true, upper in ends])
    return (
        f"no interval in {refused} of {refused + len(ends)}; true error above in {above}, below in "
        f"{below}; covered {inside} of {len(ends)}, median width / true error {width:.2f}"
    )
