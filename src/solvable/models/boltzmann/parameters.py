"""Parameters of the system `boltzmann-machine`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from solvable.frame.parameters import Parameters, Size, memory

Algorithm = Literal["amp", "gradient"]

ASCENT_RATE = 0.5
"""Learning rate of runs with a given number of steps, in units of 1 / (1 + l)."""

Strength = Annotated[float, Field(ge=1e-50, le=1000)]


class BoltzmannParameters(Parameters):
    """Parameters of the spiked data and of the fitted machine."""

    dimension: int = Field(1000, ge=100, le=10**6)
    """Number d of visible units."""
    sample_ratio: float = Field(2.0, gt=0, le=100)
    """Number n of samples per visible unit, n/d."""
    noise: float = Field(1.0, ge=1e-50, le=1000)
    """Variance of the noise. Data are divided by its square root: only spike / noise matters."""
    spike: Strength | Annotated[tuple[Strength, ...], Field(min_length=1, max_length=4)] = 2.0
    """Variance that a latent sign adds along its direction; a number or a list of numbers."""
    hidden_units: int = Field(1, ge=1, le=4)
    """Number k of hidden sign units."""
    weight_decay: float = Field(0.0, ge=0, le=100)
    """Weight decay l, with penalty n l / (2 d) times the squared norm of W."""
    algorithm: Algorithm = "amp"
    """Message passing from the principal components, or gradient ascent from a small random start. With
    `steps` both start at the same weights."""
    steps: int = Field(0, ge=0, le=40)
    """Number of steps of the algorithm, from units of norm 1 with overlap 0.3 with a spike each and 0.05
    with the others; 0 means until convergence."""

    samples = Size("sample_ratio", "dimension", least=10)
    limits = (
        memory(
            lambda p: p.samples * p.dimension, 2,
            "{samples} samples of {dimension} features", "sample_ratio or dimension",
        ),
    )  # fmt: skip

    @field_validator("spike", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        """Accept a number or a list of numbers, and reject anything else with one message."""
        listed = isinstance(value, (list, tuple))
        try:
            numbers = [float(number) for number in value] if listed else [float(value)]
        except (TypeError, ValueError):
            numbers = []
        if not 1 <= len(numbers) <= 4 or not all(1e-50 <= number <= 1000 for number in numbers):
            raise ValueError(
                "allowed: a number from 1e-50 to 1000, or a list of one to four numbers, such as [2,1]"
            )
        return tuple(numbers) if listed else numbers[0]

    @property
    def strengths(self) -> tuple[float, ...]:
        """Spike variances divided by the noise variance."""
        spikes = self.spike if isinstance(self.spike, tuple) else (self.spike,)
        return tuple(spike / self.noise for spike in spikes)

    @property
    def strength(self) -> float:
        """Largest spike variance divided by the noise variance."""
        return max(self.strengths)

    @property
    def place(self) -> str:
        """Description of a setting in messages."""
        spikes = ", ".join(f"{strength:.3g}" for strength in self.strengths)
        return f"n/d = {self.sample_ratio:.4g}, spike {spikes}, weight decay {self.weight_decay:g}"
