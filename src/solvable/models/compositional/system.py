"""Compositional targets of three or more layers (arXiv:2602.10867), with finite-size theory."""

from __future__ import annotations

from solvable.frame.system import Preset, System
from solvable.models.compositional.parameters import AXIS, CompositionalParameters

PRESETS = {
    "quick": Preset(
        "d = 20, 28 and 40, each with d^0.4 features, a dense last layer, with learners of two layers; "
        "under a minute.",
        "epsilon=0.4 teacher=6 test_samples=15000 kernel_samples=8200 dimension=20,28,40 "
        "samples=4100,8200,16400,32800",
        replicates=4,
    ),
    "universality": Preset(
        "First layers of Hermite, random ReLU and Gaussian features in d = 28; about a minute.",
        "dimension=28 epsilon=0.4 teacher=6 width=1024 "
        "first_layer=orthonormal,random-features,gaussian samples=8200,16400,32800",
        replicates=5,
    ),
    "neural-lofi": Preset(
        "Neural LoFi networks, whose filters lower the degree layer by layer; about a minute.",
        "learner=neural-lofi dimension=16 features=3 teacher=6 samples=500,1000,2000,4000",
        replicates=6,
    ),
    "gradient-descent": Preset(
        "Two-layer networks trained by gradient descent next to the spectral step, for four linear "
        "features of 100 inputs; under a minute.",
        "dimension=100 degree=1 features=4 second_layer=diagonal decay=0.0 readout=tanh "
        "learner=spectral,gradient-descent samples=500,1000,2000,4000",
        replicates=4,
    ),
    "four-layers": Preset(
        "Two representations, learned one after the other: d = 40, four layers, widths 40, 4 and 1; "
        "about ten minutes.",
        "dimension=40 layers=4 features=4 teacher=3 "
        "samples=13120,18554,26240,37109,52480,74218,104960,148436,209920",
        replicates=14,
    ),
    "five-layers": Preset(
        "Three representations, of widths 4, 2 and 1, on linear features of 20 inputs; under a minute.",
        "dimension=20 degree=1 layers=5 features=4 teacher=65 readout=tanh "
        "samples=1000,4000,16000,64000",
        replicates=16,
    ),
    "scaling": Preset(
        "Sample size of recovery against the dimension, d = 16 to 64, epsilon = 1/2; about five minutes.",
        "teacher=6 dimension=16,24,36,49,64 second_layer=dense,diagonal "
        "samples=1000,1414,2000,2828,4000,5657,8000,11314,16000,22627,32000,45255,64000,90510,128000,181019",
        replicates=4,
    ),
    "paper": Preset(
        "d = 120, 11 features, tanh readout, dense and diagonal last layers, up to 1.7 million samples; "
        "about half an hour on two cores.",
        "dimension=120 readout=tanh second_layer=dense,diagonal "
        "samples=60550,97732,157744,254608,410950,663296,1070596,1728000",
        replicates=2,
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
