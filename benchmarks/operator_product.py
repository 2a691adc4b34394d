"""Operator products against a GEMM in the same process: `python benchmarks/operator_product.py`.

Nominal flops per vector are 4 n d^2 at degree 2 and 2 n d^3 at degree 3; the symmetric forms do half
of that arithmetic, so that a ratio above one is possible. The torch lines are left out where torch is
not installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from gemm import one_thread, ratio, show

from solvable.operators import HermiteFeatures, MomentOperator

CASES = (
    # dimension, samples, vectors, bound
    (120, 157_744, 1, 0.75),
    (120, 157_744, 8, 0.75),
    (200, 50_000, 1, 0.75),
    (200, 50_000, 8, 1.05),
)

CUBIC_CASES = (
    # Below d = 30 pairs of coordinates cost as much as what is multiplied with them.
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
        value = product_ratio(np, 120, 157_744, 1, "wick")
        fine &= show("numpy float32, d = 120, n = 157744, 1 vector, Wick", value, 0.75)
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
