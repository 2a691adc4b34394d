"""Work of a worker: one task or one prediction, on one BLAS thread, timed."""

from __future__ import annotations

import io
import math
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from solvable import __version__
from solvable.errors import InvalidData
from solvable.fitting.devices import computing_on, import_torch
from solvable.frame.points import Metrics, predicted_or_refused
from solvable.frame.system import System
from solvable.paths import error_line, printable
from solvable.study.grid import task_stream
from solvable.study.parameters import canonical_json


@dataclass(frozen=True)
class Job:
    """Job for a worker: a replicate to measure, or a point to predict."""

    kind: Literal["task", "prediction"]
    identity: str  # of the task, or of the point
    system: System
    version: str  # version of the system in the study
    parameters: Mapping[str, Any]  # in JSON form
    device: str | None = None  # device of tensors in torch's notation; None for NumPy


@dataclass(frozen=True)
class Outcome:
    """Result of a job: metrics, or the error that was raised."""

    kind: Literal["task", "prediction"]
    identity: str
    metrics: Metrics | None = None  # measured or predicted; None if the job failed
    arrays: Mapping[str, bytes] = field(
        default_factory=dict
    )  # arrays of the teacher, as ``.npy`` bytes
    error: str | None = None  # one line
    trace: str = ""  # traceback of the error
    # Library versions, dtype, seconds, CPU seconds and peak memory in bytes.
    provenance: Mapping[str, Any] = field(default_factory=dict)


def execute(job: Job) -> Outcome:
    """Run one job in this process with one BLAS thread, and restore the threads afterwards."""
    _load_blas()
    with threadpool_limits(limits=1):
        return _run(job)


def execute_in_worker(job: Job, parent: int | None = None) -> Outcome:
    """Run one job in a worker process, which ends when its parent is gone.

    The BLAS of the process stays at one thread: restoring the number would race with a job in another
    thread of the process.
    """
    if parent is None:
        _load_blas()
    else:  # joblib's environment limits the BLAS that its processes load later
        _follow(parent)
    threadpool_limits(limits=1)
    return _run(job)


def execute_pickled(job: bytes) -> Outcome:
    """Run one job that was sent as pickled bytes.

    A Dask worker that cannot load a job ends silently, and so does the next one. Loading the job here
    raises instead, so that the run ends with the reason. Dask itself sends pickles too.
    """
    return execute_in_worker(pickle.loads(job))


@cache
def _load_blas() -> None:
    """Load NumPy's and SciPy's BLAS, because only loaded libraries can be limited to one thread."""
    import scipy.linalg  # noqa: F401


@cache
def _follow(parent: int) -> None:
    """End this process when its parent is gone, as after ``kill -9``."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="solvable-follow-parent").start()


def _run(job: Job) -> Outcome:
    try:
        metrics, arrays, provenance = _compute(job)
    except (Exception, SystemExit) as error:  # a system may raise any exception; the study goes on
        # lone surrogates are removed, which the store cannot hold
        trace = printable(traceback.format_exc())
        return Outcome(job.kind, job.identity, error=error_line(error), trace=trace)
    return Outcome(job.kind, job.identity, metrics, arrays, provenance=provenance)


def _compute(job: Job) -> tuple[Metrics, dict[str, bytes], dict[str, Any]]:
    system = job.system
    if system.version != job.version:
        raise InvalidData(
            f"this worker has version {system.version} of {system.name}; the study needs "
            f"{job.version}. Install the same package on every worker."
        )
    # read back from JSON, so that a resumed run gets equal parameters
    parameters = system.parameters.model_validate_json(canonical_json(job.parameters))
    _reset_peak_memory()
    wall, cpu = time.perf_counter(), time.process_time()
    if job.kind == "prediction":
        metrics = predicted_or_refused(system.predict, parameters)
    else:
        with computing_on(job.device):
            metrics = system.measure(parameters, task_stream(job.identity))
    provenance = {
        "library": __version__,
        "numpy": np.__version__ if job.device is None else _torch_version(job.device),
        "dtype": str(getattr(parameters, "dtype", "float64")),
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "peak_memory": _peak_memory(),
    }
    arrays: Mapping[str, Any] = {}
    if job.kind == "task":
        # The same stream again: `measure` draws the teacher first, so that it is equal here.
        arrays = system.teacher(parameters, task_stream(job.identity))
    stored = {str(name): _npy(str(name), array) for name, array in arrays.items()}
    return plain_metrics(metrics), stored, provenance


def _torch_version(device: str) -> str:
    """Versions of NumPy and torch, with the device."""
    return f"{np.__version__}, torch {import_torch('a device').__version__} on {device}"


def plain_metrics(metrics: Mapping[str, Any]) -> Metrics:
    """Convert metrics to floats, lists of floats and words, with None for non-finite numbers."""
    if not isinstance(metrics, Mapping):
        raise InvalidData(f"the metrics are a {type(metrics).__name__}; allowed: a mapping.")
    return {str(name): _plain(str(name), value) for name, value in metrics.items()}


def _plain(name: str, value: Any) -> float | list[float | None] | str | None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, str):
        # words must fit a cell of a table, and contain no surrogates, which files cannot hold
        if not value.strip() or not value.isprintable():
            raise InvalidData(
                f"metric {name!r} is the text {value!r}; allowed: printable words on one line. "
                "Return None for an unknown value."
            )
        return str(value)
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return [_number(name, item) for item in value]
    return _number(name, value)


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, (Real, np.bool_)):
        shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
        raise InvalidData(
            f"metric {name!r} holds a {type(value).__name__}{shape}; allowed: a number, None, a "
            "one-dimensional list of these, or a word. Return larger arrays from `teacher`."
        )
    return float(value) if math.isfinite(value) else None


def _npy(name: str, array: Any) -> bytes:
    array = np.asarray(array)
    if array.dtype.hasobject:
        raise InvalidData(
            f"teacher array {name!r} has dtype object; allowed: numbers, booleans and text."
        )
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _reset_peak_memory() -> None:
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass  # not available: the peak is then that of the process since its start


def _peak_memory() -> int | None:
    """Return the peak resident memory of this process in bytes since the last reset (Linux)."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # as on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
