"""Parameters of the system `bilinear-sequence`."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from solvable.frame.system import Parameters

HELD = 3e8
"""Numbers of sensors that are held, in single precision; more are drawn again at each product."""


class BilinearParameters(Parameters):
    """Sequences of tokens, the matrix that weighs them, and its samples."""

    dimension: int = Field(60, ge=10, le=400)
    """Shorter side d of the matrix of weights."""
    aspect: float = Field(1.0, ge=1, le=100)
    """Longer side over the shorter, L/d."""
    rank_ratio: float = Field(0.2, gt=0, le=100)
    """Rank of the weights over the shorter side, r/d; it may exceed 1."""
    sample_ratio: float = Field(0.4, gt=0, le=20)
    """Samples over the entries of the matrix, n/(d L)."""
    noise: float = Field(0.1, ge=0, le=1e4)
    """Variance Delta of the label noise; the labels themselves have variance 1."""

    @field_validator("aspect", mode="before")
    @classmethod
    def _longer_over_shorter(cls, value: Any) -> Any:
        if isinstance(value, int | float) and value < 1:
            raise ValueError(
                f"aspect is {value}; allowed: at least 1. It is the longer side of the matrix over the "
                "shorter one, so that the transposed matrix has the inverse"
            )
        return value

    @model_validator(mode="after")
    def _check(self) -> BilinearParameters:
        n, (d, L) = self.samples, self.shape
        if n < 10:
            raise ValueError(
                f"sample_ratio is {self.sample_ratio:g}, so that there are {n} samples of a {d} x {L} "
                "matrix; allowed: at least 10 samples"
            )
        if n * d * L > 2e9:
            raise ValueError(
                f"{n} samples of {d} x {L} weights are {n * d * L:.2g} products in a step; allowed: up "
                "to 2e+09. Lower dimension, aspect or sample_ratio"
            )
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """Sides d and L of the matrix."""
        return self.dimension, round(self.aspect * self.dimension)

    @property
    def rank(self) -> int:
        """Rank r."""
        return max(1, round(self.rank_ratio * self.dimension))

    @property
    def samples(self) -> int:
        """Number n of samples."""
        return round(self.sample_ratio * self.shape[0] * self.shape[1])

    @property
    def place(self) -> str:
        """Words for a place in a study."""
        return (
            f"n/(dL) = {self.sample_ratio:.4g}, d = {self.dimension}, L/d = {self.aspect:g}, "
            f"r/d = {self.rank_ratio:g}, noise {self.noise:g}"
        )
