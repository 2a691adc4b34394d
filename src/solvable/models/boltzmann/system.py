"""Boltzmann machines on spiked data: what maximum likelihood finds, and when it is no single maximum.

Samples vary along a few directions, by latent signs, above a background of noise. A restricted Boltzmann
machine of as many hidden units is fitted by its exact likelihood. State evolution predicts the overlap of
its weights with the directions, their norm, and whether the maximum is stable; beside it stand principal
components, which near their threshold find more unless weights decay, and the best possible estimate.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.boltzmann.parameters import BoltzmannParameters

PRESETS = {
    "quick": Preset(
        "One spike, with weight decay and without, by both algorithms in 500 dimensions; half a minute.",
        {
            "dimension": (500,),
            "spike": (2.0,),
            "weight_decay": (0.0, 2.0),
            "algorithm": ("amp", "gradient"),
            "sample_ratio": (0.2, 0.7, 1.2, 2.0, 3.0, 5.0, 8.0),
        },
        replicates=8,
    ),
    "paper": Preset(
        "Two units and two spikes, equal or not, in 2,000 dimensions; ten minutes.",
        {
            "dimension": (2_000,),
            "spike": ((1.4, 1.4), (2.8, 1.4)),
            "hidden_units": (2,),
            "algorithm": ("amp", "gradient"),
            "sample_ratio": (1.0, 2.0, 2.8, 4.0),
        },
        replicates=2,
    ),
    "dynamics": Preset(
        "Gradient ascent on its way, against dynamical mean field in 1,000 dimensions; half a minute.",
        {
            "dimension": (1_000,),
            "spike": (1.5,),
            "algorithm": ("gradient",),
            "steps": (2, 6, 20),
            "sample_ratio": (1.0, 2.0, 4.0, 8.0),
        },
        replicates=6,
    ),
}

system = System(
    name="boltzmann-machine",
    title="What a Boltzmann machine finds of spikes, and when its likelihood has one maximum",
    version="1",
    parameters=BoltzmannParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "samples per visible unit n/d",
        told=lambda setting: setting.place,
        words={
            "spike": "spike {}",
            "algorithm": "{}",
            "weight_decay": "decay {:g}",
            "steps": "{} steps",
        },
        margin=1.2,
        resolution=30,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("xu2025rbm", "baik2005phase", "lesieur2017constrained"),
)
