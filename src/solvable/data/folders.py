"""Folders of array files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from solvable.data.array_files import load_npy, read_pair, read_shard
from solvable.data.parts import RawData, array_parts
from solvable.data.table import listed
from solvable.errors import InvalidData


def read_folder(folder: Path, target: str | None = None, *, required: bool = True) -> RawData:
    """Inputs and target of a folder of array files."""
    # Pairs X*.npy and y*.npy, memory-mapped; .npz shards; one sub-folder of .npy images per class; or
    # .npy images alone if there need not be a target. Files are taken in the order of their names.
    inputs = sorted(folder.glob("X*.npy"))
    if inputs:
        return _join(folder, inputs, lambda path: read_pair(path, required))
    shards = sorted(folder.glob("*.npz"))
    if shards:
        return _join(folder, shards, lambda path: read_shard(path, target, required))
    classes = [sub for sub in sorted(folder.iterdir()) if sub.is_dir() and any(sub.glob("*.npy"))]
    if classes:
        return _read_image_folders(folder, classes)
    images = sorted(folder.glob("*.npy"))
    if images and not required:
        parts, image_shape = array_parts(_stack_images(folder, images), None, where=str(folder))
        return RawData(parts, "", image_shape)
    seen = sorted(path.name for path in folder.iterdir())
    raise InvalidData(
        f"folder {folder} holds {listed(seen) or 'nothing'}; allowed: X.npy with y.npy, pairs "
        "X*.npy with y*.npy, .npz shards, .parquet files, or one sub-folder of .npy images per class."
    )


def _join(folder: Path, paths: Sequence[Path], read: Callable[[Path], RawData]) -> RawData:
    """Parts of several files, which must agree in columns, image shape and target."""
    raws = [read(path) for path in paths]
    first = raws[0]
    for path, raw in zip(paths, raws, strict=True):
        if raw.image_shape != first.image_shape:
            raise InvalidData(
                f"{folder} holds images of mixed size: {paths[0].name} has {first.image_shape}, "
                f"{path.name} has {raw.image_shape}; allowed: one size. Crop or resize them."
            )
        if raw.target != first.target:
            raise InvalidData(
                f"the target is {first.target!r} in {paths[0].name} and {raw.target!r} in "
                f"{path.name}; allowed: one name. Name it with --target."
            )
        if set(raw.parts[0].columns) != set(first.parts[0].columns):
            raise InvalidData(
                f"{path.name} has {len(raw.parts[0].columns)} columns, {paths[0].name} has "
                f"{len(first.parts[0].columns)}, or they differ in name; allowed: the same columns "
                "in every file."
            )
    parts = tuple(part for raw in raws for part in raw.parts)
    return RawData(parts, first.target, first.image_shape, first.notes)


def _read_image_folders(folder: Path, classes: Sequence[Path]) -> RawData:
    """One sub-folder of ``.npy`` images per class; the class is the name of the folder."""
    paths = [path for sub in classes for path in sorted(sub.glob("*.npy"))]
    labels = np.array([path.parent.name for path in paths])
    parts, image_shape = array_parts(_stack_images(folder, paths), labels, where=str(folder))
    note = f"the {len(classes)} sub-folders of {folder.name} were taken as classes"
    return RawData(parts, "class", image_shape, (note,))


def _stack_images(folder: Path, paths: Sequence[Path]) -> np.ndarray:
    """Images of one size, one per file."""
    images = [load_npy(path, mapped=False) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape != images[0].shape:
            raise InvalidData(
                f"{folder} holds images of mixed size: {paths[0].relative_to(folder)} has "
                f"{images[0].shape}, {path.relative_to(folder)} has {image.shape}; allowed: one "
                "size. Crop or resize them."
            )
    return np.stack(images)
