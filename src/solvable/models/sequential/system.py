"""Sequential feature recovery (arXiv:2605.14567), at any size, with finite-size theory.

The label is a quadratic form of a few hidden features, which are quadratic in the input. A
layer-wise spectral learner finds the features as outliers in the spectrum of a label-weighted
moment of the data, each feature at its own sample size. The parameters alone determine every
predicted curve, at the dimension of the study; no constant is fitted.
"""

from __future__ import annotations

from math import comb

from solvable.frame.system import Preset, System
from solvable.models.sequential.parameters import AXIS, SequentialParameters

QUICK_TOTAL, CUBIC_TOTAL, WHOLE_TOTAL = comb(41, 2), comb(18, 3), comb(141, 2)
PAPER_SAMPLES = (60_550, 97_732, 157_744, 254_608, 410_950, 663_296, 1_070_596, 1_728_000)

PRESETS = {
    "quick": Preset(
        "d = 40, true Hermite features, six of them hidden, compared with kernels; under a minute.",
        {"samples": tuple(ratio * QUICK_TOTAL for ratio in (4, 8, 16, 28, 60, 110))},
        replicates=6,
        fixed={
            "dimension": 40,
            "features": 6,
            "decay": 1.0,
            "test_samples": 20_000,
            "kernel_samples": 8 * QUICK_TOTAL,
            "spectrum_samples": 60 * QUICK_TOTAL,
        },
    ),
    "gaussian": Preset(
        "Limit of large dimension: 465 Gaussian features, 16 of them hidden, gamma = 1; a few minutes.",
        {
            "samples": tuple(ratio * 465 for ratio in (16, 32, 64, 128, 256, 512)),
            "second_layer": ("least-squares", "in-sample", "shrinkage"),
        },
        replicates=5,
        fixed={
            "dimension": 30,
            "features": 16,
            "decay": 1.0,
            "inputs": "gaussian",
            "label_map": "identity",
            "signs": "positive",
            "test_samples": 10_000,
        },
    ),
    "dimensions": Preset(
        "Three dimensions with d^0.5 Gaussian features each, gamma = 0, 0.4 and 0.8; six to seven "
        "minutes.",
        {
            "dimension": (16, 28, 48),
            "decay": (0.0, 0.4, 0.8),
            "samples": tuple(400 * 2**k for k in range(8)),
        },
        replicates=8,
        fixed={"features": 0, "inputs": "gaussian"},
    ),
    "sharpening": Preset(
        "Overlap at the threshold of eight equal features in 100 to 800 Gaussian directions; three to "
        "four minutes.",
        {
            "dimension": (100, 200, 400, 800),
            "samples": (95, 190, 380, 760, 1_510, 3_000, 6_000, 12_000),
        },
        replicates=16,
        fixed={"degree": 1, "features": 8, "decay": 0.0},
    ),
    "learned-energy": Preset(
        "Exponent of the learned share of the label for gamma = 0.2 and 0.4, with 64 Gaussian features; "
        "about three minutes.",
        {"decay": (0.2, 0.4), "samples": tuple(round(8 * 465 * 2 ** (k / 2)) for k in range(9))},
        replicates=10,
        fixed={"dimension": 30, "features": 64, "inputs": "gaussian"},
    ),
    "exponents": Preset(
        "Exponents of the thresholds and of the error, with 64 Gaussian features; six to seven "
        "minutes.",
        {"decay": (0.75, 1.0), "samples": tuple(round(16 * 465 * 2 ** (k / 2)) for k in range(11))},
        replicates=4,
        fixed={"dimension": 30, "features": 64, "inputs": "gaussian", "test_samples": 10_000},
    ),
    "corrections": Preset(
        "Effect of the Wick correction: moment operator with and without it, d = 40; under a minute.",
        {
            "samples": tuple(ratio * QUICK_TOTAL for ratio in (16, 32, 64, 128)),
            "correction": ("none", "wick"),
        },
        replicates=3,
        fixed={"dimension": 40},
    ),
    "cubic": Preset(
        "Three features of degree 3, d = 16, up to 418,000 samples; about a minute.",
        {"samples": tuple(ratio * CUBIC_TOTAL for ratio in (8, 16, 256, 512))},
        replicates=3,
        fixed={"dimension": 16, "degree": 3, "features": 3, "spectrum_samples": 256 * CUBIC_TOTAL},
    ),
    "whole-spectrum": Preset(
        "Whole spectra in 9,870 Hermite features, d = 140, by Lanczos quadrature; about ten minutes "
        "and half a GB of memory.",
        {"samples": tuple(ratio * WHOLE_TOTAL for ratio in (6, 16, 40))},
        replicates=3,
        fixed={"dimension": 140, "features": 0, "spectrum_samples": 40 * WHOLE_TOTAL},
    ),
    "paper": Preset(
        "d = 120, 11 features, tanh readout, up to 1.7 million samples, with and without the Wick "
        "correction; about an hour on two cores.",
        {"samples": PAPER_SAMPLES, "correction": ("none", "wick")},
        replicates=2,
        fixed={"dimension": 120, "features": 11, "decay": 0.4, "readout": "tanh"},
    ),
}


system = System(
    name="sequential-recovery",
    title="Hidden features appear one after another as the samples grow",
    version="3",
    parameters=SequentialParameters,
    measure="measure:measure",
    predict="predict:predict",
    teacher="measure:teacher",
    chance="predict:chance",
    tensors=True,
    axis=AXIS,
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("wortsman2026scaling",),
)
