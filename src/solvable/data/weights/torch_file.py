"""Tensors of PyTorch checkpoints, loaded by torch without executing anything."""

from __future__ import annotations

import math
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from solvable.data.weights.stored import (
    StoredArray,
    Weights,
    broken,
    package,
    precision_of,
    stamp_of,
)
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.numpy_files import check_unpacked
from solvable.paths import error_line
from solvable.plots.words import listed

# Keys under which training programs store the state dict of the model, in the order of preference.
_NESTED = (
    "state_dict", "model_state_dict", "model_state", "model", "module", "net", "network", "weights",
    "params", "student", "generator", "ema", "model_ema", "ema_state_dict",
)  # fmt: skip

_DEEPEST = 20  # deepest nesting of dictionaries that is followed


def open_torch(path: Path) -> Weights:
    """Return the tensors of a checkpoint; nested state dicts are found, and nothing is executed."""
    tensors, notes = _tensors(path, stamp_of(path))
    arrays = tuple(
        describe_tensor(name, tensor, partial(_read_stored, path, name))
        for name, tensor in tensors.items()
    )
    return Weights(path.name, arrays, (path,), notes=notes)


@lru_cache(maxsize=4)  # memory-mapped: shards of a model, and the weights before training
def _tensors(path: Path, stamp: tuple[int, int, int]) -> tuple[dict[str, Any], tuple[str, ...]]:
    found, notes = state_in(loaded_checkpoint(path))
    if not found:
        raise InvalidData(
            f"{path} holds no tensor; allowed: a state dict, or a dictionary with one under "
            f"{', '.join(_NESTED[:5])} or similar. Save it with torch.save(model.state_dict(), path)."
        )
    return found, notes


def loaded_checkpoint(path: Path) -> Any:
    """Load all of a checkpoint as weights only: tensors in dictionaries and lists."""
    torch = package("torch", "torch", path)
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    # The weights-only reader of older versions could be made to execute code (CVE-2025-32434,
    # fixed in 2.6) or to corrupt memory (CVE-2026-24747, fixed in 2.10).
    if version < (2, 10):
        raise InvalidData(
            f"{path} is a pickle, which torch {torch.__version__} does not read safely; allowed: torch "
            "2.10 or later. Upgrade it: pip install 'torch>=2.10'."
        )
    _refuse_programs(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated types of tensors in old checkpoints
            # Only the zip format, standard since torch 1.6, can be memory-mapped.
            mapped = zipfile.is_zipfile(path)
            if not mapped:
                check_unpacked(path.stat().st_size, str(path))
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except UnpicklingError as error:
        raise InvalidData(
            f"{path} holds Python objects, which could run code when read ({_first(error)}); allowed: "
            "tensors in dictionaries and lists. Save only the state dict: "
            "torch.save(model.state_dict(), path)."
        ) from error
    except MemoryLimitExceeded:
        raise
    except Exception as error:  # torch raises any exception for damaged files
        raise InvalidData(
            f"{path} is damaged or no file of torch ({_first(error)}). Save it again."
        ) from error


def _first(error: BaseException) -> str:
    """Return the reason in a message of torch, which recommends unsafe options in other lines."""
    text = error_line(error)
    _, marked, rest = str(error).partition("WeightsUnpickler error:")
    if marked and rest.strip():
        text = rest.strip().splitlines()[0]
    return re.split(r" Please use| This is an internal", text)[0][:120].rstrip(" .:")


def _refuse_programs(path: Path) -> None:
    """Refuse archives that hold a program: TorchScript and exported graphs."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return  # the old format; torch reports damage
    if any(name.endswith((".py", "constants.pkl")) or "/code/" in name for name in names):
        raise InvalidData(
            f"{path} is a TorchScript program, not a file of weights; allowed: a state dict. In "
            "Python: torch.save(torch.jit.load(path).state_dict(), 'weights.pt')."
        )


def state_in(loaded: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the tensors of the model in a checkpoint by name, and what was left out, as sentences."""
    part, notes = model_part(loaded)
    found = {
        name: part if container is None else container[key]
        for name, container, key in named_places(part)
    }
    return found, notes


def model_part(loaded: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the object in a checkpoint that holds the model, and what was left out, as sentences."""
    notes: list[str] = []
    where: list[str] = []
    while isinstance(loaded, Mapping) and len(where) < _DEEPEST:
        # A module may be called "model" as well: then its tensors stand next to other tensors.
        if any(is_tensor(value) for value in loaded.values()):
            break
        key = next((key for key in _NESTED if _holds_tensors(loaded.get(key))), None)
        if key is None:
            break
        others = [str(name) for name in loaded if name != key]
        where.append(key)
        if others:
            notes.append(f"Entries next to {key!r} are not read: {listed(others, 5)}.")
        loaded = loaded[key]
    if where:
        place = " in ".join(repr(key) for key in reversed(where))
        notes.insert(0, f"The weights are those under {place} of the checkpoint.")
    return loaded, tuple(notes)


def is_tensor(value: Any) -> bool:
    """True for tensors of torch."""
    return hasattr(value, "detach") and hasattr(value, "dtype") and hasattr(value, "shape")


def _holds_tensors(value: Any, depth: int = 0) -> bool:
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return False
    return any(is_tensor(entry) or _holds_tensors(entry, depth + 1) for entry in value.values())


def named_places(
    value: Any, name: str = "", container: Any = None, key: Any = None, depth: int = 0
) -> Iterator[tuple[str, Any, Any]]:
    """Yield all tensors in nested dictionaries and lists: joined name, container, and key in it."""
    if is_tensor(value):
        yield name or "weights", container, key
        return
    entries: Any = ()
    if isinstance(value, Mapping):
        entries = value.items()
    elif isinstance(value, list | tuple):
        entries = enumerate(value)
    if depth > _DEEPEST:
        return
    for inner, entry in entries:
        joined = f"{name}.{inner}" if name else str(inner)
        yield from named_places(entry, joined, value, inner, depth + 1)


def describe_tensor(name: str, tensor: Any, reader: Any) -> StoredArray:
    """Describe a tensor of torch; sparse, complex or missing entries cannot be read."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    shape = tuple(int(side) for side in tensor.shape)
    fault = ""
    if tensor.is_meta:
        fault = "it has no entries (device meta); load the weights first"
    elif str(tensor.layout) != "torch.strided" or tensor.is_quantized:
        fault = (
            f"it is stored as {str(tensor.layout).removeprefix('torch.')}, {dtype}; allowed: dense"
        )
    elif tensor.is_complex():
        fault = f"it holds type {dtype}; allowed: real numbers"
    if fault:
        return broken(name, fault, shape, dtype)
    # NumPy lacks bfloat16, so these entries are always converted.
    private = dtype == "bfloat16"
    return StoredArray(name, shape, dtype, precision_of(dtype), reader, private=private)


def _read_stored(path: Path, name: str) -> np.ndarray:
    return numpy_of(_tensors(path, stamp_of(path))[0][name])


def numpy_of(tensor: Any) -> np.ndarray:
    """Return the entries of a tensor; types that NumPy lacks are converted to float32."""
    # A tensor may claim more entries than its storage has, by steps of zero.
    check_unpacked(8 * math.prod(tensor.shape), "the array")
    tensor = tensor.detach().cpu()
    try:
        array: np.ndarray = tensor.numpy()
    except TypeError:
        array = tensor.float().numpy()
    return array
