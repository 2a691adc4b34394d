"""State evolution of a Boltzmann machine of sign units: overlap, norm, stability (boltzmann 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.inference.inputs import isotropic
from solvable.inference.losses import Penalty
from solvable.inference.risk import rotated, solved
from solvable.inference.sample_means import Seen, State
from solvable.spectra.roots import bracketed_root

LARGEST_COUPLING = 0.9999
"""Largest allowed V; at V >= 1 the proximal map of a sample has two branches."""


@dataclass(frozen=True)
class UnitState:
    """Fixed point of state evolution for one unit that learns one spike or, without spike, noise."""

    spike: float
    m: float  # overlap m = w . w* / d
    q: float  # squared norm q = |w|² / d
    V: float
    slope: float  # mean slope, alpha E[g']
    signal: float  # mean of latent sign times message, alpha E[u g]
    power: float  # mean squared message, alpha E[g²]
    replicon: float  # replicon alpha V² E[g'²]   (boltzmann 7)

    @property
    def overlap(self) -> float:
        """Cosine m / sqrt(q) of weights and spike; 0 if the weights are 0."""
        return self.m / float(np.sqrt(self.q)) if self.q > 0 else 0.0

    @property
    def stable(self) -> bool:
        """Return True if the likelihood has no other maximum nearby (replicon below 1)."""
        return self.replicon < 1 and self.V < LARGEST_COUPLING


def bulk_edge(sample_ratio: float) -> float:
    """Upper edge of the sample covariance spectrum for noise with variance 1."""
    return (1 + sample_ratio**-0.5) ** 2


def outlier(spike: float, sample_ratio: float) -> float:
    """Largest sample covariance eigenvalue with one spike; below the threshold, the noise edge."""
    if spike**2 * sample_ratio <= 1:
        return bulk_edge(sample_ratio)
    # (1 + lambda) (1 + 1 / (alpha lambda))
    return (1 + spike) * (1 + 1 / (sample_ratio * spike))


def component_overlap(spike: float, sample_ratio: float) -> float:
    """Cosine of the leading principal component with a spike in the limit (boltzmann 8)."""
    # zeta² = (1 - 1 / (alpha lambda²)) / (1 + 1 / (alpha lambda))   (boltzmann 8)
    share = (1 - 1 / (sample_ratio * spike**2)) / (1 + 1 / (sample_ratio * spike))
    return float(np.sqrt(max(share, 0.0)))


def unit_state(
    spike: float, sample_ratio: float, weight_decay: float = 0.0, *, partner: bool = False
) -> UnitState:
    """Fixed point of one sign unit (boltzmann 6); spike=0 means a unit that learns no spike."""
    # with a partner (a second unit with equal weights), tanh Q_12 = tanh q adds to the weight decay
    alpha, c = sample_ratio, 1 + weight_decay
    if c >= (outlier(spike, alpha) if spike else bulk_edge(alpha)):
        return _without_weights(spike, alpha, c)
    samples = _Samples(float(np.sqrt(spike)), alpha, c, partner)
    start = State(1.0 if spike else 0.0, 1.0 + spike, 0.3 / c)
    # The likelihood of one unit is an empirical risk: m = V m^, q = V² (m^² + q^)   (boltzmann 6)
    learn = rotated(0.0, isotropic(1.0))
    m, q, V = solved(samples, learn, alpha, Penalty("l2", 0.0), start)[0].state
    V = V if V < LARGEST_COUPLING * (1 - 1e-9) else LARGEST_COUPLING
    slope, signal, power, square = (alpha * mean for mean in samples.means(State(m, q, V)))
    return UnitState(spike, m, q, V, slope, signal, power, V**2 * square)


@dataclass(frozen=True)
class _Samples:
    """Samples seen by one unit, whose partition function and weight decay are the curvature c."""

    scale: float  # sqrt(lambda)
    sample_ratio: float
    decay: float
    partner: bool
    rho = 1.0

    def means(self, state: State) -> list[float]:
        """Compute E[g'], E[u g], E[g²] and E[g'²] for omega = sqrt(lambda) m u + sqrt(q) xi."""
        z, density, _ = nodes(self.scale * state.m, state.q, state.V)
        g = np.tanh(z)
        curvature = 1 - g * g
        slope = curvature / (1 - state.V * curvature)
        return [float(density @ part) for part in (slope, g, g * g, slope * slope)]

    def see(self, state: State) -> Seen:
        """Means of the messages g, whose slopes lower the response."""
        slope, signal, power, _ = self.means(state._replace(V=min(state.V, LARGEST_COUPLING)))
        response = self.decay + np.tanh(state.q) * self.partner - slope
        least = 1 / (LARGEST_COUPLING * self.sample_ratio)
        return Seen(self.scale * signal, power, max(float(response), least))


def _without_weights(spike: float, alpha: float, c: float) -> UnitState:
    """State of a unit with weights 0, for sample covariance eigenvalues of at most 1 + l."""
    # V is the smaller root of V (alpha c - alpha / (1 - V)) = 1   (boltzmann 9)
    half = (alpha * (c - 1) + 1) / 2
    V = (half - np.sqrt(max(half**2 - alpha * c, 0.0))) / (alpha * c)
    # equivalent: alpha c V² - (alpha c + 1 - alpha) V + 1 = 0
    slope = 1 / (1 - V)
    return UnitState(spike, 0.0, 0.0, V, alpha * slope, 0.0, 0.0, alpha * (V * slope) ** 2)


def nodes(mean: float, q: float, V: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes z that solve z = omega + V tanh z, weights for omega ~ N(mean, q), and omega."""
    # integrate over z, because d omega = (1 - V tanh' z) dz is smooth for V near 1
    reach = abs(mean) + 8.5 * np.sqrt(q)
    last = min(reach / (1 - V), reach + V)
    z = np.linspace(-last, last, 1_001)
    g = np.tanh(z)
    omega = z - V * g
    density = np.exp(-((omega - mean) ** 2) / (2 * q)) * (1 - V * (1 - g * g))
    return z, density / density.sum(), omega


def bayes_overlap(spike: float, sample_ratio: float) -> float:
    """Bayes-optimal overlap for sign directions, latent signs and known parameters (boltzmann 11)."""
    if spike**2 * sample_ratio <= 1:
        return 0.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(101)
    weights = weights / weights.sum()

    def F(s: float) -> float:
        # F(s) = E tanh(s + sqrt(s) Z)
        return float(weights @ np.tanh(s + np.sqrt(s) * nodes))

    # q_w = F(lambda alpha q_u), q_u = F(lambda q_w)   (boltzmann 11); F is concave: one positive root
    def excess(q: float) -> float:
        return F(spike * sample_ratio * F(spike * q)) - q

    ends = (excess(1e-6), excess(1.0))
    if ends[1] >= 0:  # the overlap is 1 up to rounding errors
        return 1.0
    return float(np.sqrt(bracketed_root(excess, 1e-6, 1.0, ends=ends))) if ends[0] > 0 else 0.0
