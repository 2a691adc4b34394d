"""Measure the speed and memory of matrix sensing: `python benchmarks/matrix_sensing.py [--full]`.

Prints CPU times: thirty steps of message passing at d = 200 and n = 11,000 over the GEMMs of its sensor
products in double precision; the denoiser of a matrix of 1,000 rows over its `eigh`; a curve of 60 points
of state evolution. With `--full` also peak memory of a fit at d = 400 and n = 44,000.
"""

from __future__ import annotations

import sys
from contextlib import suppress

import numpy as np
from gemm import cpu_seconds, exit_status, gemm_rate, one_thread, show
from memory import peak_bytes, peak_of

from solvable.errors import NotConverged
from solvable.message_passing import message_passing
from solvable.message_passing.loop import Start
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal, signal_denoiser
from solvable.operators.sensors import TokenSensors
from solvable.spectra import marchenko_pastur

SIGNAL = SymmetricSignal(marchenko_pastur(0.5))
CHANNEL = GaussianIndices(np.array([2.0]), np.array([0.25]))


def drawn(d: int, n: int, dtype: type) -> tuple[TokenSensors, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((d, d // 2))
    S = W @ W.T / np.sqrt(d * (d // 2))
    sensors = TokenSensors(rng.standard_normal((n, d), dtype=dtype))
    return sensors, S, CHANNEL.sample(sensors.forward(S), rng)


def passes(sensors: TokenSensors, y: np.ndarray, steps: int) -> None:
    d, n = sensors.size, sensors.n_samples
    start = Start(SIGNAL.prior_mean(d), np.array([[1.0]]), np.zeros((n, 1)))
    with suppress(NotConverged):  # a tolerance that is never reached: all steps run
        message_passing(
            sensors, CHANNEL.messages(y), start, denoiser=signal_denoiser(SIGNAL), damping=0.5,
            tolerance=1e-15, max_steps=steps, least_variance=1e-9,
        )  # fmt: skip


def main() -> int:
    if sys.argv[1:2] == ["large"]:
        with one_thread():
            sensors, _, y = drawn(400, 44_000, np.float32)
            passes(sensors, y, 10)
        print(peak_bytes())
        return 0
    d, n, steps = 200, 11_000, 30
    with one_thread():
        for dtype, name in ((np.float64, "float64"), (np.float32, "float32")):
            sensors, _, y = drawn(d, n, dtype)
            rate = gemm_rate(dtype)
            seconds = cpu_seconds(lambda: passes(sensors, y, steps), repeats=2)  # noqa: B023
            rate = (rate + gemm_rate(dtype)) / 2
            show(
                f"message passing, d = {d}, n = {n}, {name}: CPU time over its products",
                seconds * rate / (steps * 4.0 * n * d**2), 2.0, at_least=False,
            )  # fmt: skip
        rng = np.random.default_rng(1)
        W, G = rng.standard_normal((1_000, 500)), rng.standard_normal((1_000, 1_000))
        Y = W @ W.T / np.sqrt(500_000) + (G + G.T) / np.sqrt(2_000)
        alone = cpu_seconds(lambda: np.linalg.eigh(Y), repeats=4)
        whole = cpu_seconds(lambda: SIGNAL.denoise(Y, 1.0), repeats=4)
        show("denoiser of 1,000 rows over its eigh", whole / alone, 1.3, at_least=False)
        ratios = np.linspace(0.02, 1.0, 60)
        curve = cpu_seconds(lambda: signal_evolution(SIGNAL, CHANNEL, ratios), repeats=5)
        show("60 points of state evolution", 1e3 * curve, 50, at_least=False, unit=" ms")
    if "--full" in sys.argv:
        peak = peak_of(__file__, "large") / 1e6
        # n d² numbers in single precision would be 28 GB
        show("peak memory, d = 400, n = 44,000", peak, 1_000, at_least=False, unit=" MB")
    return exit_status()


if __name__ == "__main__":
    raise SystemExit(main())
