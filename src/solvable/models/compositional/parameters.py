"""Parameters of the system `compositional-target`."""

from __future__ import annotations

from math import comb
from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.curves import Axis
from solvable.frame.parameters import Parameters


class CompositionalParameters(Parameters):
    """Parameters of a compositional target."""

    dimension: int = Field(40, ge=2, le=20_000)
    """Number d of input coordinates."""
    degree: int = Field(2, ge=1, le=3)
    """Degree q of the first representation as a polynomial in the input."""
    layers: int = Field(3, ge=3, le=8)
    """Number of layers: one or more representations, the last quadratic layer, and the readout."""
    features: int = Field(0, ge=0, le=10_000)
    """Width p of the first representation; 0 for the rounded value of d^epsilon."""
    epsilon: float = Field(0.5, ge=0, le=3)
    """Exponent epsilon of the width if features is 0."""
    inner_features: int = Field(1, ge=1, le=1_000)
    """Width of the last representation, for four or more layers; widths between are powers of d."""
    second_layer: Literal["dense", "diagonal"] = "dense"
    """Last quadratic layer B: dense with Gaussian entries, or diagonal with a power law."""
    decay: float = Field(0.4, ge=0, le=10)
    """Exponent gamma of a diagonal last layer, b_i ~ i^-gamma with random signs."""
    beta: float = Field(1.0, ge=1e-100, le=100)
    """Scale of the last layer, which sets the saturation of a nonlinear readout."""
    readout: Literal["identity", "tanh"] = "identity"
    """Readout g of the label: y is the standardised value of g(s) for the index s."""
    first_layer: Literal["orthonormal", "random", "random-features", "gaussian"] = "orthonormal"
    """First layer: orthonormal or random Gaussian directions in Hermite features, random ReLU features,
    or orthonormal directions in independent Gaussian features (the limit of large d)."""
    width: int = Field(4096, ge=1, le=100_000)
    """Number of random ReLU features, for first_layer=random-features."""
    teacher: int = Field(0, ge=0, le=10**9)
    """Seed of the layers above the first; all replicates share these layers."""
    samples: int = Field(26_240, ge=4, le=10**9)
    """Number n of samples of the first spectral step; later steps use further rows."""
    learner: Literal["spectral", "neural-lofi", "gradient-descent"] = "spectral"
    """Learner: spectral steps on Hermite features, a Neural LoFi network whose lifts are squares, or
    gradient descent on a two-layer ReLU network for features of degree 1."""
    label_map: Literal["identity", "tanh", "clip"] = "tanh"
    """Function applied to the standardised labels that weight the moment operator."""
    correction: Literal["none", "wick"] = "wick"
    """`wick` keeps only the highest-degree part of the moment operators; `none` keeps all degrees."""
    test_samples: int = Field(5_000, ge=2, le=10**7)
    """Number of fresh samples for the test error."""
    kernel_samples: int = Field(0, ge=0, le=30_000)
    """Largest n at which kernels are fitted (RBF kernel: up to half of this n); 0: never."""
    kernel_dimension: int = Field(40, ge=2, le=10**9)
    """Smallest d at which kernels are fitted; in smaller dimensions kernels learn degree 4 as well."""

    @model_validator(mode="after")
    def _check(self) -> CompositionalParameters:
        if self.learner == "neural-lofi":
            self._check_network()
        if self.learner == "gradient-descent" and (
            self.degree != 1 or self.samples * self.dimension > 10**7
        ):
            raise ValueError(
                f"learner is 'gradient-descent' with degree = {self.degree}, samples = {self.samples} "
                f"and dimension = {self.dimension}; allowed: degree 1, and at most 1e7 numbers in the "
                "inputs, which are in memory"
            )
        available, name = self.n_features_total, "features"
        if self.first_layer == "random-features":
            if self.degree != 2:
                raise ValueError(
                    f"degree is {self.degree} and first_layer is 'random-features'; allowed: 2, as "
                    "a ReLU without its linear part starts at degree 2 and has no degree 3"
                )
            available = min(available, self.width)
        for layer, width in enumerate(self.widths, start=1):
            if not 1 <= width <= available:
                raise ValueError(
                    f"{name} is {width}, more than the {available} coordinates of the layer below; "
                    f"allowed: 1 to {available}"
                )
            last = layer + 1 == len(self.widths)
            name = "inner_features" if last else "a width between features and inner_features"
            available = comb(width + 1, 2)
        return self

    def _check_network(self) -> None:
        if self.degree != 2 or self.samples > 5_000 or self.first_layer == "gaussian":
            raise ValueError(
                f"learner is 'neural-lofi' with degree = {self.degree}, samples = {self.samples} and "
                f"first_layer = '{self.first_layer}'; allowed: degree 2, up to 5000 samples, which its "
                "kernel holds in memory, and a first layer that acts on x"
            )

    @property
    def widths(self) -> tuple[int, ...]:
        """Width of each representation."""
        first, last, steps = self.features, self.inner_features, self.layers - 3
        first = first or round(self.dimension**self.epsilon)
        # The exponents epsilon_l of the widths d^epsilon_l fall linearly to the last one.
        between = [round(first * (last / first) ** (k / steps)) for k in range(1, steps)]
        return (first, *between, last)[: steps + 1]

    @property
    def n_features_total(self) -> int:
        """Number D of Hermite features."""
        return comb(self.dimension + self.degree - 1, self.degree)

    @property
    def equivalent(self) -> CompositionalParameters:
        """The setting itself; for Gaussian features a target of degree 1 in D inputs, which has them."""
        if self.first_layer != "gaussian":
            return self
        return self.model_copy(
            update={
                "dimension": self.n_features_total,
                "degree": 1,
                "features": self.widths[0],
                "first_layer": "orthonormal",
                "correction": "none",
                "kernel_samples": 0,
            }
        )

    @property
    def label_degree(self) -> int:
        """Degree of the index as a polynomial in the input: 2q, 4q, and so on."""
        return 2 ** (self.layers - 2) * self.degree

    @property
    def ratio(self) -> float:
        """Number of samples per feature, n/D."""
        return self.samples / self.n_features_total

    @property
    def place(self) -> str:
        """Description of a point in a study."""
        text = f"d = {self.dimension}, {self.second_layer} last layer, {self.layers} layers"
        if self.learner != "spectral":
            text += ", Neural LoFi"
        if self.first_layer != "orthonormal":
            text += f", first layer {self.first_layer}"
        return f"{text}, n/D = {self.ratio:.3g}"


AXIS = Axis(
    "samples",
    "samples n",
    ignore=("kernel_samples",),
    point_name=lambda setting: setting.place,
    words={
        "dimension": "d = {}",
        "second_layer": "{}",
        "first_layer": "first layer {}",
        "learner": "{}",
    },
    resolution=24,
)
