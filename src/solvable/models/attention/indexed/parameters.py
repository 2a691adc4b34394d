"""Parameters of the system `attention-indexed`."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.parameters import Limit, Parameters, Size, memory
from solvable.message_passing.attention_channels import TABLES, HardmaxAttention, SoftmaxAttention
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.attention.indexed.layers import TwoLayerAttention
from solvable.operators.sensors import index_variances
from solvable.spectra.product_measure import marchenko_pastur

Activation = Literal["linear", "softmax", "hardmax"]

STARTS = 16
"""Number of random starts of gradient descent."""


class IndexedParameters(Parameters):
    """Parameters of an attention-indexed model."""

    dimension: int = Field(100, ge=20, le=100_000)
    """Dimension d of a token; above 600 only `solvable theory` is allowed."""
    sample_ratio: float = Field(0.2, gt=0, le=20.0)
    """Number n of samples over the squared dimension, n/d²."""
    noise: float = Field(0.0, ge=0, le=1e3)
    """Variance Delta of the noise on diagonal logits before the activation; off-diagonal Delta / 2."""
    tokens: int = Field(2, ge=1, le=8)
    """Number T of tokens per sample."""
    rank_ratio: float = Field(0.5, ge=0.05, le=20.0)
    """Rank ratio r/d, for a factor W with r columns in S = W W^T / sqrt(r d)."""
    activation: Activation = "softmax"
    """Activation applied to the logits: linear, or the softmax or hardmax of each row."""
    layers: int = Field(1, ge=1, le=2)
    """Number of attention layers; the input of the second is the output of the first."""
    estimator: Literal["message-passing", "gradient-descent"] = "message-passing"
    """Bayes-optimal message passing, or gradient descent over W averaged over 16 random starts."""

    samples = Size("sample_ratio", "dimension", "dimension", least=4)
    rank = Size("rank_ratio", "dimension", least=1)
    limits = (
        Limit(lambda p: p.dimension, 600, "dimension is {dimension}", "dimension"),
        memory(
            lambda p: p.samples * p.tokens * p.dimension, 2,
            "{samples} samples of {tokens} tokens", "sample_ratio, dimension or tokens",
        ),
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> IndexedParameters:
        if self.activation != "linear" and self.tokens == 1:
            raise ValueError(
                f"tokens is 1 with activation {self.activation}: the attention of one token to itself is "
                "always 1, so labels carry no information; allowed: at least 2 tokens, or "
                "activation=linear"
            )
        if self.activation == "hardmax" and self.tokens not in TABLES:
            raise ValueError(
                f"tokens is {self.tokens} with activation hardmax; allowed: 2 or {max(TABLES)}, because "
                "labels of more tokens have too many outcomes. Set tokens, or activation=softmax"
            )
        if self.estimator == "gradient-descent" and (self.noise or self.activation != "softmax"):
            raise ValueError(
                f"estimator is gradient-descent with activation {self.activation} and noise "
                f"{self.noise:g}; allowed: activation=softmax with noise=0"
            )
        deep = (
            self.activation == "softmax" and self.tokens == 2 and self.noise >= 0.1
            and self.estimator == "message-passing"
        )  # fmt: skip
        if self.layers == 2 and not deep:
            raise ValueError(
                f"layers is 2 with activation {self.activation}, tokens {self.tokens}, noise "
                f"{self.noise:g} and estimator {self.estimator}; allowed: activation=softmax, tokens=2, "
                "noise of at least 0.1 and estimator=message-passing"
            )
        return self

    @property
    def shown(self) -> int:
        """Number k of indices that a sample shows."""
        return len(self.channel.variances) - (self.activation == "softmax")

    @property
    def shown_ratio(self) -> float:
        """Number of indices that all samples show, over the squared dimension: k n/d²."""
        return self.shown * self.samples / self.dimension**2

    @cached_property
    def signal(self) -> SymmetricSignal:
        """Distribution of the weights, for an integer rank."""
        return SymmetricSignal(marchenko_pastur(self.rank / self.dimension))

    @cached_property
    def channel(self) -> GaussianIndices | SoftmaxAttention | HardmaxAttention:
        """Channel from the indices of a sample to its label."""
        if self.activation == "softmax":
            return SoftmaxAttention(self.tokens, self.noise)
        if self.activation == "hardmax":
            return HardmaxAttention(self.tokens, self.noise, self.signal.second_moment)
        v = index_variances(self.tokens)
        return GaussianIndices(v, v * self.noise / 2)

    @cached_property
    def deep_channel(self) -> TwoLayerAttention:
        """Channel from the indices of both layers of a sample to its label."""
        return TwoLayerAttention(self.noise)
