"""Store finished rows, one line each, so that a diagnosis or a series that was stopped can be resumed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from solvable.diagnose import diagnosis
from solvable.diagnose.bulk_fit import BulkFit
from solvable.diagnose.noise import Spikes
from solvable.diagnose.outliers import Outliers
from solvable.diagnose.parallel import Job, each_finished
from solvable.fitting.power_tail import TailFit

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
