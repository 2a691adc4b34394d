"""Jobs of a diagnosis: their time and memory, their processes, and a file of finished results."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from solvable.arrays import check_real
from solvable.data.weights.stored import StoredArray
from solvable.diagnose import diagnosis
from solvable.diagnose.bulk_fit import BulkFit
from solvable.diagnose.noise import Spikes
from solvable.diagnose.outliers import Outliers
from solvable.diagnose.roles import entries_read
from solvable.fitting.power_tail import TailFit
from solvable.memory import available_bytes

BUFFERS = 30e6  # bytes of a job besides its arrays: a block of columns, the bootstraps

MEMORY = 4e9  # bytes that all processes together may hold, unless the user allows more

# Bytes of a process that waits, with NumPy and SciPy imported and the buffers of BLAS.
PROCESS = 130e6

_FORMAT = "solvable-diagnose-rows-7"

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        diagnosis.MatrixDiagnosis, diagnosis.HeadDiagnosis, diagnosis.Estimate, diagnosis.Feature,
        diagnosis.Exponent, diagnosis.Curve, diagnosis.Comparison,
        diagnosis.Control, diagnosis.Measurement, Outliers, BulkFit, Spikes, TailFit,
    )
}  # fmt: skip
"""Classes that a line may contain, next to arrays, numbers and texts."""


def memory_limit(gigabytes: float | None) -> float:
    """Return the limit in bytes: as asked, or 4 GB, but at most half of the free memory."""
    if gigabytes is not None:
        check_real("--memory", gigabytes, 0.5)
        return 1e9 * gigabytes
    # Half of the free memory is left to other programs.
    return min(MEMORY, available_bytes() / 2)


def cost_of(shape: tuple[int, ...], laws: bool = True) -> float:
    """Expected seconds of a matrix: its product with itself, the eigenvalues, and the bootstraps."""
    if len(shape) < 2 or 0 in shape:
        return 0.0
    size = math.prod(shape)
    short = min(shape[0], size // shape[0])
    return (1.0 if laws else 0.05) + 0.4 * short * (2 * short**2 + size) / 2000**3


def bytes_of(stored: StoredArray, copies: int = 1, *, controls: bool = True) -> float:
    """Return the largest number of bytes that the diagnosis of a matrix holds at once."""
    # ``copies``: matrices of this size that are needed together; 1 without initial weights.
    size = math.prod(stored.shape)
    short = min(stored.shape[0], size // max(stored.shape[0], 1)) if stored.shape else 0
    entry = 8 if stored.dtype.lower() in ("f64", "float64") else 4
    # Entries as stored, or a whole fused array, next to the array that is returned.
    whole = entries_read(stored)
    read = entry * size + (0.0 if stored.private and whole == size else 6.0 * whole)
    # The matrix, its copy under random signs in single precision, and the product with itself.
    single = entry == 4 and stored.private and copies == 1
    copy = 4.0 if controls and not single else 0.0
    return max(read, (entry * copies + copy) * size + 8.0 * short**2) + BUFFERS


def bytes_of_pair(query: StoredArray, key: StoredArray | None) -> float:
    """Return the largest number of bytes held while heads are cut out of their arrays."""
    sizes = [math.prod(stored.shape) for stored in (query, key) if stored is not None]
    return 4.0 * sum(sizes) + 2.0 * max(sizes) + BUFFERS


def cost_of_heads(count: int, width: int, inputs: int) -> float:
    """Expected seconds of heads: 240 products of factors under random signs for each."""
    return count * (0.05 + 1e-8 * width**2 * inputs)


def cost_of_adapter(first: StoredArray, second: StoredArray) -> float:
    """Expected seconds of a low-rank adapter, which is tested as one head of its rank."""
    sides = sum(math.prod(stored.shape) for stored in (first, second)) // first.shape[0]
    return cost_of_heads(1, first.shape[0], sides)


@dataclass(frozen=True)
class Job:
    """Call of a function, and what it takes."""

    key: str  # name that no other job has
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    cost: float  # expected seconds
    size: float  # largest number of bytes that it holds at once


def each_finished(jobs: Sequence[Job], workers: int, memory: float) -> Iterator[tuple[Job, Any]]:
    """Yield each job with its result, in the order in which they finish.

    Together the jobs that run hold at most ``memory`` bytes, processes included. A job that needs more
    runs alone. Jobs start in their order, but a smaller one goes first where the next does not fit.
    """
    lanes = lanes_for(jobs, workers, memory)
    for job in jobs:
        if lanes == 1 or not job.cost:
            yield job, job.function(*job.arguments)
    if lanes > 1:
        yield from _in_processes([job for job in jobs if job.cost], lanes, memory)


def _in_processes(jobs: list[Job], lanes: int, memory: float) -> Iterator[tuple[Job, Any]]:
    from concurrent.futures import FIRST_COMPLETED, wait

    from joblib.externals.loky import ProcessPoolExecutor

    # Several threads of BLAS are slower than one at these sizes, and each has buffers of its own.
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    # Not the executor that joblib shares with others: joblib fails on one that it has not made.
    executor = ProcessPoolExecutor(max_workers=lanes, env=dict.fromkeys(threads, "1"))
    free = memory - (1 + lanes) * PROCESS
    waiting = jobs
    running: dict[Any, Job] = {}
    try:
        while waiting or running:
            while waiting and len(running) < lanes:
                left = free - sum(job.size for job in running.values())
                fitting = (k for k, job in enumerate(waiting) if job.size <= left or not running)
                place = next(fitting, None)
                if place is None:
                    break
                job = waiting.pop(place)
                running[executor.submit(job.function, *job.arguments)] = job
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    finally:  # also after Ctrl-C or an error, nothing goes on in the background
        executor.shutdown(wait=True, kill_workers=True)


def each_in_order(jobs: Sequence[Job], workers: int, memory: float) -> Iterator[Any]:
    """Yield the results of the jobs in their order."""
    results: dict[str, Any] = {}
    place = 0
    for job, result in each_finished(jobs, workers, memory):
        results[job.key] = result
        while place < len(jobs) and jobs[place].key in results:
            yield results.pop(jobs[place].key)
            place += 1


def lanes_for(jobs: Sequence[Job], workers: int, memory: float) -> int:
    """Number of processes that fit into memory, and whose work takes longer than starting them."""
    cost = sum(job.cost for job in jobs)
    if not cost:
        return 1
    # The mean size over time: large matrices run while small ones fill the rest of the memory.
    size = sum(job.size * job.cost for job in jobs) / cost
    fitting = int((memory - PROCESS) / (PROCESS + size))
    return max(1, min(workers, len(jobs), int(cost / 4.0), fitting))


class KeptRows:
    """File of finished rows of one set of weights, one request and one version of the programs."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self._made: list[Path] = []  # directories that were made for the file, the innermost first
        versions = " ".join(version(name) for name in ("solvable", "numpy", "scipy"))
        self.identity = hashlib.sha256(f"{_FORMAT} {fingerprint} {versions}".encode()).hexdigest()

    @classmethod
    def beside(cls, directory: Path, fingerprint: str) -> KeptRows:
        """Return the store of an unfinished run: a hidden file next to the output directory."""
        place = directory.absolute()
        return cls(place.parent / f".{place.name}.part", fingerprint)

    def found(self) -> dict[str, Any]:
        """Return the stored rows by key; damaged lines and lines of other runs are left out."""
        rows: dict[str, Any] = {}
        with suppress(OSError), self.path.open("rb") as stream:
            for line in stream:
                # A process that was killed may leave half a line.
                with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    digest, _, text = line.strip().partition(b" ")
                    if digest != _digest(text):
                        continue
                    content = json.loads(text)
                    if content["identity"] == self.identity:
                        rows[str(content["key"])] = _decoded(content["row"])
        return rows

    def keep(self, key: str, row: Any) -> None:
        """Append a row in one write; the diagnosis continues if storing fails."""
        content = {"identity": self.identity, "key": key, "row": _encoded(row)}
        # The line break in front ends a line that was cut.
        text = json.dumps(content).encode()
        line = b"\n" + _digest(text) + b" " + text + b"\n"
        parents = self.path.parents
        self._made = self._made or [path for path in parents if not path.exists()]
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            place = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(place, line)
            finally:
                os.close(place)

    def remove(self) -> None:
        """Remove the file, and the directories that were made for it if nothing else is in them."""
        with suppress(OSError):
            self.path.unlink()
            for directory in self._made:
                directory.rmdir()


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _encoded(value: Any) -> Any:
    """Convert a row to what JSON can hold; the bits of numbers are kept."""
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": data, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return _encoded(value.item())
    if isinstance(value, tuple | list):
        return {"tuple": [_encoded(part) for part in value]}
    if is_dataclass(value) and type(value).__name__ in _KINDS:
        parts = {field.name: _encoded(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, "parts": parts}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a row holds {type(value).__name__}, which cannot be stored")


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        flat = np.frombuffer(base64.b64decode(value["array"]), dtype=np.dtype(value["dtype"]))
        return flat.reshape(value["shape"])
    if "tuple" in value:
        return tuple(_decoded(part) for part in value["tuple"])
    parts = {name: _decoded(part) for name, part in value["parts"].items()}
    return _KINDS[value["kind"]](**parts)


def run_jobs(
    jobs: Sequence[Job],
    results: dict[str, Any],
    *,
    workers: int,
    memory: float,
    progress: Callable[[int, int, float | None], Any] | None = None,
    keeper: KeptRows | None = None,
) -> None:
    """Put the result of each job into ``results``: stored ones, then the others, the slowest first."""
    stored = keeper.found() if keeper else {}
    results.update((job.key, stored[job.key]) for job in jobs if job.key in stored)
    left = [job for job in jobs if job.key not in results]
    # Jobs without cost, such as vectors, are no steps of the progress.
    total = sum(job.cost > 0 for job in jobs)
    done = total - sum(job.cost > 0 for job in left)
    rest, spent, started = sum(job.cost for job in left), 0.0, time.monotonic()
    if progress is not None and done:
        progress(done, total, None)
    left.sort(key=lambda job: -job.cost)
    for job, result in each_finished(left, workers, memory):
        results[job.key] = result
        spent += job.cost
        if not job.cost:
            continue
        if keeper is not None:
            keeper.keep(job.key, result)
        done += 1
        if progress is not None:
            seconds = time.monotonic() - started
            progress(done, total, seconds * (rest - spent) / spent)
