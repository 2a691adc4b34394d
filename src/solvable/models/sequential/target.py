"""The hierarchical target of sequential feature recovery (arXiv:2605.14567)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from math import comb
from pathlib import Path
from typing import Any, Literal

import numpy as np

from solvable.arrays import check_integer, check_real, random_stream
from solvable.errors import InvalidParameter, unknown_choice
from solvable.models.sequential.parameters import SequentialParameters
from solvable.moment_spectrum.quadratic_forms import degree_two_energy, quadratic_index_variance
from solvable.operators.features import HermiteFeatures
from solvable.teachers.base import LatentTarget
from solvable.teachers.first_layer import FIRST_LAYERS, draw_directions, freeze
from solvable.teachers.persistence import construct, load_teacher, save_teacher, take
from solvable.teachers.readouts import ReadoutFunction

MEMORY_BYTES = 1.5e9
"""Size in bytes above which the samples are not stored but regenerated from their seed in each pass."""

INPUTS = ("hermite", "gaussian")
"""Kinds of inputs: true Hermite features, or Gaussian features of the same covariance."""

SIGNS = ("random", "alternating", "positive")
"""Choices for the signs of the second-layer weights."""


def random_signs(features: int, seed: int) -> tuple[int, ...]:
    """Random signs drawn from a seed; the first k signs are the same for every number of features."""
    check_integer("features", features, 1)
    check_integer("seed", seed, 0)
    drawn = random_stream(seed, "teacher", "signs").choice([-1.0, 1.0], features)
    return tuple(int(sign) for sign in drawn)


@dataclass(frozen=True)
class HierarchicalTarget(LatentTarget):
    r"""Features of degree q, a diagonal quadratic second layer, and a scalar readout.

    .. math::
        h_i = \langle A_i, F(x)\rangle,\qquad
        h^{(2)} = \frac1{\sqrt2}\sum_{i=1}^{p}\lambda_i(h_i^2-1),\qquad y = g(h^{(2)}),

    with :math:`x\sim N(0, I_d)`, :math:`F(x)\in\mathbb R^D` the orthonormal Hermite features of
    degree q (:math:`E[FF^\top]=I_D`, :math:`D=\binom{d+q-1}{q}`), and
    :math:`\lambda_i = Z_\gamma z_i i^{-\gamma}`, :math:`\sum_i\lambda_i^2=1`.

    arXiv:2605.14567, Equations 2.1 to 2.5 (sequential 1 in docs/derivations). Var(h^(2)) is 1 only up
    to O(1/d), see :attr:`index_variance`.

    Examples
    --------
    >>> target = HierarchicalTarget(dimension=10, features=3, signs="alternating")
    >>> target.n_features_total, target.weights.round(3)
    (55, array([ 0.857, -0.429,  0.286]))
    >>> X, y = target.sample(1000, random_stream(0))
    >>> X.shape, y.shape, target.latent(X).shape
    ((1000, 10), (1000,), (1000, 3))
    """

    dimension: int
    r""":math:`d \ge 2`, number of input coordinates."""
    degree: int = 2
    """:math:`q`, degree of the features; the label has leading degree 2q."""
    features: int = 8
    """:math:`p`, number of latent features, from 1 to D."""
    decay: float = 1.0
    r""":math:`\gamma \ge 0`, exponent of the weights."""
    inputs: Literal["hermite", "gaussian"] = "hermite"
    r"""``"gaussian"`` replaces F(x) by :math:`Z\sim N(0,I_D)`: X then has D columns and the learner has
    degree 1. This is the limit of large d."""
    readout: str | ReadoutFunction = "identity"
    r""":math:`g`; its mean under N(0, 1) is removed. Must have :math:`E[g'(z)]\ne0`."""
    signs: Literal["random", "alternating", "positive"] | tuple[int, ...] = "random"
    """:math:`z_i`: Rademacher signs of the seed (:func:`random_signs`), +-+-..., all +1, or a tuple
    with +1 or -1 for each feature."""
    first_layer: Literal["orthonormal", "random"] = "orthonormal"
    """Orthonormal :math:`A_i` (as in the authors' code), or independent Gaussian entries of variance
    1/D (as in the paper's text)."""
    label_noise: float = 0.0
    """Standard deviation of the Gaussian noise that is added to sampled labels."""
    seed: int = 0
    """Seed of the teacher; the stream is ``random_stream(seed, "teacher", ...)``."""

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 2)
        check_integer("degree", self.degree, 1, 3)
        check_integer("features", self.features, 1)
        check_integer("seed", self.seed, 0)
        check_real("decay", self.decay, 0.0)
        check_real("label_noise", self.label_noise, 0.0)
        for kind, value, allowed in (
            ("inputs", self.inputs, INPUTS),
            ("first_layer", self.first_layer, FIRST_LAYERS),
        ):
            if value not in allowed:
                raise InvalidParameter(unknown_choice(kind, value, allowed))
        if self.features > self.n_features_total:
            raise InvalidParameter(
                f"features is {self.features}, more than the D = {self.n_features_total} features "
                f"of degree {self.degree} in dimension {self.dimension}; allowed: 1 to "
                f"{self.n_features_total}. Lower features or raise the dimension."
            )
        self._check_signs()
        # The readout is evaluated here, so that a degenerate readout raises an error on construction.
        _ = self.readout_function

    def _check_signs(self) -> None:
        if isinstance(self.signs, str):
            if self.signs not in SIGNS:
                raise InvalidParameter(unknown_choice("signs", self.signs, SIGNS))
            return
        pattern = np.asarray(self.signs, dtype=object)
        if pattern.shape != (self.features,) or not np.isin(pattern, (-1, 1)).all():
            raise InvalidParameter(
                f"signs is {self.signs}; allowed: {', '.join(SIGNS)}, or one +1 or -1 for each of "
                f"the {self.features} features."
            )
        # Signs read from a file are a list.
        object.__setattr__(self, "signs", tuple(int(sign) for sign in pattern))

    @property
    def n_features_total(self) -> int:
        r""":math:`D=\binom{d+q-1}{q}`, number of features of the input."""
        return comb(self.dimension + self.degree - 1, self.degree)

    @property
    def input_columns(self) -> int:
        """Number of columns of X: d, or D in the Gaussian-equivalent mode."""
        return self.dimension if self.inputs == "hermite" else self.n_features_total

    @cached_property
    def feature_map(self) -> HermiteFeatures:
        """The map from X to the D features; the identity in the Gaussian-equivalent mode."""
        if self.inputs == "gaussian":
            return HermiteFeatures(1, self.n_features_total)
        return HermiteFeatures(self.degree, self.dimension)

    @cached_property
    def weights(self) -> np.ndarray:
        r""":math:`\lambda_i`, shape (p,): signed, descending modulus, :math:`\sum\lambda_i^2=1`."""
        rank = np.arange(1, self.features + 1)
        modulus = rank ** -float(self.decay)
        signs = np.ones(self.features)
        if not isinstance(self.signs, str):
            signs[:] = self.signs
        elif self.signs == "alternating":
            signs[1::2] = -1.0
        elif self.signs == "random":
            signs[:] = random_signs(self.features, self.seed)
        return freeze(signs * modulus / np.linalg.norm(modulus))

    @cached_property
    def directions(self) -> np.ndarray:
        """Columns :math:`A_i`, shape (D, p), in the flattened coordinates of the feature map."""
        key = (self.seed, "teacher", "first layer")
        return draw_directions(self.n_features_total, self.features, self.first_layer, *key)

    @cached_property
    def gram(self) -> np.ndarray:
        r""":math:`A^\top A`, shape (p, p), the covariance of the latent features."""
        return freeze(self.directions.T @ self.directions)

    def symmetric_matrices(self) -> np.ndarray:
        r"""Matrices :math:`M_i`, shape (p, d, d), of true Hermite features of degree 2."""
        if self.inputs != "hermite" or self.degree != 2:
            raise InvalidParameter(
                f"inputs is {self.inputs!r} and degree is {self.degree}; symmetric matrices "
                "exist for inputs='hermite' and degree=2 only."
            )
        # The matrices M_i satisfy h_i = (x^T M_i x - tr M_i) / sqrt(2).
        return np.asarray(self.feature_map.to_symmetric(self.directions))

    def _latent_block(self, block: np.ndarray) -> np.ndarray:
        directions = self.directions.astype(block.dtype, copy=False)
        return np.asarray(self.feature_map.project(block, directions), dtype=np.float64)

    def _index_of(self, latent: np.ndarray) -> np.ndarray:
        # The index is h2 = (1 / sqrt(2)) sum_i lambda_i (h_i² - 1)   (sequential 1; arXiv:2605.14567,
        # Equations 2.1 to 2.5).
        return np.asarray((latent**2 - 1) @ self.weights / np.sqrt(2))

    @property
    def _features_are_gaussian(self) -> bool:
        return self.inputs == "gaussian" or self.degree == 1

    @cached_property
    def index_variance(self) -> float:
        r""":math:`\mathrm{Var}(h^{(2)})`: exact for degrees 1 and 2, Monte Carlo for degree 3."""
        if self._features_are_gaussian:
            # The variance is sum_ij lambda_i lambda_j <A_i, A_j>², which is 1 for orthonormal directions.
            return float(self.weights @ self.gram**2 @ self.weights)
        if self.degree == 2:
            return quadratic_index_variance(self.symmetric_matrices(), self.weights)
        draws = 200_000  # gives the variance for cubic features to about 1 %
        latent = self.draw_latent(draws, random_stream(self.seed, "index variance"))
        return float(self._index_of(latent).var())

    @cached_property
    def label_variance(self) -> float:
        """Variance of the label at finite d; a Monte Carlo estimate for a nonlinear readout."""
        identity = self.readout == "identity"
        signal = self.index_variance if identity else self.label_moments()[1]
        return signal + self.label_noise**2

    @property
    def degree_two_energy(self) -> float:
        r"""Energy of the index in Hermite degree 2, :math:`4\|\sum_i\lambda_iM_i^2\|_F^2`."""
        return degree_two_energy(self.symmetric_matrices(), self.weights)

    def draw_latent(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Latent features of ``n`` fresh samples, shape (n, p); Gaussian features cost O(n p)."""
        if self._features_are_gaussian:
            return rng.standard_normal((n, self.features)) @ np.linalg.cholesky(self.gram).T
        return super().draw_latent(n, rng)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the teacher to a ``.npz`` file without pickle; the readout must be given by name."""
        arrays = {"weights": self.weights, "directions": self.directions}
        return save_teacher(path, type(self).__name__, asdict(self), arrays, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> HierarchicalTarget:
        """Read a saved teacher with its arrays, without drawing them again."""
        parameters, arrays = load_teacher(path, cls.__name__)
        target = construct(path, cls, parameters)
        shape = (target.n_features_total, target.features)
        target.__dict__["directions"] = take(path, arrays, "directions", shape)
        target.__dict__["weights"] = take(path, arrays, "weights", shape[1:])
        return target


def make_target(parameters: SequentialParameters, seed: int) -> HierarchicalTarget:
    """Target for a seed that determines the directions; the weights do not depend on the seed."""
    return HierarchicalTarget(
        dimension=parameters.dimension,
        degree=parameters.degree,
        features=parameters.feature_count,
        decay=parameters.decay,
        inputs=parameters.inputs,
        readout=parameters.readout,
        signs=parameters.sign_pattern(),
        first_layer=parameters.first_layer,
        label_noise=parameters.label_noise,
        seed=seed,
    )


def draw_samples(target: Any, rows: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Draw inputs and labels of a target; many inputs become a source that draws them in each pass."""
    if rows * target.input_columns * 4 > MEMORY_BYTES:
        return target.source(rows, int(rng.integers(2**31)), dtype=np.float32)
    return target.sample(rows, rng, dtype=np.float32)
