"""System `neural-lofi-images`: networks with and without low-degree filters (arXiv:2605.13612)."""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.lofi_images.parameters import NeuralLoFiImagesParameters

PRESETS = {
    "quick": Preset(
        "Handwritten digits, even or odd, against directions, samples and width; under a minute.",
        {"samples": (200, 400, 600), "width": (0, 300, 3_000)},
        replicates=8,
    ),
    "classes": Preset(
        "Ten classes, one per digit; about a minute.",
        {"task": ("ten-class",), "filters": (1,), "samples": (200, 400, 800)},
        replicates=8,
    ),
    "paper": Preset(
        "MNIST, 5,000 images, even or odd (extra `data`); about ten minutes.",
        {
            "data": ("mnist-5k",),
            "samples": (300, 1_000),
            "filters": (1, 2),
            "width": (0, 300, 1_000, 3_000, 10_000),
        },
        replicates=8,
    ),
}


system = System(
    name="neural-lofi-images",
    title="Filters between random layers lower the error on images of digits",
    version="1",
    parameters=NeuralLoFiImagesParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    tensors=True,
    axis=Axis(
        "samples",
        "training images n",
        ignore=("width",),
        point_name=lambda setting: setting.place,
        words={
            "data": "{}",
            "task": "{}",
            "activation": "{}",
            "filters": "{} filters",
            "samples": "n = {}",
        },
        scale="linear",
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("dandi2026neural",),
)
