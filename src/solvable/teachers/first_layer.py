"""Drawing the first layer of a target: directions in the space of Hermite features."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter

FIRST_LAYERS = ("orthonormal", "random")
"""Ways to draw a set of directions."""


def draw_directions(
    n_coordinates: int, n_directions: int, kind: str, *key: int | str
) -> np.ndarray:
    r"""Draw the columns :math:`A_i` of a first layer.

    ``"orthonormal"`` is Gram-Schmidt on Gaussian vectors, :math:`A^\top A = I`; ``"random"`` leaves
    them independent with entries of variance :math:`1/D`, so that
    :math:`\|A_i\|^2 = 1 + O(\sqrt{2/D})`. In the flattened coordinates of
    :class:`~solvable.operators.HermiteFeatures` the Euclidean product is the Frobenius product.

    Parameters
    ----------
    n_coordinates : int
        :math:`D`, number of features of the input.
    n_directions : int
        :math:`p \le D`. Asking for more keeps the first ones.
    kind : {"orthonormal", "random"}
        How they are drawn.
    *key : int or str
        Key of the random stream.

    Returns
    -------
    ndarray of shape (D, p)
        The directions, float64, read-only. Costs :math:`2 D p^2` operations.

    Examples
    --------
    >>> directions = draw_directions(10, 3, "orthonormal", 0)
    >>> bool(np.allclose(directions.T @ directions, np.eye(3)))
    True
    """
    # Row by row, so that the first directions do not depend on how many are drawn.
    gaussian = random_stream(*key).standard_normal((n_directions, n_coordinates)).T
    if kind == "orthonormal":
        basis, triangle = np.linalg.qr(gaussian)
        # A positive diagonal makes the factor unique, so that it does not depend on the LAPACK.
        directions = basis * np.sign(np.diag(triangle))
    else:
        directions = gaussian / np.sqrt(n_coordinates)
    return freeze(directions)


def freeze(array: np.ndarray) -> np.ndarray:
    """Mark an array read-only and return it."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def check_integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> None:
    """Raise :class:`InvalidParameter` unless the value is an integer in the range.

    Parameters
    ----------
    name : str
        Name of the parameter for the user.
    value : object
        What was given; booleans are refused.
    minimum, maximum : int
        Range, both ends included; no maximum if None.

    Examples
    --------
    >>> check_integer("features", 0, 1)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: features is 0; allowed: an integer of at least 1.
    """
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_integer or value < minimum or (maximum is not None and value > maximum):
        allowed = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise InvalidParameter(f"{name} is {value!r}; allowed: an integer {allowed}.")


def check_real(name: str, value: Any, minimum: float) -> None:
    """Raise :class:`InvalidParameter` unless the value is finite and at least ``minimum``.

    Examples
    --------
    >>> check_real("decay", -1.0, 0.0)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: decay is -1.0; allowed: a finite number of at least 0.
    """
    is_real = isinstance(value, (int, float, np.integer, np.floating))
    if not is_real or isinstance(value, bool) or not np.isfinite(value) or value < minimum:
        raise InvalidParameter(
            f"{name} is {value!r}; allowed: a finite number of at least {minimum:g}."
        )
