"""Compare operator products with a GEMM in the same process: `python benchmarks/operator_product.py`.

Nominal flops per vector are 4 n d² at degree 2 and 2 n d³ at degree 3. The symmetric forms do half
of that arithmetic, so a ratio above 1 is possible. The torch figures need torch.

At degree 3 and d up to 24, a single vector stays below the goal of 0.7 and has a lower bound. The script
also measures the limit of every form that stores the pairs of coordinates in memory: pairs are written
once, and read for two products. Each product takes the time of a sum of squares over the pairs, or that
of its arithmetic at the rate of a GEMM of size 2000 if that is longer.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from gemm import cpu_seconds, gemm_rate, one_thread, ratio, show

from solvable.operators import HermiteFeatures, MomentOperator
from solvable.operators._cubic import Cubic
from solvable.operators._engines import products_of_pairs

CASES = (
    # dimension, samples, vectors, bound
    (120, 157_744, 1, 0.75),
    (120, 157_744, 8, 0.75),
    (200, 50_000, 1, 0.75),
    (200, 50_000, 8, 1.05),
)

CUBIC_CASES = (
    (14, 60_000, 1, 0.2),
    (20, 40_000, 1, 0.35),
    (30, 20_000, 8, 0.7),
    (40, 20_000, 1, 0.6),
    (40, 20_000, 8, 0.7),
    (60, 10_000, 1, 0.7),
    (60, 10_000, 8, 0.7),
)


def product_ratio(
    xp: Any, dimension: int, n: int, vectors: int, correction: Any = "none", degree: int = 2
) -> float:
    rng = np.random.default_rng(0)
    host = rng.standard_normal((n, dimension), dtype=np.float32)
    weights = np.tanh(rng.standard_normal(n))
    features = HermiteFeatures(degree, dimension)
    operator = MomentOperator(
        xp.asarray(host), weights - weights.mean(), features, correction=correction
    )
    U = xp.asarray(rng.standard_normal((features.n_features, vectors)))
    per_row = 4.0 * dimension**2 if degree == 2 else 2.0 * dimension**3
    return ratio(lambda: operator.matmat(U), per_row * n * vectors, xp)


def pairs_alone(dimension: int) -> float:
    """Return the share of the GEMM at degree 3 if only pairs and arithmetic of one vector took time."""
    engine = Cubic(dimension)
    rows = engine.rows(1)
    columns = np.random.default_rng(0).standard_normal((dimension, rows), dtype=np.float32)
    flat = products_of_pairs(columns).ravel()
    shares = []
    for _ in range(9):
        rate = gemm_rate(repeats=1)
        write = cpu_seconds(lambda: [products_of_pairs(columns) for _ in range(50)], 1) / 50
        read = cpu_seconds(lambda: [flat @ flat for _ in range(50)], 1) / 50
        done = 2 * rows * sum((some.stop - some.start) * last for some, last in engine.blocks)
        shares.append(2 * dimension**3 * rows / (write + 2 * max(read, done / rate)) / rate)
    return float(np.median(shares))


def main() -> int:
    engines: list[tuple[str, Any]] = [("numpy", np)]
    if find_spec("torch") is not None:
        import torch

        engines.append(("torch", torch))
    fine = True
    with one_thread():
        for name, xp in engines:
            for dimension, n, vectors, bound in CASES:
                value = product_ratio(xp, dimension, n, vectors)
                what = f"{name} float32, d = {dimension}, n = {n}, {vectors} vector(s)"
                fine &= show(what, value, bound if xp is np else 0.7)
        for dimension, n, vectors, bound in CUBIC_CASES:
            value = product_ratio(np, dimension, n, vectors, degree=3)
            what = f"numpy float32, degree 3, d = {dimension}, n = {n}, {vectors} vector(s)"
            fine &= show(what, value, bound)
        for dimension in (14, 16, 20, 24):
            print(
                f"  limit of forms with pairs, d = {dimension}, 1 vector: {pairs_alone(dimension):.2f}"
            )
        value = product_ratio(np, 120, 157_744, 1, "wick")
        fine &= show("numpy float32, d = 120, n = 157744, 1 vector, Wick", value, 0.75)
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
