"""An attention head with tied weights trained on a target head: errors, rank and spectrum.

Keys and queries share their weights, so a head is a positive matrix S. Weight decay acts on S as a
nuclear-norm penalty, so training recovers a target of low rank from fewer samples than S has entries.
"""

from __future__ import annotations

from solvable.frame.system import Preset, System
from solvable.models.attention.single_head.parameters import AXIS, SingleHeadParameters

PRESETS = {
    "quick": Preset(
        "Two tokens in 60 dimensions, below and above the interpolation threshold; under a minute.",
        "dimension=60 noiseless_samples=400 sample_ratio=0.15,0.3,0.6,1.0",
        replicates=6,
    ),
    "recovery": Preset(
        "Targets of low rank without noise, below and above the recovery threshold; one minute.",
        "dimension=60 noise=0.0 rank_ratio=0.2 regularisation=0.001 "
        "sample_ratio=0.08,0.11,0.16,0.2",
        replicates=4,
    ),
    "interpolation": Preset(
        "Noisy targets at a small penalty, below, at and above the interpolation threshold: the peak of "
        "the error; under a minute.",
        "dimension=60 noise=2.0 inverse_temperature=0.2 regularisation=0.0002 "
        "sample_ratio=0.07,0.14,0.17,0.35",
        replicates=12,
    ),
    "power-law": Preset(
        "Targets with a power-law spectrum: exponents of the error in the number of samples; one minute.",
        "dimension=60 target=power-law noise=1.0 regularisation=0.1 exponent=1.0,1.5 "
        "sample_ratio=0.15,0.25,0.4",
        replicates=8,
    ),
    "decomposition": Preset(
        "Power-law targets at a strong penalty: parts of the error; half a minute.",
        "dimension=60 target=power-law exponent=1.0 noise=1.0 regularisation=0.3 "
        "sample_ratio=0.18,0.3",
        replicates=4,
    ),
    "temperatures": Preset(
        "Targets that are colder or warmer than the trained head; half a minute.",
        "dimension=50 regularisation=0.05 target_inverse_temperature=0.6,1.5 sample_ratio=0.3,0.6",
        replicates=8,
    ),
    "matrix": Preset(
        "Weights with weight decay against the matrix S with a Frobenius penalty; half a minute.",
        "dimension=50 trained=weights,matrix sample_ratio=0.15,0.3,0.6",
        replicates=6,
    ),
    "paper": Preset(
        "Two ranks in 100 dimensions (the paper uses 100 to 400); four minutes.",
        "dimension=100 regularisation=0.05 rank_ratio=0.3,1.0 sample_ratio=0.2,0.4,0.8",
        replicates=12,
    ),
}

system = System(
    name="single-head-attention",
    title="An attention head trained on a target head: errors, rank and spectrum",
    version="5",
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
