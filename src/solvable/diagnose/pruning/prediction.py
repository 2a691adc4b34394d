"""Predicted sign of the change of the loss if the bulk of matrices is removed."""

from __future__ import annotations

from collections.abc import Sequence

from solvable.diagnose.pruning.results import Effect
from solvable.diagnose.pruning.truncation import Truncation

# Near a minimum the loss changes in proportion to the square of a change of the outputs, which is about
# ||B||^2 / ||W||^2 for a layer W without its bulk B. Below 0.01 % this is less than counts as a change.
_NEGLIGIBLE = 1e-4  # share of the bulk in the squared norm


def predicted(parts: Sequence[Truncation], *, refitted: bool = False) -> tuple[Effect, str]:
    """Return the predicted effect of a cut on the loss, and the reason.

    Training with weight decay stops where the gradient of the training loss is -decay * W. Removing the
    bulk B, which is orthogonal to the rest, therefore changes the training loss by decay * ||B||^2 plus
    half of a curvature term that is not negative at a minimum: it rises. The loss on new data follows
    unless the bulk was fitted to noise in the labels, which weights do not show.
    """
    if not parts:
        return "", "no matrix is changed"
    share = max(part.bulk_norm**2 / max(part.norm**2, 1e-300) for part in parts)
    if share < _NEGLIGIBLE and not refitted:
        return "no change", f"the bulk holds {share:.1g} of the squared norm"
    return "worse", (
        "training stops near a minimum, where removing weights raises the training loss; the loss on new "
        "data falls only if the bulk was fitted to noise in the labels, which weights do not show"
    )
