r"""Least error of a rotation-invariant kernel, which learns one degree after another."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter


def degree_dimension(dimension: int, degree: int) -> int:
    r"""Return the number :math:`D_p=\binom{d+p-1}{p}\approx d^p/p!` of Hermite features of degree p."""
    check_positive(dimension=dimension)
    if degree < 0:
        raise InvalidParameter(f"degree is {degree}; allowed: an integer of at least 0.")
    return comb(dimension + degree - 1, degree)


def best_kernel_error(
    *, samples: float | np.ndarray, dimension: int, energies: Mapping[int, float]
) -> np.ndarray:
    r"""Return the least normalised error of a rotation-invariant kernel, a staircase in n.

    .. math:: 1-\frac{\sum_pE_p\min(1,n/D_p)}{\sum_pE_p}

    All :math:`D_p` features of degree p have the same kernel eigenvalue, so n samples determine at most
    a fraction :math:`n/D_p` of the energy of degree p. The kernel does not learn features one by one.

    Parameters
    ----------
    samples : float or array
        Sample size :math:`n\ge0`.
    dimension : int
        Input dimension :math:`d`.
    energies : mapping
        Energy of the label by degree; degree 0 is ignored.

    Returns
    -------
    ndarray
        Errors in [0, 1], of the shape of ``samples``. They are lower bounds, because a ridge penalty and
        the samples spent on lower degrees increase the error.

    Raises
    ------
    InvalidParameter
        If the sum of the energies is not positive, or a sample size is negative.

    Notes
    -----
    The bound counts directions: arXiv:2605.14567, Section 3, n = omega(d^(2q)), and Equation 27 of
    docs/derivations/sequential.md. The cost is O(1). Backed by
    ``tests/moment_spectrum/test_kernel_degrees.py`` (ridgeless regression).

    Examples
    --------
    >>> energies = {2: 0.1, 4: 1.1}
    >>> best_kernel_error(samples=np.array([0, 820, 13_120]), dimension=40, energies=energies).round(3)
    array([1.   , 0.911, 0.819])
    """
    n = np.asarray(samples, dtype=np.float64)
    whole = float(sum(energy for degree, energy in energies.items() if degree > 0))
    if not (n >= 0).all() or not whole > 0:
        raise InvalidParameter(
            f"samples is {samples} and the energies sum to {whole:g}; allowed: samples >= 0 and a "
            "positive sum."
        )
    # The error is 1 - sum_p E_p min(1, n/D_p) / sum_p E_p   (sequential 27) (compositional 17)
    learned = np.zeros(n.shape)
    for degree, energy in energies.items():
        if degree > 0:
            learned += energy * np.minimum(1.0, n / degree_dimension(dimension, degree))
    return np.asarray(1 - learned / whole)
