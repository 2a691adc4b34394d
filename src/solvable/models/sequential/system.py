"""Sequential feature recovery (arXiv:2605.14567), at any size, with finite-size theory.

The label is a quadratic form of a few hidden features, which are quadratic in the input. A
layer-wise spectral learner finds the features as outliers in the spectrum of a label-weighted
moment of the data, each feature at its own sample size. The parameters alone determine every
predicted curve, at the dimension of the study; no constant is fitted.
"""

from __future__ import annotations

from solvable.frame.system import Preset, System
from solvable.models.sequential.parameters import AXIS, SequentialParameters

# samples in multiples of the number of features D where that is what matters: 820 features in
# 40 dimensions, 816 of degree 3 in 16 and 9,870 in 140
PRESETS = {
    "quick": Preset(
        "d = 40, true Hermite features, six of them hidden, compared with kernels; under a minute.",
        "dimension=40 features=6 decay=1.0 test_samples=20000 kernel_samples=6560 "
        "spectrum_samples=49200 samples=3280,6560,13120,22960,49200,90200",
        replicates=6,
    ),
    "gaussian": Preset(
        "Limit of large dimension: 465 Gaussian features, 16 of them hidden, gamma = 1; a few minutes.",
        "dimension=30 features=16 decay=1.0 inputs=gaussian label_map=identity signs=positive "
        "test_samples=10000 samples=7440,14880,29760,59520,119040,238080 "
        "second_layer=least-squares,in-sample,shrinkage",
        replicates=5,
    ),
    "dimensions": Preset(
        "Three dimensions with d^0.5 Gaussian features each, gamma = 0, 0.4 and 0.8; six to seven "
        "minutes.",
        "features=0 inputs=gaussian dimension=16,28,48 decay=0.0,0.4,0.8 "
        "samples=400,800,1600,3200,6400,12800,25600,51200",
        replicates=8,
    ),
    "sharpening": Preset(
        "Overlap at the threshold of eight equal features in 100 to 800 Gaussian directions; three to "
        "four minutes.",
        "degree=1 features=8 decay=0.0 dimension=100,200,400,800 "
        "samples=95,190,380,760,1510,3000,6000,12000",
        replicates=16,
    ),
    "learned-energy": Preset(
        "Exponent of the learned share of the label for gamma = 0.2 and 0.4, with 64 Gaussian features; "
        "about three minutes.",
        "dimension=30 features=64 inputs=gaussian decay=0.2,0.4 "
        "samples=3720,5261,7440,10522,14880,21043,29760,42087,59520",
        replicates=10,
    ),
    "exponents": Preset(
        "Exponents of the thresholds and of the error, with 64 Gaussian features; six to seven "
        "minutes.",
        "dimension=30 features=64 inputs=gaussian test_samples=10000 decay=0.75,1.0 "
        "samples=7440,10522,14880,21043,29760,42087,59520,84174,119040,168348,238080",
        replicates=4,
    ),
    "corrections": Preset(
        "Effect of the Wick correction: moment operator with and without it, d = 40; under a minute.",
        "dimension=40 samples=13120,26240,52480,104960 correction=none,wick",
        replicates=3,
    ),
    "cubic": Preset(
        "Three features of degree 3, d = 16, up to 418,000 samples; about a minute.",
        "dimension=16 degree=3 features=3 spectrum_samples=208896 samples=6528,13056,208896,417792",
        replicates=3,
    ),
    "whole-spectrum": Preset(
        "Whole spectra in 9,870 Hermite features, d = 140, by Lanczos quadrature; about ten minutes "
        "and half a GB of memory.",
        "dimension=140 features=0 spectrum_samples=394800 samples=59220,157920,394800",
        replicates=3,
    ),
    "paper": Preset(
        "d = 120, 11 features, tanh readout, up to 1.7 million samples, with and without the Wick "
        "correction; about an hour on two cores.",
        "dimension=120 features=11 decay=0.4 readout=tanh "
        "samples=60550,97732,157744,254608,410950,663296,1070596,1728000 correction=none,wick",
        replicates=2,
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
