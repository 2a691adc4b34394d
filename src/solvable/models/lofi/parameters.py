"""Parameters of the system `neural-lofi`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.parameters import Limit, Parameters, Size

DIMENSIONS = {"single-index": 400, "hidden": 320, "subspace": 60}
"""Dimension of each target where none is asked for."""


class NeuralLoFiParameters(Parameters):
    """Parameters of a filter on Gaussian inputs."""

    target: Literal["single-index", "hidden", "subspace"] = "single-index"
    """One direction; one direction among strong irrelevant ones; four directions and an error."""
    dimension: int = Field(0, ge=0, le=5_000)
    """Number d of input coordinates; 0 for 400, 320 and 60 by target."""
    ratio: float = Field(5.0, gt=0, le=1_000)
    """Samples per coordinate, n/d."""
    channel: Literal["square-sign", "tail-sign", "sign", "square", "absolute", "cosine"] = (
        "square-sign"
    )
    """Label of one direction s: sign(s² - median), sign(s² - 90 % quantile), sign(s), s² - 1,
    |s|, cos(2 s)."""
    noise: float = Field(0.0, ge=0, le=10)
    """Probability that a two-valued label is flipped, or deviation of noise added to a real one."""
    label_map: Literal["raw", "identity", "tanh", "clip"] = "raw"
    """Weights of the filter: raw labels, or a centred map of standardised ones."""
    lift: Literal["none", "relu", "tanh", "erf", "sigmoid", "gelu", "step"] = "none"
    """Activation of an infinitely wide lift before the filter of a single-index target."""
    features: Literal["as-published", "centred", "deflated"] = "as-published"
    """Features of the lift that the filter sees: as they are, less their mean over the samples, or less
    the first moment (1/n) sum T z as well."""
    nuisance: int = Field(20, ge=1, le=1_000)
    """Strong irrelevant coordinates of a hidden target."""
    nuisance_variance: float = Field(10.0, gt=0, le=1e4)
    """Variance of a strong coordinate; the others have 1."""
    test_samples: int = Field(2_000, ge=2, le=10**6)
    """Fresh samples behind the errors of a subspace target."""
    kernel_samples: int = Field(4_000, ge=0, le=20_000)
    """Largest n at which a subspace target's networks are fitted; beyond, overlaps alone."""

    samples = Size("ratio", "n_inputs", least=4)
    limits = (
        Limit(
            lambda p: p.samples if p.lift != "none" else 0, 5_000,
            "a lift makes a kernel of {samples} samples squared", "ratio or dimension",
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
        elif self.features != "as-published":
            raise ValueError(
                f"features is '{self.features}' without a lift, whose inputs have mean zero; allowed: "
                "as-published, or a lift such as lift=relu"
            )
        return self

    def _check_lift(self) -> None:
        if self.target != "single-index":
            raise ValueError("lift has a theory for the target 'single-index' alone; set lift=none")
        if self.label_map == "raw" and self.channel not in ("square-sign", "sign"):
            raise ValueError(
                f"labels of the channel '{self.channel}' have a mean, and the theory of a lift needs "
                "none; set label_map=identity"
            )

    @property
    def n_inputs(self) -> int:
        """Number d of input coordinates."""
        return self.dimension or DIMENSIONS[self.target]

    @property
    def place(self) -> str:
        """Words for a place in a study."""
        text = f"n/d = {self.ratio:.3g}, target {self.target}"
        if self.target != "subspace":
            text += f", channel {self.channel}, label map {self.label_map}"
        return (
            text if self.lift == "none" else f"{text}, lift {self.lift}, features {self.features}"
        )
