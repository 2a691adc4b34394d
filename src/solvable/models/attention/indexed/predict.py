"""Prediction of the Bayes estimate of attention weights at a size."""

from __future__ import annotations

from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.message_passing.finite_size import LARGEST, error_at_dimension, token_shape
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.models.attention.indexed.parameters import IndexedParameters
from solvable.models.attention.indexed.theory import bayes_test_error, peakedness, recovery_ratio


def predict(parameters: IndexedParameters) -> Metrics:
    """Errors of the limit and in so many dimensions, and where the weights are recovered."""
    d, threshold = parameters.dimension, recovery_ratio(parameters)
    ratio = parameters.samples / d**2
    limit = signal_evolution(parameters.signal, parameters.channel, ratio)
    shape = token_shape(parameters.tokens, parameters.activation != "linear")
    error = error_at_dimension(parameters.signal, parameters.channel, ratio, d, shape)
    reason = ""
    if error is None:
        reason = (
            f"in {d} dimensions the first order in 1/d is more than {LARGEST:.0%} of the error; "
            "predicted below that. Raise dimension, rank_ratio or noise, or leave recovery_ratio."
        )
    elif parameters.tokens * parameters.samples < FEWEST * d and 0 < float(limit.error) < 0.9:
        error = None
        reason = (
            f"{parameters.samples} samples of {parameters.tokens} tokens are less than {FEWEST:g} tokens "
            "a dimension: their noise is no semicircle, and message passing finds up to 30 % less than "
            "predicted. Raise dimension or sample_ratio."
        )
    elif threshold is not None and abs(ratio / threshold - 1) < MARGIN / d:
        error = None
        reason = (
            f"sample_ratio is within {MARGIN / d:.0%} of recovery_ratio = {threshold:.4g}, a "
            f"transition that {d} dimensions blur. Raise dimension or sample_ratio."
        )
    test = None if error is None else bayes_test_error(parameters, error, float(limit.noise))
    if test and parameters.activation != "linear" and peakedness(parameters) > PEAKED:
        test = None
        reason = (
            f"an index has an excess kurtosis of {peakedness(parameters):.2g}, as weights of rank "
            f"{parameters.rank} in {d} dimensions give; the error of attention is predicted up to "
            f"{PEAKED:g}. Raise dimension or rank_ratio."
        )
    return {
        "matrix_error": float(limit.error),
        "test_error": bayes_test_error(parameters, float(limit.error), float(limit.noise)),
        "finite_size_matrix_error": error,
        "finite_size_test_error": test,
        "recovery_ratio": threshold,
        **({NO_PREDICTION: reason} if reason else {}),
    }


PEAKED = 1.5
"""Excess kurtosis up to which indices count as Gaussian but for their skewness; the error of attention
was measured to be 0.02 times it below what that says."""

FEWEST = 4.0
"""Tokens of all samples per dimension from which on the first order in 1/d holds."""

MARGIN = 6.0
"""Distance from perfect recovery, times d, within which nothing is predicted."""


def chance(parameters: IndexedParameters, prediction: Metrics) -> Metrics:
    """Metrics of the prior mean."""
    variance = parameters.signal.variance
    test = bayes_test_error(parameters, variance, 1e6)
    return {
        "matrix_error": variance,
        "test_error": test,
        "finite_size_matrix_error": variance,
        "finite_size_test_error": test,
    }
