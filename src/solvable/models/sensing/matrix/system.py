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
        "dimension=100 estimator=bayes,nuclear-norm sample_ratio=0.42,0.6,0.9,1.3",
        replicates=6,
    ),
    "paper": Preset(
        "Rank-one measurements in 200 dimensions, with and without noise; ten minutes.",
        "dimension=200 noise=0.0,0.25 sample_ratio=0.1,0.15,0.2,0.275,0.35,0.45,0.55",
        replicates=4,
    ),
    "recovery": Preset(
        "Low rank without noise, below and above the recovery threshold; a minute.",
        "dimension=60 noise=0.0 rank_ratio=0.2 sensors=goe estimator=bayes,nuclear-norm "
        "sample_ratio=0.08,0.12,0.22,0.34,0.4",
        replicates=6,
    ),
    "spectra": Preset(
        "Power-law spectrum, rank-one and Gaussian measurements; two minutes.",
        "dimension=100 signal=power-law noise=0.1 sensors=goe,rank-one "
        "estimator=bayes,nuclear-norm sample_ratio=0.1,0.2,0.42",
        replicates=4,
    ),
    "universality": Preset(
        "Rank-one and Gaussian measurements in 60 dimensions; a minute.",
        "dimension=60 sensors=goe,rank-one sample_ratio=0.2,0.3,0.45,0.7",
        replicates=10,
    ),
    "signs": Preset(
        "Signs of Gaussian measurements, with and without noise; a minute.",
        "dimension=60 sensors=goe output=sign noise=0.0,0.5 sample_ratio=0.3,0.6,1.2",
        replicates=8,
    ),
    "network": Preset(
        "Quadratic network with noise inside the activation; a minute.",
        "dimension=60 noise=0.0 inner_noise=0.05,0.5 sample_ratio=0.45,0.6,0.9,1.3",
        replicates=8,
    ),
    "own": Preset(
        "A spectrum of two positive eigenvalues, one negative one and zeros; a minute.",
        "dimension=60 signal=own eigenvalues=3:0.1/1:0.3/0:0.4/-2:0.2 sensors=goe,rank-one "
        "sample_ratio=0.3,0.45,0.7",
        replicates=8,
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
