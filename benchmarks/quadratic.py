"""Measure the quadratic network: AMP against FISTA, the published size, a head on digits.

    python benchmarks/quadratic.py

All times are CPU seconds on one BLAS thread. AMP and FISTA fit a power-law target with d = 100 and n =
5000, each with the loosest tolerance that ends within 1e-6 of the minimiser. FISTA's time includes its
40 power iterations, half of its work at penalty 1. The published size is d = 400, n = 160000; its bound
is 90 seconds on two cores.
"""

from __future__ import annotations

import time

import numpy as np
from gemm import cpu_seconds, exit_status, one_thread, show

TOLERANCES = (5e-5, 2e-5, 1e-5, 5e-6, 2e-6, 1e-6)


def speed() -> None:
    """Compare the times of AMP and FISTA to the same minimiser."""
    from solvable.arrays import ArraySource
    from solvable.models.quadratic.network.amp import solve_amp
    from solvable.models.quadratic.network.sensing import SampleSensing
    from solvable.models.quadratic.network.solvers import solve_fista

    d, n = 100, 5000
    rng = np.random.default_rng(0)
    strengths = 1 / np.arange(1, d + 1)
    strengths *= np.sqrt(d / np.sum(strengths**2))
    sensing = SampleSensing(ArraySource(rng.standard_normal((n, d))))
    labels = sensing.forward(np.diag(np.sqrt(strengths))) + np.sqrt(0.5) * rng.standard_normal(n)
    for penalty in (1.0, 0.05):
        exact = solve_fista(sensing, labels, penalty, tolerance=1e-11).matrix
        seconds = []
        for solve in (solve_fista, solve_amp):
            for tolerance in TOLERANCES:
                found = solve(sensing, labels, penalty, tolerance=tolerance).matrix
                if np.linalg.norm(found - exact) <= 1e-6 * np.linalg.norm(exact):
                    break
            seconds.append(
                cpu_seconds(
                    lambda s=solve, p=penalty, t=tolerance: s(sensing, labels, p, tolerance=t)
                )
            )
        show(f"FISTA over AMP, CPU, penalty {penalty}", seconds[0] / seconds[1], 5)


def published() -> None:
    """Fit at the published size of arXiv:2606.28242 with full width; compare time and error."""
    from solvable.arrays import ArraySource
    from solvable.models.quadratic.network.amp import solve_amp
    from solvable.models.quadratic.network.sensing import SampleSensing

    d, n = 400, 160_000
    rng = np.random.default_rng(0)
    strengths = np.arange(1, d + 1) ** -1.25
    strengths *= np.sqrt(d / np.sum(strengths**2))
    sensing = SampleSensing(ArraySource(rng.standard_normal((n, d))))
    labels = sensing.forward(np.diag(np.sqrt(strengths))) + np.sqrt(0.1) * rng.standard_normal(n)
    start = time.process_time()
    found = solve_amp(sensing, labels, 0.1, tolerance=1e-5)
    show("d = 400, n = 160000, CPU", time.process_time() - start, 180, at_least=False, unit=" s")
    error = float(np.sum((found.matrix - np.diag(strengths)) ** 2)) / d
    show(
        "its error over the published 0.01453, minus 1",
        abs(error / 0.01453 - 1),
        0.02,
        at_least=False,
    )


def digits() -> None:
    """Compare predicted and measured test error of a head on digits, mean of ten splits."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    from solvable.models.quadratic.network.learner import QuadraticNetRegressor

    X, y = load_digits(return_X_y=True)
    y = 2.0 * (y % 2) - 1
    for n in (500, 1000, 1400):
        ratios = []
        for seed in range(10):
            rows = np.random.default_rng(seed).permutation(len(X))
            train, test = rows[:n], rows[n:]
            components = PCA(20, random_state=0).fit(X[train])
            model = QuadraticNetRegressor(1.0, whiten=True, tolerance=1e-4)
            model.fit(components.transform(X[train]), y[train])
            error = np.mean((model.predict(components.transform(X[test])) - y[test]) ** 2)
            ratios.append(model.gcv_score_ / error)
        away = abs(float(np.mean(ratios)) - 1)
        show(f"digits, n = {n}: predicted over measured error, minus 1", away, 0.1, at_least=False)


if __name__ == "__main__":
    with one_thread():
        speed()
        published()
        digits()
    raise SystemExit(exit_status())
