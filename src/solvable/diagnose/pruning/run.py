"""Write pruned, denoised and factored weights, and measure the loss of each."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.weights.stored import StoredArray, Weights
from solvable.data.weights.writing.copies import check_writable, write_copy
from solvable.data.weights.writing.replacement import Factors, Replacement
from solvable.diagnose.attention.fused_layouts import Heads
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.diagnose.pruning.evaluation import (
    Measured,
    effect_of,
    load_function,
    measured,
    of_original,
)
from solvable.diagnose.pruning.prediction import Narrowest, narrowest_of, predicted
from solvable.diagnose.pruning.results import Pruning, Variant
from solvable.diagnose.pruning.truncation import Truncation, truncated
from solvable.diagnose.roles import Part, parts_of
from solvable.errors import InvalidParameter, StorageFailed, quoted
from solvable.paths import check_path, whole_directory
from solvable.plots.words import counted

ALONE = 600.0  # seconds after which no further matrix is measured alone


@dataclass(frozen=True)
class PruneRequest:
    """Directory of the written weights, and what to write and measure."""

    directory: Path
    factors: bool = False
    evaluate: Callable[[str], Any] | None = None


@dataclass(frozen=True)
class Prepared:
    """Checked request, and the loss of the original weights."""

    request: PruneRequest
    weights: Weights
    path: Path
    original: Measured | None = None  # None without a function
    tolerance: float | None = None

    @property
    def loss(self) -> float | None:
        """Loss of the original weights."""
        return None if self.original is None else self.original.loss


def request_of(
    directory: Any, factors: bool, evaluate: str | Callable[[str], Any] | None
) -> PruneRequest | None:
    """Check the options, and load the user's function; None if nothing is to be written."""
    if directory is None:
        for name, given in (("factors", factors), ("evaluate", evaluate is not None)):
            if given:
                raise InvalidParameter(
                    f"{name} was given without prune; allowed: together with the directory for the "
                    "written weights. Add --prune DIRECTORY."
                )
        return None
    path = check_path(directory, "--prune")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        seen = "holds files" if path.is_dir() else "is a file"
        raise InvalidParameter(
            f"--prune is {quoted(str(path))}, which {seen}; allowed: a new or empty directory, so that "
            "nothing is overwritten."
        )
    if isinstance(evaluate, str):
        evaluate = load_function(evaluate)
    elif evaluate is not None and not callable(evaluate):
        raise InvalidParameter(
            f"evaluate is {quoted(evaluate)}; allowed: a function that takes the path of weights and "
            "returns the loss, or FILE.py:FUNCTION."
        )
    return PruneRequest(path, factors, evaluate)


def prepared(weights: Weights, request: PruneRequest) -> Prepared:
    """Check that the format can be written, and measure the original weights."""
    path = check_writable(weights, factors=request.factors)
    if request.evaluate is None:
        return Prepared(request, weights, path)
    original, tolerance = of_original(request.evaluate, path)
    return Prepared(request, weights, path, original, tolerance)


def pruned(plan: Prepared, found: Diagnosed, heads: Heads) -> Pruning:
    """Write all variants, measure them, and rank them by the measured loss."""
    rows = [row for row in found.matrices if row.suggestion and row.suggestion.suggested]
    base = Pruning("", (), plan.loss, plan.tolerance, sum(math.prod(row.shape) for row in rows))
    if not found.complete:
        return replace(base, notes=("The diagnosis was interrupted, so no weights were written.",))
    if not rows:
        return replace(base, notes=("No cut is suggested, so no weights were written.",))
    changer = Changer(plan.weights, rows, heads, narrowest_of(found.matrices))
    directory = plan.request.directory
    kinds = ["pruned", "denoised", *(["factors"] if plan.request.factors else [])]
    variants = []
    _check_room(plan, len(kinds) + 1)
    with whole_directory(directory) as draft:
        for kind in kinds:
            path = write_copy(plan.path, draft / kind, changer.changes(kind, rows))
            place = directory / path.relative_to(draft)
            variants.append(changer.variant(kind, rows, str(place)))
    notes = changer.notes(rows) if plan.request.factors else ()
    if plan.request.evaluate is None:
        return replace(base, directory=str(directory), variants=tuple(variants), notes=notes)
    measurements, more = _measured_all(plan, changer, rows, variants)
    ranked = sorted(measurements, key=lambda one: math.inf if one.loss is None else one.loss)
    return replace(base, directory=str(directory), variants=tuple(ranked), notes=(*notes, *more))


def _measured_all(
    plan: Prepared, changer: Changer, rows: list[MatrixDiagnosis], written: list[Variant]
) -> tuple[list[Variant], list[str]]:
    """Measure the written weights, then each cut alone while there is time."""
    done: list[Variant] = []
    notes: list[str] = []
    spent = 0.0
    alone = rows if len(rows) > 1 else []  # the only cut is already measured
    scratch = plan.request.directory / ".alone.part"
    try:
        for variant in written:
            done.append(_measured(plan, variant, Path(variant.path or ""))[0])
        for number, row in enumerate(alone):
            if spent > ALONE:
                notes.append(
                    f"{counted(len(alone) - number, 'cut')} of {len(alone)} not measured alone, because "
                    f"the others took {spent:.0f} s; allowed: {ALONE:.0f} s."
                )
                break
            path = write_copy(plan.path, scratch / str(number), changer.changes("alone", [row]))
            variant, seconds = _measured(plan, changer.variant("alone", [row], None), path)
            if _is_best(variant, done):
                done = [replace(one, path=None) if one.kind == "alone" else one for one in done]
                variant = replace(variant, path=str(_keep(path, scratch / str(number), plan)))
            shutil.rmtree(scratch, ignore_errors=True)
            done.append(variant)
            spent += seconds
    except KeyboardInterrupt:
        notes.append("The measurements were interrupted; the others are missing.")
        names = {(one.kind, one.matrices) for one in done}
        done += [
            replace(one, fault="interrupted")
            for one in written
            if (one.kind, one.matrices) not in names
        ]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return done, notes


def _is_best(variant: Variant, others: list[Variant]) -> bool:
    """Return True if a cut alone lowers the loss more than everything measured before it."""
    if variant.measured != "better" or variant.loss is None:
        return False
    losses = [one.loss for one in others if one.loss is not None]
    return variant.loss < min(losses, default=math.inf)


def _keep(path: Path, folder: Path, plan: Prepared) -> Path:
    """Move the copy of a cut alone next to the other copies, in place of an earlier one."""
    place = plan.request.directory / "alone"
    shutil.rmtree(place, ignore_errors=True)
    folder.rename(place)
    return place / path.relative_to(folder)


def _measured(plan: Prepared, variant: Variant, path: Path) -> tuple[Variant, float]:
    assert plan.request.evaluate is not None
    assert plan.original is not None
    result = measured(plan.request.evaluate, path)
    if result.loss is None:
        return replace(variant, fault=result.fault), result.seconds
    change, error, effect = effect_of(plan.original, result, plan.tolerance or 0.0)
    new = replace(variant, loss=result.loss, change=change, error=error, measured=effect)
    return new, result.seconds


def _check_room(plan: Prepared, copies: int) -> None:
    """Raise before anything is written if the disk cannot hold the copies."""
    files = plan.path.iterdir() if plan.path.is_dir() else plan.weights.files
    needed = copies * sum(path.stat().st_size for path in files if path.is_file())
    place = plan.request.directory.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    with suppress(OSError):
        free = shutil.disk_usage(place).free
        if needed > free:
            raise StorageFailed(
                f"{plan.request.directory} needs {needed / 1e9:.1f} GB for {copies} copies of the "
                f"weights, and {free / 1e9:.1f} GB are free. Free space, or choose another directory."
            )


class Changer:
    """New entries of the arrays that contain matrices with a suggested cut."""

    def __init__(
        self,
        weights: Weights,
        rows: Iterable[MatrixDiagnosis],
        heads: Heads,
        narrowest: Narrowest | None,
    ) -> None:
        self.narrowest = narrowest
        self.arrays: Mapping[str, StoredArray] = {one.name: one for one in weights.arrays}
        shapes = {name: stored.shape for name, stored in self.arrays.items()}
        self.places: dict[str, tuple[str, Part | None]] = {}
        for row in rows:
            self.places[row.name] = _place_of(row.name, shapes, heads)
        self.parts: dict[str, Truncation] = {}  # of rank k each, so small next to the matrices

    def changes(self, kind: str, rows: Iterable[MatrixDiagnosis]) -> dict[str, Replacement]:
        """Return the change of each array: of all rows in it."""
        groups: dict[str, list[MatrixDiagnosis]] = {}
        for row in rows:
            groups.setdefault(self.places[row.name][0], []).append(row)

        def change_of(group: list[MatrixDiagnosis]) -> Replacement:
            return lambda entries: self._changed(kind, entries, group)

        return {name: change_of(group) for name, group in groups.items()}

    def _changed(
        self, kind: str, entries: np.ndarray, rows: list[MatrixDiagnosis]
    ) -> np.ndarray | Factors:
        new = np.array(entries)
        for row in rows:
            part = self.places[row.name][1]
            old = entries if part is None else part.of(entries)
            found = self._truncated(old, row)
            if kind == "factors" and self.is_split(row):
                left, right = found.factors()
                return Factors(left, right.reshape(-1, *old.shape[1:]))
            matrix = (found.shrunk() if kind == "denoised" else found.cut()).reshape(old.shape)
            if part is None:
                new = matrix
            else:
                new[(slice(None),) * part.axis + (part.rows,)] = matrix
        return new

    def _truncated(self, old: np.ndarray, row: MatrixDiagnosis) -> Truncation:
        if row.name not in self.parts:
            self.parts[row.name] = truncated(old, row)
        return self.parts[row.name]

    def is_split(self, row: MatrixDiagnosis) -> bool:
        """True if factors of the matrix replace a whole array and have fewer entries."""
        name, part = self.places[row.name]
        stored = self.arrays[name]
        return part is None and not stored.layout and self._entries(row) < math.prod(row.shape)

    def _entries(self, row: MatrixDiagnosis) -> int:
        rows = row.shape[0]
        return (row.advice.kept if row.advice else 0) * (rows + math.prod(row.shape[1:]))

    def variant(self, kind: str, rows: list[MatrixDiagnosis], path: str | None) -> Variant:
        """Describe written weights, with the predicted effect on the loss."""
        entries = sum(
            self._entries(row) if kind == "factors" and self.is_split(row) else math.prod(row.shape)
            for row in rows
        )
        parts = [self.parts[row.name] for row in rows]
        effect, reason = predicted(parts, self.narrowest, refitted=kind == "denoised")
        return Variant(kind, tuple(row.name for row in rows), entries, path, effect, reason)

    def notes(self, rows: list[MatrixDiagnosis]) -> tuple[str, ...]:
        """Sentence about the matrices whose cut is stored without factors."""
        whole = [row for row in rows if not self.is_split(row)]
        if not whole:
            return ()
        return (
            f"Without factors, because they are parts of an array or factors would be larger: "
            f"{', '.join(row.name for row in whole[:4])}{', ...' if len(whole) > 4 else ''}.",
        )


def _place_of(
    name: str, shapes: Mapping[str, tuple[int, ...]], heads: Heads
) -> tuple[str, Part | None]:
    """Return the array that contains a diagnosed matrix, and its part of a fused projection."""
    if name in shapes:
        return name, None
    whole, _, label = name.rpartition("[")
    parts, _ = parts_of(whole, shapes, heads)
    return whole, next(part for part in parts if part.name == label.rstrip("]"))
