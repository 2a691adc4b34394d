"""The system `sequential-recovery`: features of a hierarchical target appear one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from solvable.frame.claims import Claim
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Parameters, Preset, Reference, System
from solvable.models.sequential import measure as sequential_experiment
from solvable.models.sequential.claims import CLAIMS
from solvable.models.sequential.figures import draw_figures
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


class SequentialParameters(Parameters):
    """Parameters of sequential feature recovery."""

    dimension: int = Field(40, ge=2, le=20_000)
    """Number d of input coordinates."""
    degree: int = Field(2, ge=1, le=3)
    """Degree q of the latent features in the input; the label has degree 2q."""
    features: int = Field(6, ge=1, le=10_000)
    """Number of latent features."""
    decay: float = Field(0.4, ge=0, le=10)
    """Exponent gamma of the weights, lambda_i ~ i^-gamma."""
    samples: int = Field(26_240, ge=2, le=10**9)
    """Number n of samples behind the spectral step."""
    inputs: Literal["hermite", "gaussian"] = "hermite"
    """True Hermite features of x, or Gaussian features of the same covariance (the limit)."""
    readout: Literal["identity", "tanh"] = "identity"
    """Readout g of the label y = g(h2)."""
    signs: Literal["random", "alternating", "positive"] = "alternating"
    """Signs of the weights; random ones are drawn once and shared by all replicates."""
    first_layer: Literal["orthonormal", "random"] = "orthonormal"
    """Directions of the features: orthonormal, or independent Gaussian entries."""
    label_map: Literal["identity", "tanh", "clip"] = "tanh"
    """Map of the standardised label inside the moment operator."""
    correction: Literal["none", "wick"] = "wick"
    """Whether the moment operator keeps the degree-2q part alone; none if there is none."""
    second_layer: Literal["least-squares", "in-sample", "shrinkage"] = "least-squares"
    """How the second layer is fitted: on fresh rows, from the eigenvalues, or from them shrunk."""
    test_samples: int = Field(5_000, ge=2, le=10**7)
    """Number of fresh samples behind the test error."""
    kernel_samples: int = Field(0, ge=0, le=50_000)
    """Largest n with a polynomial kernel beside the learner (RBF: half of it); 0 for never."""
    spectrum_samples: int = Field(0, ge=0)
    """Largest n at which the whole spectrum is stored too (at most 2,000 features); 0 for never."""

    @model_validator(mode="before")
    @classmethod
    def _default_correction(cls, values: Any) -> Any:
        """Correct by default exactly where there is something to correct."""
        if isinstance(values, Mapping) and "correction" not in values:
            plain = values.get("inputs", "hermite") == "gaussian" or values.get("degree", 2) == 1
            return {**values, "correction": "none" if plain else "wick"}
        return values

    @model_validator(mode="after")
    def _check(self) -> SequentialParameters:
        total = self.n_features_total
        if self.features > total:
            raise ValueError(
                f"features is {self.features}, more than the D = {total} features of degree "
                f"{self.degree} in dimension {self.dimension}; allowed: 1 to {total}"
            )
        if self.inputs == "gaussian" and self.correction == "wick":
            raise ValueError(
                "correction is 'wick' and inputs is 'gaussian': Gaussian features have no lower "
                "chaos to subtract; allowed: correction=none"
            )
        return self

    @property
    def n_features_total(self) -> int:
        """Number D of Hermite features."""
        return comb(self.dimension + self.degree - 1, self.degree)


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
        return sequential_experiment.measure(parameters, rng)

    def predict(self, parameters: SequentialParameters) -> Metrics:
        """Predict the same metrics from the finite-size theory."""
        from solvable.models.sequential.predict import predict

        return predict(parameters)

    def teacher(
        self, parameters: SequentialParameters, rng: np.random.Generator
    ) -> Mapping[str, np.ndarray]:
        """Weights and directions of the target that :meth:`measure` draws first."""
        target = sequential_experiment.draw_target(parameters, rng)
        return {"weights": target.weights, "directions": target.directions}

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Overlaps, error and spectrum against n, theory and measurement on the same axes."""
        return draw_figures(points)


system = SequentialRecovery()
