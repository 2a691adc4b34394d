"""Separable multi-index models (arXiv:2603.17896): finding p single directions needs p^beta d samples."""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.multi_index.separable.parameters import SeparableParameters

PRESETS = {
    "quick": Preset(
        "Two, four and eight directions with exponents 1 (he2) and 2 (cosmix); half a minute.",
        "link=he2,cosmix directions=2,4,8 sample_ratio=2.0,4.0,8.0,16.0,32.0,64.0,128.0,256.0",
        replicates=7,
    ),
    "maps": Preset(
        "Label maps that do not use the target against the best one; tanh never finds cosmix; half a "
        "minute.",
        "link=he2,cosmix label_map=tanh,square,optimal "
        "sample_ratio=2.0,4.0,8.0,16.0,32.0,64.0,128.0,256.0",
        replicates=6,
    ),
    "odd": Preset(
        "Links tanh and relu, which show the sum of all directions first; a minute.",
        "link=tanh,relu directions=2,4 dimension=80 label_map=optimal,square "
        "sample_ratio=1.0,2.0,4.0,8.0,16.0,32.0,64.0,128.0,256.0",
        replicates=4,
    ),
    "paper": Preset(
        "Up to sixteen directions in 200 dimensions; a few minutes.",
        "link=he2,cosmix dimension=200 directions=2,4,8,16 "
        "sample_ratio=1.0,2.0,4.0,8.0,16.0,32.0,64.0,128.0,256.0,512.0",
        replicates=8,
    ),
}

system = System(
    name="separable-multi-index",
    title="Sums of equal directions: a threshold that grows as a power of their number",
    version="3",
    parameters=SeparableParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="solvable.models.multi_index.target:draw_teacher",
    axis=Axis(
        "sample_ratio",
        "sample ratio n/d",
        point_name="n/d = {sample_ratio:.4g}, {directions} directions, link {link}, noise {noise:g}, "
        "label map {label_map}",
        words={"link": "{}", "label_map": "{} map", "directions": "p = {}"},
        margin=1.1,
        resolution=40,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("defilippis2026noise", "kovacevic2025spectral"),
)
