"""Sentences about what may make an error look better than it is."""

from __future__ import annotations

import numpy as np

from solvable.data import Dataset
from solvable.learn.leaks import likeness_of_neighbours, telling_columns, tight_groups
from solvable.learn.rows import DealtRows


def warnings_of(dataset: Dataset, dealt: DealtRows, seed: int) -> tuple[str, ...]:
    """What may make the error look better than it is."""
    found = []
    X, y = dataset.X[dealt.rows], dataset.y[dealt.rows]
    regression = dataset.kind == "regression"
    if dealt.groups is None and dealt.times is None:
        share, deviation = likeness_of_neighbours(X, dealt.classes, seed=seed)
        if share < 0.9 and deviation < -6:
            found.append(
                f"rows next to each other in the file are alike: the square of their distance is "
                f"{share:.2f} of that of any two (of one class). If they come from one person, "
                "device or stretch of time, the error on new ones is larger than the one below; "
                "name the column with --groups or --time"
            )
        elif dataset.image_shape is None:
            found += _of_groups(X, y, regression=regression)
    if dataset.image_shape is None:
        # Not numbers that were dropped, such as those of rows of a file sorted by the target; a text
        # that was may name groups.
        table, needed = dataset.table, dataset.preparation.needed
        kept = [name for name in table.order if name in needed or name in table.texts]
        table = table.select(kept).rows(dealt.rows)
        for name, error in telling_columns(table, y, regression=regression)[:3]:
            left = "of the variance of ranks left" if regression else "wrong"
            found.append(
                f"column {name!r} alone nearly tells the target ({100 * error:.1f} % {left}). If it "
                "is not known before the target is, remove it"
                + (
                    f"; if it names where rows come from, add --groups {name}"
                    if name in table.texts
                    else ""
                )
            )
    return tuple(found)


def _of_groups(X: np.ndarray, y: np.ndarray, *, regression: bool) -> list[str]:
    """That rows lie in tight groups which tell the target, in whatever order they stand."""
    tight = tight_groups(X, y, regression=regression)
    if tight is None:
        return []
    number, near, far = tight
    differs = (
        "differs by {:.0f} % of the variance" if regression else "has another target in {:.0f} %"
    )
    inside, outside = (differs.format(100 * error) for error in (near, far))
    return [
        f"rows lie in {number} tight groups: the target of the nearest row of the same group "
        f"{inside}, that of the nearest one of another group {outside}. If a group is one person, "
        "device or day, the error on new ones is larger than the one below; name their column "
        "with --groups"
    ]
