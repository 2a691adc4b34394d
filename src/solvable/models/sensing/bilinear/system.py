"""Regression on token sequences whose weight matrix is a product of two factors.

A label is the scalar product of a token sequence with a weight matrix of extensive rank, plus noise.
Bayes message passing with a singular-value denoiser reaches the Bayes-optimal error. Without noise,
message passing recovers the matrix from as many samples as the matrix has free parameters, fewer than
the nuclear norm needs.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.sensing.bilinear.parameters import BilinearParameters

PRESETS = {
    "quick": Preset(
        "Square matrices with 40 rows, two ranks, with and without noise; under a minute.",
        "dimension=40 rank_ratio=0.2,1.0 noise=0.0,0.1 sample_ratio=0.15,0.3,0.48,0.7",
        replicates=8,
    ),
    "paper": Preset(
        "Square matrices with 100 rows, two ranks, with and without noise; two minutes.",
        "dimension=100 rank_ratio=0.2,1.0 noise=0.0,0.1 sample_ratio=0.1,0.2,0.3,0.45,0.6",
        replicates=4,
    ),
    "ranks": Preset(
        "Square matrices with 30 rows and four ranks without noise; a minute.",
        "dimension=30 noise=0.0 rank_ratio=0.1,0.2,0.5,1.0 "
        "sample_ratio=0.04,0.08,0.15,0.28,0.5,0.65",
        replicates=6,
    ),
    "aspects": Preset(
        "Four aspect ratios up to 10 with noise; a minute.",
        "dimension=20 noise=0.1 aspect=1.0,2.0,5.0,10.0 sample_ratio=0.15,0.25,0.4,0.6",
        replicates=8,
    ),
    "shapes": Preset(
        "Two ranks, two aspect ratios, with and without noise; two minutes.",
        "dimension=30 aspect=1.0,2.0 rank_ratio=0.2,1.0 noise=0.0,0.1 sample_ratio=0.1,0.2,0.4,0.6",
        replicates=6,
    ),
    "nuclear-norm": Preset(
        "The least nuclear norm against message passing, three ranks without noise; two minutes.",
        "dimension=30 noise=0.0 rank_ratio=0.1,0.2,0.5 estimator=message-passing,nuclear-norm "
        "sample_ratio=0.1,0.25,0.45,0.65,0.85,1.0",
        replicates=8,
    ),
    "descent": Preset(
        "Gradient descent from 16 random starts and its average, two learning rates; a minute.",
        "dimension=40 noise=0.0 estimator=gradient-descent learning_rate=0.1,0.7 "
        "sample_ratio=0.1,0.2,0.25,0.3",
        replicates=8,
    ),
}

system = System(
    name="bilinear-sequence",
    title="Regression on token sequences with a weight matrix of two factors",
    version="3",
    parameters=BilinearParameters,
    measure="measure:measure",
    predict="predict:predict",
    curve="predict:curve",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "sample ratio n/(dL)",
        point_name="n/(dL) = {sample_ratio:.4g}, d = {dimension}, L/d = {aspect:g}, r/d = {rank_ratio:g}"
        ", noise {noise:g}",
        words={
            "rank_ratio": "r/d = {:g}", "aspect": "L/d = {:g}", "noise": "noise {:g}",
            "estimator": "{}", "learning_rate": "rate {:g}", "starts": "{} starts",
        },
        scale="linear",
        margin=1.1,
        resolution=60,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("erba2025bilinear", "xu2025fundamental"),
)  # fmt: skip
