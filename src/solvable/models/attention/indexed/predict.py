"""Predictions of attention-indexed models, in the limit and at a finite dimension."""

from __future__ import annotations

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.message_passing.finite_size import LARGEST, error_at_dimension, token_shape
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.models.attention.indexed.layer_evolution import (
    LEAST_ERROR,
    layer_errors,
    layers_test_error,
)
from solvable.models.attention.indexed.parameters import STARTS, IndexedParameters
from solvable.models.attention.indexed.theory import bayes_test_error, peakedness, recovery_ratio

NOT_PREDICTED: Metrics = {
    "matrix_error": None,
    "start_error": None,
    "test_error": None,
    "first_layer_error": None,
    "last_layer_error": None,
    "finite_size_matrix_error": None,
    "finite_size_test_error": None,
    "recovery_ratio": None,
}
"""Names of all predicted quantities."""


def predict(parameters: IndexedParameters) -> Metrics:
    """Predict the errors in the limit and at the setting's dimension, and the recovery threshold."""
    if parameters.layers == 2:
        return _predict_layers(parameters)
    d, threshold = parameters.dimension, recovery_ratio(parameters)
    ratio = parameters.samples / d**2
    limit = signal_evolution(parameters.signal, parameters.channel, ratio)
    shape = token_shape(parameters.tokens, parameters.activation != "linear")
    error = error_at_dimension(parameters.signal, parameters.channel, ratio, d, shape)
    reason = ""
    if error is None:
        reason = (
            f"the first order in 1/d at dimension {d} is more than {LARGEST:.0%} of the error; allowed: "
            f"up to {LARGEST:.0%}. Raise dimension, rank_ratio or noise, or move sample_ratio away from "
            "recovery_ratio."
        )
    elif parameters.tokens * parameters.samples < FEWEST * d and 0 < float(limit.error) < 0.9:
        error = None
        reason = (
            f"there are {parameters.samples} samples of {parameters.tokens} tokens; allowed: at least "
            f"{FEWEST:g} tokens per dimension. With fewer tokens the expansion to first order in 1/d is "
            "wrong "
            "by up to 30 %. Raise dimension or sample_ratio."
        )
    elif threshold is not None and abs(ratio / threshold - 1) < MARGIN / d:
        error = None
        reason = (
            f"sample_ratio is within {MARGIN / d:.0%} of recovery_ratio = {threshold:.4g}, where the "
            f"transition is not sharp at dimension {d}. Raise dimension or sample_ratio."
        )
    test = None if error is None else bayes_test_error(parameters, error, float(limit.noise))
    if test and parameters.activation != "linear" and peakedness(parameters) > PEAKED:
        test = None
        reason = (
            f"the excess kurtosis of an index is {peakedness(parameters):.2g} at rank {parameters.rank} "
            f"and dimension {d}; allowed for a prediction of test_error: up to {PEAKED:g}. Raise "
            "dimension or rank_ratio."
        )
    if parameters.estimator == "gradient-descent":
        # starts are compared with independent draws from the posterior: an average over K has the error
        # (1 + 1/K) E, and one draw 2 E   (attention 18)
        metrics: Metrics = {
            "matrix_error": (1 + 1 / STARTS) * float(limit.error),
            "finite_size_matrix_error": None if error is None else (1 + 1 / STARTS) * error,
            "start_error": None if error is None else 2 * error,
            "recovery_ratio": threshold,
        }
        return NOT_PREDICTED | metrics | ({NO_PREDICTION: reason} if reason else {})
    return NOT_PREDICTED | {
        "matrix_error": float(limit.error),
        "test_error": bayes_test_error(parameters, float(limit.error), float(limit.noise)),
        "finite_size_matrix_error": error,
        "finite_size_test_error": test,
        "recovery_ratio": threshold,
        **({NO_PREDICTION: reason} if reason else {}),
    }


def _predict_layers(parameters: IndexedParameters) -> Metrics:
    """Predict the errors of both layers in the limit."""
    channel, ratio = parameters.deep_channel, parameters.samples / parameters.dimension**2
    errors = layer_errors(parameters.signal, channel, ratio)
    if errors is None:
        return NOT_PREDICTED | {
            NO_PREDICTION: f"the error of the first layer is below {LEAST_ERROR:g}, where the state "
            "evolution of two layers is not computed. Lower sample_ratio or raise noise."
        }
    return NOT_PREDICTED | {
        "first_layer_error": float(errors[0]),
        "last_layer_error": float(errors[1]),
        "test_error": layers_test_error(channel, errors),
    }


PEAKED = 1.5
"""Largest excess kurtosis of a diagonal index at which the test error is predicted. The measured test
error is below the prediction by the fraction 0.02 times the kurtosis."""

FEWEST = 4.0
"""Smallest number n T / d of tokens per dimension for which the expansion in 1/d is used."""

MARGIN = 6.0
"""Nothing is predicted if sample_ratio is nearer to recovery_ratio than the fraction MARGIN / d."""


def chance(parameters: IndexedParameters, prediction: Metrics) -> Metrics:
    """Metrics of estimates that ignore the data: the prior mean, or draws from the prior."""
    variance = parameters.signal.variance
    if parameters.layers == 2:
        test = layers_test_error(parameters.deep_channel, np.full(2, variance))
        return {"first_layer_error": variance, "last_layer_error": variance, "test_error": test}
    if parameters.estimator == "gradient-descent":
        average = (1 + 1 / STARTS) * variance
        return {
            "matrix_error": average,
            "finite_size_matrix_error": average,
            "start_error": 2 * variance,
        }
    test = bayes_test_error(parameters, variance, 1e6)
    return {
        "matrix_error": variance,
        "test_error": test,
        "finite_size_matrix_error": variance,
        "finite_size_test_error": test,
    }
