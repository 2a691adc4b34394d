"""System `neural-lofi-images`: networks with and without low-degree filters (arXiv:2605.13612)."""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.lofi_images.parameters import NeuralLoFiImagesParameters

PRESETS = {
    "quick": Preset(
        "Handwritten digits, even or odd, against directions, samples and width; under a minute.",
        {"samples": (200, 500), "width": (0, 300, 2_000)},
        replicates=7,
    ),
    "patches": Preset(
        "Convolutional networks with learned and random filters on digits; under a minute.",
        {"patch": (3, 5), "samples": (300, 600, 1_000)},
        replicates=8,
        fixed={"width": 100, "filters": 1},
    ),
    "backward": Preset(
        "Filters coupled backwards (BackLoFi), digits; under a minute.",
        {
            "coupling": ("first_order", "mean_field"),
            "directions": (40, 120),
            "samples": (600, 1_000),
        },
        replicates=8,
        fixed={"width": 300},
    ),
    "width": Preset(
        "Networks of up to 100,000 random features against their kernel, digits; about two minutes.",
        {"width": (0, 1_000, 10_000, 100_000)},
        replicates=4,
        fixed={"samples": 300},
    ),
    "map": Preset(
        "Squared error over the directions of two filters and the penalty, digits; about a minute.",
        {
            "directions": (5, 10, 20, 40, 80, 160),
            "second_directions": (5, 10, 20, 40, 80, 160),
            "penalty": (1e-4, 1e-2, 1.0),
        },
        replicates=3,
        fixed={"samples": 400},
    ),
    "classes": Preset(
        "Ten classes, one per digit; about a minute.",
        {"samples": (200, 400, 800)},
        replicates=8,
        fixed={"task": "ten-class", "filters": 1},
    ),
    "paper": Preset(
        "MNIST, 5,000 images, even or odd (extra `data`); about ten minutes.",
        {"samples": (300, 1_000), "filters": (1, 2), "width": (0, 300, 1_000, 3_000, 10_000)},
        replicates=8,
        fixed={"data": "mnist-5k"},
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
            "patch": "patches {0} x {0}",
            "penalty": "penalty {:g}",
            "coupling": "{} coupling",
            "directions": "{} directions",
        },
        scale="linear",
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("dandi2026neural",),
)
