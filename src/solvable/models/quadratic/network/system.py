"""Over-parametrised quadratic networks (arXiv:2505.17958), with theory and direct solvers.

Training a network of quadratic units with weight decay is a convex problem over positive matrices.
An effective noise and a threshold predict the errors, the rank and the spectrum of the minimiser.
"""

from __future__ import annotations

from solvable.frame.system import Preset, System
from solvable.models.quadratic.network.parameters import AXIS, QuadraticParameters

PRESETS = {
    "quick": Preset(
        "Both targets at d = 60 across the interpolation peak; under a minute.",
        {
            "target": ("marchenko-pastur", "power-law"),
            "dimension": (60,),
            "sample_ratio": (0.1, 0.17, 0.23, 0.3, 0.4, 0.7, 1.2, 2.0),
        },
        replicates=8,
    ),
    "control": Preset(
        "Samples, Gaussian matrices, and networks trained by L-BFGS; a few minutes.",
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
    "descent": Preset(
        "Networks trained by plain gradient descent and by L-BFGS; about a minute.",
        {
            "dimension": (30,),
            "regularisation": (0.1,),
            "sample_ratio": (0.25, 0.5, 1.0),
            "network_samples": (900,),
            "network_solver": ("l-bfgs", "gradient-descent"),
        },
        replicates=4,
    ),
    "recovery": Preset(
        "Perfect recovery of a low-rank target without label noise; a few minutes.",
        {
            "dimension": (60,),
            "noise": (0.0,),
            "regularisation": (1e-3,),
            "sample_ratio": (0.12, 0.15, 0.18, 0.2, 0.22, 0.24, 0.28, 0.32, 0.4),
        },
        replicates=3,
    ),
    "regularisation": Preset(
        "Power-law target at three regularisations, from overfitting to no bulk; a few minutes.",
        {
            "target": ("power-law",),
            "dimension": (100,),
            "regularisation": (0.01, 1.0, 10.0),
            "sample_ratio": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4),
        },
        replicates=8,
    ),
    "paper": Preset(
        "The setting of arXiv:2505.17958 at d = 100 and 160; ten minutes.",
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
    preview="predict:preview",
    curve="predict:curve",
    chance="predict:chance",
    tensors=True,
    presets=PRESETS,
    references=(
        "erba2025nuclear",
        "defilippis2025scaling",
        "maillard2024bayes",
        "girardin2026width",
        "martin2026high",
    ),
)
