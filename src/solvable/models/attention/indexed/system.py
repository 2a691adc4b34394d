"""Attention-indexed models: Bayes-optimal estimation of attention weights from attention matrices.

A label is the softmax or hardmax of each row of the logits of T tokens, and one matrix of extensive
rank defines the logits. State evolution predicts the error of Bayes message passing for this matrix, and
the sample ratio above which message passing recovers the matrix exactly without noise.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.attention.indexed.parameters import IndexedParameters

PRESETS = {
    "quick": Preset(
        "Softmax and hardmax of two tokens in 90 dimensions; under a minute.",
        "dimension=90 activation=softmax,hardmax sample_ratio=0.07,0.14,0.3",
        replicates=10,
    ),
    "paper": Preset(
        "Softmax of two and three tokens, with and without noise, in 140 dimensions; several minutes.",
        "dimension=140 tokens=2,3 noise=0.0,0.5 sample_ratio=0.03,0.07,0.15",
        replicates=6,
    ),
    "tokens": Preset(
        "Softmax of two and three tokens at equal numbers of indices shown, 80 dimensions; 30 s.",
        "dimension=80 tokens=2,3 sample_ratio=0.04,0.1",
        replicates=12,
    ),
    "descent": Preset(
        "Gradient descent from 16 random starts and their average, 48 dimensions; a minute.",
        "dimension=48 estimator=gradient-descent sample_ratio=0.06,0.08,0.12",
        replicates=8,
    ),
    "layers": Preset(
        "Two layers of attention with noisy logits, 40 and 100 dimensions; a minute.",
        "layers=2 noise=0.2 dimension=40,100 sample_ratio=0.1,0.2,0.35",
        replicates=12,
    ),
    "dimensions": Preset(
        "One setting in 40 to 100 dimensions: the error approaches its limit as 1/d.",
        "tokens=3 activation=linear noise=0.25 dimension=40,60,100 sample_ratio=0.1,0.2",
        replicates=16,
    ),
}

system = System(
    name="attention-indexed",
    title="Estimation of attention weights from attention matrices",
    version="4",
    parameters=IndexedParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "sample ratio n/d²",
        point_name="n/d² = {sample_ratio:.4g}, d = {dimension}, {activation}, {tokens} tokens, "
        "noise {noise:g}, rank {rank_ratio:g} d",
        words={
            "activation": "{}",
            "estimator": "{}",
            "tokens": "T = {}",
            "layers": "L = {}",
            "noise": "noise {:g}",
        },
        margin=1.1,
        resolution=40,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("boncoraglio2025bayes",),
)
