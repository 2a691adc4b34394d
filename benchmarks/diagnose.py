"""Time and memory of a diagnosis of a file of 100 matrices and 200 MB, and time of one large matrix.

    python benchmarks/diagnose.py

A quarter each of noise, noise with signals, power laws with noise, and power laws alone, 707 x 707 in
single precision; a fifth of them 1,000 x 1,000 in bfloat16. Two processes. The
limit applies to the CPU seconds of both, because wall time depends on other work of the machine, and
to the memory of the larger process. The large matrix, 4,096 x 4,096 with six signals, is compared with
its product with itself and the eigenvalues of that product.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from gemm import exit_status, one_thread, show

COUNT = 100


def matrix(kind: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """One matrix of a kind."""
    noise = rng.standard_normal((size, size)) / size**0.5
    if kind == 0:
        return noise
    rank = 6 if kind == 1 else size
    left, right = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for _ in range(2))
    if kind == 1:
        return noise + (left * np.linspace(1.5, 4, rank)) @ right.T
    strengths = np.arange(1, size + 1) ** -0.8
    return (left * 30 * strengths) @ right.T + (0.5 * noise if kind == 2 else 0)


def write(path: Path) -> int:
    """Write a safetensors file by hand, because NumPy has no bfloat16; return its size in bytes."""
    header: dict[str, dict[str, object]] = {}
    blocks: list[bytes] = []
    rng, place = np.random.default_rng(0), 0
    for k in range(COUNT):
        half = k % 5 == 4
        side = 1000 if half else 707
        wide = np.ascontiguousarray(matrix(k % 4, side, rng), dtype="<f4")
        data = (wide.view("<u4") >> 16).astype("<u2").tobytes() if half else wide.tobytes()
        header[f"layer{k}.{k % 4}"] = {
            "dtype": "BF16" if half else "F32",
            "shape": [side, side],
            "data_offsets": [place, place + len(data)],
        }
        place += len(data)
        blocks.append(data)
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for block in blocks:
            stream.write(block)
    return path.stat().st_size


def large_matrix(size: int = 4_096) -> None:
    """CPU time of one diagnosis in units of a product and its eigenvalues."""
    from solvable.diagnose import diagnose_matrix

    weights = matrix(1, size, np.random.default_rng(1)).astype(np.float32)
    diagnose_matrix(weights[:40, :50])  # imports
    started = time.process_time()
    wide = weights.astype(float)
    np.linalg.eigvalsh(wide @ wide.T)
    least = time.process_time() - started
    started = time.process_time()
    diagnose_matrix(weights, precision=2.0**-23)
    ratio = (time.process_time() - started) / least
    show(f"{size} x {size}, over a product and its eigenvalues", ratio, 1.3, at_least=False)


def main() -> None:
    """Write, diagnose, and print the figures."""
    from joblib.externals.loky import get_reusable_executor

    from solvable.diagnose import diagnose_file

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "weights.safetensors"
        show("size of the file, MB", write(path) / 1e6, 195)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall, cpu = time.perf_counter(), time.process_time()
        rows = list(diagnose_file(path, workers=2))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        # The time of processes is known after they have ended.
        get_reusable_executor().shutdown(wait=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    print(Counter((row.name.split(".")[1], row.phase) for row in rows))
    spent = cpu + after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"wall time {wall:.0f} s")
    show("CPU seconds of 100 matrices, per core of two", spent / 2, 120, at_least=False)
    largest = max(after.ru_maxrss, own.ru_maxrss) / 1e6
    show("memory of the largest process, GB", largest, 1, at_least=False)
    large_matrix()


if __name__ == "__main__":
    with one_thread():
        main()
    raise SystemExit(exit_status())
