"""Parameters of the system `neural-lofi`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.parameters import Limit, Parameters, Size

DIMENSIONS = {"single-index": 400, "hidden": 320, "subspace": 60}
"""Default dimension of each target."""


class NeuralLoFiParameters(Parameters):
    """Parameters of a filter on Gaussian inputs."""

    target: Literal["single-index", "hidden", "subspace"] = "single-index"
    """single-index: one direction; hidden: one direction among strong irrelevant ones; subspace: four
    directions, with test errors of networks."""
    dimension: int = Field(0, ge=0, le=5_000)
    """Number d of input coordinates; 0 means the target's default: 400 (single-index), 320 (hidden) or
    60 (subspace)."""
    ratio: float = Field(5.0, gt=0, le=1_000)
    """Number n of samples per input coordinate, n/d."""
    channel: Literal["square-sign", "tail-sign", "sign", "square", "absolute", "cosine"] = (
        "square-sign"
    )
    """Label as a function of the coordinate s: sign(s² - median), sign(s² - 90 % quantile), sign(s),
    s² - 1, the modulus of s, cos(2 s)."""
    noise: float = Field(0.0, ge=0, le=10)
    """Probability that a two-valued label is flipped, or standard deviation of noise added to a real
    label."""
    label_map: Literal["raw", "identity", "tanh", "clip"] = "raw"
    """Map from labels to filter weights: raw labels, or a centred function of standardised labels."""
    lift: Literal["none", "relu", "tanh", "erf", "sigmoid", "gelu", "step"] = "none"
    """Activation of an infinitely wide lift (random features) before the filter, for the target
    single-index; none filters the inputs."""
    features: Literal["as-published", "centred", "deflated"] = "centred"
    """Features of the lift that enter the filter: unchanged, minus their mean over the samples, or also
    with the first moment (1/n) sum T z projected out. Without a lift it has no effect. If unchanged
    features have a constant part, squared_overlap is that of the second eigenvector, and the constant's
    eigenvector is left out."""
    nuisance: int = Field(20, ge=1, le=1_000)
    """Number of strong irrelevant coordinates in a hidden target."""
    nuisance_variance: float = Field(10.0, gt=0, le=1e4)
    """Variance of a strong coordinate; other coordinates have variance 1."""
    test_samples: int = Field(2_000, ge=2, le=10**6)
    """Number of fresh samples on which the test errors of a subspace target are measured."""
    kernel_samples: int = Field(4_000, ge=0, le=20_000)
    """Largest n at which networks are fitted to a subspace target; for larger n only overlaps are
    measured."""

    samples = Size("ratio", "n_inputs", least=4)
    limits = (
        Limit(
            lambda p: p.samples if p.lift != "none" else 0, 5_000,
            "a lift needs a kernel matrix of {samples} x {samples} samples", "ratio or dimension",
        ),
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> NeuralLoFiParameters:
        least = {"single-index": 2, "hidden": self.nuisance + 2, "subspace": 8}[self.target]
        if self.n_inputs < least:
            raise ValueError(
                f"dimension is {self.n_inputs}; allowed for the target '{self.target}': at least "
                f"{least}, or 0 for {DIMENSIONS[self.target]}"
            )
        if self.noise > 0.5 and self.channel in ("square-sign", "tail-sign", "sign"):
            raise ValueError(
                f"noise is {self.noise:g}; allowed for a two-valued label: a probability up to 0.5"
            )
        if self.lift != "none":
            self._check_lift()
        elif self.features == "deflated":
            raise ValueError(
                f"features is '{self.features}' without a lift, where the filter sees the inputs; "
                "allowed: features=centred, or a lift such as lift=relu"
            )
        return self

    def _check_lift(self) -> None:
        if self.target != "single-index":
            raise ValueError(
                f"target is '{self.target}' with a lift; allowed with a lift: 'single-index'. Set "
                "lift=none or target=single-index"
            )
        if self.label_map == "raw" and self.channel not in ("square-sign", "sign"):
            raise ValueError(
                f"labels of the channel '{self.channel}' have a nonzero mean; the theory of a lift needs "
                "labels of mean zero; set label_map=identity"
            )

    @property
    def n_inputs(self) -> int:
        """Number d of input coordinates."""
        return self.dimension or DIMENSIONS[self.target]

    @property
    def place(self) -> str:
        """Description of the setting in one line."""
        text = f"n/d = {self.ratio:.3g}, target {self.target}"
        if self.target != "subspace":
            text += f", channel {self.channel}, label map {self.label_map}"
        return (
            text if self.lift == "none" else f"{text}, lift {self.lift}, features {self.features}"
        )
