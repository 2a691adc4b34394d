"""Compare predicted overlaps near a threshold, where theory is hardest, with 20 replicates.

    python benchmarks/near_threshold.py --seed 1

Draws settings of sequential recovery at random (every sign, map, readout, second layer and input;
degree 1 with 60 to 900 dimensions, degree 2 with 8 to 44, degree 3 with 7 to 13; up to 11 features),
each with a sample size between half and four times the threshold of one of its features. Prints a row
for each setting, and the share of overlaps within 0.05 of the mean of the replicates: for all features,
and for those between half and four times their own threshold. A perfect prediction would not reach 100 %,
because means of 20 replicates have statistical errors. Exits with 1 if a share is less than `SHARE` times
that of a perfect prediction.
"""

from __future__ import annotations

import argparse
import multiprocessing
from typing import Any

import numpy as np
from gemm import one_thread
from pydantic import ValidationError

from solvable.arrays import random_stream
from solvable.errors import SolvableError
from solvable.frame import registry
from solvable.models.sequential.predict import predict

SIZES = {1: (60, 900), 2: (8, 44), 3: (7, 13)}
WITHIN = 0.05
SHARE = 0.9
WORK = 5e7
"""Largest product of samples and directions of a setting."""


def draw_setting(rng: np.random.Generator) -> dict[str, Any]:
    """Draw all parameters except the sample size."""

    def pick(*choices: str) -> str:
        return choices[rng.integers(len(choices))]

    degree = int(rng.choice([1, 2, 3], p=[1 / 7, 5 / 7, 1 / 7]))
    inputs = pick("hermite", "hermite", "hermite", "gaussian")
    plain = inputs == "gaussian" or degree == 1
    return {
        "dimension": int(np.exp(rng.uniform(*np.log(SIZES[degree])))),
        "degree": degree,
        "features": int(np.exp(rng.uniform(0, np.log(11)))),
        "decay": round(rng.uniform(0, 1.4), 2),
        "inputs": inputs,
        "readout": pick("identity", "tanh"),
        "signs": pick("random", "alternating", "positive"),
        "first_layer": pick("orthonormal", "orthonormal", "orthonormal", "random"),
        "label_map": pick("identity", "tanh", "clip"),
        "correction": "none" if plain else pick("none", "wick", "wick"),
        "second_layer": pick("least-squares", "least-squares", "in-sample", "shrinkage"),
        "test_samples": 5_000,
    }


def compare(task: tuple[int, int, int]) -> tuple[str, np.ndarray]:
    """Return the row of the table, overlaps, their errors, predicted overlaps, and n / threshold."""
    seed, index, replicates = task
    system = registry.load("sequential-recovery")
    rng = random_stream("near-threshold", seed, index)
    while True:
        setting = draw_setting(rng)
        try:
            whole = system.parameters(**setting)
            thresholds = np.array(predict(whole)["threshold_samples"], float)
            chosen = thresholds[rng.integers(thresholds.size)]
            samples = chosen * np.exp(rng.uniform(np.log(0.5), np.log(4)))
            if not 50 < samples < WORK / whole.n_features_total:
                continue
            parameters = system.parameters(**setting, samples=int(samples))
            predicted = system.predict(parameters)
        except (ValidationError, SolvableError, TypeError):
            continue  # draw again if the system refuses the setting
        if predicted["squared_overlap"] is None:
            continue
        break
    rows = [
        system.measure(parameters, random_stream("near-threshold", seed, index, replicate))
        for replicate in range(replicates)
    ]
    overlaps = np.array([row["squared_overlap"] for row in rows], float)
    mean, error = overlaps.mean(axis=0), overlaps.std(axis=0, ddof=1) / np.sqrt(replicates)
    expected = np.array(predicted["squared_overlap"], float)
    cells = (
        " ".join(f"{key}={value}" for key, value in setting.items() if key != "test_samples"),
        f"{samples:.0f}",
        " ".join(f"{one:.2f}±{off:.2f}" for one, off in zip(mean, error, strict=True)),
        " ".join("–" if np.isnan(one) else f"{one:.2f}" for one in expected),
    )
    row = f"| `{cells[0]}` | {' | '.join(cells[1:])} |"
    return row, np.stack([mean, error, expected, samples / thresholds])


def main() -> int:
    """Draw settings, measure their overlaps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=60)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    tasks = [(asked.seed, index, asked.replicates) for index in range(asked.settings)]
    found = []
    print("| setting | samples | measured | predicted |\n|---|---|---|---|")
    with multiprocessing.get_context("spawn").Pool(asked.workers) as pool:
        for row, overlaps in pool.imap(compare, tasks):
            print(row, flush=True)
            found.append(overlaps)
    mean, error, expected, place = np.concatenate(found, axis=1)
    near, known = (place > 0.5) & (place < 4), np.isfinite(expected)
    shares = [
        show_shares("all", mean, error, expected, known),
        show_shares("between half and four thresholds", mean, error, expected, known & near),
    ]
    return int(min(shares) < SHARE)


def show_shares(
    name: str, mean: np.ndarray, error: np.ndarray, expected: np.ndarray, chosen: np.ndarray
) -> float:
    """Print the share of overlaps within 0.05; return it over that of a perfect prediction."""
    from scipy.special import erf

    off, error = (mean - expected)[chosen], np.maximum(error[chosen], 1e-9)
    within, best = np.mean(np.abs(off) < WITHIN), np.mean(erf(WITHIN / error / np.sqrt(2)))
    print(
        f"\n{name}: {chosen.sum()} overlaps, {within:.0%} within {WITHIN} of the measured mean; a "
        f"perfect prediction would have {best:.0%}. Root mean square deviation "
        f"{np.sqrt(np.mean(off**2)):.3f}, standard error {np.sqrt(np.mean(error**2)):.3f}."
    )
    return float(within / best)


if __name__ == "__main__":
    with one_thread():
        raise SystemExit(main())
