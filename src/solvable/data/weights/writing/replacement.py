"""New entries that replace an array: a whole array, or two factors whose product replaces it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.data.weights.safetensors_file import eight_bits
from solvable.errors import InvalidData


@dataclass(frozen=True, eq=False)
class Factors:
    """Two factors whose product replaces an array of shape (p, q) or (p, ...)."""

    left: np.ndarray  # (p, k)
    right: np.ndarray  # (k, q) or (k, ...)

    def product(self) -> np.ndarray:
        """Return the array that the factors replace it by."""
        return np.tensordot(self.left, self.right, axes=1)


# ``replacement(entries)`` returns the new entries, or their factors, given the stored entries.
Replacement = Callable[[np.ndarray], "np.ndarray | Factors"]

LEFT, RIGHT = ".left", ".right"  # endings of the names under which factors are stored


def stored_bytes(array: np.ndarray, dtype: str, name: str) -> bytes:
    """Return the bytes of entries, rounded to a type that has this name in safetensors."""
    finite = np.isfinite(array).all()
    if dtype == "BF16":
        # bfloat16 is the upper half of float32; ties go to the even number.
        bits = np.ascontiguousarray(array, dtype="<f4").view("<u4").astype(np.uint64)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return rounded.astype("<u2").tobytes()
    if dtype in ("F8_E4M3", "F8_E5M2"):
        return _nearest(array, eight_bits(*((4, 7) if dtype == "F8_E4M3" else (5, 15))))
    kind = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}.get(dtype)
    if kind is None:
        raise InvalidData(f"{name} has type {dtype}, which is not written.")
    with np.errstate(over="ignore"):
        written = np.asarray(array).astype(kind)
    if finite and not np.isfinite(written).all():
        raise InvalidData(f"{name} has entries too large for {dtype} after the change.")
    return written.tobytes()


def _nearest(array: np.ndarray, values: np.ndarray) -> bytes:
    """Return the codes of the nearest values of an eight-bit type."""
    codes = np.flatnonzero(np.isfinite(values))
    codes = codes[np.argsort(values[codes], kind="stable")]
    levels = values[codes].astype(np.float64)
    middle = (levels[1:] + levels[:-1]) / 2
    return (
        codes[np.searchsorted(middle, np.asarray(array, dtype=np.float64))].astype("u1").tobytes()
    )
