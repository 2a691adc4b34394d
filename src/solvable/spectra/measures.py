"""Discrete target spectra, and the sums over a spectrum that free convolution needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter

RealSums = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Measure(Protocol):
    r"""Probability measure :math:`\mu^\star` whose resolvent sums are known.

    Attributes
    ----------
    pieces : ndarray of shape (k, 2)
        Disjoint ascending intervals that contain the support; both ends of an atom are equal.
    masses : ndarray of shape (k,)
        Mass of each piece.
    nodes, node_weights : ndarray of shape (m,)
        Quadrature rule for integrals of smooth functions; exact for atoms.
    terms : int
        Number of terms of a resolvent sum, which limits the number of points per call.
    """

    @property
    def pieces(self) -> np.ndarray:
        """Intervals that contain the support."""

    @property
    def masses(self) -> np.ndarray:
        """Mass of each piece."""

    @property
    def nodes(self) -> np.ndarray:
        """Nodes of the quadrature rule."""

    @property
    def node_weights(self) -> np.ndarray:
        """Weights of the quadrature rule."""

    @property
    def terms(self) -> int:
        """Number of terms of a resolvent sum at one point."""

    def inverse_squares(self, u: np.ndarray) -> RealSums:
        r"""Map :math:`y` to :math:`\int d\mu/D` and :math:`\int d\mu/D^2`, where :math:`D=(u-s)^2+y`."""

    def start(self, u: np.ndarray, variance: float) -> np.ndarray:
        r"""Lower bound of the root :math:`y` of :math:`\int d\mu/D=1/t`."""

    def odd_sums(self, u: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Return :math:`\int\frac{u-s}{D}d\mu` and :math:`\int\frac{u-s}{D^2}d\mu`."""

    def outside(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Return :math:`\int(u-s)^{-2}d\mu` and :math:`\int(u-s)^{-3}d\mu` off the support."""


@dataclass(frozen=True, eq=False)
class DiscreteMeasure:
    """Measure of atoms at distinct ascending positions; made by `discrete`."""

    nodes: np.ndarray
    node_weights: np.ndarray  # positive weights with sum 1

    @property
    def pieces(self) -> np.ndarray:
        """Intervals of zero width, one per atom."""
        return np.column_stack([self.nodes, self.nodes])

    @property
    def masses(self) -> np.ndarray:
        """Weights of the atoms."""
        return self.node_weights

    @property
    def terms(self) -> int:
        """Number of atoms."""
        return self.nodes.size

    def inverse_squares(self, u: np.ndarray) -> RealSums:
        """Return the sums of inverse squared distances as a function of y."""
        squares = u[:, None] - self.nodes
        np.square(squares, out=squares)
        # Reusing arrays of this size is faster than allocating new ones.
        inverse = np.empty_like(squares)

        def sums(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            np.add(squares, y[:, None], out=inverse)
            np.reciprocal(inverse, out=inverse)
            first = inverse @ self.node_weights
            return first, np.square(inverse, out=inverse) @ self.node_weights

        return sums

    def start(self, u: np.ndarray, variance: float) -> np.ndarray:
        """Squared height that the strongest atom alone would cause."""
        alone = u[:, None] - self.nodes
        np.square(alone, out=alone)
        np.subtract(variance * self.node_weights, alone, out=alone)
        return np.asarray(np.maximum(alone.max(axis=1), 0.0))

    def odd_sums(self, u: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums that are odd in the distance."""
        distance = u[:, None] - self.nodes
        inverse = np.square(distance)
        inverse += y[:, None]
        np.reciprocal(inverse, out=inverse)
        distance *= inverse
        first = distance @ self.node_weights
        distance *= inverse
        return first, distance @ self.node_weights

    def outside(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Second and third inverse moments of the distance."""
        inverse = 1 / (u[:, None] - self.nodes)
        square = np.square(inverse)
        return square @ self.node_weights, (square * inverse) @ self.node_weights


def discrete(values: np.ndarray, weights: np.ndarray | None = None) -> DiscreteMeasure:
    r"""Make the measure :math:`\sum_jw_j\delta_{s_j}` of given eigenvalues.

    Parameters
    ----------
    values : array of shape (m,)
        Eigenvalues :math:`s_j`, finite, in any order; equal eigenvalues are merged.
    weights : array of shape (m,), optional
        Weights of at least 0, with any positive sum; equal weights by default.

    Returns
    -------
    DiscreteMeasure
        Measure with weights of sum 1.

    Raises
    ------
    InvalidData
        If the values are not a finite, non-empty vector or the weights do not fit them.

    Examples
    --------
    >>> discrete(np.array([2.0, 0.0, 0.0, 0.0])).node_weights
    array([0.75, 0.25])
    """
    places = np.asarray(values, dtype=np.float64)
    if places.ndim != 1 or places.size == 0 or not np.isfinite(places).all():
        raise InvalidData(
            f"the spectrum must be a vector of at least one finite eigenvalue; got shape "
            f"{places.shape}. Flatten it and remove NaN and infinity."
        )
    given = np.ones(places.size) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != places.shape:
        raise InvalidData(
            f"the weights have shape {given.shape} and the eigenvalues {places.shape}; "
            "give one weight for each eigenvalue."
        )
    if not np.isfinite(given).all() or (given < 0).any() or not given.any():
        raise InvalidData("the weights must be finite, at least 0 and not all 0.")
    kept = given > 0
    distinct, group = np.unique(places[kept], return_inverse=True)
    summed = np.bincount(group.ravel(), weights=given[kept])
    return DiscreteMeasure(distinct, summed / summed.sum())


def power_law(
    *, dimension: int, exponent: float, heads: int | None = None, ratio: float = 1.06
) -> DiscreteMeasure:
    r"""Make :math:`s_i=\sqrt d\,i^{-\gamma}/\sqrt{\sum_jj^{-2\gamma}}`, normalised to :math:`Q^\star=1`.

    Parameters
    ----------
    dimension : int
        Number :math:`d` of eigenvalues, at least 1.
    exponent : float
        :math:`\gamma` above 0; above 1/2 the sum :math:`\sum_jj^{-2\gamma}` converges for large d.
    heads : int, optional
        Number of leading eigenvalues that stay separate atoms; the rest is binned geometrically in rank,
        each bin at its root mean square. Default: all eigenvalues below d = 2000, and 40 above.
    ratio : float
        Ratio of successive bin ends, above 1.

    Returns
    -------
    DiscreteMeasure
        :math:`\frac1d\sum_i\delta_{s_i}`, binned beyond ``heads``.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range.

    Notes
    -----
    The binning keeps the mass and :math:`Q^\star`. Normalisation of arXiv:2606.28242. Backed by
    ``tests/spectra/test_measures.py``.

    Examples
    --------
    >>> spectrum = power_law(dimension=100_000, exponent=1.0)
    >>> spectrum.nodes.size < 200, round(float(spectrum.node_weights @ spectrum.nodes**2), 12)
    (True, 1.0)
    """
    check_positive(dimension=dimension, exponent=exponent)
    if dimension != int(dimension):
        raise InvalidParameter(f"dimension is {dimension}; allowed: a whole number of at least 1.")
    if not 1 < ratio < np.inf:
        raise InvalidParameter(f"ratio is {ratio}; allowed: a finite number above 1.")
    if heads is not None and heads < 1:
        raise InvalidParameter(f"heads is {heads}; allowed: a whole number of at least 1.")
    dimension = int(dimension)
    kept = heads if heads is not None else (dimension if dimension <= 2000 else 40)
    strengths = np.arange(1, dimension + 1, dtype=np.float64) ** -exponent
    strengths *= np.sqrt(dimension / np.sum(strengths**2))
    if kept >= dimension:
        return discrete(strengths)
    return bin_tail(strengths, heads=kept, ratio=ratio)


def bin_tail(strengths: np.ndarray, *, heads: int, ratio: float = 1.06) -> DiscreteMeasure:
    r"""Make the measure of a long spectrum whose small eigenvalues are binned geometrically in rank."""
    values = np.sort(np.asarray(strengths, dtype=np.float64))[::-1]
    if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any():
        raise InvalidData("the eigenvalues must be a vector of finite numbers of at least 0.")
    if heads < 1 or not 1 < ratio < np.inf:
        raise InvalidParameter(
            f"heads is {heads} and ratio {ratio}; allowed: heads of at least 1, ratio above 1."
        )
    ends = [min(heads, values.size)]
    while ends[-1] < values.size:
        ends.append(min(values.size, max(ends[-1] + 1, int(ends[-1] * ratio))))
    starts = np.array(ends[:-1], dtype=int)
    counts = np.diff(ends)
    means = np.sqrt(np.add.reduceat(values**2, starts) / counts) if starts.size else np.empty(0)
    return discrete(
        np.concatenate([values[: ends[0]], means]),
        np.concatenate([np.ones(ends[0]), counts.astype(np.float64)]),
    )


def as_measure(target: Measure | np.ndarray) -> Measure:
    """Convert a target spectrum to a measure; an array of eigenvalues gets equal weights."""
    given = isinstance(target, np.ndarray | Sequence)
    measure = discrete(np.asarray(target)) if given else cast("Measure", target)
    ends = measure.pieces
    if ends[0, 0] < -1e-10 * np.abs(ends).max():
        raise InvalidData(
            f"the target has an eigenvalue {ends[0, 0]:.4g}; allowed: at least 0, since the network is "
            "a sum of squares. Shift the spectrum or drop its negative part."
        )
    return measure


def second_moment(target: Measure) -> float:
    """Energy Q* of the target, the mean squared eigenvalue."""
    return float(target.node_weights @ np.square(target.nodes))
