"""Linear measurements of a symmetric matrix: by samples, matrix-free, and the Gaussian control."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from solvable.arrays import Source, random_stream, to_numpy
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.quadratic.features import CHUNK_ROWS, Whitening, weighted_gram


class Sensing(Protocol):
    """A linear map from symmetric matrices of size d to n numbers, and its adjoint."""

    n_samples: int
    dimension: int

    def forward(self, factor: np.ndarray) -> np.ndarray:
        """Measurements of the positive matrix ``factor @ factor.T``."""
        ...

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        """Symmetric matrix that the residual is measured against."""
        ...


class SampleSensing:
    r"""Measurements of S by samples, without an array of n matrices.

    .. math:: \mathcal A(S)_\mu = \frac{x_\mu^\top S x_\mu - \mathrm{Tr}(CS)}{\sqrt d}, \qquad
        \mathcal A^*(r) = \frac{X^\top \mathrm{diag}(r) X - (\sum_\mu r_\mu) C}{\sqrt d}

    Parameters
    ----------
    source : Source
        Samples :math:`x_\mu` of shape (n, d).
    centre : ndarray of shape (d, d), optional
        C; the identity by default, the population value for isotropic samples. The sample second
        moment is what remains when an intercept is fitted beside S.
    whitening : Whitening, optional
        Applied to the samples first, at the price of products of size d; S, C and d are then those
        of the whitened features.

    Raises
    ------
    InvalidData
        If C is not of shape (d, d).

    Notes
    -----
    A product takes :math:`2nd^2` flops, or :math:`2ndk` for a factor of k columns, and the memory
    of one block of rows. arXiv:2505.17958; ``tests/models/quadratic/test_sensing.py``.

    Examples
    --------
    >>> from solvable.arrays import ArraySource
    >>> SampleSensing(ArraySource(np.array([[2.0]]))).forward(np.array([[1.0]]))
    array([3.])
    """

    def __init__(
        self,
        source: Source,
        centre: np.ndarray | None = None,
        whitening: Whitening | None = None,
    ) -> None:
        self.source = source
        self.whitening = whitening
        self.n_samples = source.n_samples
        self.dimension = source.n_columns if whitening is None else whitening.directions.shape[1]
        self.centre = np.eye(self.dimension) if centre is None else np.asarray(centre)
        if self.centre.shape != (self.dimension, self.dimension):
            raise InvalidData(
                f"centre has shape {self.centre.shape}; allowed: {(self.dimension,) * 2}, one row "
                "per column of the samples."
            )

    def forward(self, factor: np.ndarray) -> np.ndarray:
        """Measurements of the positive matrix ``factor @ factor.T``.

        Parameters
        ----------
        factor : ndarray of shape (d, k)
            Any number of columns.

        Returns
        -------
        ndarray of shape (n,)
            Float64.
        """
        values = np.empty(self.n_samples)
        columns = factor if self.whitening is None else self.whitening.directions @ factor
        for rows, samples in self._blocks():
            hidden = samples @ columns
            values[rows] = np.einsum("ij,ij->i", hidden, hidden)
        values -= np.einsum("ij,ij->", factor, self.centre @ factor)
        return values / np.sqrt(self.dimension)

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        """Symmetric matrix that the residual is measured against.

        Parameters
        ----------
        residual : ndarray of shape (n,)
            Weights of the samples.

        Returns
        -------
        ndarray of shape (d, d)
            Symmetric, float64.
        """
        total = np.zeros((self.source.n_columns,) * 2)
        for rows, samples in self._blocks():
            total += weighted_gram(samples, residual[rows])
        if self.whitening is not None:
            total = self.whitening.directions.T @ total @ self.whitening.directions
        total -= float(np.sum(residual)) * self.centre
        return (total + total.T) / (2 * np.sqrt(self.dimension))

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows, block in self.source.chunks(CHUNK_ROWS):
            samples = np.asarray(to_numpy(block), dtype=np.float64)
            yield rows, samples if self.whitening is None else samples - self.whitening.mean


class GaussianSensing:
    r"""Control: independent Gaussian matrices with the covariance of :class:`SampleSensing`.

    .. math:: \mathcal A(S)_\mu = \mathrm{Tr}[Z_\mu S], \qquad
        Z_\mu = \frac{G_\mu + G_\mu^\top}{\sqrt{2d}},\quad G_{\mu,ij}\sim N(0,1)

    The theory is exact for these at smaller d, so that they tell its errors from those of samples.

    Parameters
    ----------
    n_samples, dimension : int
        n and d, at least 1; n matrices of size d are held, 8 n d^2 bytes.
    seed : int
        Of the matrices.

    Raises
    ------
    InvalidParameter
        For sizes below 1.

    Notes
    -----
    Derived: off-diagonal variance 1/d, diagonal 2/d, as for Gaussian samples.
    ``tests/models/quadratic/test_sensing.py``.

    Examples
    --------
    >>> GaussianSensing(5, 3, seed=0).forward(np.eye(3)).shape
    (5,)
    """

    def __init__(self, n_samples: int, dimension: int, seed: int) -> None:
        if n_samples < 1 or dimension < 1:
            raise InvalidParameter(
                f"n_samples is {n_samples!r} and dimension {dimension!r}; allowed: at least 1."
            )
        self.n_samples = n_samples
        self.dimension = dimension
        rng = random_stream(seed, "gaussian sensing")
        draws = rng.standard_normal((n_samples, dimension, dimension))
        symmetric = (draws + draws.transpose(0, 2, 1)) / np.sqrt(2 * dimension)
        self.matrices = symmetric.reshape(n_samples, -1)

    def forward(self, factor: np.ndarray) -> np.ndarray:
        """Measurements of the positive matrix ``factor @ factor.T``.

        Parameters
        ----------
        factor : ndarray of shape (d, k)
            Any number of columns.

        Returns
        -------
        ndarray of shape (n,)
            Float64.
        """
        return self.matrices @ (factor @ factor.T).ravel()

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        """Symmetric matrix that the residual is measured against.

        Parameters
        ----------
        residual : ndarray of shape (n,)
            Weights of the matrices.

        Returns
        -------
        ndarray of shape (d, d)
            Symmetric, float64.
        """
        return (residual @ self.matrices).reshape(self.dimension, self.dimension)
