r"""Random lifts: fixed random features of vectors and image patches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from solvable.arrays import Array, as_on, check_integer, check_positive, namespace, random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.operators.activations import check_activation, evaluate


@dataclass(frozen=True)
class RandomLift:
    r"""Lift: random features of one hidden layer with fixed weights.

    .. math:: z(h) = \frac{1}{\sqrt P}\,\sigma\!\Big(\frac{W^\top h}{c}\Big), \qquad
        W_{ij} \sim \mathcal N(0, 1),

    With this scale :math:`\|z\|^2` is of order 1, and :math:`\langle z(a), z(b)\rangle` converges to
    the dual kernel at rate :math:`P^{-1/2}`.

    Parameters
    ----------
    n_inputs : int
        Number of columns of the inputs.
    width : int
        Number :math:`P` of features.
    activation : str
        One of :data:`solvable.operators.ACTIVATIONS`.
    scale : float
        Scale :math:`c > 0`: the root mean square norm of the training inputs.
    seed : int
        Seed of the weights :math:`W`, which are drawn again when needed and never stored.

    Raises
    ------
    InvalidParameter
        If a number is out of range or the activation unknown.

    Notes
    -----
    arXiv:2605.13612; equation 2 of ``docs/derivations/lofi.md`` (lofi 2), without bias.
    ``tests/operators/test_lift.py`` measures the rate.

    Examples
    --------
    >>> lift = RandomLift(3, 4, seed=0)
    >>> lift.transform(np.ones((2, 3))).shape
    (2, 4)
    """

    n_inputs: int
    width: int
    activation: str = "relu"
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("n_inputs", self.n_inputs, 1)
        check_integer("width", self.width, 1)
        check_positive(scale=self.scale)
        check_activation(self.activation)

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights :math:`W / c`, shape (n_inputs, width), float64; drawn at first use."""
        few_weights = 4_500_000  # two layers of width 2,048: kept for the next lift with this seed
        draw = _kept_normal if self.n_inputs * self.width <= few_weights else _normal
        return draw(self.seed, self.n_inputs, self.width) / self.scale

    def preactivation(self, inputs: Array) -> Array:
        """Pre-activations :math:`W^T h / c`, shape (n, width), in the type of the inputs."""
        if inputs.ndim != 2 or inputs.shape[1] != self.n_inputs:
            raise InvalidData(
                f"inputs of the lift have shape {tuple(inputs.shape)}; allowed: (n, {self.n_inputs})."
            )
        return inputs @ as_on(self.weights, inputs)

    def transform(self, inputs: Array) -> Array:
        """Compute the random features, shape (n, width), in the type and on the device of the inputs."""
        features = self.preactivation(inputs)
        if self.activation == "relu" and isinstance(features, np.ndarray):
            # The scaling is done in place: for wide lifts memory access takes as long as the arithmetic.
            np.maximum(features, 0, out=features)
        else:
            features = evaluate(self.activation, features)
        features *= 1 / self.width**0.5
        return features


def _normal(seed: int, n_inputs: int, width: int) -> np.ndarray:
    return random_stream(seed, "lift", n_inputs, width).standard_normal((n_inputs, width))


# A fit, its tests against random labels and its predictions use lifts that differ in their scale alone.
_kept_normal = lru_cache(maxsize=3)(_normal)


def patches(images: Array, size: int) -> Array:
    """Extract the square patch around every pixel, with zero padding.

    Parameters
    ----------
    images : ndarray of shape (n, height, width, channels)
        Images.
    size : int
        Odd side of a patch, at least 1.

    Returns
    -------
    ndarray of shape (n, height, width, size * size * channels)
        Row-major in (row, column, channel) of the patch.

    Raises
    ------
    InvalidParameter
        If the size is even or below 1.

    Examples
    --------
    >>> patches(np.ones((1, 4, 4, 1)), 3).sum(axis=-1)[0, 0]
    array([4., 6., 6., 4.])
    """
    if size < 1 or size % 2 == 0:
        raise InvalidParameter(f"patch is {size}; allowed: an odd integer of at least 1.")
    margin = size // 2
    n, height, width, channels = images.shape
    if not isinstance(images, np.ndarray):
        xp = namespace(images)
        padded = as_on(np.zeros((1, height + 2 * margin, width + 2 * margin, channels)), images)
        padded = xp.repeat(padded, n, axis=0)
        padded[:, margin : margin + height, margin : margin + width] = images
        shifts = [(row, column) for row in range(size) for column in range(size)]
        parts = [padded[:, r : r + height, c : c + width] for r, c in shifts]
        return xp.concat(parts, axis=-1)
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
    ordered = np.moveaxis(windows, 3, -1)
    return ordered.reshape(n, height, width, size * size * channels)


def average_pool(images: Array, size: int) -> Array:
    """Average over disjoint squares; a margin that does not fill a square is left out."""
    n, height, width, channels = images.shape
    if not 1 <= size <= min(height, width):
        raise InvalidParameter(
            f"pooling is {size} for images of {height} x {width} pixels; allowed: 1 to "
            f"{min(height, width)}."
        )
    rows, columns = height // size, width // size
    kept = images[:, : rows * size, : columns * size]
    squares = kept.reshape(n, rows, size, columns, size, channels)
    return namespace(squares).mean(squares, axis=(2, 4))
