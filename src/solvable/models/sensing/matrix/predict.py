"""Predictions of matrix sensing: state evolution, first order in 1/d, recovery thresholds."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.message_passing.finite_size import (
    TokenShape,
    error_at_dimension,
    residual_order,
    token_shape,
)
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.sensing.free_entropy import entropy_metrics, free_entropy, label_information
from solvable.models.sensing.matrix.parameters import MatrixSensingParameters
from solvable.models.sensing.matrix.theory import (
    GROUPS,
    NuclearNormSignal,
    group_means,
    law_of,
    soft,
)
from solvable.spectra.denoiser import denoised
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.thresholds import perfect_recovery_threshold


def predict(parameters: MatrixSensingParameters) -> Metrics:
    """Predict the metrics of one setting."""
    metrics = curve(parameters, np.array([parameters.ratio]))[0]
    lost = parameters.estimator == "bayes" and metrics["finite_size_matrix_error"] is None
    return metrics | ({NO_PREDICTION: TOO_SMALL} if lost else {})


TOO_SMALL = (
    "finite_size_matrix_error and train_error are not predicted: the first order in 1/d is more than "
    "35 % of the limit. Raise dimension or sample_ratio, or set sensors=goe."
)


@lru_cache(maxsize=256)  # claims call this function once per cell
def at_dimension(parameters: MatrixSensingParameters, ratio: float) -> float | None:
    """Error to first order in 1/d; None for the nuclear norm, or if the first-order term is large."""
    law = law_of(parameters)
    if not isinstance(law, SymmetricSignal):
        return None
    shape = _shape(parameters)
    return error_at_dimension(law, parameters.channel, ratio, parameters.dimension, shape)


def _shape(parameters: MatrixSensingParameters) -> TokenShape | None:
    """Shape of rank-one measurements (sensing 22); None for Gaussian matrices."""
    return token_shape(1) if parameters.sensors == "rank-one" else None


def curve(parameters: MatrixSensingParameters, ratios: np.ndarray) -> list[Metrics]:
    """Predict the metrics at an array of sample ratios."""
    # q^ = 4 alpha / (Delta + 2 E), E = mmse(1 / q^)   (sensing 3, sensing 4)
    state = signal_evolution(law_of(parameters), parameters.channel, ratios)
    bayes = state
    if parameters.estimator != "bayes":
        bayes = signal_evolution(SymmetricSignal(parameters.spectrum), parameters.channel, ratios)
    finite = _along(parameters, state.error, ratios)
    bare = {"sample_ratio": 1.0, "noise": 0.0, "inner_noise": 0.0}
    limits = _limits(parameters.model_copy(update=bare))
    entropies = _entropies(parameters, ratios, state.error, finite)
    return [
        {
            **_point(parameters, float(error), float(noise), float(ratio)),
            **_trained(parameters, float(noise), size),
            "finite_size_matrix_error": size,
            "bayes_matrix_error": float(best),
            **limits,
            **more,
        }
        for error, noise, ratio, best, size, more in zip(
            state.error, state.noise, ratios, bayes.error, finite, entropies, strict=True
        )
    ]


def _entropies(
    parameters: MatrixSensingParameters,
    ratios: np.ndarray,
    errors: np.ndarray,
    finite: list[float | None],
) -> list[Metrics]:
    """Free entropy, mutual information and information of one more label; None for the nuclear norm."""
    law, channel, noise = law_of(parameters), parameters.channel, parameters.label_noise
    if not isinstance(law, SymmetricSignal):
        return [dict.fromkeys(ENTROPIES)] * ratios.size
    entropy, linear = free_entropy(law, channel), noise > 0 and parameters.output == "linear"
    # I-MMSE: dI / dalpha = log(1 + 2 E / Delta) / 2   (sensing 24)
    return [
        entropy_metrics(entropy, law.variance, float(ratio), float(error))
        | {
            "information_rate": label_information(noise, 2 * size)
            if linear and size is not None
            else None
        }
        for ratio, error, size in zip(ratios, errors, finite, strict=True)
    ]


ENTROPIES = ("mutual_information", "maxima", "overlap", "free_entropy", "information_rate")
"""Predictions of the Bayes estimator alone."""


def _along(
    parameters: MatrixSensingParameters, errors: np.ndarray, ratios: np.ndarray
) -> list[float | None]:
    """Errors to first order in 1/d; long curves are interpolated from twelve points."""
    if parameters.estimator != "bayes":
        return [None] * ratios.size
    if ratios.size <= 12:
        return [at_dimension(parameters, float(ratio)) for ratio in ratios]
    order = np.argsort(ratios)
    chosen = order[np.unique(np.linspace(0, ratios.size - 1, 12).astype(int))]
    known = [at_dimension(parameters, float(ratios[k])) for k in chosen]
    growth = [
        np.nan if e is None else e / max(errors[k], 1e-300)
        for k, e in zip(chosen, known, strict=True)
    ]
    between = np.interp(np.log(ratios), np.log(ratios[chosen]), growth)
    return [None if np.isnan(g) else float(g * e) for g, e in zip(between, errors, strict=True)]


def _point(
    parameters: MatrixSensingParameters, error: float, noise: float, ratio: float
) -> Metrics:
    """Compute metrics at one point from the error and the effective noise."""
    delta, recovered = parameters.label_noise, noise == 0
    freedom, kept = _freedom(parameters, error, noise)
    # train error = (Delta + 2 E) (1 - D / (2 alpha))²   (sensing 8)
    left = 1 - freedom / (2 * ratio) if not recovered else 0.0
    return {
        "matrix_error": error,
        "test_error": 2 * error,
        "train_error": None if parameters.output == "sign" else (delta + 2 * error) * left**2,
        "rank_fraction": kept,
        "eigenvalues": _eigenvalues(parameters, noise),
        "effective_noise": noise,
    }


def _trained(parameters: MatrixSensingParameters, noise: float, size: float | None) -> Metrics:
    """Training error of the Bayes estimator in d dimensions; nothing for other estimators."""
    law = law_of(parameters)
    if not isinstance(law, SymmetricSignal) or parameters.output == "sign" or noise == 0:
        return {}
    if size is None:
        return {"train_error": None}
    # Delta² / (Delta + 2 E_d) exp(c / d)   (sensing 30)
    delta = parameters.label_noise
    order = residual_order(law, parameters.channel, noise, _shape(parameters))
    grown = float(np.exp(order / parameters.dimension))
    return {"train_error": delta**2 / (delta + 2 * size) * grown}


def _freedom(
    parameters: MatrixSensingParameters, error: float, noise: float
) -> tuple[float, float | None]:
    """Degrees of freedom over d² / 2, and the fraction of nonzero eigenvalues (sensing 11)."""
    if noise == 0:
        if parameters.estimator == "bayes":
            return 0.0, None
        # None for a power law, whose rank would depend on the value below which eigenvalues count as 0
        whole = parameters.signal != "wishart"
        return 0.0, None if whole else min(1.0, parameters.rank / parameters.dimension)
    law = law_of(parameters)
    if isinstance(law, NuclearNormSignal):
        best = law.best(noise)
        return best.divergence, best.kept
    return error / noise, None


def _eigenvalues(parameters: MatrixSensingParameters, noise: float) -> list[float | None] | None:
    """Mean eigenvalues of the estimate in groups of equal size (sensing 9)."""
    if parameters.dimension < 4 * GROUPS:
        return None
    signal = law_of(parameters)
    law = SpectralLaw(parameters.spectrum, noise=float(np.sqrt(max(noise, 1e-9 * signal.variance))))
    mass = (np.cumsum(law.weights) - law.weights / 2) / law.weights.sum()
    levels = (np.arange(50 * GROUPS) + 0.5) / (50 * GROUPS)
    places = np.interp(levels, mass, law.x)
    if isinstance(signal, NuclearNormSignal):
        cut = signal.best(noise).cut if noise else 0.0
        values = soft(places, cut)
    else:
        values = np.maximum.accumulate(denoised(law, places))
    return group_means(values[::-1], GROUPS)


@lru_cache(maxsize=256)
def _limits(parameters: MatrixSensingParameters) -> Metrics:
    """Sample ratios above which the signal is recovered exactly without noise."""
    rank = parameters.rank / parameters.dimension
    if parameters.output == "sign":
        return {"recovery_ratio": None, "bayes_recovery_ratio": None}
    if parameters.signal == "own":
        # The least number of measurements is the limit of E / (2 t) as the noise t vanishes (sensing 5)
        t = np.array([1e-6 * law_of(parameters).variance])
        bayes = SymmetricSignal(parameters.spectrum)
        shares = [float(law.mmse(t)[0] / (2 * t[0])) for law in (law_of(parameters), bayes)]
        return {"recovery_ratio": shares[0], "bayes_recovery_ratio": shares[1]}
    if parameters.signal == "power-law" or rank >= 1:
        # As many measurements as free entries are needed: the known spectrum fixes only d of d² / 2
        # entries.
        return {"recovery_ratio": 0.5, "bayes_recovery_ratio": 0.5}
    best = rank - rank**2 / 2  # (sensing 5)
    norm = perfect_recovery_threshold(rank, sides=2)  # (sensing 12)
    return {
        "recovery_ratio": best if parameters.estimator == "bayes" else norm,
        "bayes_recovery_ratio": best,
    }


def chance(parameters: MatrixSensingParameters, prediction: Metrics) -> Metrics:
    """Metrics of the estimate without measurements: the prior mean, or 0 for the nuclear norm."""
    law = law_of(parameters)
    error = law.variance
    mean = law.mean if isinstance(law, SymmetricSignal) else 0.0
    return {
        "matrix_error": error,
        "finite_size_matrix_error": error,
        "test_error": 2 * error,
        "train_error": None
        if prediction.get("train_error") is None
        else parameters.label_noise + 2 * error,
        "information_rate": None
        if prediction.get("information_rate") is None
        else label_information(parameters.label_noise, 2 * error),
        "rank_fraction": None if prediction.get("rank_fraction") is None else 0.0,
        "eigenvalues": [mean] * GROUPS if prediction.get("eigenvalues") is not None else None,
    }
