r"""What a rotation-invariant kernel learns: one polynomial degree after another, no features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter
from solvable.moment_spectrum.quadratic_forms import degree_two_energy, quadratic_index_variance


def degree_dimension(dimension: int, degree: int) -> int:
    r"""Number :math:`D_p=\binom{d+p-1}{p}\approx d^p/p!` of Hermite features of degree p."""
    check_positive(dimension=dimension)
    if degree < 0:
        raise InvalidParameter(f"degree is {degree}; allowed: an integer of at least 0.")
    return comb(dimension + degree - 1, degree)


def degree_energies(
    *, weights: np.ndarray, dimension: int, matrices: np.ndarray | None = None
) -> dict[int, float]:
    r"""Energy of :math:`h^{(2)}` in each Hermite degree of the input, features of degree 2.

    .. math::
        E_2=4\|S\|_F^2\approx\frac4d\Big(1+\big(\textstyle\sum_i\lambda_i\big)^2\Big),\qquad
        E_4=1+2\sum_{ij}\lambda_i\lambda_j\mathrm{tr}(M_iM_jM_iM_j)\approx1+\frac4d,

    :math:`S=\sum_i\lambda_iM_i^2`; their sum is :math:`\mathrm{Var}(h^{(2)})`.

    Notes
    -----
    O(p^2 d^3) with matrices. Derived from the fourth joint cumulant of quadratic forms; backed by
    ``tests/models/sequential/test_kernel_staircase.py`` and
    ``tests/models/sequential/test_note_theory.py``.
    """
    check_positive(dimension=dimension)
    strengths = np.asarray(weights, dtype=np.float64)
    if matrices is None:
        # E tr S^2 = (1 + (sum lambda)^2) / d over random M_i of norm 1
        low = 4 / dimension * float(np.sum(strengths**2) + np.sum(strengths) ** 2)
        return {2: low, 4: float(np.sum(strengths**2)) * (1 + 4 / dimension)}
    M = np.asarray(matrices, dtype=np.float64)
    if M.shape != (strengths.size, dimension, dimension):
        raise InvalidParameter(
            f"matrices have shape {M.shape}; allowed: ({strengths.size}, {dimension}, {dimension})."
        )
    low = degree_two_energy(M, strengths)
    return {2: low, 4: quadratic_index_variance(M, strengths) - low}


def best_kernel_error(
    *, samples: float | np.ndarray, dimension: int, energies: Mapping[int, float]
) -> np.ndarray:
    r"""Least normalised error of a rotation-invariant kernel, a staircase in n.

    .. math:: 1-\frac{\sum_pE_p\min(1,n/D_p)}{\sum_pE_p}

    Degree p costs :math:`D_p` samples; with fewer, n directions of its :math:`D_p` are known and the
    same share of its energy, since all of them have one kernel eigenvalue: no sequential recovery.

    Parameters
    ----------
    samples : float or array
        :math:`n\ge0`.
    dimension : int
        :math:`d`.
    energies : mapping
        Energy of the label by degree, as from :func:`degree_energies`; degree 0 is free.

    Returns
    -------
    ndarray
        In [0, 1], of the shape of ``samples``; a lower bound, as ridge and lower degrees cost more.

    Raises
    ------
    InvalidParameter
        If the energies are not positive in sum, or a sample size is negative.

    Notes
    -----
    O(1). Lower bound by counting dimensions, arXiv:2605.14567 section 3 (n = omega(d^(2q))); backed
    by ``tests/models/sequential/test_kernel_staircase.py`` (ridgeless regression).

    Examples
    --------
    >>> energies = degree_energies(weights=np.array([0.8, -0.6]), dimension=40)
    >>> best_kernel_error(samples=np.array([0, 820, 13_120]), dimension=40, energies=energies).round(3)
    array([1.   , 0.908, 0.816])
    """
    n = np.asarray(samples, dtype=np.float64)
    whole = float(sum(energy for degree, energy in energies.items() if degree > 0))
    if not (n >= 0).all() or not whole > 0:
        raise InvalidParameter(
            f"samples is {samples} and the energies sum to {whole:g}; allowed: samples >= 0 and a "
            "positive sum."
        )
    # 1 - sum_p E_p min(1, n/D_p) / sum_p E_p
    learned = np.zeros(n.shape)
    for degree, energy in energies.items():
        if degree > 0:
            learned += energy * np.minimum(1.0, n / degree_dimension(dimension, degree))
    return np.asarray(1 - learned / whole)


@dataclass(frozen=True)
class LearningExponents:
    r"""Sample sizes in powers of d at which each learner gets each part of a SIGHT target.

    Attributes
    ----------
    kernel : float
        Of the whole degree :math:`k` polynomial: :math:`k`.
    first_layer : float
        Of the directions :math:`W^\star`, two and three layers: :math:`1+\varepsilon_1`.
    two_layer_degree : float
        Exponent k' of n at which two layers learn degree :math:`\kappa`: :math:`\kappa\varepsilon_1`.
    second_layer : float
        Of the index :math:`h^\star`, three layers: :math:`k\varepsilon_1`.
    whole : float
        Of everything by three layers: the larger of first and second layer.
    """

    kernel: float
    first_layer: float
    two_layer_degree: float
    second_layer: float
    whole: float


def single_index_exponents(
    *, polynomial_degree: int, epsilon: float, readout_degree: int = 1
) -> LearningExponents:
    r"""Exponents for :math:`f=g(d^{-\varepsilon_1/2}a\cdot P_k(Wx))` with :math:`d^{\varepsilon_1}` rows.

    Notes
    -----
    arXiv:2502.13961: a kernel learns degree :math:`\kappa` at :math:`d^\kappa`; two layers learn W at
    :math:`d^{1+\varepsilon_1}` and then degree :math:`\kappa` in :math:`Wx` at
    :math:`d^{\kappa\varepsilon_1}`; three layers learn the index at :math:`d^{k\varepsilon_1}`.
    """
    if polynomial_degree < 2 or readout_degree < 1 or not 0 < epsilon < 1:
        raise InvalidParameter(
            f"polynomial_degree is {polynomial_degree}, readout_degree {readout_degree} and epsilon "
            f"{epsilon}; allowed: at least 2, at least 1, and in (0, 1)."
        )
    # 2502.13961: W at d^(1 + eps) by two and three layers, the index at d^(k eps) by three
    total = polynomial_degree * readout_degree
    first, second = 1 + epsilon, polynomial_degree * epsilon
    return LearningExponents(float(total), first, total * epsilon, second, max(first, second))
