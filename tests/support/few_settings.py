"""Smaller tuning of the methods that `learn` compares, which takes most of the time of small tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from solvable.learn import design, metric_kernel, trees


@contextmanager
def few_settings(*, tuned_trees: bool = False, all_kernels: bool = False) -> Iterator[None]:
    """Use fewer random features, one setting of the trees, and two kernels with learned weights."""

    def effort(rows: int, *_: int) -> trees.Effort:
        return trees.Effort(rows, (trees.Setting(8, 20),), 0.3, 5, 1, "")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "DEFAULT_WIDTH", 200)
        patch.setattr(
            design, "FEW_ROWS", 250
        )  # fewer parts, and larger tables as those of many rows
        if not tuned_trees:
            patch.setattr(trees, "effort_for", effort)
        if not all_kernels:
            patch.setattr(metric_kernel, "TRIED", (("relu", 1.0), ("gaussian", 2.0)))
        yield
