"""Compositional targets of three or more layers (arXiv:2602.10867), with finite-size theory."""

from __future__ import annotations

from solvable.frame.system import Preset, System
from solvable.models.compositional.parameters import AXIS, CompositionalParameters

PRESETS = {
    "quick": Preset(
        "d = 20, 28 and 40, each with d^0.4 features, a dense last layer, with learners of two layers; "
        "under a minute.",
        {"dimension": (20, 28, 40), "samples": (4_100, 8_200, 16_400, 32_800)},
        replicates=4,
        fixed={"epsilon": 0.4, "teacher": 6, "test_samples": 15_000, "kernel_samples": 8_200},
    ),
    "universality": Preset(
        "First layers of Hermite, random ReLU and Gaussian features in d = 28; about a minute.",
        {
            "first_layer": ("orthonormal", "random-features", "gaussian"),
            "samples": (8_200, 16_400, 32_800),
        },
        replicates=5,
        fixed={"dimension": 28, "epsilon": 0.4, "teacher": 6, "width": 1_024},
    ),
    "neural-lofi": Preset(
        "Neural LoFi networks, whose filters lower the degree layer by layer; about a minute.",
        {"samples": (500, 1_000, 2_000, 4_000)},
        replicates=6,
        fixed={"learner": "neural-lofi", "dimension": 16, "features": 3, "teacher": 6},
    ),
    "gradient-descent": Preset(
        "Two-layer networks trained by gradient descent next to the spectral step, for four linear "
        "features of 100 inputs; under a minute.",
        {"learner": ("spectral", "gradient-descent"), "samples": (500, 1_000, 2_000, 4_000)},
        replicates=4,
        fixed={
            "dimension": 100,
            "degree": 1,
            "features": 4,
            "second_layer": "diagonal",
            "decay": 0.0,
            "readout": "tanh",
        },
    ),
    "four-layers": Preset(
        "Two representations, learned one after the other: d = 40, four layers, widths 40, 4 and 1; "
        "about ten minutes.",
        {"samples": tuple(round(13_120 * 2 ** (k / 2)) for k in range(9))},
        replicates=14,
        fixed={"dimension": 40, "layers": 4, "features": 4, "teacher": 3},
    ),
    "five-layers": Preset(
        "Three representations, of widths 4, 2 and 1, on linear features of 20 inputs; under a minute.",
        {"samples": (1_000, 4_000, 16_000, 64_000)},
        replicates=16,
        fixed={
            "dimension": 20,
            "degree": 1,
            "layers": 5,
            "features": 4,
            "teacher": 65,
            "readout": "tanh",
        },
    ),
    "scaling": Preset(
        "Sample size of recovery against the dimension, d = 16 to 64, epsilon = 1/2; about five minutes.",
        {
            "dimension": (16, 24, 36, 49, 64),
            "second_layer": ("dense", "diagonal"),
            "samples": tuple(round(1_000 * 2 ** (k / 2)) for k in range(16)),
        },
        replicates=4,
        fixed={"teacher": 6},
    ),
    "paper": Preset(
        "d = 120, 11 features, tanh readout, dense and diagonal last layers, up to 1.7 million samples; "
        "about half an hour on two cores.",
        {
            "second_layer": ("dense", "diagonal"),
            "samples": (60_550, 97_732, 157_744, 254_608, 410_950, 663_296, 1_070_596, 1_728_000),
        },
        replicates=2,
        fixed={"dimension": 120, "readout": "tanh"},
    ),
}


system = System(
    name="compositional-target",
    title="The first layer sets the sample size of a chain of quadratic layers",
    version="3",
    parameters=CompositionalParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="upper_layers:draw_teacher",
    axis=AXIS,
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("tabanelli2026deep",),
)
