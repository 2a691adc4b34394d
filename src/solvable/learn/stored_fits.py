"""Store completed fits, one file each, so that an interrupted run can be resumed."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from solvable.errors import InvalidData, StorageFailed
from solvable.fitting.described_arrays import read_described, write_described
from solvable.learn.attribution import Attribution
from solvable.learn.fold_fits import Measured, Task
from solvable.learn.held_out_signal import Unseen
from solvable.learn.stored_models import load_fitted, save_fitted

FORMAT = "solvable-learn-fit-1"  # name and version of the format

KINDS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind for kind in (Measured, Attribution, Unseen)
}
"""Classes that a file may contain besides arrays, numbers, texts and a fitted model."""


class KeptFits:
    """Folder of completed fits for one table, one request and one program version."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.identity = f"{fingerprint} {version('solvable')}"

    def find(self, task: Task) -> Measured | None:
        """Return the stored fit of a task; None if the file is missing, damaged or from another run."""
        path = self._path(task.method, task.fold, task.rows)
        try:
            arrays, content = read_described(path, (FORMAT,), "solvable learn")
            if content["identity"] != self.identity:
                return None
            found = _decoded(content["fit"], arrays, path)
        except (InvalidData, StorageFailed, KeyError, TypeError, ValueError):
            return None
        return found if isinstance(found, Measured) else None

    def keep(self, fit: Measured) -> None:
        """Store a fit in one atomic step; the run continues if storing fails."""
        path = self._path(fit.method, fit.fold, fit.training_rows)
        arrays: dict[str, np.ndarray] = {}
        with suppress(OSError, StorageFailed):
            self.folder.mkdir(parents=True, exist_ok=True)
            described = _encoded(fit, arrays, path)
            content = {"format": FORMAT, "identity": self.identity, "fit": described}
            write_described(path, arrays, content)

    def remove(self) -> None:
        """Remove the folder of completed fits."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, method: str, fold: int, rows: int) -> Path:
        return self.folder / f"{method}.{fold}.{rows}.safetensors"


def _encoded(value: Any, arrays: dict[str, np.ndarray], path: Path) -> Any:
    """Convert a value to JSON; arrays are put into ``arrays``, a fitted model into a separate file."""
    if isinstance(value, np.ndarray) or (isinstance(value, float) and not math.isfinite(value)):
        name = str(len(arrays))
        arrays[name] = np.asarray(value)
        return {"scalar" if isinstance(value, float) else "array": name}
    if isinstance(value, np.generic):
        return _encoded(value.item(), arrays, path)
    if isinstance(value, tuple):
        return {"tuple": [_encoded(part, arrays, path) for part in value]}
    if is_dataclass(value) and type(value).__name__ in KINDS:
        names = [one.name for one in fields(value)]
        parts = {name: _encoded(getattr(value, name), arrays, path) for name in names}
        return {"kind": type(value).__name__, "parts": parts}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {"network": save_fitted(value, path.with_suffix(".network")).name}


def _decoded(value: Any, arrays: dict[str, np.ndarray], path: Path) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "scalar" in value:
        return float(arrays[value["scalar"]])
    if "tuple" in value:
        return tuple(_decoded(part, arrays, path) for part in value["tuple"])
    if "network" in value:
        return load_fitted(path.with_suffix(".network"))[0]
    parts = {name: _decoded(part, arrays, path) for name, part in value["parts"].items()}
    return KINDS[value["kind"]](**parts)
