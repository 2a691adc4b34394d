"""Parameters of the system `hierarchical-multi-index`."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from pydantic import Field, model_validator

from solvable.fitting.ridge import Regularisation
from solvable.frame.parameters import Parameters, Size
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.limits import SAMPLES_IN_MEMORY
from solvable.models.multi_index.target import power_law_channel

NEURONS = 300
"""Number of random neurons in the readout "relu"."""


class HierarchicalParameters(Parameters):
    """Parameters of a hierarchical multi-index model and of the two-stage learner."""

    dimension: int = Field(200, ge=3, le=20_000)
    """Number d of input coordinates."""
    features: int = Field(8, ge=1, le=256)
    """Number p of features and of estimated directions; below the dimension."""
    decay: float = Field(1.0, ge=0, le=5)
    """Decay gamma of the amplitudes k^-gamma; for 0.5 or less their squares are scaled to sum to 1."""
    link: str = "he2"
    """Link of all features, by name (he2, abs, cosmix, he4, relu, tanh, ...) or a formula in z."""
    noise: float = Field(0.5, ge=0, le=1_000)
    """Variance Delta of the label noise."""
    sample_ratio: float = Field(32.0, gt=0, le=1e5)
    """Number of samples per input coordinate, n/d."""
    label_map: Literal["tanh", "square", "identity", "optimal"] = "tanh"
    """Weights of the second moment: centred tanh, square (cut at 9) or identity of standardised labels;
    or optimal, the map with the lowest threshold for the last feature, which uses the channel and is
    not centred."""
    readout: Literal["monomials", "relu", "none"] = "monomials"
    """Ridge readout on monomials up to degree 2 of the estimated coordinates, on 300 random neurons, or
    none."""
    deflation: int = Field(0, ge=0, le=1)
    """Number of further passes on the residuals, which find features that stronger features hide."""
    test_samples: int = Field(2_000, ge=2, le=10**6)
    """Number of fresh samples on which the risk is measured."""
    message_passing: bool = False
    """Also run Bayes message passing from a start near the true directions, which finds what the samples
    determine; needs an even link and noise above 0."""
    learning_rate: float = Field(0.0, ge=0, le=1)
    """Learning rate of ten steps of gradient descent on the first layer of a quadratic network, whose
    directions are compared with the estimator's; 0 trains no network."""
    trained_samples: int = Field(6_400, ge=0, le=10**6)
    """Largest n at which the network is trained."""
    standardised: bool = True
    """Shift and scale the link to mean 0 and variance 1."""

    samples = Size("sample_ratio", "dimension", least=4)
    limits = (SAMPLES_IN_MEMORY,)

    @model_validator(mode="after")
    def _check(self) -> HierarchicalParameters:
        if self.features >= self.dimension:
            raise ValueError(
                f"features is {self.features} in {self.dimension} dimensions; allowed: fewer features "
                "than dimensions"
            )
        if self.deflation and (self.readout == "none" or self.label_map == "optimal"):
            raise ValueError(
                f"deflation is 1 with readout={self.readout} and label_map={self.label_map}; allowed: "
                "deflation=0, or a readout and another label_map than optimal, since residuals are those "
                "of a readout and have another channel than labels"
            )
        if self.readout == "monomials" and self.features > 64:
            raise ValueError(
                f"features is {self.features}, which gives {self.features * (self.features + 3) // 2} "
                "monomials; allowed: up to 64 features, or readout=relu or none"
            )
        even = (
            self.channel.links[0].parity == "even"
        )  # raises an error for a link that does not parse
        if self.message_passing and not (even and self.noise > 0):
            raise ValueError(
                f"message_passing is true with the link {self.link!r} and noise {self.noise:g}; allowed: "
                "an even link and noise above 0, or message_passing=false"
            )
        return self

    @property
    def channel(self) -> AdditiveChannel:
        """Channel from the features' coordinates to the label."""
        return _channel(self.link, self.features, self.decay, self.noise, self.standardised)

    @property
    def trained(self) -> bool:
        """Return True if a network is trained by gradient descent: with one pass and few samples."""
        small = self.samples <= self.trained_samples
        return self.learning_rate > 0 and small and not self.deflation

    @property
    def regularisation(self) -> Regularisation:
        """Penalty of the ridge readout; for monomials a tiny penalty, which amounts to least squares."""
        return 1e-6 if self.readout == "monomials" else "leave-one-out"

    @property
    def place(self) -> str:
        """Sentence that describes one point in a study."""
        return (
            f"n/d = {self.sample_ratio:.4g}, link {self.link}, decay {self.decay:g}, noise "
            f"{self.noise:g}, label map {self.label_map}" + (", deflated" if self.deflation else "")
        )


@lru_cache(maxsize=16)
def _channel(
    link: str, features: int, decay: float, noise: float, standardised: bool
) -> AdditiveChannel:
    """Return the channel with these parameters, cached with the channel's conditional moments."""
    return power_law_channel(
        link, features=features, decay=decay, noise=noise, standardised=standardised
    )
