"""Boltzmann machines on spiked data: overlap and stability of the maximum of the likelihood.

Samples have latent signs along a few directions, plus noise. A restricted Boltzmann machine with a few
hidden units is fitted by exact maximum likelihood. State evolution predicts the overlap of the weights
with the directions, their norm, and the stability of the maximum. The system compares the machine
with the Bayes bound and with principal components, which are better near their threshold without weight
decay.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.boltzmann.parameters import BoltzmannParameters
from solvable.plots.words import counted

PRESETS = {
    "quick": Preset(
        "One spike, with and without weight decay, both algorithms, 500 dimensions; half a minute.",
        "dimension=500 spike=2.0 weight_decay=0.0,2.0 algorithm=amp,gradient steps=0,4 "
        "sample_ratio=0.2,0.7,1.2,2.0,3.0,5.0,8.0",
        replicates=8,
    ),
    "paper": Preset(
        "Two units and two spikes, equal or different, in 2,000 dimensions; ten minutes.",
        "dimension=2000 hidden_units=2 spike=[1.4,1.4],[2.8,1.4] algorithm=amp,gradient "
        "sample_ratio=1.0,2.0,2.8,4.0",
        replicates=5,
    ),
    "dynamics": Preset(
        "Gradient ascent after 2 to 20 steps against mean-field theory, 1,000 dimensions; half a minute.",
        "dimension=1000 spike=1.5 algorithm=gradient steps=2,6,20 sample_ratio=1.0,2.0,4.0,8.0",
        replicates=6,
    ),
    "iterations": Preset(
        "Two units and two spikes, 1 to 12 steps of message passing and gradient ascent; half a minute.",
        "dimension=1000 spike=[3.0,2.0] hidden_units=2 sample_ratio=3.0 "
        "algorithm=amp,gradient steps=1,2,3,4,6,8,12",
        replicates=8,
    ),
    "spikes": Preset(
        "Two units and two spikes of ratio 2, both algorithms, 600 dimensions; one minute.",
        "dimension=600 hidden_units=2 sample_ratio=2.0 "
        "spike=[1.0,0.5],[1.6,0.8],[2.2,1.1],[3.2,1.6],[4.0,2.0],[5.6,2.8] "
        "algorithm=amp,gradient",
        replicates=4,
    ),
    "threshold": Preset(
        "Message passing with small weights, below and above the threshold of components; half a minute.",
        "dimension=1000 weight_decay=3.0 steps=12 sample_ratio=1.0 spike=0.4,0.6,0.8,1.25,1.7,2.4",
        replicates=16,
    ),
    "dimensions": Preset(
        "Partition function of binary visible units in 100 to 1,600 dimensions; half a minute.",
        "spike=2.5 sample_ratio=3.0 dimension=100,200,400,800,1600",
        replicates=12,
    ),
}

system = System(
    name="boltzmann-machine",
    title="Boltzmann machines on spiked data: overlap and stability of maximum likelihood",
    version="3",
    parameters=BoltzmannParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "sample ratio n/d",
        point_name=lambda setting: setting.place,
        words={
            "spike": "spike {}",
            "algorithm": "{}",
            "weight_decay": "decay {:g}",
            "steps": lambda steps: counted(steps, "step") if steps else "converged",
        },
        margin=1.2,
        resolution=30,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("xu2025rbm", "baik2005phase", "lesieur2017constrained"),
)
