"""The system `neural-lofi-images`: filters of low-degree networks on images of digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from solvable.frame.claims import Claim
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Parameters, Preset, Reference, System
from solvable.models.lofi.system import NEURAL_LOFI
from solvable.models.lofi_images.claims import CLAIMS
from solvable.models.lofi_images.figures import draw_figures
from solvable.plots.figure import Figure

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


PRESETS = {
    "quick": Preset(
        "Handwritten digits, even or odd: directions, sample sizes, widths; under a minute.",
        {"samples": (200, 400, 600), "width": (0, 300, 3_000)},
        replicates=4,
    ),
    "classes": Preset(
        "All ten digits as classes; about a minute.",
        {"task": ("ten-class",), "filters": (1,), "samples": (200, 400, 800)},
        replicates=4,
    ),
    "paper": Preset(
        "MNIST, 5,000 images, even or odd (extra `data`); about five minutes.",
        {
            "data": ("mnist-5k",),
            "samples": (300, 1_000),
            "filters": (1, 2),
            "width": (0, 300, 1_000, 3_000, 10_000),
        },
        replicates=4,
    ),
}


class NeuralLoFiImagesSystem(System):
    """Filters of low-degree networks on images (arXiv:2605.13612), beside what has no filter."""

    name: ClassVar[str] = "neural-lofi-images"
    title: ClassVar[str] = "Filters between random layers lower the error on images of digits"
    version: ClassVar[str] = "1"
    references: ClassVar[tuple[Reference, ...]] = (NEURAL_LOFI,)
    parameters: ClassVar[type[Parameters]] = NeuralLoFiImagesParameters
    presets: ClassVar[Mapping[str, Preset]] = PRESETS
    claims: ClassVar[tuple[Claim, ...]] = CLAIMS

    def measure(self, parameters: NeuralLoFiImagesParameters, rng: np.random.Generator) -> Metrics:
        """Split the images, fit every network to one part, judge all by the other."""
        from solvable.models.lofi_images import measure as neural_lofi_images_experiment

        return neural_lofi_images_experiment.measure(parameters, rng)

    def predict(self, parameters: NeuralLoFiImagesParameters) -> Metrics:
        """Predict what does not depend on the labels; errors on images have no prediction."""
        from solvable.models.lofi_images.measure import predict

        return predict(parameters)

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Errors against directions, samples and width; strengths against meaningless labels."""
        return draw_figures(points)


system = NeuralLoFiImagesSystem()
