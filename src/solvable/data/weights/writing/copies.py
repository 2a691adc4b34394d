"""Copies of files and folders of weights, in the format that was read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from solvable.data.weights.folder import FolderFiles, files_of
from solvable.data.weights.opening import ENDINGS
from solvable.data.weights.stored import Weights, shown_name
from solvable.data.weights.writing.hdf5_copy import copy_hdf5, copy_keras
from solvable.data.weights.writing.numpy_copy import copy_npy, copy_npz
from solvable.data.weights.writing.onnx_copy import copy_onnx
from solvable.data.weights.writing.replacement import Replacement
from solvable.data.weights.writing.safetensors_copy import copy_safetensors
from solvable.data.weights.writing.torch_copy import copy_torch
from solvable.errors import InvalidData, InvalidParameter
from solvable.paths import error_line

Copy = Callable[[Path, Path, dict[str, Replacement]], None]

_WRITERS: dict[str, Copy] = {
    ".safetensors": copy_safetensors, ".npz": copy_npz, ".npy": copy_npy, ".pt": copy_torch,
    ".pth": copy_torch, ".bin": copy_torch, ".ckpt": copy_torch, ".onnx": copy_onnx, ".h5": copy_hdf5,
    ".hdf5": copy_hdf5, ".keras": copy_keras,
}  # fmt: skip

# Formats that cannot hold two factors in the place of an array, and why.
_WHOLE = {
    ".npy": "a .npy file holds one array",
    **dict.fromkeys((".h5", ".hdf5", ".keras"), "Keras finds arrays by their place and shape"),
}


def check_writable(weights: Weights, *, factors: bool) -> Path:
    """Return the path that was read; raise one line if its format cannot be written."""
    if weights.source is None:
        raise InvalidParameter(
            f"the weights are of type {weights.name}; allowed with prune: the path of a file or folder, "
            "because copies have the format that was read. Save the weights first."
        )
    for path in weights.files:
        ending = path.suffix.lower()
        if ending == ".gguf":
            raise InvalidData(
                f"{path} is a GGUF file, which is not written: its types are rounded in blocks; allowed: "
                "the weights before their conversion, as safetensors or .bin. Prune those, and convert "
                "the result."
            )
        if factors and ending in _WHOLE:
            raise InvalidData(
                f"{path}: factors cannot be written in this format, because {_WHOLE[ending]}; allowed "
                "with factors: .safetensors, .npz, .pt, .pth, .bin, .ckpt, .onnx. Leave factors out."
            )
    return weights.source


def write_copy(source: Path, target: Path, changes: Mapping[str, Replacement]) -> Path:
    """Write a copy of a file or folder into a new folder; return the path to load it from."""
    target.mkdir(parents=True)
    left = dict(changes)
    if source.is_dir():
        files = files_of(source, ENDINGS)
        for path in files.paths:
            mine = {
                name: left.pop(name) for name in list(left) if _is_in(name, path, source, files)
            }
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            _copied(path, place, mine)
            left |= mine
        _copy_others(source, target, files)
        return target
    _copied(source, target / source.name, left)
    return target / source.name


def _is_in(name: str, path: Path, folder: Path, files: FolderFiles) -> bool:
    if files.places is None:
        return True
    places = {shown_name(key): place for key, place in files.places.items()}
    return places.get(name) == path.relative_to(folder).as_posix()


def _copied(path: Path, target: Path, changes: dict[str, Replacement]) -> None:
    try:
        _WRITERS[path.suffix.lower()](path, target, changes)
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        raise InvalidData(f"{path} cannot be copied ({error_line(error)}).") from error


def _copy_others(source: Path, target: Path, files: FolderFiles) -> None:
    """Copy configuration, tokenizer and other files of the folder, but no other weights."""
    for path in sorted(source.iterdir()):
        weights = path.name.lower().endswith(ENDINGS) or path in files.paths
        if path.is_file() and not weights and not (target / path.name).exists():
            shutil.copyfile(path, target / path.name)
