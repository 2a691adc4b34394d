"""The deep quadratic Boolean target: products of products, found pair by pair from the inputs up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr

from solvable.arrays import check_integer, random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.teachers.first_layer import freeze


@dataclass(frozen=True)
class DeepQuadraticBoolean:
    r"""Sum of signed products of d signs: pairs, pairs of these pairs, and so on, on a hidden tree.

    .. math::

        f(x)=\sum_S\hat f_S\prod_{i\in S}x_i,\qquad |S|=2^k,\quad\hat f_S=\pm1 .

    The supports of one degree are disjoint, and each is the union of two supports of half the degree.

    Parameters
    ----------
    dimension : int
        Number :math:`d` of inputs, a multiple of :math:`2^{levels}`.
    levels : int
        Number of levels of pairs; 0 means as many as :math:`d` can be halved.
    seed : int
        Seed of the order of the inputs and of the signs.

    Raises
    ------
    InvalidParameter
        If the dimension cannot be halved so often.

    Notes
    -----
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
    levels: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 2)
        check_integer("levels", self.levels, 0)
        if self.dimension % 2**self.n_levels:
            raise InvalidParameter(
                f"dimension is {self.dimension} with {self.n_levels} levels of pairs; allowed: a "
                f"multiple of {2**self.n_levels}."
            )

    @property
    def n_levels(self) -> int:
        """Number of levels of pairs; by default as many as halve the dimension."""
        halvings = (self.dimension & -self.dimension).bit_length() - 1
        return self.levels or max(halvings, 1)

    @cached_property
    def supports(self) -> tuple[np.ndarray, ...]:
        """Sorted inputs of each product, shape (d / 2^k, 2^k) for level k = 1, 2, ..."""
        order = random_stream(self.seed, "order of inputs").permutation(self.dimension)
        blocks = [np.sort(order.reshape(-1, 2**k)) for k in range(1, self.n_levels + 1)]
        return tuple(freeze(block[np.argsort(block[:, 0])]) for block in blocks)

    @cached_property
    def signs(self) -> tuple[np.ndarray, ...]:
        """Coefficient of each product, 1 or -1."""
        rng = random_stream(self.seed, "signs of products")
        return tuple(freeze(rng.choice([-1.0, 1.0], len(block))) for block in self.supports)

    @property
    def squared_norm(self) -> float:
        """Second moment of the target, which is the number of its products."""
        return float(sum(len(block) for block in self.supports))

    def sample(self, n: int, rng: np.random.Generator | int) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs and their targets.

        Parameters
        ----------
        n : int
            Number of samples, at least 1.
        rng : Generator or int
            Source of the random numbers, or a seed.

        Returns
        -------
        X : ndarray of shape (n, d)
            Signs -1 and 1.
        y : ndarray of shape (n,)
            Values of the target.
        """
        generator = random_stream(rng, "samples") if isinstance(rng, int) else rng
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

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Signs.
        y : ndarray of shape (n,)
            Values of the target.

        Returns
        -------
        tuple of ndarray
            Inputs of the products of level k, shape (number, 2 ** k); equal to `supports` on success.

        Raises
        ------
        InvalidData
            If X and y do not fit together.
        """
        return recovered_supports(X, y, levels=self.n_levels)

    def recovery_probability(self, samples: float) -> float:
        """Predicted probability that :meth:`recover` finds all products from n samples."""
        return recovery_probability(samples, dimension=self.dimension, levels=self.n_levels)


def recovered_supports(
    X: np.ndarray, y: np.ndarray, *, levels: int, threshold: float = 0.5
) -> tuple[np.ndarray, ...]:
    """Find the products level by level, shape (number, 2^k) for level k; empty where none is found.

    Each level keeps the pairs of products of the level below whose mean product with the residual
    exceeds the threshold, then all products so far are fitted by least squares.
    """
    if X.ndim != 2 or len(X) != len(y):
        raise InvalidData(
            f"X has shape {X.shape} and y has {len(y)} entries; allowed: one row of X per entry of y."
        )
    features = np.asarray(X, dtype=np.float64)
    inputs = np.arange(X.shape[1])[:, None]
    residual, fitted = np.asarray(y, dtype=np.float64), np.empty((len(y), 0))
    found = []
    for _ in range(levels):
        # f_S for S = A and B together is estimated by the mean of chi_A chi_B y (hierarchy 23)
        coefficients = features.T @ (features * residual[:, None]) / len(y)
        first, second = np.nonzero(np.triu(np.abs(coefficients) > threshold, 1))
        inputs = np.sort(np.concatenate([inputs[first], inputs[second]], axis=1))
        features = features[:, first] * features[:, second]
        found.append(inputs)
        if not len(first):
            break
        fitted = np.concatenate([fitted, features], axis=1)
        residual = y - fitted @ np.linalg.lstsq(fitted, y, rcond=None)[0]
    empty = [np.empty((0, 2**k), dtype=np.intp) for k in range(len(found) + 1, levels + 1)]
    return tuple(found + empty)


def recovery_threshold(*, dimension: int, squared_norm: float) -> float:
    """Number of samples from which no absent pair of inputs has a coefficient above 1/2."""
    # n* = 8 |f|² log(d² / 2) (hierarchy 23)
    return float(8 * squared_norm * np.log(dimension**2 / 2))


def recovery_probability(samples: float, *, dimension: int, levels: int) -> float:
    """Probability that :func:`recovered_supports` finds all products at threshold 1/2."""
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
