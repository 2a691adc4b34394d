"""Save and load targets as ``.npz`` files of plain arrays, without pickle."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.teachers.first_layer import freeze

Target = TypeVar("Target")

FORMAT = 1
"""Version of the file layout; newer versions of solvable may write a higher number."""

DAMAGE = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that NumPy may raise for a damaged archive."""


def save_teacher(
    path: str | Path,
    kind: str,
    parameters: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    overwrite: bool = False,
) -> Path:
    """Write the parameters (JSON) and the drawn arrays of a target; appends ``.npz``."""
    path = Path(path)
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    if path.exists() and not overwrite:
        raise InvalidParameter(
            f"{path} exists already. Choose another name, or pass overwrite=True."
        )
    if callable(parameters.get("readout")):
        raise InvalidParameter(
            "the readout is a callable, which cannot be saved without pickle; allowed: a named "
            "readout. Keep the callable in your script, and save the drawn arrays."
        )
    content = {"format": FORMAT, "kind": kind, "parameters": dict(parameters)}
    header = json.dumps(content, default=_plain)
    partial = path.with_name(path.name + ".partial")
    try:
        # The file is renamed when complete, so that a full disk or a kill leaves an older file unchanged.
        with open(partial, "wb") as file:
            np.savez(file, allow_pickle=False, header=np.array(header), **arrays)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _plain(value: Any) -> Any:
    """Convert NumPy numbers to Python numbers."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be written to a teacher file")


def load_teacher(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read parameters and arrays written by :func:`save_teacher`; executes nothing in the file."""
    # Read the file before parsing, so that an OSError below means damage and not a missing file.
    content = BytesIO(Path(path).read_bytes())
    try:
        with np.load(content, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            arrays = {
                name: np.asarray(stored[name], dtype=np.float64)
                for name in stored.files
                if name != "header"
            }
        saved_kind, version = header["kind"], int(header["format"])
        parameters = dict(header["parameters"])
    except DAMAGE as error:
        raise InvalidData(
            f"{path} is not a saved {kind} ({error}). Write it with {kind}.save."
        ) from error
    if version > FORMAT:
        raise InvalidData(
            f"{path} has format {version}; this version of solvable reads up to {FORMAT}. "
            "Install solvable from a newer checkout."
        )
    if saved_kind != kind:
        raise InvalidData(f"{path} holds a {saved_kind}, not a {kind}. Use {saved_kind}.load.")
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise InvalidData(f"{path}: array {name!r} holds NaN or infinity; the file is damaged.")
    return parameters, arrays


def construct(path: str | Path, cls: type[Target], parameters: Mapping[str, Any]) -> Target:
    """Construct a target; raise InvalidData for unknown or missing parameters."""
    known = {
        field.name: field.default
        for field in fields(cls)  # type: ignore[arg-type]
        if field.init
    }
    unknown = sorted(set(parameters) - set(known))
    missing = [name for name in known if known[name] is MISSING and name not in parameters]
    if missing:
        raise InvalidData(
            f"{path} lacks the parameters {', '.join(missing)} of {cls.__name__}; the file is "
            "damaged."
        )
    if unknown:
        raise InvalidData(
            f"{path} has the parameters {', '.join(unknown)}, which {cls.__name__} does not have; "
            "the file is damaged, or was written by another version."
        )
    return cls(**parameters)


def take(
    path: str | Path, arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]
) -> np.ndarray:
    """Return a stored array read-only; raise InvalidData if its shape is wrong."""
    stored = arrays[name].shape if name in arrays else None
    if stored != shape:
        seen = "is missing" if stored is None else f"has shape {stored}"
        raise InvalidData(
            f"{path}: array {name!r} {seen}; the parameters require {shape}. The file is damaged."
        )
    return freeze(arrays[name])
