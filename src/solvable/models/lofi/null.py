r"""Largest eigenvalue of a lifted filter whose labels are shuffled: what a direction has to exceed."""

from __future__ import annotations

import math

import numpy as np

from solvable.arrays import check_integer, check_positive
from solvable.errors import InvalidParameter
from solvable.hermite import gaussian_quadrature
from solvable.models.lofi.lift import activation_energies, predict_lifted_filter
from solvable.operators.activations import evaluate
from solvable.spectra.edge_levels import FIRST, SECOND
from solvable.spectra.label_law import LabelLaw


def predict_lifted_null(
    law: LabelLaw,
    *,
    ratio: float,
    dimension: int,
    activation: str = "relu",
    centred: bool = False,
    raw_labels: bool = False,
) -> float:
    r"""Mean of the largest modulus among the eigenvalues of a lifted filter of shuffled labels, times n.

    With the constant :math:`c_0` of the activation in the features, this is one of a pair of
    eigenvalues that the noise of the block constant x linear makes,

    .. math:: \lambda^2-a\lambda-B^2=0,\qquad B^2=nc_0^2k\,\tau_2,\qquad
        k=\frac{c_1^2}{1-c_1^2/(c_0^2d)}+c_*^2,

    so about :math:`c_0\sqrt{n(c_1^2+c_*^2)\tau_2}`, whereas a direction of strength
    :math:`\theta=E[T(s^2-1)]` is at about :math:`nc_1^2\theta/d`. It exceeds the pair from
    :math:`n\simeq d^2\,c_0^2(c_1^2+c_*^2)\tau_2/(c_1^4\theta^2)` samples on. Centred features have no
    constant: the null is the edge of the bulk, which a direction exceeds from
    :math:`\alpha_c d` samples on.

    Parameters
    ----------
    law : LabelLaw
        Of the label map; its directions play no part.
    ratio : float
        :math:`\alpha=n/d`.
    dimension : int
        :math:`d`, at least 3.
    activation : str
        One of :data:`solvable.operators.activations.ACTIVATIONS`, with a linear part.
    centred : bool
        Whether features are centred on the training samples.
    raw_labels : bool
        Whether labels keep the mean that they have in a sample; otherwise it is subtracted.

    Returns
    -------
    float
        The mean over samples.

    Raises
    ------
    InvalidParameter
        If the activation has no linear part, or a number is out of range.

    Notes
    -----
    One edge of a bulk. Derived, corrections of order 1/d kept where they are known; backed by
    ``tests/models/lofi/test_null.py`` (kernel matrices of shuffled labels).

    Examples
    --------
    >>> law = LabelLaw.balanced(0.857347)
    >>> nulls = [predict_lifted_null(law, ratio=8.0, dimension=40, centred=c) for c in (False, True)]
    >>> [round(null, 1) for null in nulls]
    [4.5, 1.6]
    """
    check_positive(ratio=ratio)
    check_integer("dimension", dimension, 3)
    # Shuffled labels leave every coordinate its variance.
    blind = LabelLaw(law.weights, law.probabilities, np.ones((law.weights.size, 1)))
    ends = [
        predict_lifted_filter(facing, ratio=ratio, activation=activation, dimension=dimension)
        for facing in (blind, blind.mirrored())
    ]
    # Levels of a Tracy-Widom edge: deviation 1.268, in units of the distance between first and second.
    scatter = [1.268 / (FIRST - SECOND) * (end.eigenvalue - end.next_eigenvalue) for end in ends]
    edge = _mean_of_larger([end.eigenvalue for end in ends], scatter)
    constant, linear, tail = activation_energies(activation)
    if centred or constant < 1e-9:
        return edge
    return max(edge, _pair(law, ratio, dimension, activation, raw_labels=raw_labels))


def _mean_of_larger(means: list[float], deviations: list[float]) -> float:
    """Mean of the larger of two independent Gaussians."""
    # E max = m_1 Phi(t) + m_2 Phi(-t) + s phi(t), t = (m_1 - m_2) / s, s^2 = s_1^2 + s_2^2
    s = math.hypot(*deviations)
    t = (means[0] - means[1]) / s
    share = 0.5 * (1 + math.erf(t / math.sqrt(2)))
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return means[0] * share + means[1] * (1 - share) + s * density


def _pair(
    law: LabelLaw, ratio: float, dimension: int, activation: str, *, raw_labels: bool
) -> float:
    """Mean of the larger modulus of the pair of eigenvalues that the constant makes."""
    n = ratio * dimension
    law = law.clipped(n)
    T = law.weights - law.mean_weight
    power, third, fourth = (float(law.probabilities @ T**q) for q in (2, 3, 4))
    constant, linear, tail = activation_energies(activation)
    # c_2 = E[sigma He_2] / sqrt 2: the trace of the second degree is constant too.
    nodes, chance = gaussian_quadrature(128, (0.0,))
    second = float(chance @ (evaluate(activation, nodes) * (nodes**2 - 1))) ** 2 / 2
    constant += second / dimension
    # 1 = c_0^2 sum_mu T / (lambda - k T), expanded to the fourth moment of T
    k = linear / (1 - min(linear / (constant * dimension), 0.5)) + tail
    middle = k * third / power
    B2 = constant * n * k * power + k**2 * fourth / power
    # a fluctuates with the sum of T |x|^2 / d: Var |x|^2 = 2 d, and with that of T if labels are raw.
    spread = 4 * activation_energies(activation)[0] * second / dimension
    spread += constant**2 if raw_labels else 0.0
    deviation = math.sqrt(n * power * spread)
    z, weight = gaussian_quadrature(48, (-middle / deviation,) if deviation > 1e-12 else ())
    a = np.abs(middle + deviation * z)
    return float(weight @ (a / 2 + np.sqrt(a**2 / 4 + B2)))
