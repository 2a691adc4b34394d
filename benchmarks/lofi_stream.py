"""Measure memory and time per row of a streamed fit: two million rows in 200 row groups.

    python benchmarks/lofi_stream.py [rows]

A fit in memory of 200,000 rows is the comparison. Both fits train the same network, each in its own
process on one BLAS thread. The time to read the file, as many times as the fit reads it, is measured
separately.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from gemm import exit_status, one_thread, show
from memory import peak_bytes

COLUMNS = 100
IN_MEMORY = 200_000  # fixed for all streams: fewer rows would stay in caches
PASSES = 4  # survey, two filters, readout
GROUP = 10_000


def network() -> Any:
    """Return the network of both fits: a filter of the columns, a lift, and a filter of the lift."""
    from solvable.learners import Block, NeuralLoFiRegressor

    return NeuralLoFiRegressor([Block(10, 256), Block(20, 256)], random_state=0)


def draw(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows and a target that contains a product and a square."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2] ** 2 + 0.1 * rng.standard_normal(rows, dtype=np.float32)
    return X, y


def write(path: Path, rows: int) -> None:
    """Write a Parquet file in groups of 10,000 rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{number}" for number in range(COLUMNS)]
    schema = pa.schema([(name, pa.float32()) for name in [*names, "y"]])
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for group in range(rows // GROUP):
            X, y = draw(GROUP, group)
            writer.write_table(pa.table([*map(pa.array, X.T), pa.array(y)], schema=schema))


def stream(path: str) -> None:
    """Fit the file; print CPU seconds, those of reading alone, and peak bytes."""
    from solvable.data import open_stream

    unfitted, source = network(), open_stream(path, target="y")
    start = time.process_time()
    model = unfitted.fit_stream(source)
    fitted = time.process_time()
    for _ in range(PASSES):
        for _ in source.chunks(8192):
            pass
    read = time.process_time() - fitted
    print(fitted - start, read, model.filters_[0].eigenvalues[0], peak_bytes())


def in_memory(rows: int) -> None:
    """Fit rows in memory; print CPU seconds and peak bytes."""
    parts = [draw(GROUP, group) for group in range(rows // GROUP)]
    X = np.concatenate([one for one, _ in parts])
    y = np.concatenate([one for _, one in parts]).astype(np.float64)
    unfitted = network()
    start = time.process_time()
    model = unfitted.fit(X, y)
    print(time.process_time() - start, 0.0, model.filters_[0].eigenvalues[0], peak_bytes())


def run(*arguments: str) -> tuple[float, float, float, int]:
    """Run this script in another process and read the numbers that it prints."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, capture_output=True, text=True
    )
    seconds, read, value, peak = done.stdout.split()
    return float(seconds), float(read), float(value), int(peak)


def main(rows: int) -> None:
    """Run both fits and print memory and time per row."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table.parquet"
        write(path, rows)
        print(f"{rows} rows of {COLUMNS} columns, {path.stat().st_size / 1e6:.0f} MB")
        small = min(rows, IN_MEMORY)
        memory_seconds, _, _, memory_peak = run("memory", str(small))
        seconds, read, value, peak = run("stream", str(path))
    per_row = (seconds - read) / rows / (memory_seconds / small)
    print(
        f"stream {seconds:.1f} s, {read:.1f} s of them to read the file {PASSES} times; in memory "
        f"{memory_seconds:.1f} s for {small}; first {value:.4f}"
    )
    print(f"in memory: peak {memory_peak / 1e6:.0f} MB")
    show("peak memory of the stream, MB", peak / 1e6, 1000, at_least=False)
    show("time per row without reading, stream over memory", per_row, 1.3, at_least=False)


if __name__ == "__main__":
    with one_thread():
        if sys.argv[1:2] == ["stream"]:
            stream(sys.argv[2])
        elif sys.argv[1:2] == ["memory"]:
            in_memory(int(sys.argv[2]))
        else:
            main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
    raise SystemExit(exit_status())
