"""Parameters of the system `label-hierarchy`."""

from __future__ import annotations

from math import comb
from typing import Literal, Self

from pydantic import Field, model_validator

from solvable.arrays import check_integer, check_real, is_real
from solvable.errors import InvalidParameter, quoted
from solvable.frame.parameters import Parameters, memory

Gate = Literal["product", "majority"]
"""How a label depends on labels of the level below: the product of two, or the majority of three."""

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
    """Number r of levels; a label is a function of two or three labels of the level below."""
    gate: Gate = "product"
    """Function of a label: product of two labels, or majority of three, which is predicted for up to 14
    inputs."""
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
        size, word = (2, "pairs") if self.gate == "product" else (3, "triples")
        sets = comb(self.dimension, size)
        if self.labels > sets:
            raise ValueError(
                f"labels is {self.labels}, but {self.dimension} inputs have {sets} {word}; allowed: at "
                f"most one label per {word[:-1]}"
            )
        if self.gate == "majority" and self.depth > 1 and self.labels < 4:
            raise ValueError(
                f"labels is {self.labels} with gate=majority and several levels; allowed: at least 4, "
                "which have as many triples"
            )
        return self
