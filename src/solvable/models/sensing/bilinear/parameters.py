"""Parameters of the system `bilinear-sequence`."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from solvable.frame.parameters import Limit, Parameters, Size
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.rectangular_signal import RectangularSignal

HELD = 3e8
"""Largest number of sensor entries kept in memory; larger sensors are drawn again for each product."""


class BilinearParameters(Parameters):
    """Parameters of bilinear sequence regression."""

    dimension: int = Field(60, ge=10, le=100_000)
    """Shorter side d of the weight matrix; above 400 only `solvable theory` is allowed."""
    aspect: float = Field(1.0, ge=1, le=100)
    """Aspect ratio L/d, the longer over the shorter side of the weight matrix."""
    rank_ratio: float = Field(0.2, gt=0, le=100)
    """Rank ratio r/d, with r the number of columns of the first factor; r/d may exceed 1."""
    sample_ratio: float = Field(0.4, gt=0, le=20)
    """Samples per entry of the weight matrix, n/(d L)."""
    noise: float = Field(0.1, ge=0, le=1e4)
    """Variance Delta of the label noise; noiseless labels have variance 1."""

    length = Size("aspect", "dimension")
    samples = Size("sample_ratio", "dimension", "length", least=10)
    rank = Size("rank_ratio", "dimension", floor=1)
    limits = (
        Limit(lambda p: p.dimension, 400, "dimension is {dimension}", "dimension"),
        Limit(
            lambda p: p.samples * p.dimension * p.length, 2e9,
            "{samples} samples of {dimension} x {length} weights take {cost:.2g} products per step",
            "dimension, aspect or sample_ratio",
        ),
    )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (d, L) of the weight matrix."""
        return self.dimension, self.length

    @property
    def channel(self) -> GaussianIndices:
        """Gaussian channel: each label is an index with variance 1, plus noise."""
        return GaussianIndices(np.array([1.0]), np.array([self.noise]))

    @property
    def signal(self) -> RectangularSignal:
        """Distribution of the weights, for the integer shape and rank."""
        return RectangularSignal(self.length / self.dimension, self.rank / self.dimension)
