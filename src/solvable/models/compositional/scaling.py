"""Sample sizes of compositional targets in powers of the dimension, and what a kernel can do."""

from __future__ import annotations

from math import comb

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter


def recovery_exponent(*, degree: int, epsilon: float, layers: int = 3) -> float:
    r"""Exponent :math:`\alpha` of :math:`n\sim d^\alpha` at which all features are found.

    .. math:: q+\varepsilon\ \text{(three layers)},\qquad q+2\varepsilon\ \text{(four layers)}

    for p ~ d^epsilon features and last layers without a preferred sign. Three layers:
    arXiv:2602.10867; four: derived from :func:`effective_matrix`.

    Parameters
    ----------
    degree : int
        :math:`q`, at least 1.
    epsilon : float
        :math:`\varepsilon\ge0`.
    layers : {3, 4}
        Depth of the target.

    Returns
    -------
    float
        The exponent.

    Examples
    --------
    >>> recovery_exponent(degree=2, epsilon=0.5), recovery_exponent(
    ...     degree=2, epsilon=0.5, layers=4
    ... )
    (2.5, 3.0)
    """
    check_positive(degree=degree)
    if layers not in (3, 4) or epsilon < 0:
        raise InvalidParameter(
            f"layers is {layers} and epsilon is {epsilon}; allowed: 3 or 4, and at least 0."
        )
    return degree + (layers - 2) * epsilon


def kernel_samples(*, dimension: int, degree: int) -> float:
    r"""Samples, about :math:`d^r/r!`, that a rotation-invariant kernel needs for degree r.

    Parameters
    ----------
    dimension : int
        :math:`d`.
    degree : int
        :math:`r`; a target of three layers has degree 2q, of four layers 4q.

    Returns
    -------
    float
        :math:`\binom{d+r-1}{r}`, the number of features of that degree.

    Notes
    -----
    arXiv:2605.14567 section 3, with the constant of the space of degree r.

    Examples
    --------
    >>> kernel_samples(dimension=40, degree=4)
    123410.0
    """
    check_positive(dimension=dimension, degree=degree)
    return float(comb(dimension + degree - 1, degree))


def degree_two_share(second_moment: np.ndarray, *, draws: int, label_variance: float) -> float:
    r"""Share of the label's variance in degree 2 of the input, from a sample moment.

    .. math:: \frac{\tfrac12\|E[y(xx^\top-I)]\|_F^2}{\mathrm{Var}(y)}

    It is what any rotation-invariant kernel can learn between :math:`d^2/2` and :math:`d^4/24`
    samples. The noise of the sample moment, :math:`\mathrm{Var}(y)D_2/m`, is subtracted.

    Parameters
    ----------
    second_moment : ndarray of shape (d, d)
        Mean of :math:`y(xx^\top-I)` over m draws.
    draws : int
        :math:`m`.
    label_variance : float
        :math:`\mathrm{Var}(y)`, above 0.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> degree_two_share(np.diag([1.0, 0.0]), draws=10**9, label_variance=0.5).__round__(3)
    1.0
    """
    check_positive(draws=draws, label_variance=label_variance)
    d = second_moment.shape[0]
    energy = np.sum(second_moment**2) / 2 - label_variance * comb(d + 1, 2) / draws
    return float(np.clip(energy / label_variance, 0.0, 1.0))
