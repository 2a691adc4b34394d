"""Compare the moment operator on a CUDA device with a GEMM: `python benchmarks/device_product.py`.

Prints the flop rate of the product as a share of a float32 GEMM of size 8192 on the same device.
Times are the best of several repeats, between two synchronisations, in float32 without TF32. Nominal
flops per vector are 4 n d (degree 1), 4 n d² (degree 2) and 2 n d³ (degree 3, where half of them
are computed). Without a device the script prints a message and exits with 0; `--cpu` runs all cases on
the host with a hundredth of the samples.
"""

from __future__ import annotations

import numpy as np
from gemm import device_gemm_rate, device_seconds, show, torch_and_device

from solvable.operators import HermiteFeatures, MomentOperator

CASES = (
    # degree, dimension, samples, vectors, least share of the GEMM's rate
    (1, 4096, 1_000_000, 1, 0.0),
    (1, 4096, 1_000_000, 64, 0.4),
    (2, 120, 4_000_000, 1, 0.2),
    (2, 120, 4_000_000, 8, 0.3),
    (2, 512, 1_000_000, 1, 0.4),
    (2, 512, 1_000_000, 8, 0.4),
    (3, 60, 1_000_000, 1, 0.3),
    (3, 60, 1_000_000, 8, 0.5),
)


def main() -> int:
    chosen = torch_and_device()
    if chosen is None:
        return 0
    torch, device = chosen
    host = device == "cpu"
    rate = device_gemm_rate(torch, device)
    print(f"{device}: GEMM {rate / 1e12:.3g} TF/s in float32")
    fine = True
    for degree, dimension, most, vectors, bound in CASES:
        n = most // 100 if host else most
        X = torch.randn(n, dimension, device=device)
        weights = np.tanh(np.random.default_rng(0).standard_normal(n))
        features = HermiteFeatures(degree, dimension)
        operator = MomentOperator(X, weights - weights.mean(), features)
        U = torch.randn(features.n_features, vectors, dtype=torch.float64, device=device)
        elapsed = device_seconds(
            lambda op=operator, V=U: op.matmat(V), torch, repeats=2 if host else 5
        )
        per_row = {1: 4.0 * dimension, 2: 4.0 * dimension**2, 3: 2.0 * dimension**3}[degree]
        share = per_row * n * vectors / elapsed / rate
        what = f"degree {degree}, d = {dimension}, n = {n}, {vectors} vector(s), {elapsed:.3g} s"
        fine &= show(what, share, 0.0 if host else bound)
        del X, operator, U
        if not host:
            torch.cuda.empty_cache()
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
