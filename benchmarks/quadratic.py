"""AMP against FISTA on the quadratic network, and the predicted error of a head on digits.

    python benchmarks/quadratic.py

Power-law target, d = 100, n = 5000, both to 1e-6 of FISTA's minimiser; CPU seconds, one BLAS thread.
"""

from __future__ import annotations

import numpy as np
from gemm import cpu_seconds, one_thread, show


def speed() -> None:
    """Time to the same minimiser."""
    from solvable.arrays import ArraySource
    from solvable.learners.quadratic_amp import solve_amp
    from solvable.learners.quadratic_sensing import SampleSensing
    from solvable.learners.quadratic_solvers import solve_fista

    d, n = 100, 5000
    rng = np.random.default_rng(0)
    strengths = 1 / np.arange(1, d + 1)
    strengths *= np.sqrt(d / np.sum(strengths**2))
    sensing = SampleSensing(ArraySource(rng.standard_normal((n, d))))
    labels = sensing.forward(np.diag(np.sqrt(strengths))) + np.sqrt(0.5) * rng.standard_normal(n)
    for penalty in (1.0, 0.05):
        exact = solve_fista(sensing, labels, penalty, tolerance=1e-9).matrix
        fast = solve_amp(sensing, labels, penalty, tolerance=1e-6)
        away = float(np.linalg.norm(fast.matrix - exact) / np.linalg.norm(exact))
        show(f"AMP's distance from the minimiser, penalty {penalty}", away, 1e-6, at_least=False)
        slow = cpu_seconds(lambda p=penalty: solve_fista(sensing, labels, p), 3)
        quick = cpu_seconds(lambda p=penalty: solve_amp(sensing, labels, p), 3)
        show(f"FISTA over AMP, CPU, penalty {penalty}", slow / quick, 5)


def digits() -> None:
    """Predicted over real test error, mean of ten splits."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    from solvable.learners.quadratic import QuadraticNetRegressor

    X, y = load_digits(return_X_y=True)
    y = 2.0 * (y % 2) - 1
    for n in (500, 1000, 1400):
        ratios = []
        for seed in range(10):
            rows = np.random.default_rng(seed).permutation(len(X))
            train, test = rows[:n], rows[n:]
            whitening = PCA(20, whiten=True, random_state=0).fit(X[train])
            model = QuadraticNetRegressor(1.0, solver="fista", tolerance=1e-4)
            model.fit(whitening.transform(X[train]), y[train])
            error = np.mean((model.predict(whitening.transform(X[test])) - y[test]) ** 2)
            ratios.append(model.gcv_score_ / error)
        away = abs(float(np.mean(ratios)) - 1)
        show(f"digits, n = {n}: predicted over real error, from 1", away, 0.1, at_least=False)


if __name__ == "__main__":
    with one_thread():
        speed()
        digits()
