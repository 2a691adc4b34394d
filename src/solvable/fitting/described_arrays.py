"""Store arrays with a JSON description and a digest in one safetensors file, without code."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solvable.errors import InvalidData, StorageFailed
from solvable.paths import check_path


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
    data = save(held, metadata={"solvable": text, "digest": _digest(held, text)})
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
    except ValueError as error:
        raise InvalidData(f"{path} has a description that is not JSON ({error}).") from error
    seen = content.get("format") if isinstance(content, dict) else type(content).__name__
    if seen not in forms:
        allowed = ", ".join(map(repr, forms))
        raise InvalidData(f"{path} is of format {seen!r}; allowed: {allowed}.")
    return arrays, content


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


def _digest(arrays: Mapping[str, np.ndarray], text: str) -> str:
    summed = hashlib.sha256(text.encode())
    for key in sorted(arrays):
        value = arrays[key]
        summed.update(f"{key}|{value.dtype.str}|{value.shape}|".encode())
        summed.update(np.ascontiguousarray(value).tobytes())
    return summed.hexdigest()
