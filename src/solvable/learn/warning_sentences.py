"""Warnings about dependent rows and leaking columns, which make the measured error too small."""

from __future__ import annotations

import numpy as np

from solvable.data.dataset import Dataset
from solvable.learn.dealt_rows import DealtRows
from solvable.learn.dependent_rows import jump_beyond_neighbours, share_along_a_curve
from solvable.learn.leaks import likeness_of_neighbours, telling_columns, tight_groups

ALONG = 0.4
"""Rows lie on a curve if the minimum spanning tree's longest path contains more than this share."""


IN_GROUPS = (
    "rows seem to come in groups that predict the target, so more rows of these groups would not improve "
    "the predictions for new groups. Give the column of the groups with --groups, or the time of each "
    "row with --time."
)
"""Reason why there is no forecast if rows depend on one another in an unknown way."""


def warnings_of(dataset: Dataset, dealt: DealtRows, seed: int) -> tuple[tuple[str, ...], bool]:
    """Return warnings that the error may be too small, and True if rows form groups or a curve."""
    grouped: list[str] = []
    found = []
    X, y = dataset.X[dealt.rows], dataset.y[dealt.rows]
    regression = dataset.kind == "regression"
    if dealt.groups is None and dealt.times is None:
        share, deviation = likeness_of_neighbours(X, dealt.classes, seed=seed)
        if share < 0.9 and deviation < -6:
            found.append(
                "rows next to each other in the file are similar: their squared distance is "
                f"{share:.2f} times that of two random rows (of one class). If such rows come from one "
                "person, device or period, the error on new ones is larger than the measured error; "
                "give their column with --groups or --time"
            )
        elif dataset.image_shape is None:
            grouped = _of_groups(X, y, regression=regression)
            found += grouped
    if dataset.image_shape is None:
        # Dropped numeric columns, such as row numbers, are not tested: in a file sorted by the target,
        # row numbers predict the target. Dropped columns of text are tested, as they may name groups.
        table, needed = dataset.table, dataset.preparation.needed
        kept = [name for name in table.order if name in needed or name in table.texts]
        table = table.select(kept).rows(dealt.rows)
        for name, error in telling_columns(table, y, regression=regression)[:3]:
            left = (
                "of the variance of the target's ranks unexplained"
                if regression
                else "of rows predicted wrongly"
            )
            found.append(
                f"column {name!r} alone predicts the target almost exactly ({100 * error:.1f} % {left}). "
                "If its values are known only after the target, remove the column"
                + (
                    f"; if it names the source of the rows, add --groups {name}"
                    if name in table.texts
                    else ""
                )
            )
    return tuple(found), bool(grouped)


def _of_groups(X: np.ndarray, y: np.ndarray, *, regression: bool) -> list[str]:
    """Warn if rows form tight groups that predict the target, in any order of the file."""
    tight = tight_groups(X, y, regression=regression)
    if tight is None:
        return _of_neighbours(X, y, regression=regression)
    number, near, far = tight
    differs = "differs by {:.0f} % of the variance" if regression else "differs in {:.0f} % of rows"
    inside, outside = (differs.format(100 * error) for error in (near, far))
    return [
        f"rows form {number} tight groups: the target of the nearest row in the same group "
        f"{inside}, and that of the nearest row in another group {outside}. If a group is one person, "
        "device or day, the error on new groups is larger than the measured error. Give the column "
        "that names the groups with --groups"
    ]


def _of_neighbours(X: np.ndarray, y: np.ndarray, *, regression: bool) -> list[str]:
    """Warn if only the nearest rows predict the target, or if rows lie along a curve."""
    jump = jump_beyond_neighbours(X, y, regression=regression)
    unit = "of the variance is left" if regression else "of the constant's errors are left"
    if jump is not None:
        return [
            f"the nearest rows predict the target ({100 * jump.near:.0f} % {unit}), but rows beyond the "
            f"nearest {jump.left_out} do not ({100 * min(jump.far, 1.0):.0f} %), although they are only "
            "slightly farther away: rows seem to come in groups. If a group is one person, device or "
            "day, the error on new groups is far larger than the measured error. Give the column that "
            "names the groups with --groups"
        ]
    along = share_along_a_curve(X)
    if along > ALONG:
        return [
            f"rows lie along a curve: one path between nearest neighbours contains {100 * along:.0f} % "
            "of them, as when one object changes over time. The error in other periods is larger than "
            "the measured error; give the column of times with --time"
        ]
    return []
