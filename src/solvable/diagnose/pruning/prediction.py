"""Predicted sign of the change of the loss if the bulk of matrices is removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.diagnose.pruning.results import Effect
from solvable.diagnose.pruning.truncation import Truncation
from solvable.diagnose.roles import role_of

# Near a minimum the loss changes in proportion to the square of a change of the outputs, which is about
# ||B||^2 / ||W||^2 for a layer W without its bulk B. Below 0.01 % this is less than counts as a change.
_NEGLIGIBLE = 1e-4  # share of the bulk in the squared norm

# Chosen on networks with the seeds 0 to 8: layers before ten classes hold 9 to 14 directions, or 15 to 45
# if a fifth of the labels is wrong (docs/diagnose.md, "The prediction").
_EXCESS = 1.4  # directions of a matrix over the narrowest width, above which no sign is predicted


class Narrowest(NamedTuple):
    """The matrix of a network with the fewest singular values."""

    name: str
    width: int


def narrowest_of(rows: Iterable[MatrixDiagnosis]) -> Narrowest | None:
    """Return the narrowest matrix with two axes that is no embedding; None if there is none."""
    found = [
        Narrowest(row.name, min(row.shape))
        for row in rows
        if len(row.shape) == 2
        and min(row.shape) > 0
        and role_of(row.name, row.shape) != "embedding"
    ]
    return min(found, key=lambda one: one.width, default=None)


def predicted(
    parts: Sequence[Truncation], narrowest: Narrowest | None = None, *, refitted: bool = False
) -> tuple[Effect, str]:
    """Return the predicted effect of a cut on the loss, and the reason.

    Training with weight decay stops where the gradient of the training loss is -decay * W. Removing the
    bulk B, which is orthogonal to the rest, therefore changes the training loss by decay * ||B||^2 plus
    half of a curvature term that is not negative at a minimum: it rises. The loss on new data follows
    unless the bulk was fitted to noise in the labels. At a minimum with weight decay hidden matrices have
    about as many directions as the narrowest matrix; with many more, no sign is predicted.
    """
    if not parts:
        return "", "no matrix is changed"
    share = max(part.bulk_norm**2 / max(part.norm**2, 1e-300) for part in parts)
    if share < _NEGLIGIBLE and not refitted:
        return "no change", f"the bulk holds {share:.1g} of the squared norm"
    most = max(len(part.values) for part in parts)
    if narrowest is not None and most > _EXCESS * narrowest.width:
        return "", (
            f"a cut keeps {most} directions, but {narrowest.name} passes only {narrowest.width}; the "
            "others may be fitted to wrong labels, and then the loss on new data can fall"
        )
    return "worse", (
        "training stops near a minimum, where removing weights raises the training loss; the loss on new "
        "data falls only if the bulk was fitted to noise in the labels"
    )
