"""Parameters of the system `label-hierarchy`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from solvable.arrays import check_integer, check_real, is_real
from solvable.errors import InvalidParameter, quoted
from solvable.frame.parameters import Parameters, memory

LARGEST_DIMENSION = 60
"""Largest number of inputs: a set of inputs is stored as the bits of one 64-bit integer."""


def check_cascade(*, blocks: int, folds: int, threshold: float, ridge: float, samples: int) -> None:
    """Refuse settings of a cascade that are out of range."""
    check_integer("blocks", blocks, 1)
    check_integer("folds", folds, 1)
    if folds > samples:
        raise InvalidParameter(
            f"folds is {folds} for {samples} samples; allowed: up to the number of samples."
        )
    if not (is_real(threshold) and 0 < threshold <= 0.5):
        raise InvalidParameter(
            f"threshold is {quoted(threshold)}; allowed: above 0 and at most 0.5."
        )
    check_real("ridge", ridge, 1e-100)


class LabelParameters(Parameters):
    """A hierarchy of labels, and the cascade that learns them."""

    dimension: int = Field(20, ge=8, le=LARGEST_DIMENSION)
    """Number d of inputs, which are random signs."""
    depth: int = Field(4, ge=1, le=8)
    """Number r of levels; a label is the product of two labels of the level below."""
    labels: int = Field(16, ge=3, le=64)
    """Number of labels of each level."""
    samples: int = Field(2400, ge=20, le=1_000_000)
    """Number n of samples, with all their labels."""
    blocks: int = Field(4, ge=1, le=12)
    """Number of blocks of the cascade."""
    folds: int = Field(2, ge=1, le=20)
    """Number of folds; 1 predicts each sample by a fit that includes it."""
    threshold: float = Field(0.15, gt=0.0, le=0.4)
    """Largest out-of-fold error of an accepted label."""
    ridge: float = Field(1.0, ge=1e-6, le=1e6)
    """Ridge penalty; each feature and each product of two features has the weight 1 in the kernel."""
    hierarchy_seed: int = Field(0, ge=0, le=10**6)
    """Seed of the hierarchy: which labels are multiplied."""

    limits = (
        memory(lambda p: 3 * p.samples**2, 2, "kernel matrices of {samples} samples", "samples"),
    )

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        pairs = self.dimension * (self.dimension - 1) // 2
        if self.labels > pairs:
            raise ValueError(
                f"labels is {self.labels}, but {self.dimension} inputs have {pairs} pairs; allowed: "
                "at most one label per pair"
            )
        return self
