"""Matrix sensing: a symmetric matrix of high rank from noisy linear measurements.

Bayes message passing, whose denoiser keeps eigenvectors and moves eigenvalues, against the nuclear norm;
measurements of rank one against Gaussian ones; the ratio from which either is exact without noise.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.sensing.matrix.parameters import MatrixSensingParameters

PRESETS = {
    "quick": Preset(
        "Both estimators of a noisy matrix of 100 rows; under a minute.",
        {
            "dimension": (100,),
            "estimator": ("bayes", "nuclear-norm"),
            "sample_ratio": (0.42, 0.6, 0.9, 1.3),
        },
        replicates=6,
    ),
    "paper": Preset(
        "Measurements of rank one in 200 dimensions, without noise and with; ten minutes.",
        {
            "dimension": (200,),
            "noise": (0.0, 0.25),
            "sample_ratio": (0.1, 0.15, 0.2, 0.275, 0.35, 0.45, 0.55),
        },
        replicates=4,
    ),
    "recovery": Preset(
        "A matrix of low rank without noise, on both sides of recovery; a minute.",
        {
            "dimension": (60,),
            "noise": (0.0,),
            "rank_ratio": (0.2,),
            "sensors": ("goe",),
            "estimator": ("bayes", "nuclear-norm"),
            "sample_ratio": (0.08, 0.12, 0.22, 0.34, 0.4),
        },
        replicates=6,
    ),
    "spectra": Preset(
        "Eigenvalues that fall as a power law, by either kind of measurement; two minutes.",
        {
            "dimension": (100,),
            "signal": ("power-law",),
            "sensors": ("goe", "rank-one"),
            "estimator": ("bayes", "nuclear-norm"),
            "noise": (0.1,),
            "sample_ratio": (0.1, 0.2, 0.42),
        },
        replicates=4,
    ),
}

system = System(
    name="matrix-sensing",
    title="A matrix of high rank from linear measurements, and the least that any estimator needs",
    version="1",
    parameters=MatrixSensingParameters,
    measure="measure:measure",
    predict="predict:predict",
    curve="predict:curve",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "measurements per squared dimension n/d^2",
        told="n/d^2 = {ratio:.3g}, d = {dimension}",
        words={
            "noise": "noise {:g}", "rank_ratio": "rank {:g} d", "sensors": "{} measurements",
            "signal": "{} signal", "estimator": "{}",
        },
        margin=1.2,
        resolution=60,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("xu2025fundamental", "maillard2024bayes"),
)  # fmt: skip
