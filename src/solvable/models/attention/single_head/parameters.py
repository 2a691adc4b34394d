"""Parameters of the system `single-head-attention`."""

from __future__ import annotations

from pydantic import Field, model_validator

from solvable.frame.curves import Axis
from solvable.frame.parameters import Limit, Parameters, Size
from solvable.models.attention.single_head.outputs import SoftmaxOutput


class SingleHeadParameters(Parameters):
    """Parameters of an attention head with tied keys and queries, and of the head it learns from."""

    dimension: int = Field(60, ge=20, le=10_000)
    """Number d of coordinates of a token; beyond a few hundred for `solvable theory` alone."""
    sample_ratio: float = Field(0.3, ge=0.02, le=20)
    """Samples per squared dimension, n/d²; a sample is a sequence of tokens and its attention matrix."""
    noise: float = Field(0.4, ge=0, le=10)
    """Variance Delta of the noise of diagonal logits; half of it off the diagonal, inside the softmax."""
    tokens: int = Field(2, ge=2, le=6)
    """Number T of tokens of a sample; one alone would attend to itself and tell nothing."""
    rank_ratio: float = Field(0.3, gt=0, le=10)
    """Rank of the target's weights over d."""
    width_ratio: float = Field(1.0, gt=0, le=10)
    """Width p of the trained weights over d; from the learned rank on it does not matter."""
    regularisation: float = Field(0.02, ge=1e-4, le=10)
    """Penalty of Tr S; weight decay times the square root of width over d."""
    inverse_temperature: float = Field(1.0, ge=0.1, le=3)
    """Inverse temperature beta of the softmax, of target and trained head."""

    n_samples = Size("sample_ratio", "dimension", "dimension")
    rank = Size("rank_ratio", "dimension", floor=1)
    width = Size("width_ratio", "dimension", floor=1)
    limits = (
        Limit(
            lambda p: p.n_samples * p.tokens * p.dimension**2, 1e10,
            "{n_samples} samples of {tokens} tokens in {dimension} dimensions take {cost:.1g} products "
            "an iteration", "sample_ratio, tokens or dimension",
        ),
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> SingleHeadParameters:
        if self.n_samples < self.dimension:
            raise ValueError(
                f"sample_ratio is {self.sample_ratio:g}, so that there are {self.n_samples} samples in "
                f"{self.dimension} dimensions; allowed: at least as many. Set sample_ratio >= "
                f"{1 / self.dimension:.2g}"
            )
        return self

    @property
    def ratio(self) -> float:
        """Samples per squared dimension, of a whole number of samples."""
        return self.n_samples / self.dimension**2

    @property
    def output(self) -> SoftmaxOutput:
        """Attention matrix of a sample."""
        return SoftmaxOutput(self.tokens, self.inverse_temperature)


AXIS = Axis(
    "sample_ratio",
    "samples per squared dimension n/d²",
    value=lambda setting: setting.ratio,
    told="n/d^2 = {ratio:.3g}, d = {dimension}, {tokens} tokens, rank ratio {rank_ratio:g}, "
    "noise {noise:g}, regularisation {regularisation:g}",
    words={
        "dimension": "d = {}",
        "tokens": "{} tokens",
        "rank_ratio": "rank ratio {:g}",
        "width_ratio": "width ratio {:g}",
        "noise": "noise {:g}",
        "regularisation": "regularisation {:.3g}",
        "inverse_temperature": "inverse temperature {:g}",
    },
    margin=1.15,
    resolution=20,
)
