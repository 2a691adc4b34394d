"""Measure a whole fit at d = 120: time over products and over power iteration, and peak memory.

    python benchmarks/whole_fit.py             all figures; 15 to 25 minutes on one core
    python benchmarks/whole_fit.py time        time and overlap only
    python benchmarks/whole_fit.py memory      peak memory only

Each peak is measured in its own process. Time is CPU seconds on one BLAS thread for the whole fit: label
map, edges, Lanczos, second layer and readout.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from gemm import gemm_rate, one_thread, show
from memory import peak_bytes, peak_of

DIMENSION, FEATURES, SAMPLES, FRESH, STREAMED = 120, 11, 410_950, 20_000, 5_000_000


def make_target():
    from solvable.targets import HierarchicalTarget

    return HierarchicalTarget(
        DIMENSION, features=FEATURES, decay=0.4, readout="tanh", signs="alternating", seed=0
    )


def make_learner(**options):
    from solvable.learners import LayerwiseSpectralRegressor

    chosen = {
        "n_directions": FEATURES,
        "correction": "wick",
        "held_back": FRESH,
        "shuffle": False,
        "random_state": 0,
        **options,
    }
    return LayerwiseSpectralRegressor(2, **chosen)


def overlap(target, directions):
    return float(np.sum((target.directions.T @ directions) ** 2) / FEATURES)


def figures_of_time() -> bool:
    from solvable.arrays import random_stream
    from solvable.learners import block_power_iteration
    from solvable.operators import MomentOperator, apply_label_map

    target = make_target()
    X, y = target.sample(SAMPLES + FRESH, random_stream(0, "fit"), dtype=np.float32)
    rate = gemm_rate()
    start = time.process_time()
    learner = make_learner().fit(X, y)
    fit_seconds = time.process_time() - start
    rate = (rate + gemm_rate()) / 2
    nominal = learner.n_products_ * 4 * SAMPLES * DIMENSION**2 / rate
    print(
        f"fit: {fit_seconds:.1f} s, {learner.n_products_} products by {learner.route_}, "
        f"{learner.eigenvalues_.size} features, GEMM {rate / 1e9:.0f} GF/s"
    )
    good = show(
        "whole fit / (products x 4 n d² at the rate of a GEMM)",
        fit_seconds / nominal,
        1.6,
        at_least=False,
    )

    operator = MomentOperator(
        X[:SAMPLES], apply_label_map(y[:SAMPLES], "tanh"), target.feature_map, correction="wick"
    )
    start = time.process_time()
    vectors = block_power_iteration(operator, FEATURES, passes=15, rng=random_stream(0, "power"))
    power_seconds = time.process_time() - start
    print(f"power iteration, 15 passes: {power_seconds:.1f} s, {operator.products} products")
    ours, theirs = overlap(target, learner.directions_), overlap(target, vectors)
    print(f"mean squared overlap: {ours:.3f} against {theirs:.3f}")
    good &= show(
        "seconds / those of power iteration", fit_seconds / power_seconds, 1.0, at_least=False
    )
    return good & show("overlap minus that of power iteration", ours - theirs, 0.0)


def fit_for_memory(what: str) -> None:
    """Run the process whose peak is measured; few products suffice, all take the same memory."""
    from solvable.arrays import random_stream

    target = make_target()
    if what == "streamed":
        X, y = target.source(STREAMED, 0, np.float32)
        options = {"held_back": 0.25, "max_products": 24, "selection": "forced", "n_directions": 4}
    else:
        X, y = target.sample(SAMPLES + FRESH, random_stream(0, "fit"), dtype=np.float32)
        options = {"max_products": 40}
    if what != "samples":
        make_learner(solver="lanczos", **options).fit(X, y)
    print(peak_bytes())


def figures_of_memory() -> bool:
    size = (SAMPLES + FRESH) * DIMENSION * 4
    fit = peak_of(__file__, "peak", "fit")
    print(
        f"samples {size / 1e6:.0f} MB; peak while they are drawn "
        f"{peak_of(__file__, 'peak', 'samples') / 1e6:.0f} MB"
    )
    good = show("peak of the process / size of X", fit / size, 2.0, at_least=False)
    streamed = peak_of(__file__, "peak", "streamed")
    return good & show(
        "peak with 5 million regenerated samples", streamed / 1e6, 500.0, at_least=False, unit=" MB"
    )


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["peak"]:
        fit_for_memory(arguments[1])
        return 0
    good = True
    with one_thread():
        if arguments[:1] != ["memory"]:
            good &= figures_of_time()
        if arguments[:1] != ["time"]:
            good &= figures_of_memory()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
