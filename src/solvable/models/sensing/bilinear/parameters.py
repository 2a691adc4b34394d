"""Parameters of the system `bilinear-sequence`."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from solvable.frame.parameters import Limit, Parameters, Size
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.rectangular_signal import RectangularSignal

HELD = 3e8
"""Numbers of sensors that are held, in single precision; more are drawn again at each product."""


class BilinearParameters(Parameters):
    """Sequences of tokens, the matrix that weighs them, and its samples."""

    dimension: int = Field(60, ge=10, le=100_000)
    """Shorter side d of the matrix of weights; beyond 400 for `solvable theory` alone."""
    aspect: float = Field(1.0, ge=1, le=100)
    """Longer side over the shorter, L/d: at least 1, as the transposed matrix has the inverse."""
    rank_ratio: float = Field(0.2, gt=0, le=100)
    """Rank of the weights over the shorter side, r/d; it may exceed 1."""
    sample_ratio: float = Field(0.4, gt=0, le=20)
    """Samples over the entries of the matrix, n/(d L)."""
    noise: float = Field(0.1, ge=0, le=1e4)
    """Variance Delta of the label noise; the labels themselves have variance 1."""

    length = Size("aspect", "dimension")
    samples = Size("sample_ratio", "dimension", "length", least=10)
    rank = Size("rank_ratio", "dimension", floor=1)
    limits = (
        Limit(lambda p: p.dimension, 400, "dimension is {dimension}", "dimension"),
        Limit(
            lambda p: p.samples * p.dimension * p.length, 2e9,
            "{samples} samples of {dimension} x {length} weights are {cost:.2g} products in a step",
            "dimension, aspect or sample_ratio",
        ),
    )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        """Sides d and L of the matrix."""
        return self.dimension, self.length

    @property
    def channel(self) -> GaussianIndices:
        """One index for each sample, of variance 1, seen in noise."""
        return GaussianIndices(np.array([1.0]), np.array([self.noise]))

    @property
    def signal(self) -> RectangularSignal:
        """Law of the weights at the sides and the rank that are drawn."""
        return RectangularSignal(self.length / self.dimension, self.rank / self.dimension)
