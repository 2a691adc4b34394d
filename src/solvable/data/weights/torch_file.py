"""Tensors of PyTorch checkpoints, loaded by torch without executing anything."""

from __future__ import annotations

import math
import re
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
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
)  # fmt: skip
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.numpy_files import ZIP_ERRORS, check_unpacked
from solvable.paths import error_line
from solvable.plots.words import listed

# Keys under which training programs store the state dict of the model, in the order of preference.
_NESTED = (
    "state_dict", "model_state_dict", "model_state", "model", "module", "net", "network", "weights",
    "params", "student", "generator", "ema", "model_ema", "ema_state_dict",
)  # fmt: skip

# Parts of a module that was saved whole, in the order of its state dict.
_OF_MODULE = ("_parameters", "_buffers", "_modules")

_DEEPEST = 20  # deepest nesting of dictionaries that is followed


def open_torch(path: Path, *, whole: bool = False) -> Weights:
    """Return the tensors of the model's state dict, or of the whole file; nothing is executed."""
    tensors, notes = _tensors(path, stamp_of(path), whole)
    arrays = tuple(
        describe_tensor(name, tensor, partial(_read_stored, path, whole, name), members=True)
        for name, tensor in tensors.items()
    )
    return Weights(path.name, arrays, (path,), notes=notes)


@lru_cache(maxsize=4)  # memory-mapped: shards of a model, and the weights before training
def _tensors(
    path: Path, stamp: tuple[int, int, int], whole: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    loaded, unknown = _loaded_checkpoint(path)
    part, notes = (loaded, ()) if whole else _model_part(loaded)
    found = dict(_named_tensors(part, set()))
    if unknown:
        which = listed(unknown, 3)
        notes += (f"Objects of other classes are not built, and their code never runs: {which}.",)
    if not found:
        raise InvalidData(
            f"{path} holds no tensor; allowed: a state dict, or a dictionary with one under "
            f"{', '.join(_NESTED[:5])} or similar. Save it with torch.save(model.state_dict(), path)."
        )
    return found, notes


def _loaded_checkpoint(path: Path) -> tuple[Any, list[str]]:
    """Load a checkpoint as weights only; return it with the classes that stand-ins replace."""
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
            unknown = torch.serialization.get_unsafe_globals_in_checkpoint(path) if mapped else []
            faults = (UnpicklingError, TypeError, ValueError)
            # torch compares each object with all of these
            for other in (_Inert, _InertObject) if 0 < len(unknown) < 300 else ():
                # NumPy's scalars have a state that is no dictionary.
                pairs = [(_InertObject if "numpy" in name else other, name) for name in unknown]
                with suppress(*faults), torch.serialization.safe_globals(pairs):
                    return _loaded(torch, path, mapped), sorted(unknown)
            return _loaded(torch, path, mapped), []
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


def _loaded(torch: Any, path: Path, mapped: bool) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)


class _Inert:
    """Stand-in for an unknown class: a call gives an empty dictionary, which torch fills."""

    def __new__(cls, *_: object) -> Any:
        return OrderedDict()


class _InertObject:
    """Stand-in for an unknown class whose state is no dictionary; the state is thrown away."""

    def __new__(cls, *_: object) -> Any:
        return object.__new__(cls)

    def __setstate__(self, state: object) -> None:
        """Ignore the state."""


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
    except ZIP_ERRORS:
        return  # the old format; torch reports damage
    if any(name.endswith((".py", "constants.pkl")) or "/code/" in name for name in names):
        raise InvalidData(
            f"{path} is a TorchScript program, not a file of weights; allowed: a state dict. In "
            "Python: torch.save(torch.jit.load(path).state_dict(), 'weights.pt')."
        )


def _model_part(loaded: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the object in a checkpoint that holds the model, and what was left out, as sentences."""
    notes: list[str] = []
    where: list[str] = []
    others: list[str] = []
    # A module may be called "model" as well: then its tensors stand next to other tensors.
    while (
        isinstance(loaded, Mapping)
        and len(where) < _DEEPEST
        and not any(is_tensor(value) for value in loaded.values())
    ):
        held = [name for name, part in loaded.items() if _holds_tensors(part, set())]
        key = next((key for key in _NESTED if key in held), None)
        more = [name for name in held if name != key and "optim" not in str(name)]
        others += [".".join(map(str, (*where, name))) for name in more]
        if key is None:
            break
        rest = [str(name) for name in loaded if name not in (key, *more)]
        notes += [f"Entries next to {key!r} are not read: {listed(rest, 5)}."] if rest else []
        where.append(key)
        loaded = loaded[key]
    if where:
        place = " in ".join(repr(key) for key in reversed(where))
        notes.insert(0, f"The weights are those under {place} of the checkpoint.")
    if others and (where or len(others) > 1):
        read = "Other dictionaries of tensors are not" if where else "All dictionaries are"
        notes.append(f"{read} read; choose one by --key: {listed(others, 5)}.")
    return loaded, tuple(notes)


def is_tensor(value: Any) -> bool:
    """True for tensors of torch."""
    # A file may give a dictionary any attributes.
    known = all(hasattr(value, name) for name in ("detach", "dtype", "shape"))
    return known and not isinstance(value, Mapping)


def _holds_tensors(value: Any, seen: set[int], depth: int = 0) -> bool:
    if not isinstance(value, Mapping) or depth > _DEEPEST or id(value) in seen:
        return False
    seen.add(id(value))
    entries = (entry for _, entry in _entries(value))
    return any(is_tensor(entry) or _holds_tensors(entry, seen, depth + 1) for entry in entries)


def _entries(value: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Return the items of a dictionary, or the parts of the stand-in of a module: its attributes."""
    parts = [vars(value).get(part) for part in _OF_MODULE] if isinstance(value, OrderedDict) else []
    return [pair for part in (value, *parts) if isinstance(part, Mapping) for pair in part.items()]


def _named_tensors(
    value: Any, seen: set[int], name: str = "", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Yield all tensors in nested dictionaries and lists with their joined names."""
    if is_tensor(value):
        yield name or "weights", value
        return
    entries: Any = ()
    if isinstance(value, Mapping):
        entries = _entries(value)
    elif isinstance(value, list | tuple):
        entries = enumerate(value)
    # A container is visited once: lists of 20 kB that hold each other can have 10^12 paths.
    if depth > _DEEPEST or id(value) in seen:
        return
    seen.add(id(value))
    for inner, entry in entries:
        joined = f"{name}.{inner}" if name else str(inner)
        yield from _named_tensors(entry, seen, joined, depth + 1)


def describe_tensor(name: str, tensor: Any, reader: Any, *, members: bool = False) -> StoredArray:
    """Describe a tensor of torch; sparse, complex or missing entries cannot be read."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    shape = tuple(int(side) for side in tensor.shape)
    fault = ""
    if tensor.is_meta:
        fault = "it has no entries (device meta); load the weights first"
    elif str(tensor.layout) != "torch.strided" or tensor.is_quantized:
        fault = f"it is stored as {str(tensor.layout)[6:]}, {dtype}; allowed: dense"
    elif tensor.is_complex():
        fault = f"it holds type {dtype}; allowed: real numbers"
    if fault:
        return broken(name, fault, shape, dtype)
    # NumPy lacks bfloat16, so these entries are always converted.
    private = dtype == "bfloat16"
    return StoredArray(name, shape, dtype, precision_of(dtype), reader, "", private, members)


def _read_stored(path: Path, whole: bool, name: str, member: int | None = None) -> np.ndarray:
    tensor = _tensors(path, stamp_of(path), whole)[0][name]
    # A tensor may claim more entries than its storage has, by steps of zero.
    claimed = math.prod(tensor.shape) * tensor.element_size()
    if claimed > max(1e7, tensor.untyped_storage().nbytes()):
        raise InvalidData(f"its shape {tuple(tensor.shape)} claims more entries than are stored.")
    return numpy_of(tensor if member is None else tensor[member])


def numpy_of(tensor: Any) -> np.ndarray:
    """Return the entries of a tensor; types that NumPy lacks are converted to float32."""
    check_unpacked(8 * math.prod(tensor.shape), "the array")
    tensor = tensor.detach().cpu()
    try:
        return np.asarray(tensor.numpy())
    except TypeError:
        return np.asarray(tensor.float().numpy())
