"""A cascade learns labels that are products of simpler labels, one level in each block.

All labels are observed, but not their levels. Each block fits all open labels by kernel ridge of degree
2 on the inputs and the labels accepted so far, and accepts those with a small out-of-fold error. On
random signs the kernel has exact eigenfunctions, so that mean-field ridge regression predicts the error
of each level after each block, and the number of samples at which the cascade passes each level.
"""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.hierarchy.labels.parameters import LabelParameters

PRESETS = {
    "quick": Preset(
        "Four levels of 16 labels over 20 inputs, after one to four blocks; half a minute.",
        "blocks=1,2,3,4 samples=60,200,300,400,600,1150,1350,2000,2800",
        replicates=4,
    ),
    "depth": Preset(
        "Hierarchies of one to four levels; half a minute.",
        "depth=1,2,3,4 samples=50,80,200,300,450,800,1100,1400,1700",
        replicates=4,
    ),
    "folds": Preset(
        "Held-out predictions against predictions of fitted samples; half a minute.",
        "folds=1,2 samples=300,400,600,1150,1350,2000,2800",
        replicates=4,
    ),
    "majority": Preset(
        "Two levels of majorities of three over 14 inputs, after one and two blocks; half a minute.",
        "gate=majority dimension=14 labels=8 depth=2 folds=4 threshold=0.025 blocks=1,2 "
        "samples=150,240,360,480,800,1100,1250,1500",
        replicates=16,
    ),
}

system = System(
    name="label-hierarchy",
    title="A cascade learns a hierarchy of labels block by block",
    version="3",
    parameters=LabelParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="measure:draw_teacher",
    axis=Axis(
        "samples",
        "samples n",
        words={"gate": "{}", "blocks": "blocks {}", "folds": "folds {}", "depth": "levels {}"},
        margin=1.2,
        resolution=40,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("daniely2026hierarchical",),
)
