"""Variants of pruned weights: what was changed, what was predicted, and what was measured."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

Effect = Literal["better", "worse", "no change", "not clear", ""]


@dataclass(frozen=True)
class Variant:
    """Weights with changed matrices, and their loss."""

    kind: str  # "pruned", "denoised", "factors", or "alone" for the cut of one matrix
    matrices: tuple[str, ...]  # names of the changed matrices
    entries: int  # number of entries that these matrices take in the file
    path: str | None  # path of the weights; None if they were deleted after the measurement
    predicted: Effect  # predicted effect on the loss; empty if there is no prediction
    because: str  # reason for the prediction
    loss: float | None = None  # measured loss; None if it was not measured
    change: float | None = None  # loss minus the loss of the original weights
    error: float | None = None  # standard error of the change, if losses of rows are known
    # effect on the loss; changes within the tolerance are none, within two standard errors not clear
    measured: Effect = ""
    fault: str = ""  # reason why there is no loss


@dataclass(frozen=True)
class Pruning:
    """Variants in the order of their measured loss, and the loss of the original weights."""

    directory: str  # directory of the written weights; empty if no cut is suggested
    variants: tuple[Variant, ...]
    loss: float | None = None  # loss of the original weights; None without a function
    tolerance: float | None = None  # change of the loss that counts as no change
    entries: int = 0  # number of entries of the matrices with a suggested cut in the original
    notes: tuple[str, ...] = ()  # what was not done, as sentences

    @property
    def best(self) -> Variant | None:
        """Written weights with the lowest loss that is lower than that of the original."""
        kept = [one for one in self.variants if one.measured == "better" and one.path]
        return kept[0] if kept else None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values for JSON."""
        table: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        table["notes"] = list(self.notes)
        table["variants"] = [
            {one.name: getattr(row, one.name) for one in fields(row)}
            | {"matrices": list(row.matrices)}
            for row in self.variants
        ]
        return table
