"""Over-parametrised quadratic networks (arXiv:2505.17958), with theory and direct solvers.

A network of quadratic units with weight decay learns a positive matrix: a convex problem. Two
scalars, an effective noise and a threshold, predict its errors, rank and whole spectrum.
"""

from __future__ import annotations

from solvable.frame.system import Preset, System
from solvable.models.quadratic.network.parameters import AXIS, QuadraticParameters

PRESETS = {
    "quick": Preset(
        "Both targets at d = 60 through the interpolation peak; under a minute.",
        {
            "target": ("marchenko-pastur", "power-law"),
            "dimension": (60,),
            "sample_ratio": (0.1, 0.17, 0.23, 0.3, 0.4, 0.7, 1.2, 2.0),
        },
        replicates=8,
    ),
    "control": Preset(
        "Samples against Gaussian matrices, and the weights themselves trained; a few minutes.",
        {
            "target": ("marchenko-pastur", "power-law"),
            "dimension": (40,),
            "regularisation": (0.1,),
            "sample_ratio": (0.25, 0.35, 0.5, 0.7, 1.0, 1.4),
            "sensing": ("network", "goe"),
            "network_samples": (2_300,),
        },
        replicates=8,
    ),
    "recovery": Preset(
        "No label noise: a low-rank target is recovered beyond a definite size; a few minutes.",
        {
            "dimension": (60,),
            "noise": (0.0,),
            "regularisation": (1e-3,),
            "sample_ratio": (0.12, 0.15, 0.18, 0.2, 0.22, 0.24, 0.28, 0.32, 0.4),
        },
        replicates=3,
    ),
    "regularisation": Preset(
        "Power law at three regularisations, from overfitting to a cut bulk; a few minutes.",
        {
            "target": ("power-law",),
            "dimension": (100,),
            "regularisation": (0.01, 1.0, 10.0),
            "sample_ratio": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4),
        },
        replicates=8,
    ),
    "paper": Preset(
        "The setting of arXiv:2505.17958: d = 100 and 160, through the peak; ten minutes.",
        {
            "dimension": (100, 160),
            "sample_ratio": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0, 1.5),
        },
        replicates=4,
    ),
}

system = System(
    name="quadratic-network",
    title="Two scalars predict error, rank and spectrum of a quadratic network",
    version="1",
    parameters=QuadraticParameters,
    measure="measure:measure",
    predict="predict:predict",
    teacher="measure:teacher",
    axis=AXIS,
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    curve="predict:curve",
    chance="predict:chance",
    presets=PRESETS,
    references=(
        "erba2025nuclear",
        "defilippis2025scaling",
        "maillard2024bayes",
        "girardin2026width",
        "martin2026high",
    ),
)
