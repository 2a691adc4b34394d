"""Label statistics of first patches of a random grammar: signal, noise and where they meet.

Entries of lists belong to the levels l = 1 ... L, from just below the label to the leaves. `sizes` are
the keyword arguments of :class:`~solvable.models.hierarchy.grammar.sizes.SparseSizes`. With
blanks, a patch is a tuple and the places of its symbols: synonyms also differ by these places.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma, log10
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar.sizes import (
    LARGEST_LOGARITHM,
    GrammarSizes,
    SparseSizes,
    check_number,
)
from solvable.models.hierarchy.rules import zipf_law

LARGEST_LAW = 10_000
"""Largest number of rules whose unequal probabilities are treated one by one."""

LARGEST_ZIPF = 5.0
"""Largest exponent of unequal rules; 10,000 rules then have probabilities of at least 1e-24."""


def threshold_samples(*, rules: int, depth: int, classes: int) -> float:
    """Number P* of samples at which the signal at the leaves is about twice the noise."""
    # Estimates of two tuples that are not synonyms differ by the signal plus the noise of both: P* is
    # where these two parts of the squared distance are about equal.
    if log10(classes) + depth * log10(rules) > LARGEST_LOGARITHM:
        raise InvalidParameter(
            f"P* = n_c m^L is above 10^{LARGEST_LOGARITHM:.0f} with classes {classes}, rules {rules} "
            f"and depth {depth}; allowed: smaller rules or depth."
        )
    # P* = n_c m^L (hierarchy 7)
    return float(classes) * float(rules) ** depth


def joint_squares(**sizes: Unpack[SparseSizes]) -> np.ndarray:
    """Mean squares of joint label statistics of the parents of first patches, shape (L,)."""
    # The statistic of parent a is the vector P(a, label) - P(a) / n_c, in units of the mean of P(a).
    grammar = GrammarSizes(**sizes)
    factors = grammar.contractions[:-1, 0]
    if grammar.ensemble == "latin":
        factors = np.zeros_like(factors)
    # J_1 = 1 - 1/n_c, J_(l + 1) = c_l J_l (hierarchy 4)
    return (1 - 1 / grammar.n_classes) * np.cumprod(np.concatenate([[1.0], factors]))


def level_thresholds(**sizes: Unpack[SparseSizes]) -> np.ndarray:
    """Samples at which the synonymic sensitivity of each level is 1/2, shape (L,); inf without signal."""
    # For large vocabularies these are n_c m^l, and the last one is P*.
    grammar = GrammarSizes(**sizes)
    with np.errstate(divide="ignore"):
        # N = 1 + (N_l m - 1) (1 - 1/n_c) / J_l (hierarchy 7), with blanks that of (hierarchy 35)
        pairs = (1 - 1 / (grammar.tuples * grammar.arrangements)) / grammar.chances
        return 1 + pairs * (1 - 1 / grammar.n_classes) / joint_squares(**sizes)


def squared_signal(**sizes: Unpack[SparseSizes]) -> np.ndarray:
    """Mean |q - q'|² over first patches that occur and are not synonyms, shape (L,)."""
    # For `uniform` with n_c m < V it is not a number from l = 2 on.
    grammar = GrammarSizes(**sizes)
    if grammar.scarce:
        return np.array([2.0] + [np.nan] * (grammar.depth - 1))
    if grammar.ensemble == "uniform":
        laws = [FirstSymbols.at_level(grammar, level) for level in range(1, grammar.depth + 1)]
        return np.array([law.signal for law in laws])
    # E|q - q'|² = 2 J_l N_l / (N_l - 1), which is 2 at l = 1 (hierarchy 5)
    return np.asarray(2 * joint_squares(**sizes) * grammar.parents / (grammar.parents - 1))


@dataclass(frozen=True)
class FirstSymbols:
    """Law of the frequency u of first symbols that parents of a level have, in units of its mean."""

    # Two transforms on a grid of t describe the law: 1 - E exp(-t u), and E[u² D exp(-t u)], where D is
    # the squared difference between the label laws of two symbols.

    log_nodes: np.ndarray
    absent_transform: np.ndarray
    signal_transform: np.ndarray
    absent: float

    @classmethod
    def at_level(cls, grammar: GrammarSizes, level: int) -> FirstSymbols:
        """Return the law of parents of patches of a level of the ensemble `uniform`."""
        above = slice(0, level - 1)
        means, tuples = grammar.per_symbol[above], grammar.tuples[above]
        # Range of t: u is at least 1 / product of the means, and a smaller t than exp(-12) adds exp(-24).
        logs = np.linspace(-12.0, 12.0 + min(30.0, max(0.0, np.log(means).sum())), 3_000)
        scale = np.exp(np.log(means).sum())
        t = np.exp(logs) / scale
        absent_transform, H = -np.expm1(-t), 2 * np.exp(-t)
        present = 1.0
        for mean, count, parents in zip(means, tuples, grammar.parents[above], strict=True):
            # The number of tuples with a given first symbol has this mean, and the variance of drawing
            # without replacement: it is treated as binomial of (possibly not whole) size `trials`.
            V, s = float(grammar.vocabulary), grammar.branching
            chance = 1 - (1 - 1 / V) * (1 - (count - 1) / (V**s - 1))
            trials = mean / chance
            # phi_(k + 1)(t) = G(phi_k(t / mu)), H_(k + 1)(t) = G'(phi_k(t / mu)) H_k(t / mu) / mu²
            # times (1 - 1/N) / (1 - 1/(N m)) (hierarchy 5)
            logarithm = log_complement(chance * absent_transform)
            H = H * np.exp((trials - 1) * logarithm) / mean * (1 - 1 / parents) / (1 - 1 / count)
            absent_transform = -np.expm1(trials * logarithm)
            present = float(-np.expm1(trials * log_complement(chance * present)))
        return cls(logs, absent_transform, H, 1 - present)

    @property
    def signal(self) -> float:
        """Mean squared difference of label laws of two symbols that occur."""
        # E[D | u > 0] = int_0^inf t H(t) dt / P(u > 0) (hierarchy 5)
        t = np.exp(self.log_nodes)
        integral = np.trapezoid(t**2 * self.signal_transform, self.log_nodes)
        return float(integral / (1 - self.absent))

    def inverse_counts(
        self, rate: np.ndarray, grammar: GrammarSizes
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean of (1 - |q|²) / n over counts n >= 1, and P(n >= 1); counts are Poisson, mean rate u."""
        t, H = np.exp(self.log_nodes), self.signal_transform
        # E[D exp(-t u)] = int_t^inf (r - t) H(r) dr (hierarchy 6)
        steps = np.diff(self.log_nodes)
        tails = [
            np.concatenate([np.cumsum(((f[1:] + f[:-1]) / 2 * steps)[::-1])[::-1], [0.0]])
            for f in (t * H, t * t * H)
        ]
        differences = tails[1] - t * tails[0]
        # |q|² = q.q' + D / 2 with q.q' = 1/n_c - E[u² D] / (2 V), as the mean of u q is uniform;
        # A(t) = E[(1 - |q|²) exp(-t u); u > 0] (hierarchy 6)
        common = 1 / grammar.n_classes - H[0] / (2 * grammar.vocabulary)
        A = (1 - common) * (1 - self.absent_transform - self.absent) - differences / 2
        x, weights = inverse_count_rule(rate)
        logs = np.log(rate)
        # E[(1 - |q|²) / n; n >= 1] = int_0^1 [A(rate x) - A(rate)] / (1 - x) dx (hierarchy 6)
        gain = np.interp(logs[..., None] + np.log(x), self.log_nodes, A)
        gain -= np.interp(logs, self.log_nodes, A)[..., None]
        seen = np.interp(logs, self.log_nodes, self.absent_transform)
        # Below 0 only by the error of the law, where almost all laws of labels are certain.
        return np.maximum((weights * gain / (1 - x)).sum(axis=-1), 0.0), seen


def log_complement(probability: ArrayLike) -> np.ndarray:
    """Return log(1 - p), finite at p = 1."""
    return np.asarray(np.log1p(-np.minimum(probability, 1 - 1e-16)))


def inverse_count_rule(rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes x and weights of integrals over x from 0 to 1 of functions that decay as exp(-rate x)."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    top, rest = np.log1p(rate)[..., None], (1 - nodes) / 2
    # x = (e^u - 1) / rate is dense near 0, where the function is large; u = top (1 - rest^3) is dense
    # near x = 1, where powers of log(1 - x) are singular.
    u = top * (1 - rest**3)
    steps = weights * 1.5 * top * rest**2 * np.exp(u) / rate[..., None]
    return np.expm1(u) / rate[..., None], steps


def inverse_count(
    samples: ArrayLike, probability: ArrayLike, power: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of n^-power over binomial counts n >= 1 (0 for n = 0), and the probability of n >= 1."""
    N, p = np.broadcast_arrays(np.asarray(samples, float), np.asarray(probability, float))
    x, weights = inverse_count_rule(N * p)
    # E[n^-k; n >= 1] = int_0^1 [(1 - p x)^N - (1 - p)^N] (-log(1 - x))^(k - 1) / (1 - x) dx / (k - 1)!
    # (hierarchy 6)
    never = np.exp(N * log_complement(p))
    value = np.exp(N[..., None] * log_complement(p[..., None] * x)) - never[..., None]
    value *= (-np.log1p(-x)) ** (power - 1) / (1 - x) / gamma(power)
    return (weights * value).sum(axis=-1), -np.expm1(N * log_complement(p))


def squared_noise(
    samples: ArrayLike, *, zipf: float = 0.0, **sizes: Unpack[SparseSizes]
) -> np.ndarray:
    """Mean |q_hat - q|² over first patches that occur, shape (..., L) for samples of shape (...)."""
    # `zipf` is the exponent of the probabilities of rules at the leaves. For `uniform` with n_c m < V
    # the noise is not a number from l = 2 on.
    grammar = GrammarSizes(**sizes)
    N = checked_samples(samples)[..., None]
    # |q|² = 1/n_c + J_l where first symbols are equally frequent (hierarchy 6)
    spread = 1 - 1 / grammar.n_classes - joint_squares(**sizes)
    levels = []
    for level, chance in enumerate(grammar.chances):
        law = leaf_law(grammar, zipf) if level == grammar.depth - 1 else np.ones(1)
        if grammar.ensemble == "uniform" and level:
            symbols = FirstSymbols.at_level(grammar, level + 1)
            inverse, seen = symbols.inverse_counts(N * law * chance, grammar)
        else:
            inverse, seen = inverse_count(N, law * chance)
            inverse = spread[level] * inverse
        # E|q_hat - q|² = (1 - |q|²) E[1/n | n >= 1] (hierarchy 6)
        if grammar.scarce and level:
            inverse = inverse * np.nan
        levels.append(inverse.sum(axis=-1) / seen.sum(axis=-1))
    return np.stack(levels, axis=-1)


def leaf_law(grammar: GrammarSizes, zipf: float) -> np.ndarray:
    """Probabilities of the rules at the leaves in units of their mean; one number if all are equal."""
    check_number("zipf", zipf, 0, LARGEST_ZIPF)
    if not zipf:
        return np.ones(1)
    if grammar.rules > LARGEST_LAW:
        raise InvalidParameter(
            f"rules is {grammar.rules} with zipf above 0; allowed: at most {LARGEST_LAW}, or zipf=0."
        )
    return zipf_law(grammar.rules, zipf) * grammar.rules


def checked_samples(samples: ArrayLike) -> np.ndarray:
    """Return numbers of samples as floats, all at least 1."""
    N = np.asarray(samples, float)
    if not (N >= 1).all() or not np.isfinite(N).all():
        raise InvalidParameter(
            f"samples range from {N.min():g} to {N.max():g}; allowed: finite numbers of at least 1."
        )
    return N


def synonymic_sensitivity(
    samples: ArrayLike, *, zipf: float = 0.0, **sizes: Unpack[SparseSizes]
) -> np.ndarray:
    """Sensitivity of one gradient step to synonyms of first patches, shape (..., L)."""
    # It is the mean |g - g'|² over pairs of different synonyms, divided by the mean over all pairs of
    # different patches, for the class-centred counts g of each patch. `zipf` is the exponent of the
    # probabilities of rules at the leaves.
    grammar = GrammarSizes(**sizes)
    N = checked_samples(samples)[..., None]
    M, m = grammar.tuples * grammar.arrangements, grammar.rules * grammar.arrangements
    # Patches that are blank are left out: a share M p_l of the others remains (hierarchy 35).
    N1 = (N - 1) * M * grammar.chances
    contrast = joint_squares(**sizes) / (1 - 1 / grammar.n_classes)
    # r = m sum_k f_k², above 1 where synonyms have different frequencies (hierarchy 8)
    unequal = np.ones(grammar.depth)
    unequal[-1] = np.mean(leaf_law(grammar, zipf) ** 2)
    synonyms = 1 + N1 * contrast * (unequal - 1) * m / (max(m - 1, 1) * M)
    # S_l = [1 + (N - 1) / (N_l m - 1) J_l / (1 - 1/n_c)]^-1 if r = 1 (hierarchy 8)
    return np.asarray(synonyms / (1 + N1 * contrast * unequal / (M - 1)))


def leaf_counts(samples: ArrayLike, **sizes: Unpack[SparseSizes]) -> np.ndarray:
    """Mean squared class-centred counts of the symbols of the first leaf, in units of sampling alone."""
    # The excess over 1 is the signal of one leaf over its noise; it is about N / (n_c (m (s_0 + 1))^L).
    grammar = GrammarSizes(**sizes)
    # J_(L + 1) = c_L J_L (hierarchy 4)
    J = joint_squares(**sizes)[-1] * grammar.contractions[-1, 0] * (grammar.ensemble != "latin")
    places = (grammar.blanks + 1.0) ** grammar.depth
    # 1 + (N - 1) J_(L + 1) / ((1 - 1/n_c) V (s_0 + 1)^L) (hierarchy 36)
    noise = (1 - 1 / grammar.n_classes) * grammar.vocabulary * places
    return np.asarray(1 + (checked_samples(samples) - 1) * J / noise)


def pair_detectability(
    samples: ArrayLike, *, positions: int = 1, **sizes: Unpack[SparseSizes]
) -> np.ndarray:
    """Separation d' of squared distances of synonyms from those of other pairs, shape (..., L)."""
    # It is the difference of the two means divided by the standard deviation among synonyms.
    grammar = GrammarSizes(**sizes)
    if grammar.ensemble == "uniform":
        raise InvalidParameter(
            "ensemble is uniform, whose third moments of label laws are not predicted; allowed: first "
            "or latin."
        )
    N = checked_samples(samples)[..., None]
    q2, q3 = law_powers(grammar)
    parts = [inverse_count(N, grammar.chances, power) for power in (1, 2, 3)]
    v1, v2, v3 = (inverse / seen for inverse, seen in parts)
    # variance of |q_hat - q_hat'|² for two multinomial frequencies with the same q (hierarchy 9)
    variance = 4 * (q2 - q2**2) * (v2 - v3) + 8 * (q3 - q2**2) * (2 * v3 - v2)
    variance += 4 * (q2 - 2 * q3 + q2**2) * v1**2 + 2 * (1 - q2) ** 2 * (v2 - v1**2)
    signal = squared_signal(**sizes)
    # d' = sqrt(k) signal / sd; at l = 1 all distances are exact (hierarchy 9)
    with np.errstate(divide="ignore"):
        return np.asarray(np.sqrt(positions / np.maximum(variance, 0)) * signal)


def law_powers(grammar: GrammarSizes) -> tuple[np.ndarray, np.ndarray]:
    """Mean sums of squares and cubes of label laws of first patches, each of shape (L,)."""
    n, drawn, total = grammar.n_classes, grammar.per_symbol[:-1], grammar.tuples[:-1]
    cubes = (total - drawn) * (total - 2 * drawn) / drawn**2
    cubes = cubes / ((total - 1) * np.maximum(total - 2, 1))
    squares = grammar.contractions[:-1, 0]
    if grammar.ensemble == "latin":
        cubes, squares = np.zeros_like(cubes), np.zeros_like(squares)
    J = (1 - 1 / n) * np.cumprod(np.concatenate([[1.0], squares]))
    # third central moment of a mean of tuples drawn without replacement (hierarchy 9)
    K = ((1 - 1 / n) ** 3 - (n - 1) / n**3) * np.cumprod(np.concatenate([[1.0], cubes]))
    return 1 / n + J, 1 / n**2 + 3 * J / n + K
