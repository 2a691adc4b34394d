"""Single-index models: four kinds of estimators of one direction, and the information-theoretic limit.

A label depends on one direction of Gaussian inputs through a link and noise. The estimators are the
best label map, linearised message passing, label maps that do not use the channel, and Bayes message
passing. Each estimator has a threshold in n/d, and so has the best estimator without limit on its
computing time.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.multi_index.single.parameters import SingleIndexParameters

PRESETS = {
    "quick": Preset(
        "Four estimators in 400 dimensions, for abs and for cos(2.7*z), where they find nothing although "
        "the samples determine the direction; under a minute.",
        {
            "dimension": (400,),
            "link": ("abs", "cos(2.7*z)"),
            "estimator": ("optimal", "lamp", "tanh", "amp"),
            "sample_ratio": (0.35, 0.7, 1.1, 2.4, 4.0),
        },
        replicates=13,
    ),
    "paper": Preset(
        "Two links, each with and without noise, in 1,500 dimensions; about ten minutes.",
        {
            "dimension": (1_500,),
            "link": ("abs", "cos(2*z)"),
            "noise": (0.0, 0.25),
            "estimator": ("optimal", "lamp", "tanh", "amp"),
            "sample_ratio": (0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.5),
        },
        replicates=3,
    ),
    "gap": Preset(
        "A link of noise sensitivity exponent 2 at large noise: the gap between information and "
        "algorithms; two minutes.",
        {
            "dimension": (150,),
            "link": ("cosmix",),
            "noise": (14.0,),
            "estimator": ("amp", "optimal"),
            "sample_ratio": (20.0, 30.0, 40.0, 45.0, 50.0, 260.0),
        },
        replicates=6,
    ),
    "noise": Preset(
        "Thresholds of algorithms and of any method against the noise, for exponents 1 (he2) and 2 "
        "(cosmix); three minutes.",
        {
            "dimension": (60,),
            "link": ("he2", "cosmix"),
            "noise": (5.0, 10.0),
            "estimator": ("optimal", "amp"),
            "sample_ratio": (7.0, 20.0, 32.0, 50.0, 140.0),
        },
        replicates=16,
    ),
    "priors": Preset(
        "Signs or sparse entries in the place of Gaussian ones, in 800 dimensions; two minutes.",
        {
            "dimension": (800,),
            "link": ("abs", "tanh"),
            "prior": ("gaussian", "rademacher", "sparse"),
            "estimator": ("amp", "optimal"),
            "sample_ratio": (0.35, 0.8, 1.2, 3.0),
        },
        replicates=6,
    ),
    "signs": Preset(
        "Links whose labels carry the sign of the direction: linear estimator and message passing; a "
        "minute.",
        {
            "dimension": (500,),
            "link": ("relu", "tanh"),
            "estimator": ("optimal", "amp"),
            "sample_ratio": (0.25, 0.5, 1.0, 2.0, 4.0),
        },
        replicates=6,
    ),
}

system = System(
    name="single-index",
    title="Four kinds of estimators of one direction, and the samples that each needs",
    version="3",
    parameters=SingleIndexParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="solvable.models.multi_index.target:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "sample ratio n/d",
        point_name="n/d = {sample_ratio:.4g}, link {link}, noise {noise:g}, {estimator}",
        words={"link": "{}", "noise": "noise {:g}", "prior": "{}", "estimator": "{}"},
        margin=1.2,
        resolution=60,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("defilippis2026noise", "troiani2025fundamental", "defilippis2025spectral"),
)
