"""Parameters of the system `neural-lofi-images`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.parameters import Parameters

ROWS = {"digits": 1_797, "mnist-5k": 5_000}
"""Images of each data set."""

MOST_TESTED = 2_000
"""Unseen images that a replicate is judged by, if there are so many."""

DIRECTIONS = (5, 10, 20, 40, 80, 160, 320)
"""Kept directions that are tried where none are asked for, up to half of the samples."""

USUAL_DIRECTIONS = 40
"""Kept directions at which methods are compared."""


class NeuralLoFiImagesParameters(Parameters):
    """Parameters of networks with filters on images of digits."""

    data: Literal["digits", "mnist-5k"] = "digits"
    """Images: 1,797 of 8 x 8 pixels, or 5,000 of 28 x 28 (needs the extra `data`)."""
    task: Literal["even-odd", "ten-class"] = "even-odd"
    """Labels: whether the digit is odd, or the digit."""
    samples: int = Field(600, ge=50, le=4_000)
    """Training images n."""
    directions: int = Field(0, ge=0, le=1_000)
    """Directions k that each filter keeps; 0 for 5, 10, ..., 320 at infinite width, else 40."""
    filters: int = Field(2, ge=1, le=3)
    """Filters, each between two lifts."""
    width: int = Field(0, ge=0, le=20_000)
    """Random features P of every lift but the last; 0 for infinitely many."""
    activation: Literal["relu", "tanh", "erf", "sigmoid", "gelu"] = "relu"
    """Activation of every lift."""
    depth: int = Field(3, ge=1, le=6)
    """Lifts of the network without filters."""

    @model_validator(mode="after")
    def _check(self) -> NeuralLoFiImagesParameters:
        left = ROWS[self.data] - self.samples
        if left < 200:
            raise ValueError(
                f"samples is {self.samples} of {ROWS[self.data]} images; allowed: up to "
                f"{ROWS[self.data] - 200}, so that 200 are left to test on"
            )
        most = min(self.samples, self.width or self.samples) // 2
        if most < 1:
            raise ValueError(
                f"width is {self.width} and samples {self.samples}; allowed: a width of 0 (infinite) or "
                "at least 2, and at least 2 samples, so that a filter can keep a direction"
            )
        if self.directions > most:
            raise ValueError(
                f"directions is {self.directions}; allowed here: up to {most}, half of the samples "
                "and of the width"
            )
        return self

    @property
    def kept(self) -> tuple[int, ...]:
        """Numbers of directions that a replicate tries."""
        if self.directions:
            return (self.directions,)
        most = min(self.samples, self.width or self.samples) // 2
        wanted = (USUAL_DIRECTIONS,) if self.width else DIRECTIONS
        return tuple(k for k in wanted if k <= most) or (most,)

    @property
    def tested(self) -> int:
        """Unseen images that a replicate is judged by."""
        return min(MOST_TESTED, ROWS[self.data] - self.samples)

    @property
    def place(self) -> str:
        """Words for a place in a study."""
        text = f"{self.data}, {self.task}, n = {self.samples}, "
        text += f"{self.filters} filter" + ("s" if self.filters > 1 else "")
        return text + (f", width {self.width}" if self.width else "")
