"""Files of weights in a folder, as model hubs lay it out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solvable.errors import InvalidData
from solvable.paths import place_inside
from solvable.plots.words import counted, listed

_INDEX = (".safetensors.index.json", ".bin.index.json")

# Files that win over others in the same folder, in the order of preference.
_FIRST = (
    "model.safetensors", "diffusion_pytorch_model.safetensors", "adapter_model.safetensors",
    "pytorch_model.bin", "diffusion_pytorch_model.bin", "adapter_model.bin",
)  # fmt: skip

# Files of a training program next to the weights.
_BESIDE = re.compile(
    r"(?:optimizer|scheduler|scaler|rng_state.*|training_args|pytorch_model_fsdp.*)\.(?:pt|pth|bin)"
)

_SHARD = re.compile(r"(.+)-(\d{5,6})-of-(\d{5,6})(\.safetensors|\.bin|\.gguf)")

_LARGEST_INDEX = 200_000_000  # bytes; an index has about a hundred bytes per array


@dataclass(frozen=True)
class FolderFiles:
    """Files to read from a folder, in order."""

    paths: tuple[Path, ...]
    places: Mapping[str, str] | None = None  # file of each array, if there is an index
    note: str = ""  # files that were passed over


def files_of(folder: Path, endings: tuple[str, ...]) -> FolderFiles:
    """Choose the files of weights in a folder; raise if there are none or the choice is not clear."""
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    except OSError as error:
        raise InvalidData(
            f"{folder} cannot be read ({error.strerror}); pass another folder."
        ) from error
    for ending in _INDEX:
        indices = [name for name in names if name.endswith(ending)]
        plain = [name for name in indices if name.count(".") == ending.count(".")]
        if indices:
            chosen = plain or indices
            if len(chosen) > 1:
                raise _unclear(folder, chosen)
            return _of_index(folder, chosen[0])
    found = [
        name for name in names if name.lower().endswith(endings) and not _BESIDE.fullmatch(name)
    ]
    preferred = [name for name in _FIRST if name in found]
    if preferred:
        return FolderFiles((folder / preferred[0],), note=_passed(found, {preferred[0]}))
    shards = [name for name in found if _SHARD.fullmatch(name)]
    if shards:
        return _of_shards(folder, shards, found)
    if not found:
        raise _nothing(folder, names)
    if len(found) > 1:
        raise _unclear(folder, found)
    return FolderFiles((folder / found[0],))


def _of_index(folder: Path, name: str) -> FolderFiles:
    """Read an index: files must lie in the folder, and all of them must be there."""
    path = folder / name
    again = "Download the folder again."
    try:
        if path.stat().st_size > _LARGEST_INDEX:
            raise ValueError(f"it has {path.stat().st_size} bytes")
        table: Any = json.loads(path.read_bytes())
        places = table["weight_map"]
        if not isinstance(places, dict) or not places:
            raise ValueError("it lists no array")
        if not all(isinstance(place, str) for place in places.values()):
            raise ValueError("a file name is no text")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidData(f"{path} is a damaged index ({error}). {again}") from error
    shards = list(dict.fromkeys(places.values()))
    for shard in shards:
        try:
            place_inside(folder, shard)
        except InvalidData as error:
            raise InvalidData(f"{path} points elsewhere: {error}") from error
    missing = [shard for shard in shards if not (folder / shard).is_file()]
    if missing:
        raise InvalidData(
            f"{path} names {counted(len(shards), 'file')}, of which {len(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing: {listed(missing, 3)}. {again}"
        )
    return FolderFiles(tuple(folder / shard for shard in sorted(shards)), places)


def _of_shards(folder: Path, shards: list[str], found: list[str]) -> FolderFiles:
    """Return numbered shards without an index; raise if one is missing."""
    groups: dict[tuple[str, ...], set[int]] = {}
    for name in shards:
        stem, number, total, ending = _SHARD.fullmatch(name).groups()  # type: ignore[union-attr]
        groups.setdefault((stem, total, ending), set()).add(int(number))
    if len(groups) > 1:
        raise _unclear(folder, shards)
    ((_, total, _), numbers) = next(iter(groups.items()))
    if len(numbers) != int(total):
        raise InvalidData(
            f"{folder} holds {len(numbers)} of {int(total)} shards; allowed: all of them. Download the "
            "missing ones."
        )
    return FolderFiles(tuple(folder / name for name in shards), note=_passed(found, set(shards)))


def _passed(found: list[str], used: set[str]) -> str:
    rest = [name for name in found if name not in used]
    return f"Other files in the folder are not read: {listed(rest, 4)}." if rest else ""


def _unclear(folder: Path, names: list[str]) -> InvalidData:
    return InvalidData(
        f"{folder} holds {len(names)} files of weights: {listed(names, 4)}; allowed: one, or one index "
        "with its shards. Pass the path of one of them."
    )


def _nothing(folder: Path, names: list[str]) -> InvalidData:
    """Return the error for a folder without weights, with a remedy for known layouts."""
    below = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    what = ""
    if "saved_model.pb" in names:
        what = "is a TensorFlow SavedModel, which holds a program"
        remedy = (
            "In TensorFlow: numpy.savez('m.npz', **{v.name: v.numpy() for v in model.variables})"
        )
    elif {"_CHECKPOINT_METADATA", "_METADATA", "manifest.ocdbt", "ocdbt.process_0"} & {
        *names,
        *below,
    }:
        what = "is a checkpoint of JAX's orbax, which is not read"
        remedy = (
            "In Python: restore it with orbax.checkpoint, and pass the tree of parameters to "
            "solvable.diagnose_weights"
        )
    elif any(name.endswith(".index") or ".data-0" in name for name in names):
        what = "is a TensorFlow checkpoint, which is not read"
        remedy = (
            "In TensorFlow: save tf.train.load_checkpoint(path).get_tensor(name) of each name with "
            "numpy.savez"
        )
    if what:
        return InvalidData(f"{folder} {what}; allowed: files of weights. {remedy}.")
    seen = f"it has {listed(names, 4)}" if names else "it has no file"
    seen += f" and the folders {listed(below, 4)}" if below else ""
    return InvalidData(
        f"{folder} holds no file of weights: {seen}; allowed: model.safetensors, an index with its "
        "shards, or one file of a format that is read. Pass the folder or file that holds the weights."
    )
