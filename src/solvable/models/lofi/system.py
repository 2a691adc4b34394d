"""The system `neural-lofi`: what the filters of a low-degree network find, and from when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from solvable.frame.claims import Claim
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Parameters, Preset, Reference, System
from solvable.models.lofi.claims import CLAIMS
from solvable.models.lofi.figures import draw_figures
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

DIMENSIONS = {"single-index": 400, "hidden": 320, "subspace": 60}
"""Dimension of each target where none is asked for."""


class NeuralLoFiParameters(Parameters):
    """Parameters of a filter on Gaussian inputs."""

    target: Literal["single-index", "hidden", "subspace"] = "single-index"
    """One direction; one direction among strong irrelevant ones; four directions and an error."""
    dimension: int = Field(0, ge=0, le=5_000)
    """Number d of input coordinates; 0 for 400, 320 and 60 by target."""
    ratio: float = Field(5.0, gt=0, le=1_000)
    """Samples per coordinate, n/d."""
    channel: Literal["square-sign", "tail-sign", "sign", "square", "absolute", "cosine"] = (
        "square-sign"
    )
    """Label of one direction s: sign(s^2 - median), sign(s^2 - 90 % quantile), sign(s), s^2 - 1,
    |s|, cos(2 s)."""
    noise: float = Field(0.0, ge=0, le=10)
    """Probability that a two-valued label is flipped, or deviation of noise added to a real one."""
    label_map: Literal["raw", "identity", "tanh", "clip"] = "raw"
    """Weights of the filter: raw labels, or a centred map of standardised ones."""
    lift: Literal["none", "relu", "tanh", "erf", "sigmoid", "gelu", "step"] = "none"
    """Activation of an infinitely wide lift before the filter of a single-index target."""
    nuisance: int = Field(20, ge=1, le=1_000)
    """Strong irrelevant coordinates of a hidden target."""
    nuisance_variance: float = Field(10.0, gt=0, le=1e4)
    """Variance of a strong coordinate; the others have 1."""
    test_samples: int = Field(2_000, ge=2, le=10**6)
    """Fresh samples behind the errors of a subspace target."""
    kernel_samples: int = Field(4_000, ge=0, le=20_000)
    """Largest n at which a subspace target's networks are fitted; beyond, overlaps alone."""

    @model_validator(mode="after")
    def _check(self) -> NeuralLoFiParameters:
        least = {"single-index": 2, "hidden": self.nuisance + 2, "subspace": 8}[self.target]
        if self.n_inputs < least:
            raise ValueError(
                f"dimension is {self.n_inputs}; allowed for the target '{self.target}': at least "
                f"{least}, or 0 for {DIMENSIONS[self.target]}"
            )
        if self.samples < 4:
            raise ValueError(
                f"ratio is {self.ratio:g}, so that there are {self.samples} samples; allowed: at "
                "least 4 samples"
            )
        if self.noise > 0.5 and self.channel in ("square-sign", "tail-sign", "sign"):
            raise ValueError(
                f"noise is {self.noise:g}; allowed for a two-valued label: a probability up to 0.5"
            )
        if self.lift != "none":
            self._check_lift()
        return self

    def _check_lift(self) -> None:
        if self.target != "single-index":
            raise ValueError("lift has a theory for the target 'single-index' alone; set lift=none")
        if self.label_map == "raw" and self.channel not in ("square-sign", "sign"):
            raise ValueError(
                f"labels of the channel '{self.channel}' have a mean, and the theory of a lift needs "
                "none; set label_map=identity"
            )
        if self.samples > 5_000:
            raise ValueError(
                f"a lift makes a kernel of {self.samples} samples squared; allowed: up to 5000 "
                "samples. Lower ratio or dimension"
            )

    @property
    def n_inputs(self) -> int:
        """Number d of input coordinates."""
        return self.dimension or DIMENSIONS[self.target]

    @property
    def samples(self) -> int:
        """Number n of samples."""
        return round(self.ratio * self.n_inputs)


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
        from solvable.models.lofi.measure import draw_target

        return {"directions": draw_target(parameters, rng).directions}

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Overlaps, eigenvalues, ranks and errors against n/d, theory beside measurement."""
        return draw_figures(points)


system = NeuralLoFiSystem()
