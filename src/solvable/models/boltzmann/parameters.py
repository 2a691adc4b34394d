"""Parameters of the system `boltzmann-machine`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from solvable.frame.parameters import Parameters, Size, memory

Algorithm = Literal["amp", "gradient"]

ASCENT_START = (0.2, 1.0)
"""m = w . w* / d and q = |w|² / d at which a given number of steps starts."""

ASCENT_RATE = 0.5
"""Rate of those steps, in units of 1 / (1 + l)."""

Strength = Annotated[float, Field(ge=1e-50, le=1000)]


class BoltzmannParameters(Parameters):
    """Parameters of spiked data and of the machine that is fitted to them."""

    dimension: int = Field(1000, ge=100, le=10**6)
    """Number d of visible units."""
    sample_ratio: float = Field(2.0, gt=0, le=100)
    """Samples per visible unit, n/d."""
    noise: float = Field(1.0, ge=1e-50, le=1000)
    """Variance of the background of the data; the machine sees them over its square root, so that only
    the ratio of spike and noise matters."""
    spike: Strength | Annotated[tuple[Strength, ...], Field(min_length=1, max_length=4)] = 2.0
    """Variance that a latent sign adds along its direction (a covariance), a number or a list."""
    hidden_units: int = Field(1, ge=1, le=4)
    """Number k of hidden units, which are signs."""
    weight_decay: float = Field(0.0, ge=0, le=100)
    """Decay l of the penalty n l |W|² / (2 d)."""
    algorithm: Algorithm = "amp"
    """Message passing from the principal components, or gradient ascent from a small random start."""
    steps: int = Field(0, ge=0, le=40)
    """Steps of gradient ascent, from weights of norm 1 and overlap 0.2 with the largest spike; 0: until
    the gradient vanishes."""

    samples = Size("sample_ratio", "dimension", least=10)
    limits = (
        memory(
            lambda p: p.samples * p.dimension, 2,
            "{samples} samples of {dimension} numbers", "sample_ratio or dimension",
        ),
    )  # fmt: skip

    @field_validator("spike", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        """A number or a list of numbers; anything else is refused in one line."""
        listed = isinstance(value, (list, tuple))
        try:
            numbers = [float(number) for number in value] if listed else [float(value)]
        except (TypeError, ValueError):
            numbers = []
        if not 1 <= len(numbers) <= 4 or not all(1e-50 <= number <= 1000 for number in numbers):
            raise ValueError(
                "allowed: a number from 1e-50 to 1000, or a list of one to four, such as [2,1]"
            )
        return tuple(numbers) if listed else numbers[0]

    @model_validator(mode="after")
    def _check(self) -> BoltzmannParameters:
        if self.steps and (self.algorithm != "gradient" or self.hidden_units > 1):
            raise ValueError(
                f"steps is {self.steps} with algorithm={self.algorithm} and "
                f"hidden_units={self.hidden_units}; allowed: 0, or algorithm=gradient with "
                "hidden_units=1"
            )
        return self

    @property
    def strengths(self) -> tuple[float, ...]:
        """Spikes in units of the background, as the machine sees them."""
        spikes = self.spike if isinstance(self.spike, tuple) else (self.spike,)
        return tuple(spike / self.noise for spike in spikes)

    @property
    def place(self) -> str:
        """Words for a place in a study."""
        spikes = ", ".join(f"{strength:.3g}" for strength in self.strengths)
        return f"n/d = {self.sample_ratio:.4g}, spike {spikes}, weight decay {self.weight_decay:g}"
