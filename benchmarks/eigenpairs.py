"""Measure the computation of leading eigenpairs at d = 120: `python benchmarks/eigenpairs.py [--full]`.

Prints the CPU time of statistics, correction and Lanczos over that of products x 4 n d² flops at the
rate of a GEMM, and peak memory with samples in memory and with regenerated samples. By default
n = 157,744; `--full` takes n = 410,950 and n = 5,000,000 regenerated (about two minutes).
"""

from __future__ import annotations

import sys

import numpy as np
from gemm import cpu_seconds, gemm_rate, one_thread, show
from memory import peak_bytes, peak_of

from solvable.arrays import GeneratedSource
from solvable.operators import HermiteFeatures, MomentOperator, apply_label_map, leading_eigenpairs

DIMENSION = 120
FEATURES = HermiteFeatures(2, DIMENSION)


def draw(rows: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((rows, DIMENSION), dtype=np.float32)


def labels_of(X: np.ndarray, n_latent: int = 11, decay: float = 0.4) -> np.ndarray:
    """Return labels tanh(sum lambda_i (h_i² - 1) / sqrt 2) with features of alternating sign."""
    rng = np.random.default_rng(1)
    A, _ = np.linalg.qr(rng.standard_normal((FEATURES.n_features, n_latent)))
    weights = np.arange(1.0, n_latent + 1) ** -decay * (-1.0) ** np.arange(n_latent)
    weights /= np.linalg.norm(weights)
    h = FEATURES.project(X, A).astype(np.float64)
    return np.tanh(((h**2 - 1) @ weights) / np.sqrt(2))


def time_ratio(n: int) -> bool:
    X = draw(n, np.random.default_rng(0))
    y = labels_of(X)
    products = 0

    def solve() -> None:
        nonlocal products
        operator = MomentOperator(X, apply_label_map(y, "tanh"), FEATURES, correction="wick")
        edge = 2.2 * operator.statistics.noise_scale

        def enough(pairs) -> bool:
            return bool(pairs.converged[np.abs(pairs.values) > edge].all())

        pairs = leading_eigenpairs(operator, 11, 11, enough=enough, rng=0)
        products = pairs.products
        print(f"{products} products, {np.count_nonzero(np.abs(pairs.values) > edge)} outliers")

    before = gemm_rate()
    seconds = cpu_seconds(solve, repeats=1)
    nominal = products * 4.0 * n * DIMENSION**2 / ((before + gemm_rate()) / 2)
    return show(
        f"statistics, Wick and Lanczos, n = {n}: CPU time over products",
        seconds / nominal,
        1.6,
        at_least=False,
    )


def in_memory(n: int) -> None:
    X = draw(n, np.random.default_rng(0))
    y = X[:, 0] * X[:, 1]
    operator = MomentOperator(X, apply_label_map(y, "tanh"), FEATURES, correction="wick")
    _ = operator.statistics
    leading_eigenpairs(operator, 11, 11, max_products=22, rng=0)


def regenerated(n: int) -> None:
    source = GeneratedSource(draw, n, DIMENSION, seed=0, dtype=np.float32)
    y = np.concatenate([block[:, 0] * block[:, 1] for _, block in source.chunks(4096)])
    operator = MomentOperator(source, apply_label_map(y, "tanh"), FEATURES, correction="wick")
    _ = operator.statistics
    leading_eigenpairs(operator, 1, 1, max_products=2, rng=0)


def main() -> int:
    if len(sys.argv) == 3:
        {"in_memory": in_memory, "regenerated": regenerated}[sys.argv[1]](int(sys.argv[2]))
        print(peak_bytes())
        return 0
    full = "--full" in sys.argv
    n, many = (410_950, 5_000_000) if full else (157_744, 500_000)
    with one_thread():
        fine = time_ratio(n)
    size = 4.0 * n * DIMENSION
    peak = peak_of(__file__, "in_memory", str(n)) / size
    fine &= show(f"peak memory over the size of X, n = {n}", peak, 2, at_least=False)
    peak = peak_of(__file__, "regenerated", str(many)) / 1e6
    fine &= show(f"peak memory, regenerated, n = {many}", peak, 500, at_least=False, unit=" MB")
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
