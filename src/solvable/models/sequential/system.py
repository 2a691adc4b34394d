"""The system `sequential-recovery`: features of a hierarchical target appear one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import ClassVar

import numpy as np

from solvable.frame.claims import Claim
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Parameters, Preset, Reference, System
from solvable.models.sequential.claims import CLAIMS
from solvable.models.sequential.figures import draw_figures
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import predict
from solvable.plots.figure import Figure

SEQUENTIAL = Reference(
    key="wortsman2026scaling",
    bibtex="""@article{wortsman2026scaling,
  title   = {Scaling Laws from Sequential Feature Recovery: A Solvable Hierarchical Model},
  author  = {Wortsman-Zurich and Tabanelli and Dandi and Krzakala and Loureiro},
  journal = {arXiv preprint arXiv:2605.14567},
  year    = {2026}
}""",
)


QUICK_TOTAL = comb(41, 2)
PAPER_SAMPLES = (60_550, 97_732, 157_744, 254_608, 410_950, 663_296, 1_070_596, 1_728_000)

PRESETS = {
    "quick": Preset(
        "d = 40, six features with true Hermite inputs, kernels beside them; under a minute.",
        {
            "dimension": (40,),
            "features": (6,),
            "decay": (0.4,),
            "samples": tuple(ratio * QUICK_TOTAL for ratio in (4, 8, 16, 32, 64, 128)),
            "kernel_samples": (16 * QUICK_TOTAL,),
            "spectrum_samples": (128 * QUICK_TOTAL,),
        },
        replicates=3,
    ),
    "gaussian": Preset(
        "The limit object: 465 Gaussian features, 16 of them hidden, gamma = 1; a few minutes.",
        {
            "dimension": (30,),
            "features": (16,),
            "decay": (1.0,),
            "samples": tuple(ratio * 465 for ratio in (16, 32, 64, 128, 256, 512)),
            "inputs": ("gaussian",),
            "label_map": ("identity",),
            "signs": ("positive",),
            "test_samples": (10_000,),
            "second_layer": ("least-squares", "in-sample", "shrinkage"),
        },
        replicates=5,
    ),
    "exponents": Preset(
        "Threshold exponent and slope of the error: 64 Gaussian features; about ten minutes.",
        {
            "dimension": (30,),
            "features": (64,),
            "decay": (0.75, 1.0),
            "samples": tuple(round(16 * 465 * 2 ** (k / 2)) for k in range(11)),
            "inputs": ("gaussian",),
            "test_samples": (10_000,),
        },
        replicates=4,
    ),
    "corrections": Preset(
        "What the Wick correction buys: d = 40, plain and corrected operator; under a minute.",
        {
            "dimension": (40,),
            "samples": tuple(ratio * QUICK_TOTAL for ratio in (16, 32, 64, 128)),
            "correction": ("none", "wick"),
        },
        replicates=3,
    ),
    "paper": Preset(
        "d = 120, 11 features, tanh readout, up to 1.7 million samples, plain and corrected; "
        "about an hour on two cores.",
        {
            "dimension": (120,),
            "features": (11,),
            "decay": (0.4,),
            "samples": PAPER_SAMPLES,
            "readout": ("tanh",),
            "correction": ("none", "wick"),
        },
        replicates=2,
    ),
}


class SequentialRecovery(System):
    """Sequential feature recovery (arXiv:2605.14567), at any size, with finite-size theory.

    The label is a quadratic form of a few hidden features, themselves quadratic in the input. A
    layer-wise spectral learner finds the features as outliers in the spectrum of one label-weighted
    moment of the data, the strongest first, each at its own sample size. Every curve below is
    predicted from the parameters alone, for this very dimension; nothing is fitted.
    """

    name: ClassVar[str] = "sequential-recovery"
    title: ClassVar[str] = "Hidden features appear one after another as the samples grow"
    version: ClassVar[str] = "1"
    references: ClassVar[tuple[Reference, ...]] = (SEQUENTIAL,)
    parameters: ClassVar[type[Parameters]] = SequentialParameters
    presets: ClassVar[Mapping[str, Preset]] = PRESETS
    claims: ClassVar[tuple[Claim, ...]] = CLAIMS

    def measure(self, parameters: SequentialParameters, rng: np.random.Generator) -> Metrics:
        """Draw a target and samples, fit the layer-wise learner, and score it."""
        # The learner brings scikit-learn, which a prediction does without.
        from solvable.models.sequential.measure import measure

        return measure(parameters, rng)

    def predict(self, parameters: SequentialParameters) -> Metrics:
        """Predict the same metrics from the finite-size theory."""
        return predict(parameters)

    def teacher(
        self, parameters: SequentialParameters, rng: np.random.Generator
    ) -> Mapping[str, np.ndarray]:
        """Weights and directions of the target that :meth:`measure` draws first."""
        from solvable.models.sequential.measure import draw_target

        target = draw_target(parameters, rng)
        return {"weights": target.weights, "directions": target.directions}

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Overlaps, error and spectrum against n, theory and measurement on the same axes."""
        return draw_figures(points)


system = SequentialRecovery()
