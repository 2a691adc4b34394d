"""The system `neural-lofi`: what the filters of a low-degree network find, and from when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from solvable.frame.claims import Claim
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Parameters, Preset, Reference, System
from solvable.models.lofi.claims import CLAIMS
from solvable.models.lofi.figures import draw_figures
from solvable.models.lofi.parameters import NeuralLoFiParameters
from solvable.plots.figure import Figure

NEURAL_LOFI = Reference(
    key="dandi2026neural",
    bibtex="""@article{dandi2026neural,
  title   = {Deep Learning as Neural Low-Degree Filtering: A Spectral Theory of Hierarchical Feature
             Learning},
  author  = {Dandi, Yatin and Vilucchio, Matteo and Arnaboldi, Luca and Tabanelli, Hugo and
             Krzakala, Florent},
  journal = {arXiv preprint arXiv:2605.13612},
  year    = {2026}
}""",
)

SPECTRAL = Reference(
    key="lu2020phase",
    bibtex="""@article{lu2020phase,
  title   = {Phase transitions of spectral initialization for high-dimensional non-convex estimation},
  author  = {Lu, Yue M. and Li, Gen},
  journal = {Information and Inference},
  volume  = {9},
  number  = {3},
  pages   = {507--541},
  year    = {2020}
}""",
)

PRESETS = {
    "quick": Preset(
        "One direction, a hidden one, and a subspace, against samples; under a minute.",
        {
            "target": ("single-index", "hidden", "subspace"),
            "ratio": (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0),
            "kernel_samples": (1_200,),
        },
        replicates=4,
    ),
    "channels": Preset(
        "Emergence for five channels, raw and mapped labels; about a minute.",
        {
            "channel": ("square-sign", "tail-sign", "square", "absolute", "cosine"),
            "label_map": ("raw", "tanh"),
            "ratio": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
        },
        replicates=4,
    ),
    "lift": Preset(
        "What an infinitely wide lift before the filter changes; about two minutes.",
        {
            "dimension": (200,),
            "lift": ("none", "tanh", "relu", "step"),
            "ratio": (1.0, 1.5, 2.0, 3.0, 5.0, 8.0),
        },
        replicates=4,
    ),
    "paper": Preset(
        "Finer in samples, to n = 2000 for the subspace and its kernels; about ten minutes.",
        {
            "target": ("single-index", "hidden", "subspace"),
            "ratio": (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 14.0, 20.0, 33.334),
        },
        replicates=8,
    ),
}


class NeuralLoFiSystem(System):
    """Filters of low-degree networks on Gaussian inputs (arXiv:2605.13612), with exact theory."""

    name: ClassVar[str] = "neural-lofi"
    title: ClassVar[str] = (
        "A label-weighted second moment finds features from definite sample sizes"
    )
    version: ClassVar[str] = "1"
    references: ClassVar[tuple[Reference, ...]] = (NEURAL_LOFI, SPECTRAL)
    parameters: ClassVar[type[Parameters]] = NeuralLoFiParameters
    presets: ClassVar[Mapping[str, Preset]] = PRESETS
    claims: ClassVar[tuple[Claim, ...]] = CLAIMS

    def measure(self, parameters: NeuralLoFiParameters, rng: np.random.Generator) -> Metrics:
        """Draw a target and samples, filter them, and compare with the true directions."""
        from solvable.models.lofi import measure as neural_lofi_experiment

        return neural_lofi_experiment.measure(parameters, rng)

    def predict(self, parameters: NeuralLoFiParameters) -> Metrics:
        """Predict the same metrics from the theory at this size."""
        from solvable.models.lofi.predict import predict

        return predict(parameters)

    def teacher(
        self, parameters: NeuralLoFiParameters, rng: np.random.Generator
    ) -> Mapping[str, np.ndarray]:
        """Directions of the target that :meth:`measure` draws first."""
        from solvable.models.lofi.target import draw_target

        return {"directions": draw_target(parameters, rng).directions}

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Overlaps, eigenvalues, ranks and errors against n/d, theory beside measurement."""
        return draw_figures(points)


system = NeuralLoFiSystem()
