"""Copies of HDF5 files and .keras archives with other entries."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.weights.hdf5_file import MEMBER, datasets_of, name_of, open_hdf5, open_keras
from solvable.data.weights.stored import package, shown_name
from solvable.data.weights.writing.numpy_copy import rewritten_archive
from solvable.data.weights.writing.replacement import Replacement


def copy_hdf5(path: Path, target: Path, changes: dict[str, Replacement]) -> None:
    """Copy the file, and write the new entries into its data sets."""
    h5py = package("h5py", "weights", path)
    shutil.copyfile(path, target)
    stored = {array.name: array for array in open_hdf5(path).arrays}
    with h5py.File(target, "r+") as file:
        _write(path, file, stored, changes)


def copy_keras(path: Path, target: Path, changes: dict[str, Replacement]) -> None:
    """Write a copy of an archive; its configuration and other members keep their bytes."""
    h5py = package("h5py", "weights", path)
    stored = {array.name: array for array in open_keras(path).arrays}
    with zipfile.ZipFile(path) as archive:
        whole = io.BytesIO(archive.read(MEMBER))
    with h5py.File(whole, "r+") as file:
        _write(path, file, stored, changes)
    rewritten_archive(path, target, MEMBER, whole.getvalue())


def _write(path: Path, file: Any, stored: dict[str, Any], changes: dict[str, Replacement]) -> None:
    for place, dataset in datasets_of(path, file):
        name = name_of(place)
        change = changes.pop(shown_name(name), None)
        if change is None:
            continue
        new = change(stored[name].read())
        assert isinstance(new, np.ndarray)
        # Filters of Keras were turned to outputs first when they were read.
        turned = new.ndim == len(dataset.shape) and stored[name].layout
        dataset[...] = np.moveaxis(new, 0, -1) if turned else new.reshape(dataset.shape)
