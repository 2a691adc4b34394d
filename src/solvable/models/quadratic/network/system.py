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
        "target=marchenko-pastur,power-law dimension=60 sample_ratio=0.2,0.28,0.4,0.8,1.6 "
        "network_samples=720 network_ratio=0.7 noiseless_samples=720",
        replicates=7,
    ),
    "control": Preset(
        "Samples against Gaussian matrices, with 900 replicates of a small dimension; three minutes.",
        "target=power-law dimension=30 regularisation=0.2 sample_ratio=0.5,1.0 sensing=network,goe",
        replicates=900,
    ),
    "descent": Preset(
        "Networks trained by plain gradient descent and by L-BFGS; about a minute.",
        "dimension=30 regularisation=0.1 network_samples=900 sample_ratio=0.25,0.5,1.0 "
        "network_solver=l-bfgs,gradient-descent",
        replicates=4,
    ),
    "recovery": Preset(
        "Perfect recovery of a low-rank target without label noise; a few minutes.",
        "dimension=60 noise=0.0 regularisation=0.001 "
        "sample_ratio=0.12,0.15,0.18,0.2,0.22,0.24,0.28,0.32,0.4",
        replicates=3,
    ),
    "regularisation": Preset(
        "Power-law target at three regularisations, from overfitting to no bulk; a few minutes.",
        "target=power-law dimension=100 regularisation=0.01,1.0,10.0 "
        "sample_ratio=0.1,0.2,0.4,0.8,1.6,3.2,6.4",
        replicates=8,
    ),
    "phases": Preset(
        "Two power laws over samples and penalty at d = 30, phase by phase; two minutes.",
        "target=power-law dimension=30 exponent=0.75,1.5 regularisation=0.02,1.0,8.0,40.0 "
        "sample_ratio=0.4,1.0,2.0,4.0,8.0,16.0,40.0,60.0,90.0",
        replicates=4,
    ),
    "dimensions": Preset(
        "Penalties 1/d, 1 and sqrt(d) at three dimensions; six minutes.",
        "target=power-law exponent=1.5 regularisation=1.0 dimension=30,60,100 "
        "regularisation_unit=1/d,one,sqrt(d) sample_ratio=0.15,0.18,0.21,0.5,1.0,2.0,4.0",
        replicates=10,
    ),
    "best": Preset(
        "Power laws at the best penalty, and at a third and three times of it; five minutes.",
        "target=power-law dimension=60 regularisation_unit=best exponent=1.5,2.0 "
        "regularisation=0.3,1.0,3.0 sample_ratio=0.4,0.8,1.6,3.2,6.4",
        replicates=10,
    ),
    "spectra": Preset(
        "Six kinds of learned spectra, from noise to collapse; a minute and a half.",
        "target=power-law dimension=60 noise=0.5,3.0,400.0 regularisation=0.3,6.0 "
        "sample_ratio=0.4,1.5,4.0",
        replicates=16,
    ),
    "peak": Preset(
        "Height of the interpolation peak at five penalties; half a minute.",
        "dimension=60 sample_ratio=0.2758 regularisation=0.02,0.05,0.1,0.2,0.4",
        replicates=12,
    ),
    "thresholds": Preset(
        "Recovery without label noise for four widths of the target; three minutes.",
        "dimension=40 noise=0.0 regularisation=0.001 width_ratio=0.1,0.2,0.35,0.5 "
        "sample_ratio=0.11,0.14,0.17,0.2,0.23,0.27,0.31,0.35,0.39,0.43,0.48",
        replicates=5,
    ),
    "paper": Preset(
        "The setting of arXiv:2505.17958 at d = 100 and 160; ten minutes.",
        "dimension=100,160 sample_ratio=0.05,0.1,0.15,0.2,0.25,0.3,0.35,0.4,0.5,0.7,1.0,1.5",
        replicates=16,
    ),
}

system = System(
    name="quadratic-network",
    title="Two scalars predict error, rank and spectrum of a quadratic network",
    version="2",
    parameters=QuadraticParameters,
    measure="measure:measure",
    predict="predict:predict",
    teacher="measure:teacher",
    axis=AXIS,
    claims="claims:CLAIMS",
    panels="figures:PANELS",
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
