"""Measure sample thresholds, time and memory of the learners of random grammars.

Draws 22 settings at random, none of which a test uses, and measures for each learner the number N50 of
strings per level at which the mean test accuracy of four grammars crosses (1 + 1/n_c) / 2, interpolated
between steps of sqrt(2). Prints all ratios N50 / P*, P* = n_c m^L, and writes them to
`random_hierarchy.csv`; prints the slope of log N50 against log P*, the time of count-and-cluster at
(32, 8, 2, 3), and time and peak memory of random features on 10^6 strings, drawn again in each pass.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gemm import cpu_seconds, exit_status, one_thread, show
from memory import peak_bytes

from solvable.arrays import GeneratedSource
from solvable.models.hierarchy.grammar.learner.count_cluster import CountClusterClassifier
from solvable.models.hierarchy.grammar.learner.layerwise import LayerwiseRBFClassifier
from solvable.models.hierarchy.target import RandomHierarchy

SEED = 26
SETTINGS = 22
GRAMMARS = 4
AFFORDABLE = (60, 2000)  # range of P*
STREAMED = 1_000_000
TESTED = {
    (6, 2, 2, 3), (6, 3, 2, 2), (6, 2, 2, 4), (8, 2, 2, 3), (8, 3, 2, 3), (8, 4, 2, 2), (8, 8, 2, 2),
    (12, 4, 2, 2), (16, 4, 2, 2), (32, 4, 2, 2), (16, 3, 2, 3), (8, 3, 3, 2), (12, 2, 3, 3), (8, 4, 2, 3),
    (6, 6, 2, 2), (24, 6, 2, 2), (12, 6, 2, 3), (8, 6, 2, 3), (8, 3, 2, 4), (6, 4, 3, 2), (16, 4, 2, 3),
    (12, 3, 2, 3),
}  # fmt: skip

Sizes = tuple[int, int, int, int]
LEARNERS: dict[str, tuple[int, Callable[[Sizes], Any]]] = {
    # the first as in the paper: known number of rules, and L times as many strings, fresh ones per level
    "layerwise-fresh": (
        1, lambda sizes: LayerwiseRBFClassifier(sizes[2], rules=sizes[1], fresh=True)
    ),
    "layerwise": (0, lambda sizes: LayerwiseRBFClassifier(sizes[2])),
    "count-cluster": (0, lambda sizes: CountClusterClassifier(sizes[2])),
}  # fmt: skip


def settings() -> list[Sizes]:
    """Draw the settings: vocabulary 6 to 32, rules 2 to 8, branching 2 or 3, depth 2 to 4."""
    rng = np.random.default_rng(SEED)
    drawn: list[Sizes] = []
    while len(drawn) < SETTINGS:
        V, m, s, L = (
            int(rng.integers(low, high)) for low, high in ((6, 33), (2, 9), (2, 4), (2, 5))
        )
        sizes = (V, m, s, L)
        possible = m <= V ** (s - 1) and AFFORDABLE[0] <= V * m**L <= AFFORDABLE[1]
        if possible and sizes not in TESTED and sizes not in drawn:
            drawn.append(sizes)
    return drawn


def accuracy(sizes: Sizes, n: int, learner: str) -> float:
    """Return the mean test accuracy over grammars."""
    fresh, make = LEARNERS[learner]
    found = []
    for seed in range(GRAMMARS):
        target = RandomHierarchy(*sizes, seed=1000 + seed)
        X, y = target.sample(n * (target.depth if fresh else 1), rng=2000 + seed)
        found.append(make(sizes).fit(X, y).score(*target.sample(1000, rng=3000 + seed)))
    return float(np.mean(found))


def half_point(sizes: Sizes, learner: str) -> float:
    """Return N50."""
    V, m, _, L = sizes
    goal, before, n_before = (1 + 1 / V) / 2, 0.0, 0
    for step in range(-4, 9):
        n = round(V * m**L * 2 ** (step / 2))
        now = accuracy(sizes, n, learner)
        if now >= goal:
            share = (now - goal) / (now - before) if n_before else 0.0
            return float(n * 2 ** (-share / 2))
        before, n_before = now, n
    return float("nan")


def thresholds() -> None:
    rows = []
    for sizes in settings():
        V, m, _, L = sizes
        for learner in LEARNERS:
            n50, threshold = half_point(sizes, learner), V * m**L
            row = [learner, *sizes, threshold, round(n50, 1), round(n50 / threshold, 3)]
            rows.append(row)
            print(*row, sep=",", flush=True)
    with Path(__file__).with_suffix(".csv").open("w", newline="") as file:
        names = ["learner", "vocabulary", "rules", "branching", "depth", "p_star", "n50", "ratio"]
        csv.writer(file, lineterminator="\n").writerows([names, *rows])
    for learner in LEARNERS:
        p_star, n50, ratios = np.array([row[5:] for row in rows if row[0] == learner], float).T
        slope = np.polyfit(np.log(p_star), np.log(n50), 1)[0]
        mean = np.exp(np.mean(np.log(ratios)))
        show(f"{learner}: slope of log N50 against log P*", slope, 0.8)
        show(f"{learner}: the same", slope, 1.3, at_least=False)
        show(f"{learner}: geometric mean of N50 / P*", mean, 2.0, at_least=False)
        show(f"{learner}: smallest N50 / P*", ratios.min(), 0.3)
        show(f"{learner}: largest N50 / P*", ratios.max(), 2.5, at_least=False)


def streamed() -> None:
    """Fit random features to strings that are drawn again in each pass; print time, accuracy, memory."""
    target = RandomHierarchy(8, 4, 2, 3)
    source = GeneratedSource(
        lambda rows, rng: target.sample(rows, rng)[0], STREAMED, target.n_leaves, 0, np.int8
    )
    y = np.concatenate([target.classify(block) for _, block in source.chunks(4096)])
    model = LayerwiseRBFClassifier(mode="features", n_features=500)
    seconds = cpu_seconds(lambda: model.fit(source, y), repeats=1)
    print(seconds, model.score(*target.sample(4000, rng=1)), peak_bytes())


def main() -> int:
    if sys.argv[1:] == ["stream"]:
        with one_thread():
            streamed()
        return 0
    with one_thread():
        target = RandomHierarchy(32, 8, 2, 3)
        X, y = target.sample(4 * 32 * 8**3, rng=0)
        fit = cpu_seconds(lambda: CountClusterClassifier().fit(X, y), repeats=1)
        show("count-and-cluster, (32, 8, 2, 3), N = 4 P*", fit, 10, at_least=False, unit=" s")
        done = subprocess.run(
            [sys.executable, __file__, "stream"], check=True, capture_output=True, text=True
        )
        seconds, accuracy_, peak = map(float, done.stdout.split())
        show("random features on 10^6 strings: CPU time", seconds, 300, at_least=False, unit=" s")
        show("random features on 10^6 strings: accuracy", accuracy_, 0.95)
        show("random features on 10^6 strings: peak", peak / 1e6, 1000, at_least=False, unit=" MB")
        thresholds()
    return exit_status()


if __name__ == "__main__":
    raise SystemExit(main())
