"""System `neural-lofi`: low-degree filters on Gaussian inputs (arXiv:2605.13612), with theory."""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.system import Preset, System
from solvable.models.lofi.parameters import NeuralLoFiParameters

PRESETS = {
    "quick": Preset(
        "All three targets against the number of samples; under a minute.",
        "kernel_samples=1200 target=single-index,hidden,subspace "
        "ratio=1.0,1.5,2.0,3.0,5.0,10.0,20.0",
        replicates=8,
    ),
    "channels": Preset(
        "Emergence of the direction for five channels, with raw and mapped labels; about a minute.",
        "channel=square-sign,tail-sign,square,absolute,cosine label_map=raw,tanh "
        "ratio=0.5,1.0,2.0,4.0,8.0,16.0",
        replicates=6,
    ),
    "lift": Preset(
        "Filters of the inputs, and after lifts with three activations; about two minutes.",
        "dimension=200 features=as-published lift=none,tanh,relu,step "
        "ratio=1.0,1.5,2.0,3.0,5.0,8.0",
        replicates=8,
    ),
    "centring": Preset(
        "Samples needed with and without centring of ReLU features; about a minute.",
        "dimension=24 channel=square label_map=tanh lift=relu features=as-published,centred "
        "ratio=2.0,3.0,4.5,7.0,11.0,17.0,27.0,35.0,43.0",
        replicates=12,
    ),
    "paper": Preset(
        "All three targets at twelve sample ratios, subspace up to n = 2,000; about two minutes.",
        "target=single-index,hidden,subspace "
        "ratio=1.0,1.5,2.0,2.5,3.0,4.0,5.0,7.0,10.0,14.0,20.0,33.334",
        replicates=8,
    ),
}


system = System(
    name="neural-lofi",
    title="A label-weighted second moment finds features above threshold sample sizes",
    version="3",
    parameters=NeuralLoFiParameters,
    measure="measure:measure",
    predict="predict:predict",
    chance="predict:chance",
    teacher="target:draw_teacher",
    axis=Axis(
        "ratio",
        "sample ratio n/d",
        ignore=("kernel_samples", "test_samples"),
        point_name=lambda setting: setting.place,
        words={"channel": "{}", "label_map": "{}", "lift": "{} lift", "features": "features {}"},
        margin=1.1,
        resolution=24,
    ),
    claims="claims:CLAIMS",
    panels="figures:PANELS",
    presets=PRESETS,
    references=("dandi2026neural", "lu2020phase"),
)
