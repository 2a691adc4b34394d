"""Prediction of the system `random-hierarchy` for each task."""

from __future__ import annotations

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.hierarchy.grammar import language, theory
from solvable.models.hierarchy.grammar.bounds import guaranteed_samples
from solvable.models.hierarchy.grammar.parameters import RandomHierarchyParameters, as_list
from solvable.models.hierarchy.grammar.sizes import Sizes


def predict(parameters: RandomHierarchyParameters) -> Metrics:
    """Predict what the task measures, and the thresholds."""
    tasks = {
        "classification": _classification, "next-token": _next_token, "denoising": _denoising
    }  # fmt: skip
    return {"p_star": parameters.threshold, "threshold_ratio": 1.0} | tasks[parameters.task](
        parameters
    )


def curve(parameters: RandomHierarchyParameters, ratios: np.ndarray) -> list[Metrics]:
    """Predictions along a curve of sample ratios."""
    places = [parameters.model_copy(update={"samples": 0, "sample_ratio": r}) for r in ratios]
    return [predict(place) for place in places]


def _classification(parameters: RandomHierarchyParameters) -> Metrics:
    """Signal and noise of the label statistics of each level, and the synonymic sensitivity."""
    p, sizes = parameters, _sizes(parameters)
    sensitivity = as_list(theory.synonymic_sensitivity(p.n_samples, zipf=p.zipf, **sizes))
    noise = as_list(theory.squared_noise(p.n_samples, zipf=p.zipf, **sizes))
    noise[0] = None  # the label of a tuple just below the label is certain
    metrics: Metrics = {
        "signal": as_list(theory.squared_signal(**sizes)),
        "noise": noise,
        "synonymic_sensitivity": sensitivity,
        "leaf_sensitivity": sensitivity[-1],
        "proven_samples": as_list(
            guaranteed_samples(
                vocabulary=p.vocabulary,
                rules=p.rules,
                branching=p.branching,
                depth=p.depth,
                failure=0.05,
            )
        )[-1],
    }
    if p.zipf:
        error = language.zipf_error(
            p.n_samples, rules=p.rules, branching=p.branching, depth=p.depth,
            classes=p.n_classes, zipf=p.zipf,
        )  # fmt: skip
        metrics |= {"test_error": float(error), "zipf_exponent": language.zipf_exponent(p.zipf)}
    return metrics


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
        "test_loss": float(np.log(p.vocabulary)),
        "correlation": [0.0] * p.depth,
        "context_loss": [float(np.log(p.vocabulary))] * p.depth,
        "level_belief": [1 / p.vocabulary] * p.depth,
        "label_belief": 1 / p.n_classes,
    }
