"""Draw the first layer of a target: directions in the space of Hermite features."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import MemoryLimitExceeded
from solvable.memory import available_bytes, gigabytes

FIRST_LAYERS = ("orthonormal", "random")
"""Ways to draw a set of directions."""


def draw_directions(
    n_coordinates: int, n_directions: int, kind: str, *key: int | str
) -> np.ndarray:
    """Draw the columns A_i of a first layer, shape (D, p), read-only."""
    needed = (
        4 * 8.0 * n_coordinates * n_directions
    )  # memory of the array and of the copies that the QR decomposition makes
    if needed > available_bytes():
        raise MemoryLimitExceeded(
            f"{n_directions} directions of {n_coordinates} features take {gigabytes(needed)}; available: "
            f"{gigabytes(available_bytes())}. Lower the dimension, the degree or the number of features."
        )
    # Drawn row by row, so that the first directions do not depend on the number of directions.
    gaussian = random_stream(*key).standard_normal((n_directions, n_coordinates)).T
    if kind == "orthonormal":
        basis, triangle = np.linalg.qr(gaussian)
        # A positive diagonal makes the factor unique, independent of the LAPACK library.
        directions = basis * np.sign(np.diag(triangle))  # A^T A = I
    else:
        # Independent entries of variance 1/D: |A_i|² = 1 + O(sqrt(2/D)).
        directions = gaussian / np.sqrt(n_coordinates)
    return freeze(directions)


def freeze(array: np.ndarray) -> np.ndarray:
    """Mark an array read-only and return it."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
