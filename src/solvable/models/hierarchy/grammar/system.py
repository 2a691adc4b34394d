"""Random hierarchy models: strings of a random grammar, and learners that find its hierarchy.

A label produces symbols, these produce symbols, and so on for several levels. A learner sees labels and
the last symbols only. Learners that use the hierarchy need about P* = n_c m^L strings, far fewer than
there are (arXiv:2307.02129, arXiv:2601.19756).
"""

from __future__ import annotations

from solvable.frame.system import Preset, System
from solvable.models.hierarchy.grammar.parameters import AXIS, RandomHierarchyParameters

PRESETS = {
    "quick": Preset(
        "Four learners of the grammar (8, 4, 2, 3) around P*; under a minute.",
        "estimator=layerwise,count-cluster,cnn,kernel sample_ratio=0.25,0.5,1.0,2.0,4.0,8.0",
        replicates=3,
    ),
    "scaling": Preset(
        "Eight grammars whose P* span a factor of 32, for the threshold of two learners; a minute.",
        "estimator=layerwise,count-cluster vocabulary=8,16 rules=2,4 depth=2,3 "
        "sample_ratio=0.25,0.5,1.0,2.0,4.0",
        replicates=6,
    ),
    "shallow": Preset(
        "Networks of one hidden layer up to all strings of three grammars; eight minutes.",
        "estimator=shallow vocabulary=4 rules=2,3,4 "
        "sample_ratio=2.0,4.0,8.0,16.0,32.0,64.0,128.0,256.0",
        replicates=10,
    ),
    "networks": Preset(
        "Convolutional and fully connected networks at three depths; four minutes.",
        "vocabulary=6 rules=3 estimator=cnn,fully-connected depth=2,3,4 "
        "sample_ratio=0.25,0.5,1.0,2.0,4.0,8.0,16.0",
        replicates=16,
    ),
    "sparse": Preset(
        "Networks with and without shared weights on strings with blanks; half a minute.",
        "vocabulary=6 rules=3 depth=2 estimator=cnn,locally-connected blanks=0,1,2 "
        "sample_ratio=0.5,1.5,4.5,13.5",
        replicates=6,
    ),
    "language": Preset(
        "Correlations, prediction of the last symbol, and denoising; a few minutes.",
        "estimator=cnn vocabulary=16 task=next-token,denoising "
        "sample_ratio=0.0625,0.25,0.5,1.0,2.0,4.0,16.0,64.0 "
        "noise_level=0.1,0.3,0.5,0.6,0.7,0.8,0.9",
        replicates=4,
    ),
    "boolean": Preset(
        "Deep quadratic targets of 16, 32 and 64 signs around n*; half a minute.",
        "task=boolean depth=4,5,6 sample_ratio=0.25,0.4,0.55,0.7,0.85,1.0,1.5",
        replicates=8,
    ),
    "zipf": Preset(
        "Rules with power-law probabilities are learned one after another; a minute.",
        "estimator=count-cluster vocabulary=16 rules=256 branching=3 depth=2 classes=4 "
        "zipf=1.0,1.5 samples=4096,8192,16384,32768,65536,131072,262144,524288",
        replicates=3,
    ),
}

system = System(
    name="random-hierarchy",
    title="Learners of a random grammar find its hierarchy from P* strings",
    version="3",
    parameters=RandomHierarchyParameters,
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
        "cagnetta2024hierarchy",
        "ren2026hierarchy",
        "cagnetta2024language",
        "cagnetta2025powerlaw",
        "sclocchi2025diffusion",
        "tomasini2024sparse",
    ),
)
