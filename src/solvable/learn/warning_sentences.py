"""Sentences about what may make an error look better than it is."""

from __future__ import annotations

import numpy as np

from solvable.data.dataset import Dataset
from solvable.learn.dealt_rows import DealtRows
from solvable.learn.dependent_rows import jump_beyond_neighbours, share_along_a_curve
from solvable.learn.leaks import likeness_of_neighbours, telling_columns, tight_groups

ALONG = 0.4
"""Share of rows on one way from neighbour to neighbour from which they lie along a curve."""


IN_GROUPS = (
    "rows seem to come in groups that tell the target, so that more rows say little of new groups. Name "
    "the column that says which rows belong together with --groups, or their time with --time."
)
"""Why there is no forecast of rows that depend on one another in an order that is not known."""


def warnings_of(dataset: Dataset, dealt: DealtRows, seed: int) -> tuple[tuple[str, ...], bool]:
    """What may make the error look better than it is, and whether rows lie in groups or along a curve."""
    grouped: list[str] = []
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
            grouped = _of_groups(X, y, regression=regression)
            found += grouped
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
    return tuple(found), bool(grouped)


def _of_groups(X: np.ndarray, y: np.ndarray, *, regression: bool) -> list[str]:
    """That rows lie in tight groups which tell the target, in whatever order they stand."""
    tight = tight_groups(X, y, regression=regression)
    if tight is None:
        return _of_neighbours(X, y, regression=regression)
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


def _of_neighbours(X: np.ndarray, y: np.ndarray, *, regression: bool) -> list[str]:
    """That neighbours agree in the target far more than those beyond them do."""
    jump = jump_beyond_neighbours(X, y, regression=regression)
    unit = "of the variance is left" if regression else "of the constant's errors are left"
    if jump is not None:
        return [
            f"the nearest rows predict the target ({100 * jump.near:.0f} % {unit}), and those beyond "
            f"the nearest {jump.left_out} do not ({100 * min(jump.far, 1.0):.0f} %), although they are "
            "hardly farther away: rows seem to come in groups. If a group is one person, device or day, "
            "the error on new ones is far larger than the one below; name their column with --groups"
        ]
    along = share_along_a_curve(X)
    if along > ALONG:
        return [
            f"rows lie along a curve: {100 * along:.0f} % of them on one way from each row to the "
            "nearest next one, as rows of one thing that changes over time do in any order. The error on "
            "other stretches of time is larger than the one below; name the column with --time"
        ]
    return []
