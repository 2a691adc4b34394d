"""Measure CPU time of `solvable learn` on digits and tables of 100,000 x 50, and of images.

    python benchmarks/learn.py [digits] [numbers] [classes] [images]

Each command runs as for a user, including imports and report. Printed are the CPU seconds of all its
processes, and the memory of the largest. For images, a network with default options is fitted to 4,000
images of MNIST-5k; its time is divided by that of a kernel ridge regression with a Gaussian kernel in the
same process. Without names all four are measured.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from gemm import exit_status, one_thread, show

ROWS, COLUMNS = 100_000, 50


def table(folder: Path, classes: bool) -> Path:
    """Write a table whose target depends on four of fifty columns, as numbers or three classes."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((ROWS, COLUMNS))
    noise = rng.standard_normal(ROWS)
    if classes:
        score = np.tanh(X[:, 0] * X[:, 1]) + X[:, 2] + 0.5 * noise
        target = np.digitize(score, [-0.7, 0.7]).astype(float)
    else:
        target = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.7 * np.abs(X[:, 3]) + 0.8 * noise
    path = folder / "table.csv"
    names = ",".join([*(f"c{k}" for k in range(COLUMNS)), "target"])
    whole = np.column_stack([X, target])
    np.savetxt(path, whole, delimiter=",", header=names, comments="", fmt="%.5g")
    return path


def command(name: str, most: float, *arguments: str) -> None:
    """Measure CPU time and memory of `solvable learn` with these arguments."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "solvable", "learn", *arguments, "--output", f"{folder}/out"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name}: largest process so far {after.ru_maxrss / 1e6:.2f} GB")
    show(f"{name}, CPU seconds", spent, most, at_least=False)


def images() -> None:
    """Compare error and time of the default network with kernel ridge of a tuned width."""
    from sklearn.kernel_ridge import KernelRidge

    from solvable.data import load
    from solvable.learners import NeuralLoFiClassifier

    data = load("mnist-5k")
    order = np.random.default_rng(0).permutation(5000)
    X, y = np.asarray(data.X, dtype=np.float64)[order], np.asarray(data.y)[order].astype(int)
    start = time.process_time()
    ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.02).fit(X[:4000], np.eye(10)[y[:4000]])
    ridge_error = np.mean(ridge.predict(X[4000:]).argmax(axis=1) != y[4000:])
    ridge_time = time.process_time() - start
    start = time.process_time()
    model = NeuralLoFiClassifier(random_state=0).fit(X[:4000], y[:4000])
    error = np.mean(model.predict(X[4000:]) != y[4000:])
    spent = time.process_time() - start
    print(f"defaults: error {error:.4f} in {spent:.1f} s")
    print(f"kernel ridge: error {ridge_error:.4f} in {ridge_time:.1f} s")
    show("images: time over that of kernel ridge", spent / ridge_time, 10.0, at_least=False)


def main() -> None:
    """Measure and print."""
    chosen = sys.argv[1:] or ["digits", "numbers", "classes", "images"]
    if "digits" in chosen:
        command("digits", 40.0, "digits")
    for kind in ("numbers", "classes"):
        if kind in chosen:
            with tempfile.TemporaryDirectory() as folder:
                path = table(Path(folder), kind == "classes")
                task = ["--task", "classification"] if kind == "classes" else []
                command(
                    f"{ROWS} x {COLUMNS}, {kind}", 180.0, str(path), "--target", "target", *task
                )
    if "images" in chosen:
        images()


if __name__ == "__main__":
    with one_thread():
        main()
    sys.exit(exit_status())
