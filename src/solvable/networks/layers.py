r"""Fitted layers of a layer-wise filtered network: parameters, and the maps applied to samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from solvable.arrays import Array, as_on, namespace
from solvable.errors import InvalidData
from solvable.operators.activations import dual_kernel, kernel_diagonal
from solvable.operators.lift import RandomLift, average_pool, patches

KERNEL_ROWS = 2048  # number of rows of a kernel between two sets that are in memory at a time


@dataclass(frozen=True)
class Standardise:
    """Subtract the mean of each column and divide by its scale."""

    kind: ClassVar[str] = "standardise"
    mean: np.ndarray  # mean of the training samples, shape (d,)
    scale: np.ndarray  # shape (d,)

    def apply(self, h: Array) -> Array:
        """Standardised samples, of the type of ``h``."""
        return (h - as_on(self.mean, h)) / as_on(self.scale, h)


@dataclass(frozen=True)
class Whiten:
    """Subtract the mean of each column and multiply by a whitening matrix."""

    kind: ClassVar[str] = "whiten"
    mean: np.ndarray  # mean of the training samples, shape (d,)
    matrix: np.ndarray  # shape (d, d)

    def apply(self, h: Array) -> Array:
        """Whitened samples, of the type of ``h``."""
        return (h - as_on(self.mean, h)) @ as_on(self.matrix, h)


@dataclass(frozen=True)
class AsImages:
    """Reshape rows to images."""

    kind: ClassVar[str] = "as-images"
    shape: tuple[int, ...]  # (height, width, channels)

    def apply(self, h: Array) -> Array:
        """Samples of shape (n, height, width, channels)."""
        return h.reshape(len(h), *self.shape)


@dataclass(frozen=True)
class Flatten:
    """Reshape images to rows."""

    kind: ClassVar[str] = "flatten"

    def apply(self, h: Array) -> Array:
        """Samples of shape (n, height * width * channels)."""
        return h.reshape(len(h), -1)


@dataclass(frozen=True)
class Pool:
    """Average images over disjoint squares."""

    kind: ClassVar[str] = "pool"
    size: int  # side of the squares

    def apply(self, h: Array) -> Array:
        """Averaged images."""
        return average_pool(h, self.size)


@dataclass(frozen=True)
class Filter:
    """Project explicit features on the kept directions."""

    kind: ClassVar[str] = "filter"
    directions: np.ndarray  # V, orthonormal columns, shape (P, k)
    offset: np.ndarray  # offset in the whitening (h V - offset) * factor, shape (k,)
    factor: np.ndarray

    def apply(self, h: Array) -> Array:
        """Kept coordinates; for images, at every pixel."""
        kept = h @ as_on(self.directions, h)
        return (kept - as_on(self.offset, h)) * as_on(self.factor, h)


@dataclass(frozen=True)
class Lift:
    """Lift of finite width: random features."""

    kind: ClassVar[str] = "lift"
    n_inputs: int
    width: int
    activation: str
    scale: float  # root mean square norm of the training inputs
    seed: int  # seed of the weights, which are drawn when needed
    patch: int = 0  # side of the image patches; 0 for a dense lift
    bias: float = 0.0  # standard deviation of the biases

    @property
    def features(self) -> RandomLift:
        """Map that the lift applies to rows of samples."""
        inputs = self.n_inputs + (self.bias > 0)
        return RandomLift(inputs, self.width, self.activation, self.scale, self.seed)

    def apply(self, h: Array) -> Array:
        """Random features; for images, at every pixel."""
        if self.bias:
            # A bias is the weight of an additional constant input.
            constant = namespace(h).full_like(h[:, :1], self.bias)
            h = namespace(h).concat([h, constant], axis=1)
        if not self.patch:
            return self.features.transform(h)
        around = patches(h, self.patch)
        lifted = self.features.transform(around.reshape(-1, self.n_inputs))
        return lifted.reshape(*h.shape[:3], self.width)


@dataclass(frozen=True)
class KernelChain:
    """Kernel of consecutive infinitely wide lifts."""

    activations: tuple[str, ...]  # activation of each lift
    squared_scales: tuple[float, ...]  # c_l², the mean training diagonal of K_l + b_l²
    squared_biases: tuple[float, ...]  # b_l², the variance of the biases

    def diagonals(self, h: Array) -> list[Array]:
        """Diagonals of the kernels of all lifts on some rows."""
        diagonals = [squared_norms(h)]
        for name, square, bias in self._lifts():
            diagonals.append(kernel_diagonal(name, (diagonals[-1] + bias) / square))
        return diagonals

    def _lifts(self) -> Iterator[tuple[str, float, float]]:
        return zip(self.activations, self.squared_scales, self.squared_biases, strict=True)

    def __call__(self, left: Array, right: Array) -> Array:
        """Kernel between rows, shape (n, m), in float64."""
        left, right = double(left), double(right)
        kernel = left @ right.T  # K_0(a, b) = a . b
        steps = zip(self._lifts(), self.diagonals(left), self.diagonals(right), strict=False)
        for (name, square, bias), rows, columns in steps:
            # K_{l+1} = kappa_sigma((K_l + b_l²) / c_l²)
            scaled = ((part + bias) / square for part in (kernel, rows, columns))
            kernel = dual_kernel(name, *scaled)
        return kernel


@dataclass(frozen=True)
class KernelFilter:
    """Project infinitely wide features on the kept directions."""

    kind: ClassVar[str] = "kernel-filter"
    landmarks: np.ndarray  # training samples that span the features, shape (r, d)
    coefficients: np.ndarray  # coefficients of the k directions on the r landmarks, shape (r, k)
    offset: np.ndarray  # offset in the whitening, shape (k,)
    factor: np.ndarray
    activations: tuple[str, ...]
    squared_scales: tuple[float, ...]
    squared_biases: tuple[float, ...]

    @property
    def chain(self) -> KernelChain:
        """Kernel of the lifts below the filter."""
        return KernelChain(self.activations, self.squared_scales, self.squared_biases)

    def apply(self, h: Array) -> Array:
        """Kept coordinates, in float64."""
        h = double(h)
        landmarks, coefficients = as_on(self.landmarks, h), as_on(self.coefficients, h)
        kept = [self.chain(rows, landmarks) @ coefficients for rows in _chunks(h)]
        return (namespace(h).concat(kept) - as_on(self.offset, h)) * as_on(self.factor, h)


@dataclass(frozen=True)
class Residual:
    """Kept coordinates of a filter, followed by the inputs of its layers."""

    kind: ClassVar[str] = "residual"
    layers: tuple[Any, ...]  # lifts, followed by the filter
    kept_factor: float  # factor of the kept coordinates
    input_factor: float  # factor of the inputs

    def kept(self, h: Array) -> Array:
        """Kept coordinates without the inputs, shape (n, k)."""
        for layer in self.layers:
            h = layer.apply(h)
        return h

    def apply(self, h: Array) -> Array:
        """Kept coordinates, then inputs, shape (n, k + d)."""
        return self.beside(self.kept(h), h)

    def beside(self, kept: Array, h: Array) -> Array:
        """Kept coordinates and inputs, each multiplied by its factor."""
        xp = namespace(kept)
        inputs = xp.astype(h, kept.dtype, copy=False)
        return xp.concat([kept * self.kept_factor, inputs * self.input_factor], axis=1)


@dataclass(frozen=True)
class LinearReadout:
    """Ridge readout on explicit features."""

    kind: ClassVar[str] = "linear-readout"
    coefficients: np.ndarray  # shape (P, C)
    intercept: np.ndarray  # shape (C,)

    def apply(self, h: Array) -> Array:
        """Outputs of shape (n, C)."""
        h = double(h)
        return h @ as_on(self.coefficients, h) + as_on(self.intercept, h)


@dataclass(frozen=True)
class KernelReadout:
    """Ridge readout on infinitely wide features."""

    kind: ClassVar[str] = "kernel-readout"
    samples: np.ndarray  # training samples of the last lifts, shape (n, d)
    coefficients: np.ndarray  # dual weights, shape (n, C)
    intercept: np.ndarray  # shape (C,)
    activations: tuple[str, ...]
    squared_scales: tuple[float, ...]
    squared_biases: tuple[float, ...]

    def apply(self, h: Array) -> Array:
        """Outputs of shape (n, C)."""
        chain = KernelChain(self.activations, self.squared_scales, self.squared_biases)
        h = double(h)
        samples, coefficients = as_on(self.samples, h), as_on(self.coefficients, h)
        parts = [chain(rows, samples) @ coefficients for rows in _chunks(h)]
        return namespace(h).concat(parts) + as_on(self.intercept, h)


def double(h: Array) -> Array:
    """Samples converted to float64 on the same device."""
    xp = namespace(h)
    return xp.astype(h, xp.float64, copy=False)


def squared_norms(h: Array) -> Array:
    """Squared norm of each row."""
    return np.einsum("ij,ij->i", h, h) if isinstance(h, np.ndarray) else namespace(h).vecdot(h, h)


def _chunks(h: Array) -> list[Array]:
    return [h[start : start + KERNEL_ROWS] for start in range(0, max(1, len(h)), KERNEL_ROWS)]


@dataclass(frozen=True)
class Network:
    """Fitted layers of a network in order, followed by the readout.

    Parameters
    ----------
    layers : tuple
        Layers from the samples to the inputs of the readout or of the last kernel.
    readout : LinearReadout, KernelReadout or None
        Readout; None in a transformer.
    """

    layers: tuple[Any, ...]
    readout: Any = None

    def transform(self, X: Array) -> Array:
        """Inputs of the readout, shape (n, k)."""
        h = X
        for layer in self.layers:
            h = layer.apply(h)
        return h

    def kept(self, X: Array) -> Array:
        """Inputs of the readout, without the inputs that ``skip`` appends after the last filter."""
        if not self.layers or not isinstance(self.layers[-1], Residual):
            return self.transform(X)
        *below, last = self.layers
        return last.kept(Network(tuple(below)).transform(X))

    def outputs(self, X: Array) -> Array:
        """Outputs of the readout, shape (n, C), computed a few thousand rows at a time."""
        if self.readout is None:
            raise InvalidData("this network has no readout; fit a classifier or a regressor.")
        parts = [self.readout.apply(self.transform(rows)) for rows in _chunks(X)]
        return namespace(X).concat(parts)
