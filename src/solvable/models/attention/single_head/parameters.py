"""Parameters of the system `single-head-attention`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.curves import Axis
from solvable.frame.parameters import Limit, Parameters, Size
from solvable.models.attention.single_head.outputs import SoftmaxOutput
from solvable.spectra.measures import Measure, power_law
from solvable.spectra.product_measure import marchenko_pastur
from solvable.spectra.thresholds import perfect_recovery_threshold

NOISELESS_PENALTY = 1e-3
"""Penalty of training on labels without noise, and largest penalty of claims on recovery."""


class SingleHeadParameters(Parameters):
    """Parameters of the trained attention head and of its target."""

    dimension: int = Field(60, ge=20, le=10_000)
    """Dimension d of a token; above a few hundred only `solvable theory` is allowed."""
    sample_ratio: float = Field(0.3, ge=0.02, le=20)
    """Number n of samples over d², where a sample is T tokens and their attention matrix."""
    noise: float = Field(0.4, ge=0, le=10)
    """Variance Delta of the noise on diagonal logits before the softmax; off-diagonal Delta / 2."""
    tokens: int = Field(2, ge=2, le=6)
    """Number T of tokens per sample, at least 2."""
    target: Literal["wishart", "power-law"] = "wishart"
    """Spectrum of the target: random weights of `rank_ratio` times d columns, or i^-gamma."""
    rank_ratio: float = Field(0.3, gt=0, le=10)
    """Rank r of a Wishart target's weights over d."""
    exponent: float = Field(1.0, gt=0.5, le=5)
    """Exponent gamma of the eigenvalues of a power-law target, s_i ~ i^-gamma with Tr S*² = d."""
    trained: Literal["weights", "matrix"] = "weights"
    """Train the weights W with weight decay, or any symmetric S with a penalty on its Frobenius norm."""
    width_ratio: float = Field(1.0, gt=0, le=10)
    """Width p of the trained weights over d; above the learned rank the width has no effect."""
    regularisation: float = Field(0.02, ge=1e-4, le=10)
    """Penalty lambda on Tr S, the weight decay times sqrt(width / d); for `trained=matrix` on Tr S²."""
    inverse_temperature: float = Field(1.0, ge=0.1, le=3)
    """Inverse temperature beta of the softmax of the trained head."""
    target_inverse_temperature: float = Field(0.0, ge=0, le=3)
    """Inverse temperature of the target's softmax; 0 means that of the trained head."""
    noiseless_samples: int = Field(0, ge=0, le=10**9)
    """Smallest n at which weights are also trained on labels without noise, up to three times
    `recovery_ratio` and at the penalty 0.001; 0 for never."""

    n_samples = Size("sample_ratio", "dimension", "dimension")
    rank = Size("rank_ratio", "dimension", floor=1)
    width = Size("width_ratio", "dimension", floor=1)
    limits = (
        Limit(
            lambda p: p.n_samples * p.tokens * p.dimension**2, 1e10,
            "{n_samples} samples of {tokens} tokens in {dimension} dimensions take {cost:.1g} products "
            "per iteration", "sample_ratio, tokens or dimension",
        ),
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> SingleHeadParameters:
        if self.n_samples < self.dimension:
            raise ValueError(
                f"sample_ratio is {self.sample_ratio:g}, which gives {self.n_samples} samples in "
                f"{self.dimension} dimensions; allowed: at least one per dimension. Set sample_ratio >= "
                f"{1 / self.dimension:.2g}"
            )
        return self

    @property
    def ratio(self) -> float:
        """Ratio n/d² for the integer number n of samples."""
        return self.n_samples / self.dimension**2

    @property
    def low_rank(self) -> bool:
        """Return True if a head without noise can be recovered from fewer samples than unknowns."""
        same = self.target_inverse_temperature in (0, self.inverse_temperature)
        wishart = self.target == "wishart" and self.rank < self.dimension
        return wishart and same and self.trained == "weights"

    @property
    def recovery_ratio(self) -> float:
        """Sample ratio above which a target of low rank is recovered without noise (attention 15)."""
        # A sample fixes k = (T² + T - 2) / 2 linear functions of the matrix at vanishing penalty.
        rank_ratio = min(self.rank / self.dimension, 1.0)
        return perfect_recovery_threshold(rank_ratio) / self.output.size

    @property
    def trained_without_noise(self) -> bool:
        """Return True if each replicate also trains on labels without noise."""
        enough = 0 < self.noiseless_samples <= self.n_samples
        return self.noise > 0 and self.low_rank and enough and self.ratio <= 3 * self.recovery_ratio

    @property
    def law(self) -> Measure:
        """Spectrum of the target."""
        if self.target == "power-law":
            return power_law(dimension=self.dimension, exponent=self.exponent)
        return marchenko_pastur(self.rank / self.dimension)

    @property
    def teacher(self) -> SoftmaxOutput:
        """Softmax output of the target."""
        return SoftmaxOutput(
            self.tokens, self.target_inverse_temperature or self.inverse_temperature
        )

    @property
    def output(self) -> SoftmaxOutput:
        """Softmax output as a function of a sample's contrasts."""
        return SoftmaxOutput(self.tokens, self.inverse_temperature)


AXIS = Axis(
    "sample_ratio",
    "sample ratio n/d²",
    value=lambda setting: setting.ratio,
    point_name="n/d² = {ratio:.3g}, d = {dimension}, {tokens} tokens, rank ratio {rank_ratio:g}, "
    "noise {noise:g}, regularisation {regularisation:g}, {target} target",
    words={
        "dimension": "d = {}",
        "tokens": "{} tokens",
        "rank_ratio": "rank ratio {:g}",
        "width_ratio": "width ratio {:g}",
        "noise": "noise {:g}",
        "regularisation": "regularisation {:.3g}",
        "inverse_temperature": "inverse temperature {:g}",
        "target_inverse_temperature": "inverse temperature {:g} of the target",
        "target": "{} target",
        "exponent": "exponent {:g}",
        "trained": "trained {}",
    },
    margin=1.15,
    resolution=20,
)
