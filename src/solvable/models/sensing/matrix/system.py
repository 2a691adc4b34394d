"""Matrix sensing: estimation of a symmetric matrix of high rank from noisy linear measurements.

The system compares Bayes message passing, which denoises eigenvalues, with the nuclear norm, and rank-one
measurements with Gaussian measurements. It predicts the sample ratios above which each estimator is exact
without noise.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.sensing.matrix.parameters import MatrixSensingParameters

PRESETS = {
    "quick": Preset(
        "Both estimators, noisy measurements, 100 rows; under a minute.",
        {"estimator": ("bayes", "nuclear-norm"), "sample_ratio": (0.42, 0.6, 0.9, 1.3)},
        replicates=6,
        fixed={"dimension": 100},
    ),
    "paper": Preset(
        "Rank-one measurements in 200 dimensions, with and without noise; ten minutes.",
        {"noise": (0.0, 0.25), "sample_ratio": (0.1, 0.15, 0.2, 0.275, 0.35, 0.45, 0.55)},
        replicates=4,
        fixed={"dimension": 200},
    ),
    "recovery": Preset(
        "Low rank without noise, below and above the recovery threshold; a minute.",
        {"estimator": ("bayes", "nuclear-norm"), "sample_ratio": (0.08, 0.12, 0.22, 0.34, 0.4)},
        replicates=6,
        fixed={"dimension": 60, "noise": 0.0, "rank_ratio": 0.2, "sensors": "goe"},
    ),
    "spectra": Preset(
        "Power-law spectrum, rank-one and Gaussian measurements; two minutes.",
        {
            "sensors": ("goe", "rank-one"),
            "estimator": ("bayes", "nuclear-norm"),
            "sample_ratio": (0.1, 0.2, 0.42),
        },
        replicates=4,
        fixed={"dimension": 100, "signal": "power-law", "noise": 0.1},
    ),
    "universality": Preset(
        "Rank-one and Gaussian measurements in 60 dimensions; a minute.",
        {"sensors": ("goe", "rank-one"), "sample_ratio": (0.2, 0.3, 0.45, 0.7)},
        replicates=10,
        fixed={"dimension": 60},
    ),
    "signs": Preset(
        "Signs of Gaussian measurements, with and without noise; a minute.",
        {"noise": (0.0, 0.5), "sample_ratio": (0.3, 0.6, 1.2)},
        replicates=8,
        fixed={"dimension": 60, "sensors": "goe", "output": "sign"},
    ),
    "network": Preset(
        "Quadratic network with noise inside the activation; a minute.",
        {"inner_noise": (0.05, 0.5), "sample_ratio": (0.45, 0.6, 0.9, 1.3)},
        replicates=8,
        fixed={"dimension": 60, "noise": 0.0},
    ),
    "own": Preset(
        "A spectrum of two positive eigenvalues, one negative one and zeros; a minute.",
        {"sensors": ("goe", "rank-one"), "sample_ratio": (0.3, 0.45, 0.7)},
        replicates=8,
        fixed={"dimension": 60, "signal": "own", "eigenvalues": "3:0.1/1:0.3/0:0.4/-2:0.2"},
    ),
}

system = System(
    name="matrix-sensing",
    title="Estimation of a matrix of high rank from linear measurements",
    version="5",
    parameters=MatrixSensingParameters,
    measure="measure:measure",
    predict="predict:predict",
    curve="predict:curve",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "sample ratio n/d²",
        point_name="n/d² = {ratio:.3g}, d = {dimension}",
        words={
            "noise": "noise {:g}", "rank_ratio": "rank {:g} d", "sensors": "{} measurements",
            "signal": "{} signal", "estimator": "{}",
            "output": "{} output", "inner_noise": "inner noise {:g}", "eigenvalues": "{}",
        },
        margin=1.2,
        resolution=60,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("xu2025fundamental", "maillard2024bayes"),
)  # fmt: skip
