"""Where the target filter of `solvable learn` beats the same network without it (docs/learn-tables.md).

Smooth targets of one or three directions are planted into Gaussian columns and columns of two real
tables. The same two-layer, infinitely wide network is fitted with and without its filter, next to the
kernel with column weights, and judged on 800 other rows (or all others of the breast-cancer table).

Run:  python benchmarks/learn_filter_region.py region.jsonl    (about two minutes of one core)
      python benchmarks/learn_filter_region.py --page region.jsonl
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

INPUTS = ("gaussian 10", "gaussian 30", "gaussian 100", "breast-cancer 30", "digits 61")
ROWS = (100, 300)
LINKS = ("linear", "monotone", "even", "columns")
"""z; tanh(2 z); z² - 1, or for three directions z1 z2 + (z3² - 1) / 2; the same along single columns."""
SEEDS = 2
NOISE = 0.2  # standard deviation of the noise over that of the target
FRESH = 800


def columns(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw standardised columns."""
    from sklearn import datasets

    kind, d = name.split()
    if kind == "gaussian":
        return rng.standard_normal((n, int(d)))
    loaded = datasets.load_digits() if kind == "digits" else datasets.load_breast_cancer()
    X = loaded.data[:, loaded.data.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[rng.permutation(len(X))[:n]]


def planted(X: np.ndarray, k: int, link: str, rng: np.random.Generator) -> np.ndarray:
    """Return noisy targets of k directions, of mean 0 and variance 1 without noise."""
    if link == "columns":
        Z = X[:, rng.permutation(X.shape[1])[:k]]
    else:
        Z = X @ np.linalg.qr(rng.standard_normal((X.shape[1], k)))[0]
        Z = Z / Z.std(axis=0)
    if link in ("linear", "monotone"):
        total = Z.sum(axis=1) / math.sqrt(k)
        y = total if link == "linear" else np.tanh(2 * total)
    elif k == 1:
        y = Z[:, 0] ** 2
    else:
        y = Z[:, 0] * Z[:, 1] + (Z[:, 2] ** 2) / 2
    y = (y - y.mean()) / y.std()
    return np.asarray(y + NOISE * rng.standard_normal(len(y)))


def settings() -> Iterator[tuple[str, int, int, str, int]]:
    for n in ROWS:
        for seed in range(SEEDS):
            for name in INPUTS:
                for k in (1, 3):
                    for link in LINKS[: None if k == 3 else 3]:
                        yield name, n, k, link, seed


def measured(name: str, n: int, k: int, link: str, seed: int) -> dict[str, Any]:
    """Return the variance not explained by each method, on other rows."""
    from solvable.learn.design import Design
    from solvable.learn.metric_kernel import MetricKernelRegressor
    from solvable.networks.base import standardise_columns
    from solvable.networks.blocks import network_blocks

    rng = np.random.default_rng([seed, n, k, INPUTS.index(name), LINKS.index(link)])
    X = columns(name, n + FRESH, rng)
    y = planted(X, k, link, rng)
    design = Design(True, "columns")
    models = {
        "filter": design.network(design.blocks),
        "no filter": design.network(network_blocks(design.depth)),
        "column weights": MetricKernelRegressor(partial(standardise_columns, scaling="columns")),
    }
    found: dict[str, Any] = {}
    for method, model in models.items():
        model.fit(X[:n], y[:n])
        found[method] = float(np.mean((model.predict(X[n:]) - y[n:]) ** 2) / np.var(y[n:]))
    return found | {"directions": int(models["filter"].filters_[0].n_told)}


def page(path: Path) -> str:
    """Write the mean ratio of errors with and without filter as Markdown."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [
        "| directions, target | columns | " + " | ".join(f"{n} rows" for n in ROWS) + " |",
        "|" + "---|" * (2 + len(ROWS)),
    ]
    for k in (1, 3):
        for link in LINKS[: None if k == 3 else 3]:
            for name in INPUTS:
                cells = []
                for n in ROWS:
                    part = [
                        r
                        for r in rows
                        if (r["inputs"], r["k"], r["link"], r["n"]) == (name, k, link, n)
                    ]
                    if not part:
                        cells.append("–")
                        continue
                    means = [
                        np.mean([r[m] for r in part])
                        for m in ("filter", "no filter", "column weights")
                    ]
                    with_, without, weights = (f"{100 * mean:.0f}" for mean in means)
                    with_ = f"**{with_}**" if means[0] < 0.95 * means[1] else with_
                    cells.append(f"{with_} / {without} / {weights}")
                lines.append(f"| {k}, {link} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure the missing settings, or print the page."""
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--page":
        print(page(Path(sys.argv[2])))
        return
    path = Path(sys.argv[1])
    known = (
        {tuple(json.loads(line)["setting"]) for line in path.read_text().splitlines()}
        if path.exists()
        else set()
    )
    for setting in settings():
        if setting in known:
            continue
        with threadpool_limits(1):
            found = measured(*setting)
        name, n, k, link, seed = setting
        row = {
            "setting": setting,
            "inputs": name,
            "n": n,
            "k": k,
            "link": link,
            "seed": seed,
        } | found
        with path.open("a") as stream:
            stream.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
