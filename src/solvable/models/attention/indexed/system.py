"""Attention-indexed models: what samples of attention tell of the weights behind it.

A label is the attention matrix of T tokens, softmax or hardmax of each row of their logits, which one
matrix of large rank gives. Bayes message passing estimates that matrix; state evolution says how well,
and without noise from how many samples exactly.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.attention.indexed.parameters import IndexedParameters

PRESETS = {
    "quick": Preset(
        "Softmax and hardmax of two tokens in 90 dimensions; under a minute.",
        {
            "dimension": (90,),
            "activation": ("softmax", "hardmax"),
            "sample_ratio": (0.07, 0.14, 0.3),
        },
        replicates=10,
    ),
    "paper": Preset(
        "Softmax of two and three tokens, with and without noise, in 140 dimensions; some minutes.",
        {
            "dimension": (140,),
            "tokens": (2, 3),
            "noise": (0.0, 0.5),
            "sample_ratio": (0.03, 0.07, 0.15),
        },
        replicates=6,
    ),
    "dimensions": Preset(
        "One setting in 40 to 100 dimensions: the error comes down to its limit as 1/d.",
        {
            "dimension": (40, 60, 100),
            "tokens": (3,),
            "activation": ("linear",),
            "noise": (0.25,),
            "sample_ratio": (0.1, 0.2),
        },
        replicates=16,
    ),
}

system = System(
    name="attention-indexed",
    title="What samples of attention tell of the weights behind it",
    version="1",
    parameters=IndexedParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "samples per squared dimension n/d^2",
        told="n/d^2 = {sample_ratio:.4g}, d = {dimension}, {activation}, {tokens} tokens, "
        "noise {noise:g}, rank {rank_ratio:g} d",
        words={"activation": "{}", "tokens": "T = {}", "noise": "noise {:g}"},
        margin=1.1,
        resolution=40,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("boncoraglio2025bayes",),
)
