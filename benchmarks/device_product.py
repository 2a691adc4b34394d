"""The moment operator on a CUDA device against its GEMM: `python benchmarks/device_product.py`.

Seconds between two synchronisations, float32 without tensor cores' short formats, best of several
repeats, as a share of a float32 GEMM of size 8192 on the same device. Nominal flops per vector are
4 n d (degree 1), 4 n d^2 (degree 2) and 2 n d^3 (degree 3, of which a quarter is done). Exits 0
without a device, after saying so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from gemm import show

from solvable.operators import HermiteFeatures, MomentOperator

CASES = (
    # degree, dimension, samples, vectors, least share
    (1, 4096, 1_000_000, 1, 0.0),
    (1, 4096, 1_000_000, 64, 0.4),
    (2, 120, 4_000_000, 1, 0.2),
    (2, 120, 4_000_000, 8, 0.3),
    (2, 512, 1_000_000, 1, 0.4),
    (2, 512, 1_000_000, 8, 0.4),
    (3, 60, 1_000_000, 1, 0.3),
    (3, 60, 1_000_000, 8, 0.5),
)


def seconds(work: Callable[[], Any], torch: Any, repeats: int = 5) -> float:
    """Least seconds of several repeats, the queue of the device emptied before and after."""
    work()
    best = float("inf")
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    if find_spec("torch") is None:
        print("skipped: torch is not installed")
        return 0
    import torch

    if not torch.cuda.is_available():
        print("skipped: there is no CUDA device")
        return 0
    torch.backends.cuda.matmul.allow_tf32 = False
    square = torch.randn(8192, 8192, device="cuda")
    rate = 2 * 8192**3 / seconds(lambda: square @ square, torch)
    print(f"{torch.cuda.get_device_name()}: GEMM {rate / 1e12:.1f} TF/s in float32")
    fine = True
    for degree, dimension, n, vectors, bound in CASES:
        X = torch.randn(n, dimension, device="cuda")
        weights = np.tanh(np.random.default_rng(0).standard_normal(n))
        features = HermiteFeatures(degree, dimension)
        operator = MomentOperator(X, weights - weights.mean(), features)
        U = torch.randn(features.n_features, vectors, dtype=torch.float64, device="cuda")
        elapsed = seconds(lambda op=operator, V=U: op.matmat(V), torch)
        per_row = {1: 4.0 * dimension, 2: 4.0 * dimension**2, 3: 2.0 * dimension**3}[degree]
        share = per_row * n * vectors / elapsed / rate
        what = f"degree {degree}, d = {dimension}, n = {n}, {vectors} vector(s), {elapsed:.3g} s"
        fine &= show(what, share, bound)
        del X, operator, U
        torch.cuda.empty_cache()
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
