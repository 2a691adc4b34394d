"""Series of checkpoints: the files of one training, opened and put in order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from solvable.data.weights.folder import files_of
from solvable.data.weights.opening import ENDINGS, open_weights
from solvable.data.weights.stored import Weights
from solvable.diagnose.checkpoints.numbers_in_names import natural, numbers_of
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.paths import check_path
from solvable.plots.words import counted, listed

Order = Literal["name", "time", "given"]
ORDERS = ("name", "time", "given")


@dataclass(frozen=True)
class Checkpoint:
    """Weights at one time of a training."""

    label: str  # part of the path that differs between checkpoints
    step: float  # position on the horizontal axis
    weights: Weights


@dataclass(frozen=True)
class Series:
    """Checkpoints in the order of training."""

    name: str  # name of the training
    checkpoints: tuple[Checkpoint, ...]
    axis: str  # "step", "epoch", "number in the name" or "checkpoint"
    order: str  # sentence about the order
    notes: tuple[str, ...] = ()  # sentences about files that were left out


def open_series(sources: Any, *, order: Order = "name") -> Series:
    """Open checkpoints and put them in order; files that cannot be read are left out with a note."""
    if order not in ORDERS:
        raise InvalidParameter(unknown_choice("order", order, ORDERS))
    given = _given(sources)
    opened, notes = [], []
    for label, source in given:
        try:
            weights = open_weights(source)
            if not any(array.is_matrix for array in weights.arrays):
                raise InvalidData("it holds no matrix.")
        except InvalidData as error:
            notes.append(f"{label} is left out: {error}")
            continue
        opened.append((label, source, weights))
    if len(opened) < 2:
        reason = f" {notes[0]}" if notes else ""
        raise InvalidData(
            f"{counted(len(opened), 'checkpoint')} of {len(given)} can be used; allowed: at least two of "
            f"one training.{reason}"
        )
    labels = [label for label, _, _ in opened]
    steps, axis, text = _ordered(sources, labels, [source for _, source, _ in opened], order)
    placed = sorted(range(len(opened)), key=lambda index: (steps[index], index))
    checkpoints = tuple(
        Checkpoint(labels[index], steps[index], opened[index][2]) for index in placed
    )
    return Series(_name(given), checkpoints, axis, text, tuple(notes))


def is_series(paths: Sequence[Path]) -> bool:
    """Return True for several paths, or a folder that holds checkpoints instead of one model."""
    return len(paths) > 1 or (paths[0].is_dir() and len(checkpoints_in(paths[0])) > 0)


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, which may be files or folders; none if it is one model."""
    try:
        files_of(folder, ENDINGS)
    except InvalidData:
        pass
    else:
        return []
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: natural(entry.name))
    except OSError:
        return []
    files = [entry for entry in entries if entry.is_file() and _is_weights(entry)]
    if len(files) > 1 and _is_one_model(files):
        return []
    folders = [entry for entry in entries if entry.is_dir() and _has_weights(entry)]
    if files and folders:
        return sorted([*files, *folders], key=lambda entry: natural(entry.name))
    return folders or (files if len(files) > 1 else [])


def _is_one_model(files: Sequence[Path]) -> bool:
    """Shards and indices of one model, of which some are missing, are no series."""
    return any("-of-" in file.name for file in files)


def _is_weights(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS


def _has_weights(folder: Path) -> bool:
    try:
        return any(entry.is_file() and _is_weights(entry) for entry in folder.iterdir())
    except OSError:
        return False


def _given(sources: Any) -> list[tuple[str, Any]]:
    """Return labels and sources; a folder of checkpoints stands for its checkpoints."""
    if isinstance(sources, Mapping):
        return [(str(key), source) for key, source in sources.items()]
    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    if not isinstance(sources, Sequence):
        raise InvalidParameter(
            f"checkpoints are of type {type(sources).__name__}; allowed: a folder, a list of paths or "
            "models, or a dictionary from steps to paths or models."
        )
    paths: list[Any] = []
    for source in sources:
        if isinstance(source, str | os.PathLike):
            path = check_path(source)
            found = checkpoints_in(path) if path.is_dir() else []
            paths += found or [path]
        else:
            paths.append(source)
    if not all(isinstance(path, Path) for path in paths):
        return [(str(number), source) for number, source in enumerate(paths, 1)]
    repeated = {path for path in paths if paths.count(path) > 1}
    if repeated:
        raise InvalidParameter(
            f"{sorted(repeated)[0]} is given more than once; allowed: each checkpoint once."
        )
    return list(zip(_labels(paths), paths, strict=True))


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return the parts of paths that differ, such as "checkpoint-100"."""
    parts = [path.parts for path in paths]
    if len(parts) == 1:
        return [paths[0].name]
    begin, end = 0, 0
    shortest = min(map(len, parts))
    while begin < shortest - 1 and len({part[begin] for part in parts}) == 1:
        begin += 1
    while end < shortest - 1 - begin and len({part[len(part) - 1 - end] for part in parts}) == 1:
        end += 1
    return ["/".join(part[begin : len(part) - end]) for part in parts]


def _ordered(
    sources: Any, labels: list[str], given: list[Any], order: Order
) -> tuple[list[float], str, str]:
    """Return positions, the name of the axis, and a sentence about the order."""
    places = [float(place) for place in range(1, len(labels) + 1)]
    if isinstance(sources, Mapping) and all(isinstance(key, int | float) for key in sources):
        return [float(label) for label in labels], "step", "Ordered by the keys of the dictionary."
    if order == "time":
        if not all(isinstance(source, Path) for source in given):
            raise InvalidParameter("order is 'time'; allowed for models in Python: 'given'.")
        times = [_written(source) for source in given]
        rank = sorted(range(len(times)), key=lambda index: (times[index], natural(labels[index])))
        positions = [float(rank.index(index) + 1) for index in range(len(times))]
        return positions, "checkpoint", "Ordered by the time at which the files were written."
    if order == "given" or not all(isinstance(source, Path) for source in given):
        return places, "checkpoint", "In the order given."
    found = numbers_of(labels)
    if found is None:
        rank = sorted(range(len(labels)), key=lambda index: natural(labels[index]))
        positions = [float(rank.index(index) + 1) for index in range(len(labels))]
        text = (
            "Ordered by name, because no number in the names differs between all of them; --order time "
            "or --order given changes this."
        )
        return positions, "checkpoint", text
    text = f"Ordered by the {found.unit}"
    text += " in the names" if found.unit in ("step", "epoch", "token") else ""
    if found.unnumbered:
        text += f"; without a number: {listed(found.unnumbered)}"
    return list(found.numbers), found.unit, f"{text}."


def _written(path: Path) -> float:
    try:
        files = [path] if path.is_file() else list(files_of(path, ENDINGS).paths)
        return max(file.stat().st_mtime for file in files)
    except OSError as error:
        raise InvalidData(f"{path} cannot be read ({error.strerror}).") from error


def _name(given: list[tuple[str, Any]]) -> str:
    """Name a training after the folder of its checkpoints."""
    folders = {source.absolute().parent for _, source in given if isinstance(source, Path)}
    return next(iter(folders)).name if len(folders) == 1 else "checkpoints"
