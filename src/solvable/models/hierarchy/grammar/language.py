"""Statistics of the leaves of a random grammar: correlations, next tokens, denoising, unequal rules.

Lists over levels run from l = 1, just below the label, to L, the leaves. The entry of level l is that of
the last leaf and one whose lowest common ancestor with it is a symbol of level l - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar.sizes import GrammarSizes, Sizes
from solvable.models.hierarchy.grammar.theory import log_complement, threshold_samples
from solvable.models.hierarchy.rules import Ensemble, zipf_law


def correlation_plateau(*, shared: bool = False, **sizes: Unpack[Sizes]) -> np.ndarray:
    """Root mean square of correlations with the last token by the level l of the branches, shape (L,)."""
    # With `shared`, the context consists of symbols one level below the branches, which a network with
    # shared filters infers, instead of leaves; the next token is a leaf. For `uniform` with n_c m < V
    # the result is not a number.
    grammar = GrammarSizes(**sizes)
    if grammar.scarce:
        return np.full(grammar.depth, np.nan)
    V = float(grammar.vocabulary)
    # C_l² = (1 - 1/V)² B_l c_s^(L - l) c^(L - l) / V² (hierarchy 13)
    squares = ((1 - 1 / V) / V) ** 2 * grammar.brackets
    # A grammar that uses every tuple has no correlations; then the difference is rounding.
    squares = np.where(squares * grammar.tuples * V**2 < 1e-12, 0.0, squares)
    below = np.arange(grammar.depth - 1, -1, -1)
    # The last token is at the end of its tuples, the other one at any position.
    last, other = grammar.contractions[-1, -1], grammar.contractions[-1].mean()
    context = np.minimum(below, 1) if shared else below
    return np.asarray(np.sqrt(squares) * last ** (below / 2) * other ** (context / 2))


def correlation_floor(samples: ArrayLike, *, vocabulary: int) -> np.ndarray:
    """Root mean square of the sampling error of token correlations, for each number of samples."""
    # (1 - 1/V) / (V sqrt(N)) (hierarchy 14)
    return np.asarray((1 - 1 / vocabulary) / (vocabulary * np.sqrt(np.asarray(samples, float))))


def data_thresholds(*, shared: bool = False, **sizes: Unpack[Sizes]) -> np.ndarray:
    """Samples at which correlations equal their sampling error, shape (L,); inf without correlations."""
    # Not a number where the correlations are not.
    plateau = correlation_plateau(shared=shared, **sizes)
    floor = correlation_floor(1, vocabulary=sizes["vocabulary"])
    with np.errstate(divide="ignore"):
        # P_l = (1 - 1/V)² / (V C_l)² (hierarchy 15)
        return np.asarray((floor / plateau) ** 2)


def compatible_tokens(**sizes: Unpack[Sizes]) -> np.ndarray:
    """Mean number of last tokens that fit the s^k - 1 tokens before, k = 0 ... L, shape (L + 1,)."""
    grammar = GrammarSizes(**sizes)
    return np.array([_compatible_symbols(grammar, steps)[-1] for steps in range(grammar.depth + 1)])


def _compatible_symbols(grammar: GrammarSizes, steps: int) -> list[float]:
    """Mean numbers of compatible last symbols, from an unknown ancestor down to the leaves."""
    counts = [float(grammar.n_classes if steps == grammar.depth else grammar.vocabulary)]
    for chance in _same_context(grammar)[0][grammar.depth - steps :]:
        # n_k = 1 + (m n_(k - 1) - 1) pi (hierarchy 16)
        counts.append(1 + (grammar.rules * counts[-1] - 1) * chance)
    return counts


def _same_context(grammar: GrammarSizes) -> tuple[np.ndarray, np.ndarray]:
    """Chance that another tuple has the same first s - 1 symbols, and its scatter, (L,) each."""
    # The number of such tuples among a share x of all tuples has the variance mean (1 - x scatter).
    V, s = float(grammar.vocabulary), grammar.branching
    if grammar.ensemble != "first":
        # pi = (V - 1) / (V^s - 1) (hierarchy 16)
        chance = np.full(grammar.depth, (V - 1) / (V**s - 1))
        return chance, grammar.tuples / V**s
    # pi = (N m / V - 1) / (N m - 1) (V - 1) / (V^(s - 1) - 1): first symbols are equally frequent
    # (hierarchy 16)
    tails = V ** (s - 1) - 1
    chance = (grammar.per_symbol - 1) / (grammar.tuples - 1) * (V - 1) / tails
    return chance, 1 - (1 - (V - 1) / tails) * (1 - (grammar.per_symbol - 1) / tails)


def compatible_losses(**sizes: Unpack[Sizes]) -> np.ndarray:
    """Least cross-entropy of the last token, given the s^k - 1 tokens before, k = 0 ... L, (L + 1,)."""
    # For `uniform` with n_c m < V the entries with k < L, whose ancestors are symbols, are not numbers.
    grammar = GrammarSizes(**sizes)
    m, below = grammar.rules, list(zip(*_same_context(grammar), grammar.tuples, strict=True))
    # Range of t: frequencies of ancestors are at least 1 / product of the mean numbers of tuples.
    rarest = np.log(np.maximum(grammar.per_symbol, 1)).sum()
    logs = np.linspace(-40.0, 6.0 + min(30.0, rarest), 2_500)
    losses = []
    for steps in range(grammar.depth + 1):
        counts = _compatible_symbols(grammar, steps)
        true, absent = _ancestor_law(grammar, grammar.depth - steps, np.exp(logs))
        t = other = -log_complement(absent)
        transform = np.zeros_like(logs)
        levels = zip(counts[:-1], below[grammar.depth - steps :], strict=True)
        for count, (chance, scatter, tuples) in reversed(list(levels)):
            # The other compatible symbols come from m n - 1 tuples, each with this chance. Their number
            # is treated as binomial of the same mean and variance.
            success = chance + (1 - chance) * scatter * (m * count - 1) / (tuples - 1)
            success = max(success, 1e-12)  # 0 if a single symbol is compatible
            drop = -chance / success * np.log1p(np.maximum(success * np.expm1(-t), -1 + 1e-16))
            transform += drop - t
            t = m * drop
        # L_k = E log(u* + sum of the other u) - E log u*, where the law of u* of the true ancestor is
        # weighted by u, and E log x = int_0^inf (e^-t - E e^(-t x)) / t dt (hierarchy 16)
        others = np.exp(transform - counts[0] * t + other)
        loss = np.trapezoid(true * (1 - others), logs)
        if not steps:
            # L_0 = log V - E u log u: without context the frequencies of all V symbols have the sum V.
            entropy = np.trapezoid(np.exp(-np.exp(logs)) - true, logs)
            loss = np.log(grammar.vocabulary) - entropy
        losses.append(max(float(loss), 0.0))
    unknown = grammar.scarce & (np.arange(grammar.depth + 1) < grammar.depth)
    return np.where(unknown, np.nan, losses)


def _ancestor_law(
    grammar: GrammarSizes, level: int, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E[u exp(-t u)] and 1 - E exp(-t u) of frequencies u of last symbols, in units of their mean."""
    above = slice(0, level)
    means, tuples = grammar.per_symbol[above], grammar.tuples[above]
    exclusions = grammar.exclusions[above, -1]
    V = grammar.vocabulary
    x = t / np.exp(np.log(means).sum())
    weighted, absent = np.exp(-x), -np.expm1(-x)
    for mean, count, excluded in zip(means, tuples, exclusions, strict=True):
        # The number of tuples with a given last symbol is treated as binomial, as in (hierarchy 5).
        chance = 1 / V + (1 - 1 / V) * (count - 1) * excluded
        logarithm = log_complement(chance * absent)
        weighted = weighted * np.exp((mean / chance - 1) * logarithm)
        absent = -np.expm1(mean / chance * logarithm)
    return weighted, absent


def next_token_loss(
    samples: ArrayLike, *, shared: bool = False, **sizes: Unpack[Sizes]
) -> np.ndarray:
    """Cross-entropy of the last token with the context whose correlations the samples resolve."""
    # Not a number where the correlations are not.
    # A context is of use after all shorter ones; thresholds from the leaves up.
    thresholds = np.maximum.accumulate(data_thresholds(shared=shared, **sizes)[::-1])
    # loss(N) = E log n_k, with k the number of thresholds up to N (hierarchy 30)
    resolved = np.searchsorted(thresholds, np.asarray(samples, float), side="right")
    losses = compatible_losses(**sizes)[resolved]
    return np.where(np.isnan(thresholds).any(), np.nan, losses)


def diffusion_map(
    p: ArrayLike, *, vocabulary: int, rules: int, branching: int, parents: int = 0,
    ensemble: Ensemble = "first",
) -> np.ndarray:  # fmt: skip
    """Mean belief in the true parent among `parents` (0: V) symbols, from beliefs p in its children."""
    belief = np.asarray(p, float)
    V, m, s, count = float(vocabulary), rules, branching, float(parents or vocabulary)
    true = belief**s
    if ensemble == "latin":
        # Every tuple exists, and synonyms differ in both symbols: F = p² + (1 - p)² / (V - 1)
        # (hierarchy 17)
        return np.asarray(true + (1 - belief) ** 2 / (V - 1))
    same, tails = _same_first(V, m, s, count, ensemble), V ** (s - 1)
    # rho = kappa p (1 - p^(s - 1)) / (V^(s - 1) - 1) + (1 - kappa) (1 - p) / ((V - 1) V^(s - 1))
    # (hierarchy 17)
    other = same * belief * (1 - belief ** (s - 1)) / (tails - 1)
    other += (1 - same) * (1 - belief) / (V - 1) / tails
    # F(p) = (p^s + (m - 1) rho) / (p^s + (N m - 1) rho) (hierarchy 17)
    return np.asarray((true + (m - 1) * other) / (true + (m * count - 1) * other))


def _same_first(V: float, m: float, s: int, parents: float, ensemble: Ensemble) -> float:
    """Probability kappa that two different rules begin with the same symbol."""
    if ensemble == "first":
        # kappa = (N m / V - 1) / (N m - 1) (hierarchy 4)
        return (parents * m / V - 1) / (parents * m - 1)
    # kappa = (V^(s - 1) - 1) / (V^s - 1) (hierarchy 4)
    return (V ** (s - 1) - 1) / (V**s - 1)


def level_beliefs(epsilon: ArrayLike, **sizes: Unpack[Sizes]) -> np.ndarray:
    """Mean belief in the true symbol from the label to the leaves, shape (..., L + 1)."""
    grammar = GrammarSizes(**sizes)
    noise = np.asarray(epsilon, float)
    if not ((noise >= 0) & (noise <= 1)).all():
        raise InvalidParameter(
            f"epsilon ranges from {noise.min():g} to {noise.max():g}; allowed: numbers from 0 to 1."
        )
    beliefs = [1 - noise + noise / grammar.vocabulary]
    for parents in grammar.parents[::-1]:
        beliefs.append(
            diffusion_map(
                beliefs[-1],
                vocabulary=grammar.vocabulary,
                rules=grammar.rules,
                branching=grammar.branching,
                parents=int(parents),
                ensemble=grammar.ensemble,
            )
        )
    return np.stack(beliefs[::-1], axis=-1)


Phase = Literal["class lost", "transition", "class survives"]
"""Fate of the class of an infinitely deep grammar under noise on the leaves."""


@dataclass(frozen=True)
class CriticalNoise:
    """Largest noise on the leaves at which the class of an infinitely deep grammar can be inferred."""

    epsilon: float
    phase: Phase


def critical_noise(
    *, vocabulary: int, rules: int, branching: int, ensemble: Ensemble = "first"
) -> CriticalNoise:
    """Noise at which beliefs of all levels stay equal: the unstable fixed point of the map."""
    V, m, s = float(vocabulary), rules, branching
    same, tails = _same_first(V, m, s, V, ensemble), V ** (s - 1)
    # F'(1) = m ((s - 1) (V - 1) kappa / (V^(s - 1) - 1) + (1 - kappa) / V^(s - 1)) (hierarchy 18)
    at_one = m * ((s - 1) * (V - 1) * same / (tails - 1) + (1 - same) / tails)
    if at_one >= 1 or ensemble == "latin":
        return CriticalNoise(0.0, "class lost")
    # F'(1/V) = (1 - 1/V) (s - V^(s - 1) rho'(1/V)) / m (hierarchy 18)
    slope = same * (1 - s / tails) / (tails - 1) - (1 - same) / ((V - 1) * tails)
    if (1 - 1 / V) * (s - tails * slope) / m >= 1:
        return CriticalNoise(1.0, "class survives")

    def growth(epsilon: float) -> float:
        p = 1 - epsilon + epsilon / V
        sizes = {"vocabulary": vocabulary, "rules": rules, "branching": branching}
        return (float(diffusion_map(p, ensemble=ensemble, **sizes)) - p) / (epsilon * (1 - epsilon))

    # eps* = (1 - p*) / (1 - 1/V), F(p*) = p* between 1/V and 1 (hierarchy 18)
    from scipy.optimize import brentq

    margin = 1e-7
    if growth(margin) <= 0:
        return CriticalNoise(0.0, "transition")
    if growth(1 - margin) >= 0:
        return CriticalNoise(1.0, "transition")
    return CriticalNoise(float(brentq(growth, margin, 1 - margin)), "transition")


def zipf_exponent(zipf: float) -> float:
    """Exponent a / (1 + a) with which the error falls if rules have probabilities ~ k^-(1 + a)."""
    # error ~ N^(-a / (1 + a)) (hierarchy 19)
    return zipf / (1 + zipf)


def zipf_error(
    samples: ArrayLike, *, rules: int, branching: int, depth: int, classes: int, zipf: float
) -> np.ndarray:
    """Classification error with unequal probabilities of the leaf rules, for each number of samples."""
    law = zipf_law(rules, zipf) if zipf else np.full(rules, 1 / rules)
    # P_k = n_c m^(L - 1) / f_k (hierarchy 19)
    thresholds = threshold_samples(rules=rules, depth=depth, classes=classes) / rules / law
    learned = np.searchsorted(thresholds, np.asarray(samples, float), side="right")
    known = np.minimum(np.concatenate([[0.0], np.cumsum(law)]), 1.0)[learned]
    # error = (1 - 1/n_c) [1 - (sum of learned f_k)^(s^(L - 1))] (hierarchy 19)
    return np.asarray((1 - 1 / classes) * (1 - known ** float(branching) ** (depth - 1)))
