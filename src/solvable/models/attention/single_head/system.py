"""An attention head with tied weights learns a head: errors, rank and spectrum from three scalars.

Keys and queries share their weights, so that a head is a positive matrix S; weight decay on its weights
is a nuclear norm, and training recovers a target of low rank from fewer samples than entries.
"""

from __future__ import annotations

from solvable.frame.system import Preset, System
from solvable.models.attention.single_head.parameters import AXIS, SingleHeadParameters

PRESETS = {
    "quick": Preset(
        "Heads of two tokens in 60 dimensions, below and above interpolation; under a minute.",
        {"dimension": (60,), "sample_ratio": (0.15, 0.3, 0.6, 1.0)},
        replicates=6,
    ),
    "recovery": Preset(
        "Targets of low rank without noise, around the threshold of recovery; a minute.",
        {
            "dimension": (60,),
            "noise": (0.0,),
            "rank_ratio": (0.2,),
            "regularisation": (1e-3,),
            "sample_ratio": (0.08, 0.11, 0.16, 0.2),
        },
        replicates=4,
    ),
    "paper": Preset(
        "Two ranks in 100 dimensions, of the 100 to 400 of the paper; two minutes.",
        {
            "dimension": (100,),
            "rank_ratio": (0.3, 1.0),
            "regularisation": (0.05,),
            "sample_ratio": (0.2, 0.4, 0.8),
        },
        replicates=3,
    ),
}

system = System(
    name="single-head-attention",
    title="An attention head learns a head: errors, rank and spectrum from three scalars",
    version="1",
    parameters=SingleHeadParameters,
    measure="measure:measure",
    predict="predict:predict",
    curve="predict:curve",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=AXIS,
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("boncoraglio2025single",),
)
