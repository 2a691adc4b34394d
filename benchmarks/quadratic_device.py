"""Measure the flop rate of a whole fit of the quadratic network on a CUDA device.

    python benchmarks/quadratic_device.py

Message passing fits a power-law target with label noise, in float32 with d = 1000 and n = 4,000,000 (16
GB). The rate counts only the flops of products with samples, over the whole wall time,
eigendecompositions included; it is printed as a share of the GEMM's rate. Without a device the script
prints a message and ends. `--cpu` fits d = 100, n = 40,000 on tensors of the host, and has a bound only
on the error.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from gemm import device_gemm_rate, show, torch_and_device


def problem(torch: Any, device: str, d: int, n: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return samples on the device, labels, and the eigenvalues of the diagonal target."""
    torch.manual_seed(0)
    X = torch.empty(n, d, device=device)
    for rows in X.split(100_000):
        rows.normal_()
    strengths = np.arange(1, d + 1.0) ** -1
    strengths *= np.sqrt(d / np.sum(strengths**2))
    weights = torch.asarray(strengths, dtype=torch.float32, device=device)
    clean = torch.concat([(rows**2) @ weights for rows in X.split(100_000)]).cpu().numpy()
    noise = np.sqrt(0.5) * np.random.default_rng(0).standard_normal(n)
    return X, (clean - strengths.sum()) / np.sqrt(d) + noise, strengths


def share(torch: Any, device: str, d: int, n: int) -> tuple[float, float, Any]:
    """Return the flop rate of a fit over that of a GEMM, the seconds of the fit, and the model."""
    from solvable.models.quadratic.network.learner import QuadraticNetRegressor
    from solvable.models.quadratic.network.sensing import SampleSensing

    X, y, strengths = problem(torch, device, d, n)
    flops = [2.0 * n * d**2]  # the second moment

    def counted(method: Any, columns: Any) -> Any:
        def product(self: Any, operand: Any) -> Any:
            flops.append(2.0 * n * d * columns(operand))
            return method(self, operand)

        return product

    forward, adjoint = SampleSensing.forward, SampleSensing.adjoint
    SampleSensing.forward = counted(forward, lambda factor: factor.shape[1])  # type: ignore[method-assign]
    SampleSensing.adjoint = counted(adjoint, lambda _: d)  # type: ignore[method-assign]
    penalty = 2.4 * np.sqrt(
        0.5 * n / d**2
    )  # 0.6 of the regularisation at which the bulk disappears
    model = QuadraticNetRegressor(penalty, fit_intercept=False)
    QuadraticNetRegressor(penalty).fit(
        X[: 4 * d], y[: 4 * d]
    )  # first call: loads the device's libraries
    flops[1:] = []
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    SampleSensing.forward, SampleSensing.adjoint = forward, adjoint  # type: ignore[method-assign]
    rate = device_gemm_rate(torch, device)
    print(f"{model.solver_}, {model.n_iter_} iterations, residual {model.kkt_residual_:.1e}")
    model.error = float(np.sum((model.matrix_ - np.diag(strengths)) ** 2)) / d
    return sum(flops) / seconds / rate, seconds, model


def main() -> bool:
    """Print rate and error; return True if both are within their bounds."""
    chosen = torch_and_device()
    if chosen is None:
        return True
    torch, device = chosen
    from solvable.models.quadratic.network.theory import solve_quadratic
    from solvable.spectra.measures import power_law

    host = device == "cpu"
    d, n = (100, 40_000) if host else (1000, 4_000_000)
    part, seconds, model = share(torch, device, d, n)
    state = solve_quadratic(
        power_law(dimension=d, exponent=1.0),
        sample_ratio=n / d**2, label_noise=0.5, regularisation=model.regularisation_,
    )  # fmt: skip
    away = abs(model.error / state.matrix_error - 1)
    return all(
        [
            show(
                "rate of the fit over a float32 GEMM, eigenvalues included",
                part,
                0.0 if host else 0.4,
            ),
            show("the fit", seconds, 60, at_least=False, unit=" s"),
            show("its error over the predicted one, minus 1", away, 0.02, at_least=False),
        ]
    )


if __name__ == "__main__":
    sys.exit(not main())
