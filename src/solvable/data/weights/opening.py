"""Arrays of weights from any source that can be read: a file, a folder, an object in Python."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from solvable.data.weights.folder import FolderFiles, files_of
from solvable.data.weights.gguf_file import open_gguf
from solvable.data.weights.hdf5_file import open_hdf5, open_keras
from solvable.data.weights.in_memory import weights_in_memory
from solvable.data.weights.numpy_file import open_archive, open_array
from solvable.data.weights.onnx_file import open_onnx
from solvable.data.weights.safetensors_file import open_safetensors
from solvable.data.weights.stored import StoredArray, Weights, broken, distinct
from solvable.data.weights.torch_file import open_torch
from solvable.errors import InvalidData
from solvable.paths import check_path

_READERS: dict[str, Callable[[Path], Weights]] = {
    ".safetensors": open_safetensors, ".npz": open_archive, ".npy": open_array, ".pt": open_torch,
    ".pth": open_torch, ".bin": open_torch, ".ckpt": open_torch, ".onnx": open_onnx, ".h5": open_hdf5,
    ".hdf5": open_hdf5, ".keras": open_keras, ".gguf": open_gguf,
}  # fmt: skip

ENDINGS = tuple(_READERS)  # endings of the weight files that can be read

# Formats that are not read, by ending: what they are, and what to do.
_OTHERS = {
    ".pkl": ("a pickle, which could run code when read", "Load it yourself, and pass the object "
             "to solvable.diagnose_weights in Python"),
    ".joblib": ("a pickle, which could run code when read", "Load it yourself, and pass the "
                "fitted network to solvable.diagnose_weights in Python"),
    ".pb": ("a TensorFlow graph", "Save the variables with numpy.savez"),
    ".index": ("a TensorFlow checkpoint", "Save the variables with numpy.savez"),
    ".tflite": ("a TensorFlow Lite model", "Use the model before its conversion"),
    ".msgpack": ("a checkpoint of flax", "Restore it with flax.serialization.msgpack_restore, and "
                 "pass the tree to solvable.diagnose_weights in Python"),
    ".mlmodel": ("a Core ML model", "Use the model before its conversion"),
    ".pt2": ("an exported program of torch", "Save the state dict of the model"),
    ".engine": ("a TensorRT engine", "Use the model before its conversion"),
    ".ggml": ("a file of the format before GGUF", "Convert the original weights to GGUF"),
    ".mat": ("a file of MATLAB", "In Python: numpy.savez('w.npz', **scipy.io.loadmat(path))"),
    ".json": ("an index or a configuration", "Pass the folder that contains it"),
}  # fmt: skip
_OTHERS[".pickle"] = _OTHERS[".pkl"]


def open_weights(source: Any) -> Weights:
    """Describe the arrays of a source; entries are read later, one array at a time."""
    if isinstance(source, Weights):
        return source
    if not isinstance(source, str | os.PathLike):
        opened = weights_in_memory(source)
        return replace(opened, arrays=distinct(opened.arrays))
    path = check_path(source)
    if path.is_dir():
        opened = _of_folder(path, files_of(path, ENDINGS))
        beside = path / "config.json"
    else:
        opened = _of_file(path)
        beside = path.with_name("config.json")
    settings = (*opened.settings, *_configuration(beside))
    return replace(opened, arrays=distinct(opened.arrays), settings=settings, source=path)


def iter_weights(source: Any) -> Iterator[StoredArray]:
    """Yield the arrays of a source in its order."""
    yield from open_weights(source).arrays


def _of_file(path: Path) -> Weights:
    if not path.is_file():
        raise InvalidData(
            f"{path} is not a file or a folder; allowed: a folder with weights, or a file ending in "
            f"{', '.join(ENDINGS)}."
        )
    ending = path.suffix.lower()
    reader = _READERS.get(ending)
    if reader is None:
        what, remedy = _OTHERS.get(ending, ("no format of weights that is known here", ""))
        remedy = f"{remedy}. " if remedy else "Save the weights as safetensors. "
        raise InvalidData(
            f"{path} ends in {path.suffix!r}: {what}; allowed: {', '.join(ENDINGS)}. {remedy.strip()}"
        )
    try:
        return reader(path)
    except OSError as error:
        raise InvalidData(
            f"{path} cannot be read ({error.strerror or error}); pass a file of weights."
        ) from error


def _of_folder(folder: Path, files: FolderFiles) -> Weights:
    """Join the arrays of all files; an index decides which file holds an array."""
    parts = [_of_file(path) for path in files.paths]
    arrays: list[StoredArray] = []
    notes = [note for part in parts for note in part.notes]
    settings = tuple(table for part in parts for table in part.settings)
    unlisted = 0
    for part in parts:
        for stored in part.arrays:
            place = None if files.places is None else files.places.get(stored.name)
            if files.places is None or place == part.files[0].relative_to(folder).as_posix():
                arrays.append(stored)
            else:
                unlisted += 1
    if unlisted:
        notes.append(f"Arrays that the index does not list there are not read: {unlisted}.")
    present = {stored.name for stored in arrays}
    arrays += [
        broken(name, f"the index places it in {shard}, which does not hold it")
        for name, shard in (files.places or {}).items()
        if name not in present
    ]
    if len(parts) == 1 and files.places is None:
        notes.insert(0, f"The folder's weights are those in {parts[0].name}.")
    notes += [files.note] if files.note else []
    name = folder.name or folder.resolve().name or str(folder)
    return Weights(name, tuple(arrays), files.paths, settings, tuple(dict.fromkeys(notes)))


def _configuration(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the content of a config.json, which may belong to another program and hold anything."""
    largest = 10_000_000
    try:
        if path.is_file() and path.stat().st_size < largest:
            table = json.loads(path.read_bytes())
            if isinstance(table, dict):
                yield path.name, table
    except (OSError, ValueError, RecursionError):
        return
