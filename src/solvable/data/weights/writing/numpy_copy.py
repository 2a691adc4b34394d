"""Copies of .npy and .npz files with other entries."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path

import numpy as np

from solvable.data.weights.stored import shown_name
from solvable.data.weights.writing.replacement import LEFT, RIGHT, Factors, Replacement
from solvable.numpy_files import npz_members, open_npy


def copy_npy(path: Path, target: Path, changes: dict[str, Replacement]) -> None:
    """Write a copy of a .npy file, in the order of axes in memory of the original."""
    change = changes.pop(shown_name(path.stem), None)
    if change is None:
        shutil.copyfile(path, target)
        return
    old = open_npy(path)
    new = change(np.asarray(old))
    assert isinstance(new, np.ndarray)
    with target.open("wb") as stream:
        np.lib.format.write_array(stream, _like(old, new), allow_pickle=False)


def copy_npz(path: Path, target: Path, changes: dict[str, Replacement]) -> None:
    """Write a copy of an archive; the other members keep their bytes, order and dates."""
    members = {member.place: member for member in npz_members(path)}
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", allowZip64=True) as archive:
        for entry in source.infolist():
            member = members[entry.filename]
            change = changes.pop(shown_name(member.name), None)
            if change is None:
                with source.open(entry) as old, archive.open(_copied(entry), "w") as stream:
                    shutil.copyfileobj(old, stream, 1 << 24)
                continue
            array = member.read()
            new = change(array)
            ending = entry.filename[len(member.name) :]
            if isinstance(new, Factors):
                parts = [(member.name + LEFT, new.left), (member.name + RIGHT, new.right)]
            else:
                parts = [(member.name, new)]
            for name, part in parts:
                with archive.open(_copied(entry, name + ending), "w") as stream:
                    np.lib.format.write_array(stream, _like(array, part), allow_pickle=False)


def _copied(entry: zipfile.ZipInfo, name: str | None = None) -> zipfile.ZipInfo:
    """Return the description of a member for a new archive."""
    new = zipfile.ZipInfo(name or entry.filename, entry.date_time)
    new.compress_type, new.external_attr = entry.compress_type, entry.external_attr
    if name is None:
        new.file_size = entry.file_size
    return new


def _like(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return entries in the type and the order of axes in memory of another array."""
    new = new.astype(old.dtype)
    fortran = old.flags.f_contiguous and not old.flags.c_contiguous
    return np.asfortranarray(new) if fortran else np.ascontiguousarray(new)


def rewritten_archive(path: Path, target: Path, member: str, data: bytes) -> None:
    """Write a copy of a zip archive with other bytes in one member."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", allowZip64=True) as archive:
        for entry in source.infolist():
            old = io.BytesIO(data) if entry.filename == member else source.open(entry)
            new = _copied(entry)
            new.file_size = len(data) if entry.filename == member else entry.file_size
            with old, archive.open(new, "w") as stream:
                shutil.copyfileobj(old, stream, 1 << 24)
