"""Compare measured errors of matrix models at random settings with state evolution.

    python benchmarks/held_out_errors.py --seed 20261203

The models are matrix sensing, bilinear sequences, attention-indexed labels and a trained attention head,
in 60 to 240 dimensions, at noise, rank and samples where the error is below that of no learning. Prints
the error of infinite dimension and, where it is predicted, the error at this dimension.
"""

from __future__ import annotations

import argparse

import numpy as np
from gemm import one_thread

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, NotConverged
from solvable.frame import registry
from solvable.frame.points import NO_PREDICTION

SYSTEMS = ("matrix-sensing", "bilinear-sequence", "attention-indexed", "single-head-attention")


def between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def drawn(name: str, rng: np.random.Generator) -> dict[str, object]:
    """Draw a setting that takes a few seconds to measure."""
    d = int(between(rng, 60, 240))
    setting: dict[str, object] = {
        "dimension": d,
        "rank_ratio": between(rng, 0.1, 2.0),
        "noise": between(rng, 0.02, 2.0),
        "sample_ratio": between(rng, 0.1, 1.2),
    }
    if name == "matrix-sensing":
        setting["sensors"] = ("goe", "rank-one")[rng.integers(2)] if d < 90 else "rank-one"
        setting["estimator"] = ("bayes", "nuclear-norm")[rng.integers(2)]
    elif name == "bilinear-sequence":
        setting |= {"dimension": int(between(rng, 20, 60)), "aspect": between(rng, 1, 3)}
    else:
        setting["tokens"] = int(rng.integers(2, 4))
        setting["sample_ratio"] = between(rng, 0.05, 0.5)
        if name == "attention-indexed":
            setting["activation"] = ("linear", "softmax", "hardmax")[rng.integers(3)]
        else:
            setting["dimension"] = int(between(rng, 50, 110))
            setting["regularisation"] = between(rng, 0.01, 0.1)
    return setting


def main() -> int:
    """Draw settings, measure their errors and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=12)
    parser.add_argument("--replicates", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = random_stream("held-out errors", asked.seed)
    print(
        "| setting | measured | state evolution | prediction at this dimension |\n|---|---|---|---|"
    )
    for k in range(asked.settings):
        name = SYSTEMS[k % len(SYSTEMS)]
        system, values = registry.load(name), drawn(name, rng)
        shown = " ".join(
            f"{key}={value:.3g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in values.items()
        )
        try:
            setting = system.parameters(**values)
            told = system.predict(setting)
            found = [
                system.measure(setting, random_stream("held-out", asked.seed, k, i))["matrix_error"]
                for i in range(asked.replicates)
            ]
        except (InvalidParameter, NotConverged, ValueError) as error:
            print(f"| **{name}** `{shown}` | {str(error)[:150]} | | |", flush=True)
            continue
        measured = np.array([value for value in found if value is not None], dtype=float)
        mean = measured.mean() if measured.size else np.nan
        scatter = measured.std(ddof=1) / np.sqrt(measured.size) if measured.size > 1 else np.nan
        cells = [f"{mean:.4f} ± {scatter:.4f} ({measured.size} of {asked.replicates})"]
        for key in ("matrix_error", "finite_size_matrix_error"):
            value = told.get(key)
            cells.append(f"{value:.4f} ({mean / value - 1:+.1%})" if value else "–")
        reason = told.get(NO_PREDICTION)
        cells[-1] += f" {str(reason)[:120]}" if reason and cells[1] == "–" else ""
        print(f"| **{name}** `{shown}` | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    with one_thread():
        raise SystemExit(main())
