"""System `neural-lofi-images`: networks with and without low-degree filters (arXiv:2605.13612)."""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.lofi_images.parameters import NeuralLoFiImagesParameters

PRESETS = {
    "quick": Preset(
        "Handwritten digits, even or odd, against directions, samples and width; under a minute.",
        "samples=200,500 width=0,300,2000",
        replicates=7,
    ),
    "patches": Preset(
        "Convolutional networks with learned and random filters on digits; under a minute.",
        "width=100 filters=1 patch=3,5 samples=300,600,1000",
        replicates=8,
    ),
    "backward": Preset(
        "Filters coupled backwards (BackLoFi), digits; under a minute.",
        "width=300 coupling=first_order,mean_field directions=40,120 samples=600,1000",
        replicates=8,
    ),
    "width": Preset(
        "Networks of up to 100,000 random features against their kernel, digits; about two minutes.",
        "samples=300 width=0,1000,10000,100000",
        replicates=4,
    ),
    "map": Preset(
        "Squared error over the directions of two filters and the penalty, digits; about a minute.",
        "samples=400 directions=5,10,20,40,80,160 second_directions=5,10,20,40,80,160 "
        "penalty=0.0001,0.01,1.0",
        replicates=3,
    ),
    "classes": Preset(
        "Ten classes, one per digit; about a minute.",
        "task=ten-class filters=1 samples=200,400,800",
        replicates=8,
    ),
    "paper": Preset(
        "MNIST, 5,000 images, even or odd (extra `data`); about ten minutes.",
        "data=mnist-5k samples=300,1000 filters=1,2 width=0,300,1000,3000,10000",
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
