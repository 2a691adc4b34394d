"""Compare predicted overlaps of multi-index models at random settings with experiments.

    python benchmarks/held_out_overlaps.py --seed 20261201

Compares every feature at 1.5 times its threshold or more, after one pass, for link functions by name and
by formula and label maps with a finite threshold. Prints the share of overlaps within 0.03 of the mean of
the replicates, and the share that a perfect prediction would reach, from the standard errors. Exits
with 1 if the first share is below 0.9 of the second.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from gemm import one_thread
from random_settings import LINKS
from scipy.special import ndtr

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.multi_index.hierarchical.measure import measure
from solvable.models.multi_index.hierarchical.parameters import HierarchicalParameters
from solvable.models.multi_index.hierarchical.predict import predict

WITHIN = 0.03


def drawn(rng: np.random.Generator) -> HierarchicalParameters | None:
    """Draw a setting; return None if no feature is at 1.5 times its threshold or more."""
    dimension = int(np.exp(rng.uniform(np.log(60), np.log(500))))
    setting = HierarchicalParameters(
        dimension=dimension,
        features=int(np.exp(rng.uniform(0, np.log(dimension / 5)))),
        decay=float(rng.uniform(0, 2)),
        link=LINKS[rng.integers(len(LINKS))],
        noise=float(np.exp(rng.uniform(np.log(0.02), np.log(5)))),
        sample_ratio=float(np.exp(rng.uniform(np.log(2), np.log(2e4 / dimension)))),
        label_map=("tanh", "square", "identity", "optimal")[rng.integers(4)],
        readout="none",
    )
    try:
        predicted = predict(setting)
    except InvalidParameter:
        return None
    threshold = np.asarray(predicted["threshold_ratio"], dtype=float)
    return setting if (setting.sample_ratio > 1.5 * threshold).any() else None


def main() -> int:
    """Draw settings, measure their overlaps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=10)
    parser.add_argument("--replicates", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = random_stream("held-out overlaps", asked.seed)
    hits, possible, count, squares = 0, 0.0, 0, 0.0
    print("| setting | features | largest deviation: predicted, measured | within 0.03 |")
    print("|---|---|---|---|")
    for _ in range(asked.settings):
        while (setting := drawn(rng)) is None:
            pass
        predicted = predict(setting)
        above = setting.sample_ratio > 1.5 * np.asarray(predicted["threshold_ratio"], dtype=float)
        records = [
            measure(setting, random_stream("held-out", asked.seed, setting.place, replicate))
            for replicate in range(asked.replicates)
        ]
        values = np.array([record["squared_overlap"] for record in records])[:, above]
        theory = np.asarray(predicted["squared_overlap"], dtype=float)[above]
        mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(asked.replicates)
        off = np.abs(mean - theory)
        worst = int(np.argmax(off))
        hits += int((off <= WITHIN).sum())
        possible += float((2 * ndtr(WITHIN / np.maximum(error, 1e-9)) - 1).sum())
        count, squares = count + off.size, squares + float(off @ off)
        print(
            f"| d = {setting.dimension}, p = {setting.features}, {setting.place} | {off.size} | "
            f"{theory[worst]:.3f}, {mean[worst]:.3f} ± {error[worst]:.3f} | "
            f"{int((off <= WITHIN).sum())} |",
            flush=True,
        )
    print(
        f"\n{hits / count:.0%} of {count} overlaps within {WITHIN}; a perfect prediction would have "
        f"{possible / count:.0%}. Root mean square deviation {np.sqrt(squares / count):.3f}."
    )
    return int(hits < 0.9 * possible)


if __name__ == "__main__":
    with one_thread():
        sys.exit(main())
