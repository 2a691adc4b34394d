"""Features emerge one after another in online gradient descent on a shallow network.

The teacher is f*(x) = sum_p a_p sigma(<w_p, x>) with orthonormal directions, amplitudes a_p ~ p^-beta and
an even link of information exponent above 2. The network f(x) = sum_j |v_j|² sigma(<v_j, x>/|v_j|) has m
students and trains both layers on fresh samples. The overlap of a feature stays near its random initial
value, then rises sharply. The many drops of the loss add up to a power law.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.multi_index.emergence.parameters import EmergenceParameters

PRESETS = {
    "quick": Preset(
        "Five features in 40 dimensions, one after another; under a minute.",
        "dimension=40 features=5 width=20 batch=2400 time=1.0,2.0,3.0,4.5,6.5,9.0,13.0",
        replicates=12,
    ),
    "links": Preset(
        "The bounded link cosmix against the link he4; a minute.",
        "dimension=32 features=4 width=16 link=he4,cosmix batch=1600 time=2.0,4.0,8.0,16.0",
        replicates=10,
    ),
    "width": Preset(
        "Five widths, some too small to learn all features: exponents in width, and in compute at the "
        "best width; four minutes.",
        "dimension=32 features=32 decay=0.8 width=2,4,8,16,32 learning_rate=0.02 batch=1600 "
        "time=4.0,8.0,16.0,32.0,64.0",
        replicates=4,
    ),
    "samples": Preset(
        "A learning rate for the weakest wanted feature, which halves the exponent in samples; two "
        "minutes.",
        "dimension=32 features=16 decay=0.8 width=32 learning_rate=0.05 tuned=true batch=800 "
        "time=3.0,5.0,8.0,13.0",
        replicates=18,
    ),
    "paper": Preset(
        "Twelve features in 96 dimensions at the decay of the paper; ten minutes. The paper has 1,024 "
        "features in 2,048 dimensions, which need d³ samples.",
        "dimension=96 features=12 decay=0.8 width=36 batch=6000 time=3.0,6.0,10.0,16.0,25.0,40.0",
        replicates=6,
    ),
}

system = System(
    name="emergence-in-sgd",
    title="Features emerge one after another in online gradient descent",
    version="2",
    parameters=EmergenceParameters,
    measure="measure:measure",
    predict="predict:predict",
    curve="predict:curve",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "time",
        "time t (learning rate × steps)",
        words={"link": "{}", "decay": "beta = {:g}"},
        margin=1.2,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("ren2025emergence",),
)
