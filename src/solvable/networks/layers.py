r"""Fitted layers of a layer-wise filtered network: what they keep and how they map samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from solvable.errors import InvalidData
from solvable.operators.activations import dual_kernel, kernel_diagonal
from solvable.operators.lift import RandomLift, average_pool, patches

KERNEL_ROWS = 2048
"""Rows of a cross kernel that are held at a time."""


class Layer(Protocol):
    """A fitted map of samples, made of arrays and plain settings."""

    kind: ClassVar[str]

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Map samples (n, ...) to samples (n, ...)."""
        ...


@dataclass(frozen=True)
class Standardise:
    """Columns less their mean, over their scale.

    Parameters
    ----------
    mean, scale : ndarray of shape (d,)
        Of the training samples.
    """

    kind: ClassVar[str] = "standardise"
    mean: np.ndarray
    scale: np.ndarray

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Standardised samples, of the type of ``h``."""
        return (h - self.mean.astype(h.dtype)) / self.scale.astype(h.dtype)


@dataclass(frozen=True)
class AsImages:
    """Rows as images.

    Parameters
    ----------
    shape : tuple of int
        (height, width, channels).
    """

    kind: ClassVar[str] = "as-images"
    shape: tuple[int, ...]

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Samples of shape (n, height, width, channels)."""
        return h.reshape(len(h), *self.shape)


@dataclass(frozen=True)
class Flatten:
    """Images as rows."""

    kind: ClassVar[str] = "flatten"

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Samples of shape (n, height * width * channels)."""
        return h.reshape(len(h), -1)


@dataclass(frozen=True)
class Pool:
    """Means over disjoint squares.

    Parameters
    ----------
    size : int
        Side of the squares.
    """

    kind: ClassVar[str] = "pool"
    size: int

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Smaller images."""
        return average_pool(h, self.size)


@dataclass(frozen=True)
class Filter:
    """Kept directions of explicit features.

    Parameters
    ----------
    directions : ndarray of shape (P, k)
        Orthonormal columns.
    offset, factor : ndarray of shape (k,)
        Of the whitening: ``(h V - offset) * factor``.
    """

    kind: ClassVar[str] = "filter"
    directions: np.ndarray
    offset: np.ndarray
    factor: np.ndarray

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Kept coordinates; of images, pixel by pixel."""
        kept = h @ self.directions.astype(h.dtype, copy=False)
        return (kept - self.offset.astype(h.dtype)) * self.factor.astype(h.dtype)


@dataclass(frozen=True)
class Lift:
    """Random features.

    Parameters
    ----------
    n_inputs, width : int
        Shape of the weights.
    activation : str
        Name.
    scale : float
        Root mean square norm of the training inputs.
    seed : int
        Of the weights.
    patch : int
        Side of the neighbourhoods; 0 for a dense lift.
    """

    kind: ClassVar[str] = "lift"
    n_inputs: int
    width: int
    activation: str
    scale: float
    seed: int
    patch: int = 0

    @property
    def features(self) -> RandomLift:
        """The lift of rows."""
        return RandomLift(self.n_inputs, self.width, self.activation, self.scale, self.seed)

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Random features; of images, pixel by pixel."""
        if not self.patch:
            return self.features.transform(h)
        around = patches(h, self.patch)
        lifted = self.features.transform(around.reshape(-1, self.n_inputs))
        return lifted.reshape(*h.shape[:3], self.width)


@dataclass(frozen=True)
class KernelChain:
    r"""Kernel of consecutive infinitely wide lifts.

    .. math:: K_{\ell+1}(a, b) = \kappa_\sigma\big(K_\ell(a, b) / c_\ell^2\big), \qquad
        K_0(a, b) = \langle a, b \rangle .

    Parameters
    ----------
    activations : tuple of str
        One per lift.
    squared_scales : tuple of float
        :math:`c_\ell^2`, the mean training diagonal of :math:`K_\ell`.
    """

    activations: tuple[str, ...]
    squared_scales: tuple[float, ...]

    def diagonals(self, h: np.ndarray) -> list[np.ndarray]:
        """Diagonals of all kernels on rows, the last one included."""
        found = [np.einsum("ij,ij->i", h, h)]
        for name, square in zip(self.activations, self.squared_scales, strict=True):
            found.append(kernel_diagonal(name, found[-1] / square))
        return found

    def __call__(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Kernel between rows, shape (n, m), in float64."""
        left, right = (np.asarray(one, dtype=np.float64) for one in (left, right))
        kernel = left @ right.T
        steps = zip(
            self.activations,
            self.squared_scales,
            self.diagonals(left),
            self.diagonals(right),
            strict=False,
        )
        for name, square, rows, columns in steps:
            kernel = dual_kernel(name, kernel / square, rows / square, columns / square)
        return kernel


@dataclass(frozen=True)
class KernelFilter:
    """Kept directions of infinitely wide features.

    Parameters
    ----------
    landmarks : ndarray of shape (r, d)
        Training samples that span the features.
    coefficients : ndarray of shape (r, k)
        Of the directions on the landmarks.
    offset, factor : ndarray of shape (k,)
        Of the whitening.
    activations : tuple of str
        Of the chain of lifts.
    squared_scales : tuple of float
        Of the chain of lifts.
    """

    kind: ClassVar[str] = "kernel-filter"
    landmarks: np.ndarray
    coefficients: np.ndarray
    offset: np.ndarray
    factor: np.ndarray
    activations: tuple[str, ...]
    squared_scales: tuple[float, ...]

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Kept coordinates, in float64."""
        chain = KernelChain(self.activations, self.squared_scales)
        kept = [chain(rows, self.landmarks) @ self.coefficients for rows in _chunks(h)]
        return (np.concatenate(kept) - self.offset) * self.factor


@dataclass(frozen=True)
class LinearReadout:
    """Ridge on explicit features.

    Parameters
    ----------
    coefficients : ndarray of shape (P, C)
        Weights.
    intercept : ndarray of shape (C,)
        Constant.
    """

    kind: ClassVar[str] = "linear-readout"
    coefficients: np.ndarray
    intercept: np.ndarray

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Outputs of shape (n, C)."""
        return np.asarray(h @ self.coefficients + self.intercept, dtype=np.float64)


@dataclass(frozen=True)
class KernelReadout:
    """Ridge on infinitely wide features.

    Parameters
    ----------
    samples : ndarray of shape (n, d)
        Training samples of the last lifts.
    coefficients : ndarray of shape (n, C)
        Dual weights.
    intercept : ndarray of shape (C,)
        Constant.
    activations : tuple of str
        Of the chain of lifts.
    squared_scales : tuple of float
        Of the chain of lifts.
    """

    kind: ClassVar[str] = "kernel-readout"
    samples: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray
    activations: tuple[str, ...]
    squared_scales: tuple[float, ...]

    def apply(self, h: np.ndarray) -> np.ndarray:
        """Outputs of shape (n, C)."""
        chain = KernelChain(self.activations, self.squared_scales)
        parts = [chain(rows, self.samples) @ self.coefficients for rows in _chunks(h)]
        return np.asarray(np.concatenate(parts) + self.intercept)


def _chunks(h: np.ndarray) -> list[np.ndarray]:
    return [h[start : start + KERNEL_ROWS] for start in range(0, max(1, len(h)), KERNEL_ROWS)]


@dataclass(frozen=True)
class Network:
    """Fitted layers, one after another, and the readout on top.

    Parameters
    ----------
    layers : tuple of Layer
        From samples to the coordinates that the readout or the last kernel starts from.
    readout : LinearReadout, KernelReadout or None
        The readout; None in a transformer.
    """

    layers: tuple[Any, ...]
    readout: Any = None

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Coordinates below the readout, shape (n, k)."""
        h = X
        for layer in self.layers:
            h = layer.apply(h)
        return h

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """Outputs of the readout, shape (n, C); of a few thousand rows at a time."""
        if self.readout is None:
            raise InvalidData("this network has no readout; fit a classifier or a regressor.")
        parts = [self.readout.apply(self.transform(rows)) for rows in _chunks(X)]
        return np.concatenate(parts)
