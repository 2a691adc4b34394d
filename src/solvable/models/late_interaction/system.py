"""Late interaction (arXiv:2602.16609): a solvable teacher, a spectral estimator, phases of training."""

from __future__ import annotations

from solvable.frame.system import Preset, System
from solvable.models.late_interaction.parameters import AXIS, LateInteractionParameters

PRESETS = {
    "quick": Preset(
        "Overlaps of the spectral estimator, and all pipelines, at d = 30; under a minute.",
        "pipeline=none,dense,a,b,c queries=250,1000,4000",
        replicates=8,
    ),
    "labels": Preset(
        "Overlaps for the four kinds of labels against queries, d = 40, strengths 1/k; a minute.",
        "dimension=40 rank=4 decay=1.0 label=scores,top-1,random-negative,runner-up "
        "queries=100,300,1000,3000,10000",
        replicates=8,
    ),
    "lengths": Preset(
        "Documents of 4 to 64 tokens: pooled fraction and overlaps; a minute.",
        "document_tokens=4,8,16,32,64 queries=300,1000",
        replicates=8,
    ),
    "pipelines": Preset(
        "Pipelines against queries of the first phase, up to 16,000; about three minutes.",
        "pipeline=dense,a,b,c queries=500,1000,2000,4000,8000,16000",
        replicates=8,
    ),
    "paper-like": Preset(
        "Phases of 16,000, 200 and 50 queries, close to the ratios of the paper; about four minutes.",
        "queries=16000 supervised_queries=200 distillation_queries=50 pipeline=dense,a,b,c",
        replicates=40,
    ),
}


system = System(
    name="late-interaction",
    title="Late interaction: pooled vectors learn the kernel but cannot rank",
    version="1",
    parameters=LateInteractionParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="measure:teacher",
    axis=AXIS,
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("chaffin2026colbertzero",),
)
