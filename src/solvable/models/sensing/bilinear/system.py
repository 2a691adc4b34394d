"""Regression on sequences of tokens: weights that are a product of two matrices, and what that is worth.

A label is the sum of a sequence of tokens weighed by a matrix of extensive rank, plus noise. Bayes
message passing with a denoiser of singular values reaches the best error that is possible; without noise
it finds the matrix from as many samples as it has degrees of freedom, fewer than the nuclear norm needs.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.sensing.bilinear.parameters import BilinearParameters

PRESETS = {
    "quick": Preset(
        "Two ranks of a square matrix of 40 rows, with noise and without; under a minute.",
        {
            "dimension": (40,),
            "rank_ratio": (0.2, 1.0),
            "noise": (0.0, 0.1),
            "sample_ratio": (0.15, 0.3, 0.48, 0.7),
        },
        replicates=8,
    ),
    "paper": Preset(
        "Two ranks of a square matrix of 100 rows, with noise and without; two minutes.",
        {
            "dimension": (100,),
            "rank_ratio": (0.2, 1.0),
            "noise": (0.0, 0.1),
            "sample_ratio": (0.1, 0.2, 0.3, 0.45, 0.6),
        },
        replicates=4,
    ),
}

system = System(
    name="bilinear-sequence",
    title="Regression on token sequences, where the weights are a product of two matrices",
    version="1",
    parameters=BilinearParameters,
    measure="measure:measure",
    predict="predict:predict",
    curve="predict:curve",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "samples per entry n/(dL)",
        told="n/(dL) = {sample_ratio:.4g}, d = {dimension}, L/d = {aspect:g}, r/d = {rank_ratio:g}, "
        "noise {noise:g}",
        words={"rank_ratio": "r/d = {:g}", "aspect": "L/d = {:g}", "noise": "noise {:g}"},
        scale="linear",
        margin=1.1,
        resolution=60,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("erba2025bilinear", "xu2025fundamental"),
)
