"""How many samples does a two-layer network need to learn a feature? Large deviations and Langevin.

A network of N hidden units, drawn from its posterior given P samples, learns a Hermite polynomial of one
direction of d inputs. Learning is a rare event of the prior. The energy of this event predicts the number
of samples from which neurons specialise on the direction, their number and strength, and the norm of
their irrelevant weights. Langevin dynamics of ensembles of networks measures these quantities.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.two_layer_posterior.parameters import CurseParameters

PRESETS = {
    "quick": Preset(
        "A cubic target in 8 dimensions, 80 erf units, four sample sizes; under a minute.",
        "dimension=8 scaled_samples=9.0,14.0,20.0,28.0 steps=1200",
        replicates=12,
    ),
    "paper": Preset(
        "Ten dimensions, 100 units, two temperatures, six sample sizes; five minutes.",
        "dimension=10 kappa=0.5,1.0 scaled_samples=5.0,8.0,11.0,14.0,20.0,28.0 steps=1500",
        replicates=12,
    ),
    "onset": Preset(
        "Learning curves in 5, 8, 12 and 18 dimensions, which coincide and sharpen; two minutes.",
        "dimension=5,8,12,18 scaled_samples=7.0,11.0,16.0 steps=1000",
        replicates=12,
    ),
    "width": Preset(
        "Number of specialised neurons at 4 to 36 units per dimension; four minutes.",
        "dimension=8 width_ratio=4.0,9.0,16.0,25.0,36.0 scaled_samples=20.0 steps=1500",
        replicates=10,
    ),
    "three-layers": Preset(
        "Two hidden layers of 5 units per input, learning curves in 6, 9 and 14 dimensions; two minutes.",
        "dimension=6,9,14 width_ratio=5.0 second_width_ratio=5.0 scaled_samples=8.0,13.0,21.0 "
        "steps=1400",
        replicates=12,
    ),
    "kernels": Preset(
        "Strength and norm of features in random kernels of one and two layers against the gain; "
        "forty seconds.",
        "dimension=64 width_ratio=16.0 second_width_ratio=0.0,16.0 "
        "gain=1.0,2.0,4.0,8.0,24.0,100.0,400.0 scaled_samples=2.0",
        replicates=12,
    ),
    "spikes": Preset(
        "Strength of a spike's feature in random kernels against its number of neurons; ten seconds.",
        "dimension=64 width_ratio=16.0 second_width_ratio=0.0,16.0 gain=1.0 spike=8,24,72,216 "
        "scaled_samples=1.0",
        replicates=12,
    ),
    "parity": Preset(
        "Parity of two bits with 20 to 160 relu units and a mean-field readout; half a minute.",
        "dimension=10 target=parity degree=2 activation=relu readout=mean-field kappa=0.2 "
        "width_ratio=2.0,4.0,8.0,16.0 scaled_samples=11.0 steps=1200",
        replicates=8,
    ),
    "attention": Preset(
        "Four heads of attention on 3, 6 and 12 tokens of 5 inputs: curves coincide; three minutes.",
        "dimension=5 target=attention context=3,6,12 scaled_samples=2.5,4.0,6.3,9.0 steps=1500",
        replicates=8,
    ),
    "attention-dimensions": Preset(
        "Four heads of attention on 6 tokens of 4, 6 and 9 inputs; two minutes.",
        "dimension=4,6,9 target=attention context=6 scaled_samples=2.5,4.0,6.3 steps=1500",
        replicates=8,
    ),
    "hand-over": Preset(
        "Two hidden layers in 8 dimensions: the first grows from 2 to 16 units per input; two minutes.",
        "dimension=8 width_ratio=2.0,4.0,8.0,16.0 second_width_ratio=5.0 scaled_samples=30.0 "
        "steps=2000",
        replicates=12,
    ),
}

system = System(
    name="curse-of-detail",
    title="Number of samples at which neurons specialise: large deviations and Langevin networks",
    version="4",
    parameters=CurseParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "scaled_samples",
        "sample ratio P/(κ√(χNd))",
        point_name="d = {dimension}, {widths}, P = {samples} ({scaled_samples:.4g}), "
        "kappa = {kappa:g}"
        ", {kind}",
        words={
            "dimension": "d = {}",
            "width_ratio": "N/d = {:g}",
            "second_width_ratio": "N2/d = {:g}",
            "gain": "gain {:g}",
            "spike": "{} neurons in the spike",
            "kappa": "kappa {:g}",
            "target": "{}",
            "context": "L = {}",
            "heads": "{} heads",
            "degree": "degree {}",
            "activation": "{}",
            "readout": "{}",
            "start": "{}",
            "steps": "{} steps",
            "step": "step {:g}",
        },
        margin=1.3,
        resolution=14,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("rubin2025curse",),
)
