"""Arrays of .npy and .npz files, without unpickling."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from solvable.data.weights.stored import Weights, broken, of_numpy
from solvable.numpy_files import npy_header, npz_members, open_npy


def open_array(path: Path) -> Weights:
    """Return the single array of a .npy file."""
    with path.open("rb") as stream:
        shape, dtype = npy_header(stream, str(path))
    # The file is memory-mapped, so that a wrong size in the header takes no memory.
    stored = of_numpy(path.stem, shape, dtype, partial(open_npy, path))
    return Weights(path.name, (stored,), (path,))


def open_archive(path: Path) -> Weights:
    """Return the arrays of a .npz file."""
    arrays = tuple(
        broken(member.name, member.fault, member.shape)
        if member.fault or member.dtype is None
        else of_numpy(member.name, member.shape, member.dtype, member.read)
        for member in npz_members(path)
    )
    return Weights(path.name, arrays, (path,))
