"""Parameters of the system `bilinear-sequence`."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from solvable.frame.parameters import Limit, Parameters, Size
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.rectangular_signal import RectangularSignal

HELD = 3e8
"""Largest number of sensor entries kept in memory; larger sensors are drawn again for each product."""

DENSE = 4e7
"""Largest number of sensor entries for estimators that are no message passing."""


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
    estimator: Literal["message-passing", "nuclear-norm", "gradient-descent"] = "message-passing"
    """Bayes message passing; the matrix of least nuclear norm that fits noiseless labels; or the average
    of gradient descent over both factors from several draws of the prior."""
    starts: int = Field(16, ge=1, le=256)
    """Number of random starts of gradient descent whose estimates are averaged."""
    learning_rate: float = Field(0.7, gt=0, le=10)
    """Learning rate of gradient descent on the sum of (prediction - label)² / 4."""

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
        Limit(
            lambda p: p.dense * p.samples * p.dimension * p.length, DENSE,
            "the sensors of estimator {estimator} have {cost:.2g} entries",
            "dimension, aspect or sample_ratio",
        ),
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> BilinearParameters:
        if self.estimator == "nuclear-norm" and self.noise > 0:
            raise ValueError(
                f"noise is {self.noise:g} with estimator nuclear-norm; allowed: 0, because the least "
                "nuclear norm fits all labels. Set noise=0, or another estimator"
            )
        return self

    @property
    def dense(self) -> bool:
        """True if the estimator needs all sensors in memory."""
        return self.estimator != "message-passing"

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (d, L) of the weight matrix."""
        return self.dimension, self.length

    @property
    def ratio(self) -> float:
        """Samples per entry n/(dL), for the integer number of samples."""
        return self.samples / (self.dimension * self.length)

    @property
    def channel(self) -> GaussianIndices:
        """Gaussian channel: each label is an index with variance 1, plus noise."""
        return GaussianIndices(np.array([1.0]), np.array([self.noise]))

    @property
    def signal(self) -> RectangularSignal:
        """Distribution of the weights, for the integer shape and rank."""
        return RectangularSignal(self.length / self.dimension, self.rank / self.dimension)
