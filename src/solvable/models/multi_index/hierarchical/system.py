"""Hierarchical multi-index models (arXiv:2602.05846): features of decreasing amplitude.

The label is a sum of links of unknown directions with amplitudes k^-gamma, plus noise. A spectral
estimator that does not use the target finds each direction above a threshold in n/d. A ridge readout
on these directions has an error that falls as a power of n.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.multi_index.hierarchical.parameters import HierarchicalParameters

PRESETS = {
    "quick": Preset(
        "Eight features in 200 dimensions, with one pass and with two; under a minute.",
        "deflation=0,1 sample_ratio=0.5,1.0,2.0,4.0,8.0,16.0,32.0,64.0,128.0,256.0 "
        "learning_rate=0.01 trained_samples=3200",
        replicates=8,
    ),
    "paper": Preset(
        "Sixteen features in 600 dimensions; about five minutes.",
        "dimension=600 features=16 sample_ratio=2.0,4.0,8.0,16.0,32.0,64.0,128.0",
        replicates=4,
    ),
    "scaling": Preset(
        "Exponents of the error for a hundred features at three decays; three minutes.",
        "dimension=200 features=100 readout=none decay=0.75,1.0,1.5 "
        "sample_ratio=8.0,16.0,32.0,64.0,128.0,256.0,512.0,1024.0",
        replicates=4,
    ),
    "scaling-beta-2": Preset(
        "Thresholds and errors of twelve features of a link with noise sensitivity exponent 2; five "
        "minutes.",
        "dimension=120 features=12 readout=none noise=0.1 link=cosmix label_map=square "
        "decay=0.6,0.75,1.0 sample_ratio=4.0,16.0,32.0,64.0,128.0,256.0,512.0",
        replicates=6,
    ),
    "universality": Preset(
        "Exponents of the error for four links of noise sensitivity exponent 1; a minute.",
        "dimension=160 features=16 readout=none link=he2,abs,cos(z),exp(-z**2/2) "
        "sample_ratio=8.0,16.0,32.0,64.0,128.0,256.0",
        replicates=4,
    ),
    "bayes": Preset(
        "The spectral estimator and Bayes message passing for three features; three minutes.",
        "dimension=60 features=3 readout=none message_passing=true link=he2,cosmix "
        "label_map=square noise=0.5 sample_ratio=4.0,8.0,16.0,32.0",
        replicates=16,
    ),
    "noise-sensitivity": Preset(
        "Links with noise sensitivity exponents 1 and 2, label maps tanh and square; two minutes.",
        "dimension=100 features=4 decay=0.5 noise=0.1 link=he2,cosmix label_map=tanh,square "
        "readout=none sample_ratio=4.0,8.0,16.0,32.0,64.0,128.0,256.0,512.0",
        replicates=8,
    ),
    "gradient-descent": Preset(
        "Gradient descent on the first layer at six learning rates; about a minute.",
        "dimension=100 features=6 readout=none learning_rate=0.003,0.01,0.03,0.1,0.2,0.3 "
        "sample_ratio=4.0,16.0,64.0",
        replicates=6,
    ),
    "links": Preset(
        "Links that are even and links that are not, with both readouts; about three minutes.",
        "dimension=150 features=4 link=abs,relu,tanh,cos(z) label_map=tanh,square "
        "readout=monomials,relu sample_ratio=8.0,32.0,128.0",
        replicates=4,
    ),
}

system = System(
    name="hierarchical-multi-index",
    title="Features of decreasing amplitude are found one after another; the error is a power law",
    version="3",
    parameters=HierarchicalParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    tensors=True,
    teacher="solvable.models.multi_index.target:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "sample ratio n/d",
        ignore=("test_samples", "trained_samples", "learning_rate"),
        point_name=lambda setting: setting.place,
        words={
            "link": "{}",
            "decay": "decay {:g}",
            "label_map": "{}",
            "readout": "{}",
            "features": "{} features",
            "deflation": "{} deflation",
            "noise": "noise {:g}",
        },
        margin=1.2,
        resolution=24,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("defilippis2026optimal", "defilippis2026noise", "kovacevic2025spectral"),
)
