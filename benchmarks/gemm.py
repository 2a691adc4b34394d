"""Measure the rate of a GEMM of size 2000 in this process, the unit of the other benchmarks.

Machines are shared and clocks vary. Figures are therefore CPU seconds over those of a GEMM that is timed
in the same process, alternately with the work, on one BLAS thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

SIZE = 2000

missed: list[str] = []
"""Labels of the figures outside their bounds so far."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS, and torch if it is loaded, to one thread."""
    # The limit affects only libraries that are loaded already, and SciPy loads its own BLAS.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    with threadpool_limits(limits=1):
        yield


def cpu_seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Return the smallest CPU time of several repeats, in seconds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def gemm_rate(dtype: Any = np.float32, repeats: int = 5) -> float:
    """Return flops per CPU second of a GEMM of size 2000; a median, for comparison with long work."""
    left, right = (np.ones((SIZE, SIZE), dtype=dtype) for _ in range(2))
    times = [cpu_seconds(lambda: left @ right, 1) for _ in range(repeats)]
    return float(2 * SIZE**3 / np.median(times))


def torch_and_device() -> tuple[Any, str] | None:
    """Return torch and "cuda" ("cpu" with `--cpu`), or print what is missing and return None."""
    try:
        import torch
    except ImportError:
        print("no torch: nothing is measured")
        return None
    if "--cpu" in sys.argv[1:]:
        torch.set_num_threads(1)
        return torch, "cpu"
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = False
        return torch, "cuda"
    print("no CUDA device: nothing is measured; --cpu runs small cases on the host, without limits")
    return None


def device_seconds(work: Callable[[], Any], torch: Any, repeats: int = 5) -> float:
    """Return the smallest time of several repeats in seconds; synchronise a CUDA device around each."""
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    work()
    best = float("inf")
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        work()
        wait()
        best = min(best, time.perf_counter() - start)
    return best


def device_gemm_rate(torch: Any, device: str) -> float:
    """Return flops per second of a float32 GEMM, of size 8192 on a device and 1024 on the host."""
    size = 1024 if device == "cpu" else 8192
    square = torch.randn(size, size, device=device)
    return 2 * size**3 / device_seconds(lambda: square @ square, torch)


def ratio(work: Callable[[], Any], flops: float, xp: Any = np, repeats: int = 7) -> float:
    """Return the median ratio of the flop rates of the work and of interleaved GEMMs of similar length.

    Other processes slow both by the same factor; taking the best of each would favour the shorter one.
    """
    work()
    left, right = (xp.ones((SIZE, SIZE), dtype=xp.float32) for _ in range(2))
    seconds = cpu_seconds(work, 1)
    products = max(1, round(seconds / cpu_seconds(lambda: left @ right, 1)))

    def gemms() -> None:
        for _ in range(products):
            left @ right

    times = []
    for _ in range(repeats):
        gemm = cpu_seconds(gemms, 1)
        times.append(cpu_seconds(work, 1) / flops * 2 * SIZE**3 * products / gemm)
    return float(1 / np.median(times))


def show(what: str, value: float, bound: float, *, at_least: bool = True, unit: str = "") -> bool:
    """Print a figure with its bound; return True if it is within the bound."""
    holds = value >= bound if at_least else value <= bound
    sign = ">=" if at_least else "<="
    if not holds:
        missed.append(what)
    print(f"{what:<66} {value:8.3g}{unit}  ({sign} {bound:g}{unit}) {'ok' if holds else 'MISSED'}")
    return holds


def exit_status() -> int:
    """Return 0 if every figure printed so far is within its bound, else 1."""
    return int(bool(missed))
