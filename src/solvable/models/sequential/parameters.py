"""Parameters of sequential feature recovery."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import Any, Literal

from pydantic import Field, model_validator

from solvable.arrays import random_stream
from solvable.frame.curves import Axis
from solvable.frame.parameters import Parameters


class SequentialParameters(Parameters):
    """Parameters of sequential feature recovery."""

    dimension: int = Field(40, ge=2, le=20_000)
    """Number d of input coordinates."""
    degree: int = Field(2, ge=1, le=3)
    """Degree q of the latent features in the input; the label has degree 2q."""
    features: int = Field(6, ge=0, le=10_000)
    """Number p of latent features; 0 for the rounded value of d^epsilon."""
    epsilon: float = Field(0.5, ge=0, le=3)
    """Exponent epsilon of the number of features if features is 0."""
    decay: float = Field(0.4, ge=0, le=10)
    """Exponent gamma of the weights, lambda_i ~ i^-gamma."""
    samples: int = Field(26_240, ge=2, le=10**9)
    """Number n of samples of the spectral step."""
    inputs: Literal["hermite", "gaussian"] = "hermite"
    """True Hermite features of x, or Gaussian features of the same covariance (limit of large d)."""
    readout: Literal["identity", "tanh"] = "identity"
    """Function g in the label y = g(h2), where h2 is the quadratic form of the latent features."""
    label_noise: float = Field(0.0, ge=0, le=100)
    """Standard deviation of Gaussian noise on all labels; labels without noise have variance near 1."""
    signs: Literal["random", "alternating", "positive"] = "alternating"
    """Signs of the weights; random signs are drawn once and shared by all replicates."""
    first_layer: Literal["orthonormal", "random"] = "orthonormal"
    """Directions of the features: orthonormal, or independent Gaussian entries."""
    label_map: Literal["identity", "tanh", "clip"] = "tanh"
    """Function applied to the standardised labels that weight the moment operator."""
    correction: Literal["none", "wick"] = "wick"
    """`wick` keeps only the degree-2q part of the moment operator; `none` keeps all of it."""
    selection: Literal["edges", "modulus"] = "edges"
    """Directions returned: eigenvalues farthest beyond the edges of the bulk, or (published) of largest
    modulus."""
    solver: Literal["lanczos", "power-iteration"] = "lanczos"
    """Solver: Lanczos to convergence, or (published) 15 passes of block power iteration."""
    second_layer: Literal["least-squares", "in-sample", "shrinkage", "kernel-ridge"] = (
        "least-squares"
    )
    """Second layer: fitted on fresh rows, made of the eigenvalues, made of shrunk eigenvalues, or
    replaced by kernel ridge regression on the learned features."""
    test_samples: int = Field(5_000, ge=2, le=10**7)
    """Number of fresh samples for the test error."""
    kernel_samples: int = Field(0, ge=0, le=50_000)
    """Largest n at which kernels are fitted (RBF kernel: up to half of this n); 0: never."""
    spectrum_samples: int = Field(0, ge=0, le=10**9)
    """Largest n at which the whole spectrum is stored (above D = 2,000 an estimate by Lanczos
    quadrature); 0: never."""

    @model_validator(mode="before")
    @classmethod
    def _default_correction(cls, values: Any) -> Any:
        """Set `correction` to wick if it is not given, or to none for Gaussian inputs or degree 1."""
        if isinstance(values, Mapping) and "correction" not in values:
            plain = values.get("inputs", "hermite") == "gaussian" or values.get("degree", 2) == 1
            return {**values, "correction": "none" if plain else "wick"}
        return values

    @model_validator(mode="after")
    def _check(self) -> SequentialParameters:
        total = self.n_features_total
        if self.feature_count > total:
            raise ValueError(
                f"features is {self.feature_count}, more than the D = {total} features of degree "
                f"{self.degree} in dimension {self.dimension}; allowed: 1 to {total}"
            )
        if self.inputs == "gaussian" and self.correction == "wick":
            raise ValueError(
                "correction is 'wick' and inputs is 'gaussian': Gaussian features have no lower "
                "chaos to subtract; allowed: correction=none"
            )
        return self

    @property
    def feature_count(self) -> int:
        """Number p of latent features."""
        return self.features or round(self.dimension**self.epsilon)

    @property
    def n_features_total(self) -> int:
        """Number D of Hermite features."""
        return comb(self.dimension + self.degree - 1, self.degree)

    @property
    def samples_per_feature(self) -> float:
        """Number of samples per feature, n/D."""
        return self.samples / self.n_features_total

    @property
    def rounding_width(self) -> float:
        """Width D^(-1/3) over which finite size rounds a transition, in units of the threshold."""
        return float(self.n_features_total ** (-1 / 3))

    @property
    def skewed(self) -> bool:
        """Return True if the operator contains the skewed population bulk (Hermite, uncorrected)."""
        return self.inputs == "hermite" and self.degree > 1 and self.correction == "none"

    def sign_pattern(self) -> tuple[int, ...]:
        """Signs of the weights, the same in all replicates so that features can be averaged."""
        if self.signs == "positive":
            return (1,) * self.feature_count
        if self.signs == "alternating":
            return tuple(1 - 2 * (rank % 2) for rank in range(self.feature_count))
        stream = random_stream("sequential-recovery", "signs", self.feature_count)
        return tuple(int(sign) for sign in stream.choice((-1, 1), self.feature_count))


AXIS = Axis(
    "samples",
    "samples n",
    ignore=("kernel_samples", "spectrum_samples"),
    point_name=lambda setting: f"n/D = {setting.samples_per_feature:.3g}",
    margin=1.5,
    resolution=48,
)
"""Axis of the curves: the number of samples."""
