"""The system `compositional-target`: a chain of quadratic layers, learned layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from solvable.frame.claims import Claim
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Parameters, Preset, Reference, System
from solvable.models.compositional.claims import CLAIMS
from solvable.models.compositional.figures import draw_figures
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.plots.figure import Figure

COMPOSITIONAL = Reference(
    key="tabanelli2026deep",
    bibtex="""@article{tabanelli2026deep,
  title   = {Deep Learning of Compositional Targets with Hierarchical Spectral Methods},
  author  = {Tabanelli, Hugo and Dandi, Yatin and Pesce, Luca and Krzakala, Florent},
  journal = {arXiv preprint arXiv:2602.10867},
  year    = {2026}
}""",
)


PRESETS = {
    "quick": Preset(
        "d = 20, 28 and 40 with d^0.4 features, dense and diagonal last layer; under a minute.",
        {
            "dimension": (20, 28, 40),
            "epsilon": (0.4,),
            "second_layer": ("dense", "diagonal"),
            "teacher": (6,),
            "samples": (4_100, 8_200, 16_400, 32_800, 65_600),
            "kernel_samples": (8_200,),
        },
        replicates=3,
    ),
    "four-layers": Preset(
        "d = 40, four layers of widths 40, 4, 1: the first representation before the second; about "
        "two minutes.",
        {
            "dimension": (40,),
            "layers": (4,),
            "features": (4,),
            "samples": tuple(round(3_280 * 2 ** (k / 2)) for k in range(13)),
        },
        replicates=4,
    ),
    "scaling": Preset(
        "Recovery against the dimension, d = 16 to 64 at epsilon = 1/2; about five minutes.",
        {
            "dimension": (16, 24, 36, 49, 64),
            "second_layer": ("dense", "diagonal"),
            "teacher": (6,),
            "samples": tuple(round(1_000 * 2 ** (k / 2)) for k in range(16)),
        },
        replicates=4,
    ),
    "paper": Preset(
        "d = 120, 11 features, tanh readout, dense and diagonal, up to 1.7 million samples; "
        "about half an hour on two cores.",
        {
            "dimension": (120,),
            "second_layer": ("dense", "diagonal"),
            "readout": ("tanh",),
            "samples": (60_550, 97_732, 157_744, 254_608, 410_950, 663_296, 1_070_596, 1_728_000),
        },
        replicates=2,
    ),
}


class CompositionalSystem(System):
    """Compositional targets of three and four layers (arXiv:2602.10867), with finite-size theory."""

    name: ClassVar[str] = "compositional-target"
    title: ClassVar[str] = "A chain of quadratic layers is learned at the price of its first one"
    version: ClassVar[str] = "1"
    references: ClassVar[tuple[Reference, ...]] = (COMPOSITIONAL,)
    parameters: ClassVar[type[Parameters]] = CompositionalParameters
    presets: ClassVar[Mapping[str, Preset]] = PRESETS
    claims: ClassVar[tuple[Claim, ...]] = CLAIMS

    def measure(self, parameters: CompositionalParameters, rng: np.random.Generator) -> Metrics:
        """Draw a target and samples, fit the layer-wise learner, and score every layer."""
        from solvable.models.compositional import measure as compositional_experiment

        return compositional_experiment.measure(parameters, rng)

    def predict(self, parameters: CompositionalParameters) -> Metrics:
        """Predict the same metrics from the finite-size theory."""
        from solvable.models.compositional.predict import predict

        return predict(parameters)

    def teacher(
        self, parameters: CompositionalParameters, rng: np.random.Generator
    ) -> Mapping[str, np.ndarray]:
        """Layers of the target that :meth:`measure` draws first."""
        from solvable.models.compositional.upper_layers import draw_target

        target = draw_target(parameters, rng)
        arrays = {"directions": target.directions, "matrix": target.matrix}
        return arrays | {f"layer_{k}": one for k, one in enumerate(target.hidden_layers, start=2)}

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Overlaps, error and last layer against n, theory and measurement on the same axes."""
        return draw_figures(points)


system = CompositionalSystem()
