"""Store arrays with a JSON description and a digest in one safetensors file, without code."""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from solvable.errors import InvalidData, StorageFailed, quoted, shortened
from solvable.numpy_files import check_unpacked
from solvable.paths import check_path, printable


def write_described(
    path: str | Path, arrays: Mapping[str, np.ndarray], content: Mapping[str, Any]
) -> Path:
    """Write arrays and their description (JSON with ``format``) in one step; replace an existing file."""
    from safetensors.numpy import save

    path = check_path(path)
    # ascontiguousarray gives a scalar an axis, which the reshape removes.
    held = {
        key: np.ascontiguousarray(value).reshape(np.shape(value)) for key, value in arrays.items()
    }
    text = json.dumps(plain(content), sort_keys=True, allow_nan=False)
    data = _ordered(save(held, metadata={"solvable": text, "digest": _digest(held, text)}))
    # The draft is written in the same directory, so that the last step only renames the file.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            draft.write_bytes(data)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise StorageFailed(f"{path} could not be written ({error}).") from error
    return path


def read_described(
    path: str | Path, forms: Sequence[str], origin: str
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read arrays and their description from a file that ``origin`` wrote in one of the formats."""
    from safetensors import SafetensorError, safe_open

    path = check_path(path)
    try:
        with safe_open(path, framework="numpy") as stream:
            metadata = stream.metadata() or {}
            arrays = {key: stream.get_tensor(key) for key in stream.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise InvalidData(f"{path} does not exist; allowed: a file of {origin}.") from error
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise InvalidData(
            f"{path} is not a file of {origin}, or is truncated ({error}). Copy or write it again."
        ) from error
    text = metadata.get("solvable", "")
    if not text:
        raise InvalidData(f"{path} was written by another program; allowed: a file of {origin}.")
    if metadata.get("digest") != _digest(arrays, text):
        raise InvalidData(
            f"{path} was changed after it was written: its digest does not match. Write it again."
        )
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidData(f"{path} has a description that is not JSON ({error}).") from error
    seen = content.get("format") if isinstance(content, dict) else type(content).__name__
    if seen not in forms:
        allowed = ", ".join(map(repr, forms))
        raise InvalidData(f"{path} is of format {seen!r}; allowed: {allowed}.")
    return arrays, content


@contextmanager
def valid_content(path: str | Path, what: str, remedy: str) -> Iterator[None]:
    """Convert every error of content that does not fit together to one that names the file."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = shortened(printable(" ".join(f"{type(error).__name__}: {error}".split())))
        raise InvalidData(f"{path} does not describe {what} ({reason}). {remedy}") from error


def checked(
    array: np.ndarray,
    shape: tuple[int | None, ...],
    kinds: str = "fiub",
    low: float | None = None,
    high: float | None = None,
) -> np.ndarray:
    """Return a finite array of this shape (None: any size), type and range; raise for any other."""
    right = len(array.shape) == len(shape) and all(
        size in (None, seen) for size, seen in zip(shape, array.shape, strict=True)
    )
    if not right:
        raise ValueError(f"an array has shape {array.shape} instead of {shape}")
    if array.dtype.kind not in kinds:
        raise TypeError(f"an array has type {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("an array holds NaN or infinity")
    if array.size and low is not None and array.min() < low:
        raise ValueError(f"an array holds {array.min()}, below {low}")
    if array.size and high is not None and array.max() > high:
        raise ValueError(f"an array holds {array.max()}, above {high}")
    return array


def checked_number(value: Any, low: float, high: float = 1e300) -> float:
    """Return a stored number; raise unless it is one in this range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{quoted(value)} is no number from {low:g} to {high:g}")
    return float(value)


def checked_outputs(model: Any, outputs: Callable[[np.ndarray], Any]) -> None:
    """Raise unless a model with ``n_features_in_`` columns gives finite outputs for two rows."""
    columns = int(checked_number(model.n_features_in_, 1, 2**40))
    check_unpacked(64.0 * columns, "a row of the model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of columns, classes without a row
        raw = outputs(np.stack([np.full(columns, 0.5), np.linspace(-2, 2, columns)]))
    if raw is None:
        return
    found = np.asarray(raw)
    if found.dtype.kind == "O" or found.ndim == 0:
        raise TypeError(f"its outputs are {quoted(raw)}")
    # Outputs near the largest number overflow for other rows.
    if len(found) != 2 or (found.dtype.kind == "f" and not np.all(np.abs(found) < 1e290)):
        raise ValueError("its outputs are not finite")


def under(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Select the arrays whose name begins with a prefix, and remove the prefix."""
    return {
        key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)
    }


def plain(value: Any) -> Any:
    """Convert a value for JSON: infinities and NaN to text, NumPy scalars to Python numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def from_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the texts that :func:`plain` wrote back to numbers."""
    return {
        key: float(value) if value in ("inf", "-inf", "nan") else value
        for key, value in values.items()
    }


def _ordered(data: bytes) -> bytes:
    """Sort the metadata in a file, which safetensors writes in random order."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the format aligns the arrays to eight bytes
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def _digest(arrays: Mapping[str, np.ndarray], text: str) -> str:
    summed = hashlib.sha256(text.encode())
    for key in sorted(arrays):
        value = arrays[key]
        summed.update(f"{key}|{value.dtype.str}|{value.shape}|".encode())
        summed.update(np.ascontiguousarray(value).tobytes())
    return summed.hexdigest()
