"""Compare the time to fit a filter network with that of its large operations; test block Krylov.

    python benchmarks/lofi_fit.py

The network has a lift of width 3,000, 40 filters and another lift; it is fitted to 5,000 MNIST images in
float64 on one BLAS thread. Its large operations are two lifts, two Gram matrices, and the
tridiagonalisation of one Gram matrix, which the readout uses to try all penalties. Fit and operations are
timed alternately, in CPU seconds.
"""

from __future__ import annotations

import time

import numpy as np
from gemm import cpu_seconds, exit_status, one_thread, show

WIDTH, KEPT = 3000, 40


def main() -> None:
    """Measure all ratios and print them."""
    from scipy.linalg.lapack import dsytrd, dsytrd_lwork

    from solvable.data import load
    from solvable.learners import Block, NeuralLoFiClassifier
    from solvable.operators import (
        LabelMoments,
        MomentSignals,
        RandomLift,
        block_krylov,
        dense_by_modulus,
    )

    data = load("mnist-5k")
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y).astype(int)
    X = (X - X.mean()) / X.std()
    weights = np.random.default_rng(0).standard_normal((X.shape[1], WIDTH))
    Z = X @ weights

    space = int(dsytrd_lwork(WIDTH, lower=1)[0])

    def operations() -> None:
        X @ weights
        Z.T @ Z
        Z[:, :KEPT] @ weights[:KEPT]
        gram = Z.T @ Z
        # The transpose of a symmetric matrix is itself, in LAPACK's column-major order.
        dsytrd(gram.T, lower=1, lwork=space, overwrite_a=1)

    def fit(labels: np.ndarray) -> NeuralLoFiClassifier:
        blocks = [Block(None, WIDTH), Block(KEPT, WIDTH)]
        return NeuralLoFiClassifier(blocks, scaling="none", random_state=0).fit(X, labels)

    alone, fitted = [], []
    for _ in range(3):
        alone.append(cpu_seconds(operations, 1))
        fitted.append(cpu_seconds(lambda: fit(y % 2), 1))
    print(f"operations {min(alone):.2f} s, fit {min(fitted):.2f} s")
    show("fit over its operations", min(fitted) / min(alone), 1.6, at_least=False)

    start = time.process_time()
    fit(y)
    ten = time.process_time() - start
    show("ten classes, over the operations of two", ten / min(alone), 3.0, at_least=False)

    scale = float(np.sqrt(np.mean(np.sum(X**2, axis=1))))
    lifted = RandomLift(X.shape[1], WIDTH, scale=scale).transform(X)
    signals = MomentSignals(LabelMoments(WIDTH, 2).add(lifted, y % 2), np.array([[-1.0, 1.0]]))
    exact = dense_by_modulus(signals.dense(0), KEPT).vectors
    found = block_krylov(
        lambda Q: signals.products(Q)[0], WIDTH, KEPT, passes=4, tolerance=np.inf
    ).vectors
    overlap = float(np.sum((exact.T @ found) ** 2)) / KEPT
    show("block Krylov, 4 passes: squared overlap with the exact subspace", overlap, 0.995)


if __name__ == "__main__":
    with one_thread():
        main()
    raise SystemExit(exit_status())
