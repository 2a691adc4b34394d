"""Parameters of the system `separable-multi-index`."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.parameters import Parameters, Size
from solvable.links import make_link
from solvable.message_passing.channels import MOST_CROSS, AdditiveChannel
from solvable.models.multi_index.equal_directions import EqualDirections
from solvable.models.multi_index.limits import SAMPLES_IN_MEMORY


class SeparableParameters(Parameters):
    """Parameters of a sum of equal directions and of the spectral estimator."""

    dimension: int = Field(100, ge=4, le=20_000)
    """Number d of input coordinates."""
    directions: int = Field(4, ge=2, le=128)
    """Number p of directions; at most a quarter of the dimension, and at most 40 if the link is not
    even."""
    link: str = "he2"
    """Link of all directions, by name (he2, abs, cosmix, he4, relu, tanh, ...) or a formula in z."""
    noise: float = Field(0.1, ge=0, le=1_000)
    """Variance Delta of the label noise."""
    sample_ratio: float = Field(16.0, gt=0, le=1e5)
    """Number of samples per input coordinate, n/d."""
    label_map: Literal["tanh", "square", "identity", "optimal"] = "optimal"
    """Weights of the second moment: centred tanh, square (cut at 9) or identity of standardised labels;
    or optimal, the map with the lowest threshold for single directions, which uses the channel and is
    not centred."""
    standardised: bool = True
    """Shift and scale the link to mean 0 and variance 1."""

    samples = Size("sample_ratio", "dimension", least=4)
    limits = (SAMPLES_IN_MEMORY,)

    @model_validator(mode="after")
    def _check(self) -> SeparableParameters:
        if 4 * self.directions > self.dimension:
            raise ValueError(
                f"directions is {self.directions} in {self.dimension} dimensions; allowed: up to a "
                "quarter of the dimension, since the theory needs many more dimensions than directions"
            )
        if not self.model.exact:
            raise ValueError(
                f"directions is {self.directions} with the link {self.link!r}, which is not even and "
                f"needs moments of all pairs; allowed: up to {MOST_CROSS} directions, or an even link"
            )
        return self

    @property
    def informed(self) -> bool:
        """Return True if Bayes message passing runs, from a good start.

        It runs between the threshold of any method and that of second moments.
        """
        model, cheap = self.model, self.samples * self.directions <= 50_000
        if model.link.parity != "even" or not self.noise > 0 or not cheap:
            return False
        return model.information_ratio < self.sample_ratio < model.weak_recovery_ratio

    @property
    def model(self) -> EqualDirections:
        """Sum of equal directions, with conditional moments and thresholds."""
        return _model(self.link, self.standardised, self.directions, self.noise)

    @property
    def channel(self) -> AdditiveChannel:
        """Channel from the directions' coordinates to the label."""
        return self.model.channel


@lru_cache(maxsize=64)
def _model(link: str, standardised: bool, directions: int, noise: float) -> EqualDirections:
    """Return the model with these parameters, cached with the model's conditional moments."""
    return EqualDirections(make_link(link, standardised=standardised), directions, noise)
