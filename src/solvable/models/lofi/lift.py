r"""What a lift before the first filter changes: the tail of the activation as a label map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter, NotConverged
from solvable.hermite import gaussian_quadrature
from solvable.operators.activations import evaluate, kernel_diagonal
from solvable.spectra.label_law import LabelLaw


def activation_energies(activation: str) -> tuple[float, float, float]:
    r"""Energy of an activation in degree 0, in degree 1, and in all the rest.

    .. math:: c_0^2=(E\,\sigma)^2,\quad c_1^2=(E\,\sigma(\xi)\xi)^2,\quad
        c_*^2=E\,\sigma^2-c_0^2-c_1^2

    Parameters
    ----------
    activation : str
        One of :data:`solvable.operators.activations.ACTIVATIONS`.

    Returns
    -------
    constant, linear, tail : float
        They sum to the diagonal of the kernel at pre-activations of variance 1.

    Raises
    ------
    InvalidParameter
        If the activation is unknown.

    Examples
    --------
    >>> [round(energy, 4) for energy in activation_energies("relu")]
    [0.1592, 0.25, 0.0908]
    """
    nodes, chance = gaussian_quadrature(128, (0.0,))
    values = evaluate(activation, nodes)
    constant, linear = float(chance @ values) ** 2, float(chance @ (values * nodes)) ** 2
    total = float(kernel_diagonal(activation, np.ones(1))[0])
    return constant, linear, max(total - constant - linear, 0.0)


@dataclass(frozen=True)
class LiftedPrediction:
    r"""Filter after an infinitely wide lift, at one sample ratio.

    Attributes
    ----------
    edge : float
        Upper edge of the bulk of :math:`\frac1nG^{1/2}\mathrm{diag}(T)G^{1/2}`, times n.
    eigenvalue : float
        Outlier of the direction, times n; NaN where there is none.
    squared_overlap : float
        Of the linear part of its eigenfunction with the direction, which is all of it that reaches
        fresh samples; 0 without outlier.
    emergence_ratio : float
        :math:`\alpha_c`.
    """

    edge: float
    eigenvalue: float
    squared_overlap: float
    emergence_ratio: float


def predict_lifted_filter(
    law: LabelLaw, *, ratio: float, activation: str = "relu", direction: int = 0
) -> LiftedPrediction:
    r"""Upper end of the filter after an infinitely wide lift of isotropic Gaussian inputs.

    At :math:`n=\alpha d` the kernel is :math:`G\simeq c_0^211^\top+c_1^2XX^\top/d+c_*^2I`. The tail of
    the activation acts as the label map :math:`T/(n\lambda-c_*^2T)` of a filter of raw inputs: with
    :math:`r=c_*^2/c_1^2` and, at parameter q,
    :math:`A=E\frac{T(s^2-1)}{q-T}`, :math:`B=E\frac T{q-T}`, :math:`D=E\frac{T^2}{(q-T)^2}`,

    .. math::
        \text{outlier}:\ (\alpha A-1)\Big(1+\frac BA\Big)=r,\qquad
        \text{edge}:\ (g-1)\Big(1+\frac{\alpha B}g\Big)=r,\ g=\sqrt{\alpha D},\qquad
        n\lambda=\frac{c_*^2\,q\,g}{g-1},

    :math:`g=\alpha A` for the outlier, and the threshold is :math:`\alpha_c=D/A^2` at
    :math:`(D/A-1)(1+B/A)=r`; r = 0 is the filter of raw inputs. The tail favours the label of the
    larger :math:`E[s^2\mid T]`, which the best map does not: it delays emergence. The constant
    :math:`c_0` adds two outliers near :math:`\pm c_0\sqrt{n(c_1^2+c_*^2)\tau_2}` of no relevance to an
    even label; they take two places among the kept directions.

    Parameters
    ----------
    law : LabelLaw
        Of a label map of mean zero; pass ``law.mirrored()`` for the lower end.
    ratio : float
        :math:`\alpha=n/d`.
    activation : str
        One of :data:`solvable.operators.activations.ACTIVATIONS`, with a linear part.
    direction : int
        Which direction of the law.

    Returns
    -------
    LiftedPrediction
        Edge, outlier, overlap and threshold.

    Raises
    ------
    InvalidParameter
        If the activation has no linear part, or labels have a mean or no bound.
    NotConverged
        If a root could not be bracketed.

    Notes
    -----
    Milliseconds. Valid for :math:`n=O(d)`, even labels, and in the limit of many dimensions (no
    rounding). Derived; backed by ``tests/models/lofi/test_lift.py`` (kernel matrices of simulated
    samples).

    Examples
    --------
    >>> found = predict_lifted_filter(LabelLaw.balanced(0.857347), ratio=5.0)
    >>> round(found.emergence_ratio, 3), round(found.squared_overlap, 2)
    (1.779, 0.63)
    """
    check_positive(ratio=ratio)
    _, linear, tail = activation_energies(activation)
    if linear <= 1e-6 * (linear + tail):
        raise InvalidParameter(
            f"the activation {activation} has no linear part, so that n of order d samples show the "
            "filter nothing of the inputs; allowed: one with E[sigma(z) z] != 0, such as relu."
        )
    if abs(law.mean_weight) > 1e-6 * np.sqrt(law.weight_power):
        raise InvalidParameter(
            f"the labels have mean {law.mean_weight:.3g}; allowed: 0. Centre the label map."
        )
    law.check_bounded()
    moments = _Moments(law, direction)
    # r = c_*^2 / c_1^2. A vanishing tail leaves r = 0 an ordinary root; the place is then a limit of 0/0.
    r = max(tail / linear, 1e-9)
    edge_at = moments.root(lambda q: _edge_condition(moments, q, ratio) - r)
    g = np.sqrt(ratio * moments.D(edge_at))
    # n lambda = c_*^2 q g / (g - 1), c_*^2 = r c_1^2
    edge = r * linear * edge_at * g / (g - 1)
    threshold = _threshold(moments, r)
    if ratio * moments.A(edge_at) <= g:
        return LiftedPrediction(edge, np.nan, 0.0, threshold)

    def outlier(q: float) -> float:  # (alpha A - 1) (1 + B / A) = r
        A = moments.A(q)
        return (ratio * A - 1) * (1 + moments.B(q) / A) - r

    at = moments.root(outlier, above=edge_at)
    g = ratio * moments.A(at)
    slope = 1 / ratio - moments.D(at) / g**2
    overlap = slope / (slope + moments.coupled(at) / g**2)
    return LiftedPrediction(edge, r * linear * at * g / (g - 1), float(overlap), threshold)


def _edge_condition(moments: _Moments, q: float, ratio: float) -> float:
    # (g - 1) (1 + alpha B / g) = r, g = sqrt(alpha D)
    g = np.sqrt(ratio * moments.D(q))
    return float((g - 1) * (1 + ratio * moments.B(q) / g))


def _threshold(moments: _Moments, r: float) -> float:
    if moments.strength <= 0:
        return float("inf")

    def condition(q: float) -> float:
        A = moments.A(q)
        # (D / A - 1) (1 + B / A) = r; where A is not positive, the direction is deep in the bulk.
        return np.inf if A <= 0 else (moments.D(q) / A - 1) * (1 + moments.B(q) / A) - r

    q = moments.root(condition)
    return float(moments.D(q) / moments.A(q) ** 2)  # alpha_c = D / A^2


class _Moments:
    """Averages over the label law at a parameter q above the largest weight."""

    def __init__(self, law: LabelLaw, direction: int) -> None:
        if not 0 <= direction < law.n_directions:
            raise InvalidParameter(
                f"direction is {direction}; allowed: 0 to {law.n_directions - 1}."
            )
        self.T, self.chance = law.weights, law.probabilities
        self.square = law.second_moments[:, direction]
        self.top = float(law.weights[-1])
        self.strength = float(law.strengths[direction])

    def A(self, q: float) -> float:  # E[T (s^2 - 1) / (q - T)]
        return float((self.chance * self.T / (q - self.T)) @ (self.square - 1))

    def B(self, q: float) -> float:  # E[T / (q - T)]
        return float(np.sum(self.chance * self.T / (q - self.T)))

    def D(self, q: float) -> float:  # E[T^2 / (q - T)^2]
        return float(np.sum(self.chance * (self.T / (q - self.T)) ** 2))

    def coupled(self, q: float) -> float:  # E[T^2 s^2 / (q - T)^2]
        return float(np.sum(self.chance * (self.T / (q - self.T)) ** 2 * self.square))

    def root(self, condition: Callable[[float], float], above: float | None = None) -> float:
        """Root in q of a condition that decreases from positive to negative."""
        from scipy.optimize import brentq

        base = self.top if above is None else above
        grid = base * (1 + np.geomspace(1e-9, 1e9, 181))
        values = np.array([condition(float(q)) for q in grid])
        below = np.flatnonzero(values <= 0)
        if not below.size or below[0] == 0:
            raise NotConverged(
                f"no root was found above {base:.4g}: the condition goes from {values[0]:.3g} to "
                f"{values[-1]:.3g}. Check the label law for extreme values.",
                {"above": base},
            )
        k = int(below[0])
        low = float(grid[k - 1])
        if np.isinf(values[k - 1]):
            low = float(brentq(lambda q: self.A(q) - 1e-12, low, float(grid[k])))
        return float(brentq(condition, low, float(grid[k]), xtol=1e-12))
