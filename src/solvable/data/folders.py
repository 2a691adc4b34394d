"""Read folders of array files or images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.array_files import load_npy, read_pair, read_shard
from solvable.data.image_files import ImageForm, image_paths, read_images, visible
from solvable.data.raw_data import RawData, array_parts
from solvable.errors import InvalidData
from solvable.plots.words import quoted_names


def read_folder(
    folder: Path, target: str | None = None, *, required: bool = True, form: ImageForm | None = None
) -> RawData:
    """Read inputs and target from a folder of array files or images."""
    # A folder may contain memory-mapped pairs X*.npy and y*.npy; .npz files; one sub-folder of images
    # per class; or, if no target is required, images only. Files are read in the order of their names.
    inputs = sorted(folder.glob("X*.npy"))
    if inputs:
        return _join(folder, inputs, lambda path: read_pair(path, required))
    shards = sorted(folder.glob("*.npz"))
    if shards:
        return _join(folder, shards, lambda path: read_shard(path, target, required))
    inside = visible(folder)
    for find, read in ((_array_paths, _read_arrays), (image_paths, read_images)):
        classes = [sub for sub in inside if sub.is_dir() and find(sub)]
        paths = [path for sub in classes for path in find(sub)]
        paths = paths or ([] if required else find(folder))
        if paths:
            stacked, notes = read(folder, paths, form or ImageForm())
            labels = np.array([path.parent.name for path in paths]) if classes else None
            parts, image_shape = array_parts(stacked, labels, where=str(folder))
            more = _class_notes(folder, inside, classes, paths) if classes else ()
            names = tuple(str(path.relative_to(folder)) for path in paths)
            return RawData(parts, "class" if classes else "", image_shape, (*more, *notes), names)
    seen = [path.name for path in inside]
    deeper = [sub for sub in inside if sub.is_dir() and any(map(_holds_images, _folders(sub)))]
    hint = f" Its images are in deeper folders: try {deeper[0]}." if deeper else ""
    raise InvalidData(
        f"folder {folder} holds {quoted_names(seen) or 'nothing'}; allowed: X.npy with y.npy, pairs "
        "X*.npy with y*.npy, .npz shards, .parquet files, or one sub-folder of .npy, .png or .jpg "
        f"images per class.{hint}"
    )


def _array_paths(folder: Path) -> list[Path]:
    return [path for path in visible(folder) if path.suffix == ".npy"]


def _folders(folder: Path) -> list[Path]:
    return [path for path in visible(folder) if path.is_dir()]


def _holds_images(folder: Path) -> bool:
    return bool(_array_paths(folder) or image_paths(folder))


def _class_notes(
    folder: Path, inside: Sequence[Path], classes: Sequence[Path], paths: Sequence[Path]
) -> tuple[str, ...]:
    """Return sentences about the sub-folders used as classes and about files left out."""
    notes = [f"the {len(classes)} sub-folders of {folder.name} were taken as classes"]
    left = [path.name for path in inside if path not in classes]
    used = set(paths)
    left += [
        f"{sub.name}/{path.name}" for sub in classes for path in visible(sub) if path not in used
    ]
    if left:
        notes.append(f"left out, as they are not images of a class: {quoted_names(left)}")
    return tuple(notes)


def _join(folder: Path, paths: Sequence[Path], read: Callable[[Path], RawData]) -> RawData:
    """Join the parts read from all files, which must agree in columns, image shape and target."""
    raws = [read(path) for path in paths]
    first = raws[0]
    for path, raw in zip(paths, raws, strict=True):
        if raw.image_shape != first.image_shape:
            raise _mixed(folder, (paths[0], path), (first.image_shape, raw.image_shape))
        if raw.target != first.target:
            raise InvalidData(
                f"the target is {first.target!r} in {paths[0].name} and {raw.target!r} in "
                f"{path.name}; allowed: one name. Give the target with --target."
            )
        if set(raw.parts[0].columns) != set(first.parts[0].columns):
            raise InvalidData(
                f"{path.name} has {len(raw.parts[0].columns)} columns, {paths[0].name} has "
                f"{len(first.parts[0].columns)}, or they differ in name; allowed: the same columns "
                "in every file. Give all files the same columns."
            )
    parts = tuple(part for raw in raws for part in raw.parts)
    return RawData(parts, first.target, first.image_shape, first.notes)


def _read_arrays(
    folder: Path, paths: Sequence[Path], form: ImageForm
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Read images of one size without conversion, one image per file."""
    images = [load_npy(path, mapped=False) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape != images[0].shape:
            raise _mixed(folder, (paths[0], path), (images[0].shape, image.shape))
    return np.stack(images), ()


def _mixed(folder: Path, paths: tuple[Path, Path], shapes: tuple[Any, Any]) -> InvalidData:
    first, other = (path.relative_to(folder) for path in paths)
    return InvalidData(
        f"{folder} contains images of mixed size: {first} has {shapes[0]}, {other} has {shapes[1]}; "
        "allowed: one size. Crop or resize them."
    )
