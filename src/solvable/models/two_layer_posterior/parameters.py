"""Parameters of the system `curse-of-detail`."""

from __future__ import annotations

from math import sqrt
from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.parameters import Limit, Parameters, Size
from solvable.models.two_layer_posterior.large_deviation import Readout, readout_scale
from solvable.models.two_layer_posterior.overlap import neuron_overlap


class CurseParameters(Parameters):
    """Parameters of a two-layer network with a posterior, and of a Hermite target of one direction."""

    dimension: int = Field(10, ge=3, le=100)
    """Number d of input coordinates."""
    width_ratio: float = Field(10.0, gt=0, le=1_000)
    """Hidden units per input coordinate, N/d."""
    scaled_samples: float = Field(20.0, gt=0, le=300)
    """Samples P over kappa sqrt(N d), in which curves of all sizes fall together; over
    kappa N sqrt(d) with a mean-field readout."""
    kappa: float = Field(0.5, ge=0.02, le=20)
    """Ridge, which is the temperature of the dynamics and the variance of label noise allowed for."""
    degree: int = Field(3, ge=1, le=7)
    """Degree m of the target He_m(w*.x) / sqrt(m!)."""
    activation: Literal["erf", "tanh", "relu"] = "erf"
    """Activation of the hidden units; odd ones have odd degrees, relu has degree 1 and even ones."""
    readout: Readout = "standard"
    """Prior variance of a readout weight: 1/N, or 1/N² (mean-field)."""
    start: Literal["both", "prior", "planted"] = "both"
    """Where networks start: drawn from the prior, or with specialised neurons planted; with both, two
    networks on the same samples, which tell whether they reached the posterior."""
    steps: int = Field(3_000, ge=100, le=100_000)
    """Langevin steps; the second half is averaged over."""
    step: float = Field(1.0, ge=0.05, le=1)
    """Step over the one that is found, the inverse of the largest curvature or less."""

    width = Size("width_ratio", "dimension", least=2, name="hidden units")
    samples = Size("scaled_samples", "unit", least=4)
    # About twenty seconds.
    limits = (
        Limit(
            lambda p: p.work, 2e9,
            "{networks} networks of {width} units on {samples} samples for {steps} steps are {cost:.1e} "
            "units of work", "steps, width_ratio, scaled_samples or kappa",
        ),
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> CurseParameters:
        neuron_overlap(self.activation, self.degree)
        return self

    @property
    def unit(self) -> float:
        """Samples per unit of `scaled_samples`: kappa sqrt(chi N d)."""
        return self.kappa * sqrt(
            readout_scale(self.readout, self.width) * self.width * self.dimension
        )

    @property
    def networks(self) -> int:
        """Networks of one replicate."""
        return 2 if self.start == "both" else 1

    @property
    def work(self) -> float:
        """Hidden units times samples times steps, with what products, noise and calls take beside."""
        per_unit = self.samples * (1 + self.dimension / 100) + 2 * (self.dimension + 1)
        return float(self.steps * (self.networks * self.width * per_unit + 8_000))
