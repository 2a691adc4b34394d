"""Compositional targets of any depth (arXiv:2602.10867)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from math import comb
from pathlib import Path
from typing import Literal

import numpy as np

from solvable.arrays import Array, Source, check_integer, check_real, random_stream, to_numpy
from solvable.errors import InvalidParameter, unknown_choice
from solvable.moment_spectrum.quadratic_forms import quadratic_index_variance
from solvable.operators.features import HermiteFeatures
from solvable.teachers.base import CHUNK_ROWS, LatentTarget
from solvable.teachers.first_layer import draw_directions, freeze
from solvable.teachers.persistence import construct, load_teacher, save_teacher, take
from solvable.teachers.random_features import ReluFeatures
from solvable.teachers.readouts import ReadoutFunction


def quadratic_forms(H: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Centred quadratic forms of each row, shape (n, k), computed with O(n p) additional memory."""
    # each form is h^T M_j h - tr M_j
    forms = [np.sum((H @ matrix) * H, axis=1) - np.trace(matrix) for matrix in matrices]
    return np.stack(forms, axis=1)


def _draw_quadratic_layer(width: int, following: int, *key: int | str) -> np.ndarray:
    """Draw symmetric matrices that are orthonormal in the Frobenius product, uniformly distributed."""
    flat = draw_directions(comb(width + 1, 2), following, "orthonormal", *key)
    return freeze(np.asarray(HermiteFeatures(2, width).to_symmetric(flat)))


def _draw_dense_layer(width: int, beta: float, *key: int | str) -> np.ndarray:
    gaussian = random_stream(*key).standard_normal((width, width))
    symmetric = (gaussian + gaussian.T) / 2
    # B = (G + G^T) / 2 scaled to |B|_F = beta / sqrt(p)   (compositional 2)
    return freeze(symmetric * (beta / np.sqrt(width) / np.linalg.norm(symmetric)))


def _draw_diagonal_layer(width: int, beta: float, decay: float, *key: int | str) -> np.ndarray:
    # The scale is as in the authors' code   (compositional 2), which ignores beta for 0 < gamma <= 1/2.
    if decay == 0:
        scale = beta / width
    elif decay <= 0.5:
        scale = width ** (2 * decay - 1.0)
    else:
        scale = beta
    signs = random_stream(*key).choice([-1.0, 1.0], width)
    return freeze(np.diag(scale * signs * np.arange(1, width + 1) ** -float(decay)))


@dataclass(frozen=True)
class CompositionalTarget(LatentTarget):
    r"""Chain of quadratic layers on features of degree q, with a dense or diagonal last layer.

    .. math::
        h^{(1)}_i = \langle A_i, F(x)\rangle,\qquad
        h^{(l+1)}_j = \frac{h^{(l)\top}M^{(l)}_jh^{(l)}-\mathrm{tr}M^{(l)}_j}{\sqrt2},\qquad
        s = h^{(L)\top}Bh^{(L)}-\mathrm{tr}B,\qquad y = \frac{g(s)-\mu}{\sigma},

    with Frobenius-orthonormal :math:`M^{(l)}_j`. Targets of three layers have one representation
    (:math:`L=1`), targets of four layers have two, and so on. Let :math:`p` be the width of the last
    representation. The last layer is either

    * dense: :math:`B=(G+G^\top)/2` scaled to :math:`\|B\|_F=\beta/\sqrt p`;
    * diagonal: :math:`b_i=z_ii^{-\gamma}` times :math:`\beta/p` (:math:`\gamma=0`),
      :math:`p^{2\gamma-1}` (:math:`0<\gamma\le\frac12`) or :math:`\beta` (:math:`\gamma>\frac12`).

    Notes
    -----
    arXiv:2602.10867; Equations 1 and 2 of docs/derivations/compositional.md. Two normalisations differ
    from :class:`HierarchicalTarget` (arXiv:2605.14567). First, s has no factor :math:`1/\sqrt2` and no
    unit variance. Second, labels are standardised, by mean and deviation of the population (a Monte
    Carlo estimate from the seed of the teacher), while the paper uses the training set.
    """

    dimension: int
    r""":math:`d \ge 2`, number of input coordinates."""
    degree: int = 2
    """:math:`q`, degree of the first layer."""
    features: int | tuple[int, ...] | None = None
    """Width of each representation; a single number gives a target of three layers."""
    epsilon: float | tuple[float, ...] | None = None
    r"""Alternative to ``features``: widths :math:`\mathrm{round}(d^{\varepsilon})`."""
    second_layer: Literal["dense", "diagonal"] = "dense"
    """Shape of the last layer B."""
    decay: float = 0.0
    r""":math:`\gamma \ge 0`, exponent of a diagonal B."""
    beta: float = 1.0
    r""":math:`\beta > 0`, scale of the index, which determines how far a nonlinear readout
    saturates."""
    readout: str | ReadoutFunction = "identity"
    r"""Function :math:`g` of the index s. The index has standard deviation :math:`\sqrt2\|B\|_F`."""
    first_layer: Literal["orthonormal", "random", "random-features"] = "orthonormal"
    r"""Hermite features, or random ReLU features without constant and linear parts, mixed so that
    :math:`\mathrm{Cov}(h^{(1)})=I` (degree 2 only)."""
    width: int = 4096
    """Number of random features."""
    seed: int = 0
    """Seed of the teacher."""

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 2)
        check_integer("degree", self.degree, 1, 3)
        check_integer("seed", self.seed, 0)
        check_integer("width", self.width, 1)
        check_real("decay", self.decay, 0.0)
        check_real("beta", self.beta, 0.0)
        for kind, value, allowed in (
            ("second_layer", self.second_layer, ("dense", "diagonal")),
            ("first_layer", self.first_layer, ("orthonormal", "random", "random-features")),
        ):
            if value not in allowed:
                raise InvalidParameter(unknown_choice(kind, value, allowed))
        if self.beta == 0:
            raise InvalidParameter("beta is 0; allowed: a finite number above 0.")
        if (self.features is None) == (self.epsilon is None):
            raise InvalidParameter(
                f"features is {self.features!r} and epsilon is {self.epsilon!r}; exactly one "
                "of them sets the widths. Give features=8, or epsilon=0.5."
            )
        if self.first_layer == "random-features" and self.degree != 2:
            raise InvalidParameter(
                f"degree is {self.degree} with first_layer='random-features'; allowed: 2, as a "
                "ReLU without its linear part starts at degree 2 and has no degree 3."
            )
        self._check_widths()
        _ = self.readout_function

    def _check_widths(self) -> None:
        available = self.n_features_total
        if self.first_layer == "random-features":
            available = min(available, self.width)
        for layer, width in enumerate(self.widths, start=1):
            check_integer(f"features of layer {layer}", width, 1)
            if width > available:
                raise InvalidParameter(
                    f"layer {layer} has {width} features, more than the {available} coordinates of the "
                    f"layer below; allowed: 1 to {available}. Lower features or epsilon."
                )
            available = comb(width + 1, 2)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Width of each representation, from the input to the index."""
        if self.features is not None:
            given = tuple(np.atleast_1d(np.asarray(self.features, dtype=object)).tolist())
        else:
            exponents = np.atleast_1d(np.asarray(self.epsilon, dtype=object)).tolist()
            for value in exponents:
                check_real("epsilon", value, 0.0)
            given = tuple(round(self.dimension ** float(value)) for value in exponents)
        if not given:
            raise InvalidParameter(
                "there are no representations; give at least one width, for example features=8."
            )
        return given

    @property
    def layers(self) -> int:
        """Number of layers: the representations, the last quadratic layer, and the readout."""
        return len(self.widths) + 2

    @property
    def n_features_total(self) -> int:
        r""":math:`D=\binom{d+q-1}{q}`, number of features of the input."""
        return comb(self.dimension + self.degree - 1, self.degree)

    @property
    def input_columns(self) -> int:
        """Number of columns of X."""
        return self.dimension

    @cached_property
    def feature_map(self) -> HermiteFeatures:
        """Hermite features of the input, which define the coordinates of :attr:`directions`."""
        return HermiteFeatures(self.degree, self.dimension)

    @cached_property
    def random_features(self) -> ReluFeatures:
        """Random ReLU features, for ``first_layer="random-features"``."""
        return ReluFeatures(self.dimension, self.width, self.seed)

    @cached_property
    def first_layer_columns(self) -> np.ndarray:
        """Columns :math:`A_i`, shape (D or width, p), in coordinates of the Hermite or ReLU features."""
        key = (self.seed, "teacher", "first layer")
        if self.first_layer == "random-features":
            drawn = draw_directions(self.width, self.widths[0], "orthonormal", *key)
            return self.random_features.whiten(drawn)
        return draw_directions(self.n_features_total, self.widths[0], self.first_layer, *key)

    @cached_property
    def directions(self) -> np.ndarray:
        """Columns :math:`A_i`, shape (D, p), in coordinates of the Hermite features."""
        if self.first_layer == "random-features":
            # Only the degree-2 component is returned. Its squared norm is the fraction of the latent
            # feature's variance that Hermite features of degree 2 can express.
            return freeze(self.random_features.hermite_directions(self.first_layer_columns))
        return self.first_layer_columns

    @cached_property
    def hidden_layers(self) -> tuple[np.ndarray, ...]:
        """Symmetric matrices of each hidden quadratic layer, each of shape (next width, width, width)."""
        steps = enumerate(zip(self.widths[:-1], self.widths[1:], strict=True), start=2)
        return tuple(
            _draw_quadratic_layer(width, following, self.seed, "teacher", "layer", layer)
            for layer, (width, following) in steps
        )

    @cached_property
    def matrix(self) -> np.ndarray:
        """Symmetric matrix B of the last quadratic layer, shape (p, p), read-only."""
        key = (self.seed, "teacher", "last layer")
        if self.second_layer == "dense":
            return _draw_dense_layer(self.widths[-1], self.beta, *key)
        return _draw_diagonal_layer(self.widths[-1], self.beta, self.decay, *key)

    @cached_property
    def label_standardisation(self) -> tuple[float, float]:
        r"""Mean :math:`\mu` and standard deviation :math:`\sigma` of :math:`g(s)`.

        Both are exact for targets of three layers of degree 1 or 2 with the identity readout. For other
        targets they are estimated from 100,000 draws.
        """
        simple = len(self.widths) == 1 and self.degree <= 2 and self.readout == "identity"
        if simple and self.first_layer != "random-features":
            return self._exact_standardisation()
        latent = self.draw_latent(100_000, random_stream(self.seed, "standardise"))
        values = self.readout_function(self._index_of(latent))
        return float(values.mean()), float(values.std())

    def _exact_standardisation(self) -> tuple[float, float]:
        """Mean and standard deviation of the index of a target of three layers."""
        # s = sum_k b_k (u_k² - 1) with u_k = <A v_k, F>   (compositional 3), and E[u_k²] = |A v_k|².
        b, vectors = np.linalg.eigh(self.matrix)
        rotated = self.directions @ vectors
        mean = b @ (np.sum(rotated**2, axis=0) - 1)
        if self.degree == 1:
            half = b @ (rotated.T @ rotated) ** 2 @ b
        else:
            half = quadratic_index_variance(np.asarray(self.feature_map.to_symmetric(rotated)), b)
        return float(mean), float(np.sqrt(2 * half))

    def label(self, index: np.ndarray) -> np.ndarray:
        """Return the standardised labels for an array of index values, float64."""
        # label y = (g(s) - mu) / sigma   (compositional 1)
        mean, scale = self.label_standardisation
        return (self.readout_function(index) - mean) / scale

    def latent(self, X: Array | Source, layer: int | None = None) -> np.ndarray:
        """Return the samples' representation at a layer, counted from 1; by default the last layer."""
        depth = len(self.widths) if layer is None else layer
        check_integer("layer", depth, 1, len(self.widths))
        source = self._checked(X)
        blocks = [
            self._representation(to_numpy(block), depth) for _, block in source.chunks(CHUNK_ROWS)
        ]
        return np.concatenate(blocks)

    def _representation(self, block: np.ndarray, depth: int) -> np.ndarray:
        columns = self.first_layer_columns.astype(block.dtype, copy=False)
        if self.first_layer == "random-features":
            representation = self.random_features.transform(block) @ columns
        else:
            representation = self.feature_map.project(block, columns)
        return self.upper_representation(np.asarray(representation, dtype=np.float64), depth)

    def upper_representation(self, first: np.ndarray, depth: int) -> np.ndarray:
        """Return the representation at a layer, counted from 1, for given first representations."""
        for matrices in self.hidden_layers[: depth - 1]:
            first = quadratic_forms(first, matrices) / np.sqrt(2)
        return first

    def _latent_block(self, block: np.ndarray) -> np.ndarray:
        return self._representation(block, len(self.widths))

    def _index_of(self, latent: np.ndarray) -> np.ndarray:
        return quadratic_forms(latent, self.matrix[None])[:, 0]

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the teacher with its standardisation to a ``.npz`` file without pickle."""
        arrays: dict[str, np.ndarray] = {
            "first_layer_columns": self.first_layer_columns,
            "matrix": self.matrix,
            "label_standardisation": np.array(self.label_standardisation),
        }
        arrays |= {f"layer_{k}": layer for k, layer in enumerate(self.hidden_layers, start=2)}
        if self.first_layer == "random-features":
            arrays["random_rows"] = self.random_features.rows
        return save_teacher(path, type(self).__name__, asdict(self), arrays, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> CompositionalTarget:
        """Read a saved teacher with its arrays, without drawing them again."""
        parameters, arrays = load_teacher(path, cls.__name__)
        for name in ("features", "epsilon"):
            if isinstance(parameters.get(name), list):
                parameters[name] = tuple(parameters[name])
        target = construct(path, cls, parameters)
        p, coordinates = target.widths, target.n_features_total
        if target.first_layer == "random-features":
            coordinates = target.width
            rows = take(path, arrays, "random_rows", (target.width, target.dimension))
            target.random_features.__dict__["rows"] = rows
        stored = target.__dict__
        stored["first_layer_columns"] = take(
            path, arrays, "first_layer_columns", (coordinates, p[0])
        )
        stored["matrix"] = take(path, arrays, "matrix", (p[-1], p[-1]))
        stored["hidden_layers"] = tuple(
            take(path, arrays, f"layer_{k}", (p[k - 1], p[k - 2], p[k - 2]))
            for k in range(2, len(p) + 1)
        )
        mean, scale = take(path, arrays, "label_standardisation", (2,)).tolist()
        stored["label_standardisation"] = (mean, scale)
        return target
