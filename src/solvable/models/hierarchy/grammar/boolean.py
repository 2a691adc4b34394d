"""The deep quadratic Boolean target: products of products, found pair by pair from the inputs up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr

from solvable.arrays import check_integer, random_stream, to_numpy
from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.models.hierarchy.derivations import stream_of
from solvable.models.hierarchy.grammar.sizes import check_number
from solvable.teachers.first_layer import freeze

LARGEST_DIMENSION = 2**20
"""Largest number of inputs of a target; the supports of all levels have up to 20 times as many."""


@dataclass(frozen=True)
class DeepQuadraticBoolean:
    r"""Sum of signed products of d signs: pairs, pairs of these pairs, and so on, on a hidden tree.

    .. math::

        f(x)=\sum_S\hat f_S\prod_{i\in S}x_i,\qquad |S|=2^k,\quad\hat f_S=\pm1 .

    The supports of one degree are disjoint, and each is the union of two supports of half the degree.
    Sources: arXiv:2601.19756, Appendix C; derivations/hierarchy (23).

    Examples
    --------
    >>> target = DeepQuadraticBoolean(dimension=8, seed=1)
    >>> X, y = target.sample(400, rng=0)
    >>> found = recovered_supports(X, y, levels=target.n_levels)
    >>> [supports.shape for supports in found]
    [(4, 2), (2, 4), (1, 8)]
    """

    dimension: int = 16
    """Number :math:`d` of inputs, even, a multiple of :math:`2^{levels}`, at most :math:`2^{20}`."""
    levels: int = 0
    """Number of levels of pairs; 0 means as many as :math:`d` can be halved."""
    seed: int = 0
    """Seed of the order of the inputs and of the signs."""

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 2)
        check_integer("levels", self.levels, 0)
        check_integer("seed", self.seed, 0)
        if not self.halvings:
            raise InvalidParameter(f"dimension is {quoted(self.dimension)}; allowed: even numbers.")
        if self.dimension > LARGEST_DIMENSION:
            raise InvalidParameter(
                f"dimension is {quoted(self.dimension)}; allowed: at most {LARGEST_DIMENSION}."
            )
        if self.levels > self.halvings:
            raise InvalidParameter(
                f"levels is {quoted(self.levels)} with dimension {self.dimension}; allowed: at most "
                f"{self.halvings}, or a dimension that is a multiple of 2^levels."
            )

    @property
    def halvings(self) -> int:
        """Number of times that the dimension can be halved."""
        dimension = int(self.dimension)
        return (dimension & -dimension).bit_length() - 1

    @property
    def n_levels(self) -> int:
        """Number of levels of pairs; by default how often the dimension can be divided by two."""
        return int(self.levels) or self.halvings

    @cached_property
    def supports(self) -> tuple[np.ndarray, ...]:
        """Sorted inputs of each product, shape (d / 2^k, 2^k) for level k = 1, 2, ..."""
        order = random_stream(int(self.seed), "order of inputs").permutation(self.dimension)
        blocks = [np.sort(order.reshape(-1, 2**k)) for k in range(1, self.n_levels + 1)]
        return tuple(freeze(block[np.argsort(block[:, 0])]) for block in blocks)

    @cached_property
    def signs(self) -> tuple[np.ndarray, ...]:
        """Coefficient of each product, 1 or -1."""
        rng = random_stream(int(self.seed), "signs of products")
        return tuple(freeze(rng.choice([-1.0, 1.0], len(block))) for block in self.supports)

    @property
    def squared_norm(self) -> float:
        """Second moment of the target, which is the number of its products."""
        return float(sum(len(block) for block in self.supports))

    def sample(self, n: int, rng: np.random.Generator | int) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs -1 and 1, shape (n, d), and the values of the target, shape (n,)."""
        generator = stream_of(rng, "samples")
        check_integer("n", n, 1)
        X = generator.choice(np.array([-1, 1], dtype=np.int8), size=(n, self.dimension))
        y = np.zeros(n)
        for block, sign in zip(self.supports, self.signs, strict=True):
            # f(x) = sum_S f_S prod_(i in S) x_i (hierarchy 23)
            y += X[:, block].prod(axis=2, dtype=np.float64) @ sign
        return X, y

    @property
    def threshold_samples(self) -> float:
        """Number of samples n* from which :meth:`recover` finds all products, in about 4 of 5 draws."""
        return recovery_threshold(dimension=self.dimension, squared_norm=self.squared_norm)

    def recover(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        """Find the products from samples, level by level, by pairs of the products of the level below.

        The inputs of the products of level k have shape (number, 2 ** k); they equal `supports` on
        success.
        """
        signs = _array("X", X)
        if signs.ndim != 2 or signs.shape[1] != self.dimension:
            raise InvalidData(
                f"X has shape {signs.shape}; allowed: (n, {self.dimension}), one column per input."
            )
        return recovered_supports(signs, y, levels=self.n_levels)

    def recovery_probability(self, samples: float) -> float:
        """Predicted probability that :meth:`recover` finds all products from n samples."""
        return recovery_probability(samples, dimension=self.dimension, levels=self.n_levels)


def recovered_supports(
    X: np.ndarray, y: np.ndarray, *, levels: int, threshold: float = 0.5
) -> tuple[np.ndarray, ...]:
    """Find the products level by level, shape (number, 2^k) for level k; empty where none is found."""
    # Each level keeps the pairs of products of the level below whose mean product with the residual
    # exceeds the threshold, then all products so far are fitted by least squares.
    features, values = _checked_samples(X, y)
    inputs = np.arange(features.shape[1])[:, None]
    residual, fitted = values, np.empty((len(values), 0))
    found = []
    for _ in range(levels):
        # f_S for S = A and B together is estimated by the mean of chi_A chi_B y (hierarchy 23)
        coefficients = features.T @ (features * residual[:, None]) / len(values)
        first, second = np.nonzero(np.triu(np.abs(coefficients) > threshold, 1))
        inputs = np.sort(np.concatenate([inputs[first], inputs[second]], axis=1))
        features = features[:, first] * features[:, second]
        found.append(inputs)
        if not len(first):
            break
        fitted = np.concatenate([fitted, features], axis=1)
        residual = values - fitted @ np.linalg.lstsq(fitted, values, rcond=None)[0]
    empty = [np.empty((0, 2**k), dtype=np.intp) for k in range(len(found) + 1, levels + 1)]
    return tuple(found + empty)


def _checked_samples(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return signs and values of a target as floats, or say what is wrong with them."""
    signs, values = _array("X", X), _array("y", y)
    if signs.ndim != 2 or values.ndim != 1 or len(signs) != len(values) or not len(values):
        raise InvalidData(
            f"X has shape {signs.shape} and y has shape {values.shape}; allowed: (n, d) and (n,), one "
            "row of X per entry of y and at least one."
        )
    if signs.dtype.kind not in "iuf" or not (np.abs(signs) == 1).all():
        raise InvalidData("X has entries that are not signs; allowed: the numbers -1 and 1.")
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise InvalidData(
            "y has entries that are not finite numbers; allowed: finite real numbers."
        )
    return signs.astype(np.float64), values.astype(np.float64)


def _array(name: str, values: np.ndarray) -> np.ndarray:
    """Convert to an array, or say that rows have different lengths."""
    try:
        return to_numpy(values)
    except ValueError:
        raise InvalidData(f"{name} has rows of different lengths; allowed: an array.") from None


def recovery_threshold(*, dimension: int, squared_norm: float) -> float:
    """Number of samples from which no absent pair of inputs has a coefficient above 1/2."""
    # n* = 8 |f|² log(d² / 2) (hierarchy 23)
    return float(8 * squared_norm * np.log(dimension**2 / 2))


def recovery_probability(samples: float, *, dimension: int, levels: int) -> float:
    """Probability that :func:`recovered_supports` finds all products at threshold 1/2."""
    check_number("samples", samples, 1)
    remaining = float(sum(dimension // 2**k for k in range(1, levels + 1)))
    logarithm = 0.0
    for k in range(1, levels + 1):
        features = dimension // 2 ** (k - 1)
        present = features // 2
        absent = features * (features - 1) // 2 - present
        # Coefficients scatter by |r| / sqrt(n) for the residual r; |r|² is smaller by 1 for a product
        # in r (hierarchy 23)
        false_alarm = 2 * ndtr(-np.sqrt(samples / remaining) / 2)
        logarithm += absent * np.log1p(-min(false_alarm, 1 - 1e-16))
        logarithm += present * log_ndtr(np.sqrt(samples / max(remaining - 1, 1e-12)) / 2)
        remaining -= present
    return float(np.exp(logarithm))
