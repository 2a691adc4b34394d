"""Token statistics of a random grammar: correlations, next tokens, denoising, power-law rules.

Lists over levels run from l = 1, just below the label, to L, the leaves. The entry of level l is that of
two leaves whose lowest common ancestor is a symbol of level l - 1, which is L - l + 1 levels above them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from solvable.models.hierarchy.rules import Ensemble, zipf_law

Phase = Literal["class lost", "transition", "class survives"]
"""Fate of the class under noise on the leaves, for infinite depth."""


def ancestor_distance(depth: int) -> np.ndarray:
    """Number of levels from leaves up to their lowest common ancestor, for l = 1 ... L."""
    return np.arange(depth, 0, -1)


def filling(vocabulary: int, rules: int, branching: int) -> float:
    """Share f of all tuples that are rules, m / V^(s-1)."""
    return float(rules / float(vocabulary) ** (branching - 1))


def correlation_plateau(
    *, vocabulary: int, rules: int, branching: int, depth: int, classes: int = 0,
    ensemble: Ensemble = "first",
) -> np.ndarray:  # fmt: skip
    """Root mean square of token correlations by level of the common ancestor, l = 1 ... L, (L,)."""
    ell = ancestor_distance(depth)
    if ensemble == "latin":
        return np.zeros(depth)
    f = filling(vocabulary, rules, branching)
    # C^2 = (1 - f) / (V^3 m^(2 ell - 1)) (hierarchy 13)
    logarithm = np.log(max(1 - f, 0) or 1) - 3 * np.log(vocabulary) - (2 * ell - 1) * np.log(rules)
    return np.asarray(np.exp(logarithm / 2) * (f < 1))


def correlation_floor(*, vocabulary: int, samples: ArrayLike) -> np.ndarray:
    """Root mean square of the sampling error of token correlations (hierarchy 14)."""
    # (1 - 1/V) / (V sqrt(N)) (hierarchy 14)
    return np.asarray((1 - 1 / vocabulary) / (vocabulary * np.sqrt(np.asarray(samples, float))))


def data_thresholds(
    *, vocabulary: int, rules: int, branching: int, depth: int, classes: int = 0,
    ensemble: Ensemble = "first",
) -> np.ndarray:  # fmt: skip
    """Samples at which correlations exceed the floor, l = 1 ... L, (L,); inf where they are 0."""
    plateau = correlation_plateau(
        vocabulary=vocabulary, rules=rules, branching=branching, depth=depth, classes=classes,
        ensemble=ensemble,
    )  # fmt: skip
    floor = correlation_floor(vocabulary=vocabulary, samples=1)
    with np.errstate(divide="ignore"):
        # P_l: plateau = floor (hierarchy 15)
        return np.asarray((floor / plateau) ** 2)


def compatible_tokens(*, vocabulary: int, rules: int, branching: int, depth: int) -> np.ndarray:
    """Mean number n_0 ... n_L of last tokens compatible with s^ell - 1 tokens before, shape (L + 1,)."""
    V = float(vocabulary)
    share = (V - 1) / (V**branching - 1)
    counts = [V]
    for _ in range(depth):
        # n_ell = 1 + (m n_(ell - 1) - 1) (V - 1) / (V^s - 1) (hierarchy 16)
        counts.append(1 + (rules * counts[-1] - 1) * share)
    return np.array(counts)


def compatible_losses(*, vocabulary: int, rules: int, branching: int, depth: int) -> np.ndarray:
    """Mean log n_ell, the least cross-entropy with s^ell - 1 tokens of context, shape (L + 1,)."""
    return np.log(
        compatible_tokens(vocabulary=vocabulary, rules=rules, branching=branching, depth=depth)
    )


def next_token_loss(
    samples: ArrayLike, *, vocabulary: int, rules: int, branching: int, depth: int,
    classes: int = 0, ensemble: Ensemble = "first",
) -> np.ndarray:  # fmt: skip
    """Cross-entropy of the last token once the samples resolve the correlations of each level."""
    losses = compatible_losses(vocabulary=vocabulary, rules=rules, branching=branching, depth=depth)
    thresholds = data_thresholds(
        vocabulary=vocabulary, rules=rules, branching=branching, depth=depth, classes=classes,
        ensemble=ensemble,
    )  # fmt: skip
    # L(N) = E log n_ell, ell the number of thresholds P_ell below N (hierarchy 30)
    return np.asarray(losses[np.searchsorted(thresholds[::-1], samples, side="right")])


def next_token_exponent(*, vocabulary: int, rules: int, branching: int) -> float:
    """Exponent alpha of the envelope of the loss of the next token, loss - limit ~ N^-alpha."""
    # alpha = |ln f| / (2 ln m) (hierarchy 30)
    return float(-np.log(filling(vocabulary, rules, branching)) / (2 * np.log(rules)))


def diffusion_map(p: ArrayLike, *, vocabulary: int, rules: int, branching: int) -> np.ndarray:
    """Mean belief in the true symbol one level up, from belief p in each of its s children."""
    V, m, s = float(vocabulary), float(rules), branching
    powers = np.asarray(p, float) ** s
    rest = (1 - powers) / (V**s - 1)
    # F(p) = (p^s + (m - 1) r) / (p^s + (m V - 1) r), r = (1 - p^s) / (V^s - 1) (hierarchy 17)
    return np.asarray((powers + (m - 1) * rest) / (powers + (m * V - 1) * rest))


def level_beliefs(
    epsilon: float, *, vocabulary: int, rules: int, branching: int, depth: int, classes: int = 0
) -> np.ndarray:
    """Mean belief in the true symbol from the label to the leaves, shape (L + 1,)."""
    beliefs = [1 - epsilon + epsilon / vocabulary]
    for _ in range(depth):
        beliefs.append(
            float(
                diffusion_map(beliefs[-1], vocabulary=vocabulary, rules=rules, branching=branching)
            )
        )
    return np.array(beliefs[::-1])


@dataclass(frozen=True)
class CriticalNoise:
    """Noise on the leaves up to which the class of an infinitely deep grammar is inferred."""

    epsilon: float
    phase: Phase


def critical_noise(*, vocabulary: int, rules: int, branching: int) -> CriticalNoise:
    """Critical noise of class reconstruction for infinite depth, from the slopes of the map."""
    V, m, s = float(vocabulary), float(rules), branching
    # F'(1) = s m (V - 1) / (V^s - 1), F'(1/V) = (s/m) (1 - 1/V) V^s / (V^s - 1) (hierarchy 18)
    if s * m * (V - 1) / (V**s - 1) >= 1:
        return CriticalNoise(0.0, "class lost")
    if s / m * (1 - 1 / V) / (1 - V**-s) >= 1:
        return CriticalNoise(1.0, "class survives")
    from scipy.optimize import brentq

    def growth(p: float) -> float:
        value = float(diffusion_map(p, vocabulary=vocabulary, rules=rules, branching=branching))
        return (value - p) / ((p - 1 / V) * (1 - p))

    margin = 1e-6 * (1 - 1 / V)
    root = float(brentq(growth, 1 / V + margin, 1 - margin))
    return CriticalNoise((1 - root) / (1 - 1 / V), "transition")


def zipf_exponent(zipf: float) -> float:
    """Exponent a / (1 + a) of the error against samples with rule law f_k ~ k^-(1 + a)."""
    return float(zipf / (1 + zipf))


def zipf_error(
    samples: ArrayLike, *, rules: int, branching: int, depth: int, classes: int, zipf: float
) -> np.ndarray:
    """Classification error once the rules with threshold below the samples are learned."""
    law = zipf_law(rules, zipf)
    # P_k = n_c m^(L - 1) / f_k (hierarchy 19)
    thresholds = classes * float(rules) ** (depth - 1) / law
    learned = np.searchsorted(thresholds, samples, side="right")
    known = np.concatenate([[0.0], np.cumsum(law)])[learned]
    # error = (1 - 1/n_c) [1 - (sum of learned f_k)^(s^(L - 1))] (hierarchy 19)
    right = np.minimum(known, 1.0) ** (float(branching) ** (depth - 1))
    return np.asarray((1 - 1 / classes) * (1 - right))


def sparse_threshold(
    *, rules: int, branching: int, depth: int, classes: int, blanks: int, shared: bool
) -> float:
    """Samples needed with s_0 blanks per informative symbol, with shared weights or without."""
    base = float(classes) * float(rules) ** depth
    # P* = (s_0 + 1)^2 n_c m^L, or s^(L/2) (s_0 + 1)^L n_c m^L without shared weights (hierarchy 28)
    if shared:
        return (blanks + 1.0) ** 2 * base
    return float(branching) ** (depth / 2) * (blanks + 1.0) ** depth * base
