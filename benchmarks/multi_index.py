"""Measure the speed and memory of the two-stage learner: `python benchmarks/multi_index.py [--full]`.

Prints the CPU time of a fit at d = 2000 with 16 features over that of its products as GEMMs (correlation,
operator, permuted operator, readout), with and without the default whitening; and peak memory and time of
a fit of regenerated samples at d = 500. The first uses n = 16,000 and the second n = 200,000; with
`--full`, n = 64,000 and 5,000,000 (about ten minutes).
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from gemm import cpu_seconds, exit_status, gemm_rate, one_thread, show
from memory import peak_bytes, peak_of

from solvable.arrays import GeneratedSource
from solvable.learners import MultiIndexRegressor

FEATURES = 16
NEURONS = 300


def draw(dimension: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((rows, dimension), dtype=np.float32)


def labels_of(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the noisy sum of sixteen features of slowly falling strength."""
    a = np.arange(1.0, FEATURES + 1) ** -0.25
    z = X[:, :FEATURES].astype(np.float64)
    return (z**2 - 1) @ a + rng.standard_normal(len(X))


def learner(whiten: str, n_directions: int | str = FEATURES) -> MultiIndexRegressor:
    return MultiIndexRegressor(
        n_directions,
        linear=n_directions == "auto",
        whiten=whiten,
        n_neurons=NEURONS,
        random_state=0,
    )


def time_ratio(n: int, dimension: int, whiten: str) -> None:
    rng = np.random.default_rng(0)
    X = draw(dimension, n, rng)
    y = labels_of(X, rng)
    before = gemm_rate()
    model = learner(whiten)
    seconds = cpu_seconds(lambda: model.fit(X, y), repeats=1)
    rate = (before + gemm_rate()) / 2
    # GEMMs: X^T diag(T) X for the operator and its permutation, X^T X for the correlation, and the Gram
    # matrix of the neurons, which counts twice because it is in float64.
    moments = (3 if whiten == "shrunk" else 2) * 2.0 * n * dimension**2
    readout = 2 * (2.0 * n * NEURONS**2) + 2.0 * n * dimension * FEATURES
    found = np.sum(model.components_[:, :FEATURES] ** 2) / FEATURES
    print(f"n = {n}: {seconds:.1f} s, mean squared overlap {found:.2f}")
    show(
        f"fit, d = {dimension}, n = {n}, whiten = {whiten}: CPU time over products",
        seconds * rate / (moments + readout),
        1.5,
        at_least=False,
    )


def regenerated(n: int, dimension: int) -> None:
    """Fit samples that are drawn again in each pass; print time and peak memory."""
    source = GeneratedSource(partial(draw, dimension), n, dimension, 0, np.float32)
    rng = np.random.default_rng(1)
    y = np.concatenate([labels_of(block, rng) for _, block in source.chunks(4096)])
    seconds = cpu_seconds(lambda: learner("shrunk", "auto").fit(source, y), repeats=1)
    print(f"{seconds:.0f} s", file=sys.stderr)


def main() -> int:
    if sys.argv[1:2] == ["regenerated"]:
        with one_thread():
            regenerated(int(sys.argv[2]), 500)
        print(peak_bytes())
        return 0
    n, many = (64_000, 5_000_000) if "--full" in sys.argv else (16_000, 200_000)
    with one_thread():
        for whiten in ("none", "shrunk"):
            time_ratio(n, 2_000, whiten)
    peak = peak_of(__file__, "regenerated", str(many)) / 1e6
    show(f"peak memory, regenerated, d = 500, n = {many}", peak, 1_000, at_least=False, unit=" MB")
    return exit_status()


if __name__ == "__main__":
    raise SystemExit(main())
