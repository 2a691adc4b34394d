"""Prediction of the system `random-hierarchy` for each task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.hierarchy.grammar import bounds, language, theory
from solvable.models.hierarchy.grammar.boolean import recovery_probability
from solvable.models.hierarchy.grammar.parameters import RandomHierarchyParameters, as_list
from solvable.models.hierarchy.grammar.sizes import GrammarSizes, Sizes, SparseSizes

FAILURE = 0.05
"""Probability of failure of the bounds."""


def predict(parameters: RandomHierarchyParameters) -> Metrics:
    """Predict what the task measures, and the thresholds."""
    tasks = {
        "classification": _classification, "next-token": _next_token, "denoising": _denoising,
        "boolean": _boolean,
    }  # fmt: skip
    power = parameters.sparsity_power if parameters.blanks else 0
    # P* = (s_0 + 1)^k n_c m^L (hierarchy 35)
    factor = None if power is None else float(parameters.width**power)
    threshold = None if factor is None else factor * parameters.threshold
    return {"p_star": threshold, "threshold_ratio": factor} | tasks[parameters.task](parameters)


def curve(parameters: RandomHierarchyParameters, ratios: np.ndarray) -> list[Metrics]:
    """Predictions along a curve of sample ratios."""
    places = [parameters.model_copy(update={"samples": 0, "sample_ratio": r}) for r in ratios]
    return [predict(place) for place in places]


def _classification(parameters: RandomHierarchyParameters) -> Metrics:
    """Signal and noise of the label statistics of each level, and the synonymic sensitivity."""
    p = parameters
    sizes: SparseSizes = {**_sizes(p), "blanks": p.blanks}
    sensitivity = as_list(theory.synonymic_sensitivity(p.n_samples, zipf=p.zipf, **sizes))
    noise = as_list(theory.squared_noise(p.n_samples, zipf=p.zipf, **sizes))
    noise[0] = None  # the label of a tuple just below the label is certain
    metrics: Metrics = {
        "signal": as_list(theory.squared_signal(**sizes)),
        "noise": noise,
        "synonymic_sensitivity": sensitivity,
        "leaf_sensitivity": sensitivity[-1],
        # unequal rules contract correlations by another factor
        "leaf_counts": None if p.zipf else float(theory.leaf_counts(p.n_samples, **sizes)),
        **_guarantees(p),
    }
    if p.zipf:
        error = language.zipf_error(
            p.n_samples, rules=p.rules, branching=p.branching, depth=p.depth,
            classes=p.n_classes, zipf=p.zipf,
        )  # fmt: skip
        metrics |= {"test_error": float(error), "zipf_exponent": language.zipf_exponent(p.zipf)}
    return metrics


def _guarantees(p: RandomHierarchyParameters) -> Metrics:
    """Bounds of arXiv:2601.19756 by level, with every unknown constant set to 1."""
    equal = p.ensemble == "first" and p.n_classes == p.vocabulary
    shape = {"rules": p.rules, "depth": p.depth}
    distinct = bounds.distinct_share(vocabulary=p.vocabulary, **shape)
    # Lemma 18 depends on a patch only through its probability 1 / (kappa |P|), also with blanks.
    patches = 1 / GrammarSizes(**_sizes(p), blanks=p.blanks).chances
    proven = bounds.guaranteed_samples(
        vocabulary=p.vocabulary, branching=p.branching, failure=FAILURE, **shape
    )

    def by_level(formula: Callable[..., Any], **options: Any) -> list[float | None]:
        return as_list(np.array([formula(patches=size, **options) for size in patches]))

    errors = [
        as_list(np.array([
            bounds.frequency_errors(p.n_samples, patches=size, failure=FAILURE, corrected=corrected)[1]
            for size in patches
        ]))
        for corrected in (False, True)
    ]  # fmt: skip
    tolerance = {"accuracy": 0.1, "failure": FAILURE}
    laws: Metrics = {
        "distinct_laws": as_list(distinct) if equal else None,
        "least_distance_bound": as_list(bounds.separation_bound(**shape)),
        "worst_error_bound": errors[1],
    }
    if p.blanks:
        return laws  # the theorem is about the layer-wise learner of strings without blanks
    return laws | {
        "worst_error_printed": errors[0],
        "level_samples_printed": by_level(bounds.level_samples, **tolerance),
        "level_samples_bound": by_level(bounds.level_samples, corrected=True, **tolerance),
        "steps_bound": by_level(bounds.descent_steps, accuracy=0.1, classes=p.n_classes),
        "bandwidth_printed": bounds.bandwidth(separation=1.0, overlap=0.01),
        "bandwidth_bound": bounds.bandwidth(separation=1.0, overlap=0.01, corrected=True),
        "proven_samples": as_list(proven)[-1],
    }


def _boolean(parameters: RandomHierarchyParameters) -> Metrics:
    """Probability that all products of a deep quadratic target are found."""
    d, depth, n = parameters.leaves, parameters.depth, parameters.n_samples
    return {"recovered": recovery_probability(n, dimension=d, levels=depth)}


def _next_token(parameters: RandomHierarchyParameters) -> Metrics:
    """Correlations with the last symbol, and losses that contexts and samples allow."""
    p, sizes = parameters, _sizes(parameters)
    plateau = language.correlation_plateau(**sizes)
    floor = language.correlation_floor(p.n_samples, vocabulary=p.vocabulary)
    shared = p.estimator == "cnn"
    thresholds = language.data_thresholds(shared=shared, **sizes)
    return {
        "correlation": as_list(np.sqrt(plateau**2 + floor**2)),
        "correlation_plateau": as_list(plateau),
        "correlation_floor": float(floor),
        "data_thresholds": as_list(thresholds),
        "context_loss": as_list(language.compatible_losses(**sizes)[:0:-1]),
        "loss_envelope": as_list(
            np.atleast_1d(language.next_token_loss(p.n_samples, shared=shared, **sizes))
        )[0],
    }


def _denoising(parameters: RandomHierarchyParameters) -> Metrics:
    """Mean belief in the true symbol of each level, and the critical noise."""
    p = parameters
    beliefs = language.level_beliefs(p.noise_level, **_sizes(p))
    critical = language.critical_noise(
        vocabulary=p.vocabulary, rules=p.rules, branching=p.branching, ensemble=p.ensemble
    )
    return {
        "label_belief": float(beliefs[0]),
        "level_belief": as_list(beliefs[1:]),
        "critical_noise": critical.epsilon,
        "phase": critical.phase,
    }


def _sizes(parameters: RandomHierarchyParameters) -> Sizes:
    """Return the sizes of the grammar as keyword arguments of the theory."""
    return {
        "vocabulary": parameters.vocabulary,
        "rules": parameters.rules,
        "branching": parameters.branching,
        "depth": parameters.depth,
        "classes": parameters.n_classes,
        "ensemble": parameters.ensemble,
    }


def chance(parameters: RandomHierarchyParameters, prediction: Metrics) -> Metrics:
    """Return the metrics of a learner that guesses, or of statistics without any signal."""
    p = parameters
    guess = 1 / (p.n_classes if p.task != "next-token" else p.vocabulary)
    levels: list[float | None] = [guess, *[1 / p.vocabulary] * (p.depth - 1)]
    return {
        "test_accuracy": guess,
        "test_error": 1 - guess,
        "level_accuracy": levels,
        "signal": [0.0] * p.depth,
        "noise": [1.0] * p.depth,
        "synonymic_sensitivity": [1.0] * p.depth,
        "leaf_sensitivity": 1.0,
        "leaf_counts": 1.0,
        "distinct_laws": as_list(np.eye(p.depth)[0]),
        "worst_error": as_list(np.full(p.depth, 2**0.5)),
        "recovered": 0.0,
        "test_loss": float(np.log(p.vocabulary)),
        "correlation": [0.0] * p.depth,
        "context_loss": [float(np.log(p.vocabulary))] * p.depth,
        "level_belief": [1 / p.vocabulary] * p.depth,
        "label_belief": 1 / p.n_classes,
    }
