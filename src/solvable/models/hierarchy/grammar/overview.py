"""All predictions for a random grammar of given sizes, in one result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.hierarchy.grammar import language, theory
from solvable.models.hierarchy.grammar.sizes import GrammarSizes, Sizes, check_number
from solvable.models.hierarchy.rules import Ensemble


@dataclass(frozen=True)
class RandomHierarchyTheory:
    """Predictions of :func:`random_hierarchy_theory`."""

    # Arrays of shape (L,) belong to levels 1 (just below the label) to L (the leaves). Arrays of shape
    # (L + 1,) belong to the s^k - 1 tokens before the last one, k = 0 ... L.

    p_star: float
    level_thresholds: np.ndarray
    signal: np.ndarray
    noise: np.ndarray
    synonymic_sensitivity: np.ndarray
    correlation_plateau: np.ndarray
    data_thresholds: np.ndarray
    compatible_tokens: np.ndarray
    next_token_losses: np.ndarray
    critical_noise: float
    phase: language.Phase


def random_hierarchy_theory(
    *,
    vocabulary: int,
    rules: int,
    branching: int,
    depth: int,
    samples: float,
    classes: int = 0,
    ensemble: Ensemble = "first",
    zipf: float = 0.0,
) -> RandomHierarchyTheory:
    r"""Predict what can be learned about a random hierarchy from a number of samples.

    The label law :math:`q_\mu` of a first patch :math:`\mu` at level :math:`l` differs between patches
    that are not synonyms by the signal, and its estimate from :math:`N` samples has the noise

    .. math::

        E|q_\mu-q_{\mu'}|^2\simeq\frac{2V}{n_c}m^{-(l-1)},\qquad
        E|\hat q_\mu-q_\mu|^2\simeq\left(1-\frac1{n_c}\right)\frac{Vm}N .

    The estimates of two such patches differ by the signal plus twice the noise. These two parts are
    equal at the leaves near :math:`P^*=n_cm^L`, where the signal is twice the noise. All results include
    the corrections for finite sizes, which these formulas leave out.

    Parameters
    ----------
    vocabulary : int
        Number :math:`V` of symbols of each level below the label, at least 2.
    rules : int
        Number :math:`m` of rules of each symbol, from 1 to :math:`V^{s-1}`.
    branching : int
        Number :math:`s` of symbols in a tuple, at least 2.
    depth : int
        Number :math:`L` of levels below the label, at least 1.
    samples : float
        Number :math:`N` of labelled strings, from 1 to 1e290.
    classes : int
        Number :math:`n_c` of labels; 0 means as many as symbols.
    ensemble : {"first", "uniform", "latin"}
        Law of the rules, as in :class:`solvable.targets.RandomHierarchy`.
    zipf : float
        Exponent of the probabilities of rules at the leaves, from 0 to 5; 0 means that all are equally
        likely. Noise and synonymic sensitivity depend on it; the other results are those of equal
        probabilities.

    Returns
    -------
    RandomHierarchyTheory
        `p_star`, and `level_thresholds`, its form for every level at finite sizes; `signal`, `noise` and
        `synonymic_sensitivity` of one gradient step by level; `correlation_plateau` (root mean square of
        correlations of the last leaf and one whose lowest common ancestor with it is one level higher)
        and the `data_thresholds` from which it exceeds the sampling error; `compatible_tokens` and
        `next_token_losses` by length of the context; the noise `critical_noise` on the leaves below
        which the class of an infinitely deep grammar is inferred, and its `phase`. With the ensemble
        "uniform", depth above 1 and :math:`n_cm<V` (fewer tuples than symbols below the label), `signal`
        and `noise` from level 2 on, `correlation_plateau`, `data_thresholds` and all but the last of the
        `next_token_losses` are not numbers (NaN): a mean over so few draws does not describe them.

    Notes
    -----
    The cost does not depend on the vocabulary, and grows as :math:`L^2`. Sources: arXiv:2601.19756;
    arXiv:2307.02129; arXiv:2406.00048; arXiv:2402.16991; derivations/hierarchy (4) to (8) and (13) to
    (18).

    Examples
    --------
    >>> theory = random_hierarchy_theory(vocabulary=8, rules=4, branching=2, depth=3, samples=512)
    >>> theory.p_star
    512.0
    >>> theory.level_thresholds.round()
    array([ 32., 138., 609.])
    >>> theory.synonymic_sensitivity.round(2)
    array([0.06, 0.21, 0.54])
    """
    sizes: Sizes = {
        "vocabulary": vocabulary,
        "rules": rules,
        "branching": branching,
        "depth": depth,
        "classes": classes,
        "ensemble": ensemble,
    }
    grammar = GrammarSizes(**sizes)
    check_number("samples", samples, 1)
    check_number("zipf", zipf, 0, theory.LARGEST_ZIPF)
    critical = language.critical_noise(
        vocabulary=vocabulary, rules=rules, branching=branching, ensemble=ensemble
    )
    return RandomHierarchyTheory(
        p_star=theory.threshold_samples(rules=rules, depth=depth, classes=grammar.n_classes),
        level_thresholds=theory.level_thresholds(**sizes),
        signal=theory.squared_signal(**sizes),
        noise=theory.squared_noise(samples, zipf=zipf, **sizes),
        synonymic_sensitivity=theory.synonymic_sensitivity(samples, zipf=zipf, **sizes),
        correlation_plateau=language.correlation_plateau(**sizes),
        data_thresholds=language.data_thresholds(**sizes),
        compatible_tokens=language.compatible_tokens(**sizes),
        next_token_losses=language.compatible_losses(**sizes),
        critical_noise=critical.epsilon,
        phase=critical.phase,
    )
