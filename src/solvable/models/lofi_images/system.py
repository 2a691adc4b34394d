"""The system `neural-lofi-images`: filters of low-degree networks on images of digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from solvable.frame.claims import Claim
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Parameters, Preset, Reference, System
from solvable.models.lofi.system import NEURAL_LOFI
from solvable.models.lofi_images.claims import CLAIMS
from solvable.models.lofi_images.figures import draw_figures
from solvable.models.lofi_images.parameters import NeuralLoFiImagesParameters
from solvable.plots.figure import Figure

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
        from solvable.models.lofi_images.predict import predict

        return predict(parameters)

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Errors against directions, samples and width; strengths against meaningless labels."""
        return draw_figures(points)


system = NeuralLoFiImagesSystem()
