"""Arrays of weights whose entries are read on request, and what all readers share."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from solvable.errors import InvalidData
from solvable.paths import printable

# Relative spacing of neighbouring numbers, by the names of safetensors and of NumPy.
_PRECISION = {
    "f64": 2.0**-52, "float64": 2.0**-52, "f32": 2.0**-23, "float32": 2.0**-23,
    "f16": 2.0**-10, "float16": 2.0**-10, "bf16": 2.0**-7, "bfloat16": 2.0**-7,
}  # fmt: skip


@dataclass(frozen=True)
class StoredArray:
    """Array in a file or object; its entries are read on request."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # type of the stored entries, such as "BF16", "float32" or "Q4_0"
    precision: float  # relative spacing of neighbouring numbers in this type; 0 for integers
    reader: Callable[..., np.ndarray]  # function that returns the entries or raises InvalidData
    layout: str = ""  # sentence about the split of a fused projection, or about turned axes
    private: bool = False  # True if each call of ``reader`` returns a new array
    members: bool = False  # True if ``reader(k)`` reads entry k of the first axis alone
    held: int = 0  # number of entries in memory while it is read, if more than those of its shape

    def read(self) -> np.ndarray:
        """Read the entries as stored; bfloat16 and quantised types are converted to float32."""
        return self.reader()

    def member(self, place: int) -> np.ndarray:
        """Read one entry of the first axis, such as one matrix of a stack."""
        return self.reader(place) if self.members else self.reader()[place]

    @property
    def fault(self) -> str:
        """Reason why the entries cannot be read, as far as it is known before reading."""
        known = isinstance(self.reader, partial) and self.reader.func is _raise
        return str(self.reader.args[0]) if known else ""  # type: ignore[attr-defined]

    @property
    def integral(self) -> bool:
        """True for integers and truth values: indices, masks or packed weights."""
        integers = re.fullmatch(r"(?:u?int|[iu])\d+|bool", self.dtype.lower()) is not None
        return integers and not self.fault

    @property
    def is_matrix(self) -> bool:
        """True for real arrays with at least two axes."""
        return len(self.shape) > 1 and not self.integral


@dataclass(frozen=True)
class Weights:
    """All arrays of one source, and what its files state about the model."""

    name: str  # name of the file, the folder or the object's type
    arrays: tuple[StoredArray, ...]
    files: tuple[Path, ...] = ()  # files that hold the arrays
    # Tables that may give the number of heads and the kind of model, each with its source.
    settings: tuple[tuple[str, Mapping[str, object]], ...] = ()
    notes: tuple[str, ...] = ()  # sentences about how the source was read
    source: Path | None = None  # path that was opened; None for objects
    stored: tuple[StoredArray, ...] = ()  # as stored: stacks whole, codes and scales apart

    @property
    def unchanged(self) -> tuple[StoredArray, ...]:
        """Arrays that are as they are stored."""
        places = {id(one) for one in self.stored}
        return tuple(one for one in self.arrays if id(one) in places)


def precision_of(dtype: str) -> float:
    """Return the relative spacing of neighbouring numbers; 0 for types that are not real numbers."""
    return _PRECISION.get(dtype.lower(), 0.0)


def broken(
    name: str, reason: str, shape: tuple[int, ...] = (), dtype: str = "unknown"
) -> StoredArray:
    """Return an array that cannot be read; reading it raises the reason."""
    return StoredArray(name, shape, dtype, 0.0, partial(_raise, reason))


def _raise(reason: str) -> np.ndarray:
    raise InvalidData(f"{reason.rstrip('.')}.")


def of_numpy(
    name: str, shape: tuple[int, ...], dtype: np.dtype, reader: Callable[[], np.ndarray]
) -> StoredArray:
    """Describe an array of NumPy's types; other types than real numbers cannot be read."""
    if dtype.kind not in "fiub":
        seen = "Python objects, which could run code" if dtype.hasobject else f"type {dtype}"
        return broken(name, f"it holds {seen}; allowed: real numbers", shape, str(dtype))
    return StoredArray(name, shape, dtype.name, precision_of(dtype.name), reader)


def distinct(arrays: Iterable[StoredArray]) -> tuple[StoredArray, ...]:
    """Make names printable; an array whose name occurred before cannot be read."""
    seen: set[str] = set()
    checked = []
    for stored in arrays:
        # JSON may contain unpaired surrogates, and any file control characters.
        name = " ".join(printable(stored.name).split())[:300]
        again = broken(name, "an earlier array has the same name", stored.shape)
        checked.append(again if name in seen else replace(stored, name=name))
        seen.add(name)
    return tuple(checked)


def package(name: str, extra: str, path: Path | str) -> Any:
    """Import the package that reads a format; raise with the name of the extra if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        top = name.partition(".")[0]
        other = ", or save the state dict as safetensors" if top == "torch" else ""
        raise InvalidData(
            f"{path} is read by the package {top}, which cannot be imported ({error}). Install it: "
            f"pip install 'solvable[{extra}]'{other}."
        ) from error


def stamp_of(path: Path) -> tuple[int, int, int]:
    """Return a key that changes if another file replaces this one."""
    state = path.stat()
    return state.st_ino, state.st_mtime_ns, state.st_size
