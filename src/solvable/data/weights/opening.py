"""Arrays of weights from any source that can be read: a file, a folder, an object in Python."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from solvable.data.weights.adapter_factors import CONFIGURATION, FACTOR, scaled_factors
from solvable.data.weights.folder import FolderFiles, files_of
from solvable.data.weights.gguf_file import open_gguf
from solvable.data.weights.hdf5_file import open_hdf5
from solvable.data.weights.in_memory import weights_in_memory
from solvable.data.weights.numpy_file import open_archive, open_array
from solvable.data.weights.onnx_file import open_onnx
from solvable.data.weights.quantised_codes import with_scales
from solvable.data.weights.safetensors_file import open_safetensors
from solvable.data.weights.stacks import split_stacks
from solvable.data.weights.stored import StoredArray, Weights, broken, distinct
from solvable.data.weights.torch_file import open_torch
from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.paths import check_path, printable
from solvable.plots.words import listed

_READERS: dict[str, Callable[[Path], Weights]] = {
    ".safetensors": open_safetensors, ".npz": open_archive, ".npy": open_array, ".pt": open_torch,
    ".pth": open_torch, ".bin": open_torch, ".ckpt": open_torch, ".onnx": open_onnx, ".h5": open_hdf5,
    ".hdf5": open_hdf5, ".keras": partial(open_hdf5, zipped=True), ".gguf": open_gguf,
}  # fmt: skip

ENDINGS = tuple(_READERS)  # endings of the weight files that can be read

# Formats that are not read, by ending: what they are, and what to do.
_OTHERS = {
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), ("a pickle, which could run code when read",
      "Load it yourself, and pass the object to solvable.diagnose_weights in Python")),
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
    **dict.fromkeys((".part", ".incomplete", ".crdownload"), ("an unfinished download", "Finish it")),
}  # fmt: skip

# Averages that an optimiser keeps, by their names in torch, and all of an optimiser's own dictionary.
_MOMENTS = re.compile(
    r"(?:^|[./])(?:(?:max_)?exp_avgs?(?:_sqs?)?(?:_row|_col)?|momentum_buffer|square_avg)(?:$|[./])"
    r"|^_?(?:optim|optim_.*?|optimizer|opt_state|optimizer_(?:weights|states?|state_dict))[./]"
)

# What is often saved under the name of a file of weights, by its first bytes.
_CAUSES = (
    (rb"\Z", "is empty. Download or save it again"),
    (rb"\s*version https://git-lfs", "is a pointer of git LFS and not the weights. Fetch them: git lfs "
     "pull"),
    (rb"(?i)\s*<(?:!doctype|html|head|\?xml)", "is a web page and not weights. Download the file itself "
     "(at Hugging Face: resolve instead of blob in the address), after a login if it needs one"),
    (rb"[\s\x20-\x7e]{4,400}\Z", "is a text and not weights; it begins with {!r}. Download it again"),
)  # fmt: skip


def open_weights(source: Any, key: str | None = None) -> Weights:
    """Describe the arrays of a source; entries are read later, one array at a time.

    A key chooses a dictionary in a checkpoint. Codes are joined with their scales, stacks are split into
    matrices, factors of adapters are multiplied as stated, and averages of optimisers are left out.
    """
    if isinstance(source, Weights):
        return source
    opened = _as_stored(source, key)
    opened = _under(opened, key) if key is not None else opened
    left = {stored.name: 0 for stored in opened.arrays if _MOMENTS.search(stored.name)}
    kept = [stored for stored in opened.arrays if stored.name not in left]
    if left and not any(stored.is_matrix for stored in kept):
        raise InvalidData(
            f"{opened.name} holds averages of an optimiser ({listed([*left], 2)}) and no weights. Pass "
            "the file of the model, such as model.safetensors or pytorch_model.bin."
        )
    arrays, notes = with_scales(kept)
    arrays = split_stacks(scaled_factors(arrays, opened.settings))
    notes += [f"Arrays of the optimiser are not read: {len(left)}."] if left else []
    notes = [*opened.notes, *notes]
    return replace(opened, arrays=tuple(arrays), notes=tuple(notes), stored=tuple(kept))


def iter_weights(source: Any) -> Iterator[StoredArray]:
    """Yield the arrays of a source as they are stored, in its order."""
    yield from _as_stored(source, None).arrays


def _as_stored(source: Any, key: str | None) -> Weights:
    if not isinstance(source, str | os.PathLike):
        opened = weights_in_memory(source)
        return replace(opened, arrays=distinct(opened.arrays))
    path = check_path(source)
    folder = path if path.is_dir() else path.parent
    opened = (
        _of_file(path, key) if folder != path else _of_folder(path, files_of(path, ENDINGS), key)
    )
    adapter = any(FACTOR.search(stored.name) for stored in opened.arrays)
    stated = tuple(_configuration(folder / CONFIGURATION)) if adapter else ()
    settings = (*opened.settings, *_configuration(folder / "config.json"), *stated)
    files = (*opened.files, *(folder / name for name, _ in stated))
    arrays = distinct(opened.arrays)
    return replace(opened, arrays=arrays, settings=settings, files=files, source=path)


def _under(opened: Weights, key: str) -> Weights:
    """Keep the arrays whose names begin with a key, and the rest of their names."""
    begin = re.compile(rf"{re.escape(key)}[./](?=.)")
    kept = [stored for stored in opened.arrays if begin.match(stored.name)]
    if not kept:
        firsts = list(dict.fromkeys(re.split(r"[./]", one.name)[0] for one in opened.arrays))
        raise InvalidParameter(
            f"--key {quoted(key)}: {opened.name} has no array under this name; allowed: "
            f"{listed(firsts, 6)}."
        )
    arrays = tuple(replace(stored, name=begin.sub("", stored.name, 1)) for stored in kept)
    notes = (*opened.notes, f"The weights are those under {key!r}.")
    return replace(opened, arrays=arrays, notes=notes)


def _check_content(path: Path) -> None:
    """Refuse files that are no weights, whatever their name is."""
    with path.open("rb") as stream:
        head = stream.read(400)
        stream.seek(max(0, path.stat().st_size - 70_000))
        tail = stream.read(70_000)
    what = next((text for pattern, text in _CAUSES if re.match(pattern, head)), "")
    if head.startswith(b"PK\3\4") and b"PK\5\6" not in tail:
        what = "is cut: the end of its archive is missing. Download it again"
    if what:
        line = head.decode("latin-1").strip().partition("\n")[0]
        raise InvalidData(f"{path} {what.format(printable(line)[:60])}.")


def _of_file(path: Path, key: str | None) -> Weights:
    if not path.is_file():
        raise InvalidData(
            f"{path} is not a file or a folder; allowed: a folder with weights, or a file ending in "
            f"{', '.join(ENDINGS)}."
        )
    ending = path.suffix.lower()
    reader = _READERS.get(ending)
    if reader is None:
        unknown = ("no format of weights that is known here", "Save the weights as safetensors")
        what, remedy = _OTHERS.get(ending, unknown)
        raise InvalidData(
            f"{path} ends in {path.suffix!r}: {what}; allowed: {', '.join(ENDINGS)}. {remedy}."
        )
    try:
        _check_content(path)
        return open_torch(path, whole=True) if key and reader is open_torch else reader(path)
    except OSError as error:
        raise InvalidData(
            f"{path} cannot be read ({error.strerror or error}); pass a file of weights."
        ) from error


def _of_folder(folder: Path, files: FolderFiles, key: str | None) -> Weights:
    """Join the arrays of all files; an index decides which file holds an array."""
    parts = [_of_file(path, key) for path in files.paths]
    arrays: list[StoredArray] = []
    notes = [note for part in parts for note in part.notes]
    settings = tuple(table for part in parts for table in part.settings)
    for part in parts:
        here, places = part.files[0].relative_to(folder).as_posix(), files.places
        arrays += [one for one in part.arrays if places is None or places.get(one.name) == here]
    if unlisted := sum(len(part.arrays) for part in parts) - len(arrays):
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
