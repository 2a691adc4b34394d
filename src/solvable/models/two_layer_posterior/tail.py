r"""Exact probability of an alignment under the prior of a network of finite width, and its exponents."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.large_deviation import readout_scale
from solvable.models.two_layer_posterior.overlap import NeuronOverlap, neuron_overlap

WIDEST = 1_000_000
"""Largest dimension: the integral over the rest of a neuron has some 5 sqrt(d) points."""


@dataclass(frozen=True)
class TailEnergy:
    r"""Minus the logarithm of the prior probability of an alignment of at least :math:`\alpha`.

    Parameters
    ----------
    energy : float
        :math:`-\log\Pr[A \ge \alpha]`.
    neurons : int
        Number of neurons in the cheapest configuration of equal ones.
    u, r : float
        Their component along the target and their squared rest.
    cost : float
        Cost of that configuration, without the entropy around it.
    power : float
        Mean of :math:`V = \sigma_a^2 \sum_i c_i^2/(N\chi)`, the variance of A given the hidden weights,
        among the networks that reach the alignment.
    """

    energy: float
    neurons: int
    u: float
    r: float
    cost: float
    power: float


def tail_energy(
    *,
    dimension: int,
    width: int,
    alignment: float = 1.0,
    degree: int = 3,
    activation: str = "erf",
    readout: str = "standard",
    readout_variance: float = 1.0,
    bins: int = 2_000,
) -> TailEnergy:
    r"""Exact :math:`-\log\Pr[A \ge \alpha]` of a two-layer network under its prior.

    .. math:: \Pr[A \ge \alpha] = E_V\,Q(\alpha/\sqrt V),\qquad
        V = \frac{\sigma_a^2}{N\chi} \sum_{i \le N} c(w_i)^2

    Parameters
    ----------
    dimension : int
        d, from 2 to 1000000.
    width : int
        N, at least 1.
    alignment : float
        :math:`\alpha > 0`.
    degree : int
        Degree of the target.
    activation : str
        One of ``ACTIVATIONS``, or a formula in z, whose overlap
        grows with u.
    readout : {"standard", "mean-field"}
        chi = 1 or N.
    readout_variance : float
        sigma_a^2.
    bins : int
        Grid of V.

    Returns
    -------
    TailEnergy
        The energy, and the neurons that are cheapest.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range or the overlap does not grow with u.

    Notes
    -----
    Derived. The law of c^2 by quadrature over the rest of a neuron, its N-fold convolution by doubling,
    all in logarithms, so that no tilt is needed: a tilt reaches the convex hull of the rate alone, and
    below width d the rate is concave. There the Chernoff energy grows like :math:`\sqrt{Nd}` and the true
    one like :math:`d^{(m+n)/(m+1)}`, :math:`N = d^n`: one neuron of strength :math:`d^{-(1-n)/(2m+2)}`.
    Cost: about :math:`\log_2 N` times 0.1 s. Backed by ``tests/models/two_layer_posterior/test_tail.py``.

    Examples
    --------
    >>> found = tail_energy(dimension=1_000, width=10)
    >>> found.neurons, round(found.u, 1)
    (1, 1.0)
    """
    scale = _check(dimension, width, alignment, readout, readout_variance) / width
    overlap = neuron_overlap(activation, degree)
    neurons, square, cost, u, r = _cheapest(overlap, dimension, width, scale, alignment)
    # up to four times the cheapest V, and to where lazy networks are
    lazy = width * specialisation(activation, degree).gaussian / float(dimension) ** degree
    spacing = max(4 * neurons * square, 30 * lazy) / bins
    edges = np.append(0.0, spacing * (np.arange(bins) + 0.5))
    survival = _log_survival(overlap, dimension, edges)
    one = _log_difference(survival)
    # what lies below the first edge counts by its mean
    below = _mean_below(overlap, dimension, float(edges[1]))
    power = scale * (spacing * np.arange(bins) + width * below)
    law = _log_fold(one, width)
    from scipy.special import log_ndtr

    # A is Gaussian of variance V given the hidden weights
    terms = law + log_ndtr(-alignment / np.sqrt(power))
    top = float(terms.max())
    weight = np.exp(terms - top)
    whole = float(weight.sum())
    return TailEnergy(-top - log(whole), neurons, u, r, cost, float(weight @ power) / whole)


def single_neuron_cost(
    *,
    dimension: float,
    width: float,
    alignment: float = 1.0,
    degree: int = 3,
    activation: str = "erf",
) -> float:
    r"""Least :math:`\frac d2\omega^2 + \alpha^2 N/(2c^2)` of one neuron, at sizes of any magnitude."""
    overlap = neuron_overlap(activation, degree)
    return _cheapest(overlap, dimension, 1, 1 / width, alignment)[2]


def _cheapest(
    overlap: NeuronOverlap, dimension: float, most: int, scale: float, alignment: float
) -> tuple[int, float, float, float, float]:
    """Number of equal neurons, their c^2, cost, u and r, at the least weight decay."""
    u = np.geomspace(1e-4, 300.0, 3_000)
    log_r = np.append(-np.geomspace(12.0, 1e-5, 500), 0.0)
    squares = np.maximum(overlap.value(u[:, None], np.exp(log_r)) ** 2, 1e-300)
    # (d/2)(u^2 + r - 1 - log r)
    decay = dimension / 2 * (u[:, None] ** 2 + np.expm1(log_r) - log_r)
    best: tuple[float, int, int, int] | None = None
    counts = np.unique(np.round(np.geomspace(1, most, 60)).astype(int))
    for count in counts:
        cost = count * decay + alignment**2 / (2 * scale * count * squares)
        row, column = np.unravel_index(np.argmin(cost), cost.shape)
        if best is None or cost[row, column] < best[0]:
            best = (float(cost[row, column]), int(count), int(row), int(column))
    assert best is not None
    least, neurons, at_u, at_r = best
    return neurons, float(squares[at_u, at_r]), least, float(u[at_u]), float(np.exp(log_r[at_r]))


def _rest(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes r and log probabilities of the squared rest, chi^2_(d-1)/d."""
    high = log(1 + 120 / dimension + sqrt(160 / dimension))
    low = -(3.0 + 80.0 / (dimension - 1))
    log_r = np.arange(low, high, 0.5 * sqrt(2 / dimension))
    weight = (dimension - 1) / 2 * log_r - dimension / 2 * np.exp(log_r)
    weight -= weight.max()
    return np.exp(log_r), weight - log(np.exp(weight).sum())


def _log_survival(overlap: NeuronOverlap, dimension: int, squares: np.ndarray) -> np.ndarray:
    """Log Pr[c^2 > v] at each v."""
    from scipy.special import erfcx

    u = np.geomspace(1e-5, 900.0, 4_000)
    total = np.full(squares.size, -np.inf)
    with np.errstate(divide="ignore"):
        wanted = np.log(squares)
        for r, log_weight in zip(*_rest(dimension), strict=True):
            value = np.log(np.maximum(overlap.value(u, r) ** 2, 1e-300))
            if (np.diff(value) < -1e-9).any():
                raise NotConverged(
                    f"the overlap of {overlap.activation!r} with He{overlap.degree} falls somewhere as "
                    "the neuron grows; allowed: activations whose overlap grows with u.",
                    {"r": float(r)},
                )
            # c grows with u, so that c^2 > v means |u| > u(v, r), of which log erfc(x) is the probability
            x = sqrt(dimension / 2) * np.exp(np.interp(wanted, value, np.log(u)))
            tail = np.where(wanted > value[-1], -np.inf, np.log(erfcx(x)) - x * x)
            tail = np.where(wanted < value[0], 0.0, tail)
            total = np.logaddexp(total, log_weight + tail)
    return np.minimum(total, 0.0)


def _log_difference(survival: np.ndarray) -> np.ndarray:
    """Log of the probability between neighbouring places; what lies beyond the last is left out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = survival[:-1] + np.log(-np.expm1(survival[1:] - survival[:-1]))
    return np.where(np.isfinite(survival[:-1]), found, -np.inf)


def _mean_below(overlap: NeuronOverlap, dimension: int, edge: float) -> float:
    """Mean of c^2 where it is below an edge."""
    places = np.append(0.0, np.geomspace(1e-8 * edge, edge, 200))
    survival = np.exp(_log_survival(overlap, dimension, places))
    # int_0^e v dF = int_0^e S dv - e S(e)
    area = float(np.sum(np.diff(places) * (survival[1:] + survival[:-1]) / 2))
    return max(area - edge * float(survival[-1]), 0.0)


def _log_convolve(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Logarithm of the convolution of two laws, cut to the same length."""
    found = np.empty_like(left)
    for k in range(left.size):
        terms = left[: k + 1] + right[k::-1]
        top = terms.max()
        found[k] = top if top == -np.inf else top + log(np.exp(terms - top).sum())
    return found


def _log_fold(one: np.ndarray, count: int) -> np.ndarray:
    """Logarithm of the law of a sum of so many, by doubling."""
    power, total = one, None
    while count:
        if count & 1:
            total = power if total is None else _log_convolve(total, power)
        count >>= 1
        if count:
            power = _log_convolve(power, power)
    assert total is not None
    return total


def _check(
    dimension: int, width: int, alignment: float, readout: str, readout_variance: float
) -> float:
    """Variance of the readout times the width."""
    for name, value, least in (("dimension", dimension, 2), ("width", width, 1)):
        if not isinstance(value, int | np.integer) or not least <= value <= WIDEST:
            raise InvalidParameter(
                f"{name} is {value!r}; allowed: an integer from {least} to {WIDEST}."
            )
    for name, number in (("alignment", alignment), ("readout_variance", readout_variance)):
        if not 0 < number < np.inf:
            raise InvalidParameter(f"{name} is {number}; allowed: above 0 and finite.")
    return readout_variance / readout_scale(readout, width)
