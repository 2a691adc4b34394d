"""Parameters of the system `attention-indexed`."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.system import Parameters
from solvable.message_passing.attention_channels import (
    TABLES,
    HardmaxAttention,
    SoftmaxAttention,
)
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.operators.sensors import index_variances
from solvable.spectra.product_measure import marchenko_pastur

Activation = Literal["linear", "softmax", "hardmax"]


class IndexedParameters(Parameters):
    """Parameters of an attention-indexed model."""

    dimension: int = Field(100, ge=20, le=600)
    """Dimension d of a token."""
    sample_ratio: float = Field(0.2, gt=0, le=20.0)
    """Samples over d^2."""
    noise: float = Field(0.0, ge=0, le=1e3)
    """Variance Delta of the noise of diagonal logits, half of it elsewhere, inside the activation."""
    tokens: int = Field(2, ge=1, le=8)
    """Number T of tokens of a sample."""
    rank_ratio: float = Field(0.5, ge=0.05, le=20.0)
    """Rank of the weights W over d, in S = W W^T / sqrt(r d)."""
    activation: Activation = "softmax"
    """Of the logits: none, or softmax or hardmax of each row."""

    @model_validator(mode="after")
    def _check(self) -> IndexedParameters:
        if self.activation != "linear" and self.tokens == 1:
            raise ValueError(
                f"tokens is 1 with activation {self.activation}: the attention of one token to itself "
                "is 1 whatever the weights, so that labels carry no information. Allowed: at least 2 "
                "tokens, or activation=linear"
            )
        if self.activation == "hardmax" and self.tokens not in TABLES:
            raise ValueError(
                f"tokens is {self.tokens} with activation hardmax, whose labels have too many orders to "
                f"integrate over each; allowed: 2 or {max(TABLES)}, or activation=softmax"
            )
        if self.samples < 4 or self.rank < 1:
            raise ValueError(
                f"there are {self.samples} samples and a rank of {self.rank}; allowed: at least 4 and 1. "
                "Raise dimension, sample_ratio or rank_ratio"
            )
        numbers = self.samples * self.tokens * self.dimension
        if numbers > 2.5e8:
            raise ValueError(
                f"{self.samples} samples of {self.tokens} tokens take {8e-9 * numbers:.1f} GB; "
                "allowed: up to 2 GB. Lower sample_ratio, dimension or tokens"
            )
        return self

    @property
    def samples(self) -> int:
        """Number n of samples."""
        return round(self.sample_ratio * self.dimension**2)

    @property
    def rank(self) -> int:
        """Rank r of the weights."""
        return round(self.rank_ratio * self.dimension)

    @cached_property
    def signal(self) -> SymmetricSignal:
        """Law of the weights as they are drawn."""
        return SymmetricSignal(marchenko_pastur(self.rank / self.dimension))

    @cached_property
    def channel(self) -> GaussianIndices | SoftmaxAttention | HardmaxAttention:
        """Channel of the labels."""
        if self.activation == "softmax":
            return SoftmaxAttention(self.tokens, self.noise)
        if self.activation == "hardmax":
            return HardmaxAttention(self.tokens, self.noise, self.signal.second_moment)
        v = index_variances(self.tokens)
        return GaussianIndices(v, v * self.noise / 2)

    @property
    def place(self) -> str:
        """Words for a place in a study."""
        return (
            f"n/d^2 = {self.sample_ratio:.4g}, d = {self.dimension}, {self.activation}, "
            f"{self.tokens} tokens, noise {self.noise:g}, rank {self.rank_ratio:g} d"
        )
