"""Prediction of an attention head: its state evolution, and what follows from the fixed point."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.models.attention.single_head.parameters import SingleHeadParameters
from solvable.models.attention.single_head.theory import SingleHeadState, solve_single_head
from solvable.spectra.product_measure import MarchenkoPasturMeasure, marchenko_pastur
from solvable.spectra.thresholds import interpolation_threshold, perfect_recovery_threshold

TOLD = (
    "matrix_error", "test_error", "noisy_test_error", "train_error", "rank_fraction", "overlap",
    "norm", "objective", "effective_noise", "threshold", "scale",
)  # fmt: skip
"""What a state says, under the names of the measured metrics where there is one."""


def predict(parameters: SingleHeadParameters) -> Metrics:
    """Predicted metrics of a parameter set, under the names of the measured ones and more."""
    return _metrics(parameters, state_of(parameters))


def curve(parameters: SingleHeadParameters, ratios: np.ndarray) -> list[Metrics]:
    """The same along a curve of sample ratios, each of which starts the search of the next."""
    found, start = [], None
    for ratio in ratios:
        place = parameters.model_copy(update={"sample_ratio": float(ratio)})
        state = _solved(place, float(ratio), start)
        start = state.conjugates
        found.append(_metrics(place, state))
    return found


def state_of(parameters: SingleHeadParameters) -> SingleHeadState:
    """The fixed point of a parameter set."""
    return _state(
        parameters.rank / parameters.dimension,
        parameters.ratio,
        parameters.noise,
        parameters.regularisation,
        parameters.tokens,
        parameters.inverse_temperature,
    )


def measure_of(parameters: SingleHeadParameters) -> MarchenkoPasturMeasure:
    """Law of the target's eigenvalues."""
    return marchenko_pastur(parameters.rank / parameters.dimension)


def chance(parameters: SingleHeadParameters, prediction: Metrics) -> Metrics:
    """Metrics of a head that learned nothing: it attends to all tokens alike."""
    state = state_of(parameters)
    nothing = _nothing(parameters)
    return {
        "matrix_error": float(state.law.target.node_weights @ state.law.target.nodes**2),
        "test_error": nothing[0],
        "noisy_test_error": nothing[1],
        "train_error": nothing[1],
        "rank_fraction": 0.0,
        "overlap": 0.0,
        "norm": 0.0,
        "eigenvalues": [0.0] * parameters.dimension,
    }


def _nothing(parameters: SingleHeadParameters) -> tuple[float, float]:
    """Mean squared distance of attention matrices from uniform ones, without noise and with."""
    from solvable.models.attention.single_head.evolution import Evolution, Learned
    from solvable.models.attention.single_head.theory import fresh_error

    target = measure_of(parameters)
    evolution = Evolution(
        parameters.output, target, parameters.ratio, parameters.noise, parameters.regularisation
    )
    law = state_of(parameters).law
    zero = Learned(law, 0.0, 0.0, 0.0, 0.0, 0.0)
    clean, noisy = (fresh_error(evolution, zero, noise) for noise in (0.0, parameters.noise))
    return clean, noisy


def _metrics(parameters: SingleHeadParameters, state: SingleHeadState) -> Metrics:
    d, contrasts = parameters.dimension, parameters.output.size
    told: Metrics = {name: float(getattr(state, name)) for name in TOLD}
    told["eigenvalues"] = state.eigenvalues(d).tolist() if d <= 2_000 else None
    reason = _refusal(parameters, state)
    if reason:
        told = dict.fromkeys(told)
    return {
        **told,
        "replicon": state.replicon,
        "stability": "stable" if state.stable else "unstable",
        **_thresholds(parameters.rank / d, parameters.noise, contrasts),
        **({NO_PREDICTION: reason} if reason else {}),
    }


def _refusal(parameters: SingleHeadParameters, state: SingleHeadState) -> str:
    """Why the state is that of no trained head, or nothing."""
    if not state.stable:
        return (
            f"unstable: a small change of the fit grows by {state.replicon:.2g} in a step of message "
            f"passing (replicon; predicted: below 1), and {state.split:.1%} of samples can be fitted in "
            "two ways (predicted: none), so that there are many minima. Raise regularisation, or lower "
            "inverse_temperature or noise."
        )
    learned = state.rank_fraction * parameters.dimension
    # Ranks of a finite sample scatter by about one.
    if parameters.width < min(learned + 2, parameters.dimension):
        return (
            f"width_ratio is {parameters.width_ratio:g}, {parameters.width} columns, where "
            f"{learned:.1f} directions would be learned: training a narrower head is not convex in "
            f"its matrix. Set width_ratio >= {(learned + 2) / parameters.dimension:.2f}."
        )
    return ""


def _thresholds(rank_ratio: float, noise: float, contrasts: int) -> Metrics:
    """Sample ratios at which vanishing regularisation stops to interpolate, and starts to recover."""
    # A sample tells k = (T^2 + T - 2) / 2 numbers of the matrix exactly, whatever the temperature:
    # both thresholds are those of one measurement a sample, over k.
    recovery, interpolation = None, None
    if noise == 0:
        recovery = perfect_recovery_threshold(min(rank_ratio, 1.0)) / contrasts
    else:
        interpolation = _interpolation(rank_ratio, noise) / contrasts
    return {"recovery_ratio": recovery, "interpolation_ratio": interpolation}


@lru_cache(maxsize=256)
def _interpolation(rank_ratio: float, noise: float) -> float:
    peak = interpolation_threshold(marchenko_pastur(rank_ratio), label_noise=noise)
    return peak.sample_ratio


@lru_cache(maxsize=1024)
def _state(
    rank_ratio: float,
    ratio: float,
    noise: float,
    regularisation: float,
    tokens: int,
    inverse_temperature: float,
) -> SingleHeadState:
    return solve_single_head(
        marchenko_pastur(rank_ratio),
        sample_ratio=ratio,
        noise=noise,
        regularisation=regularisation,
        tokens=tokens,
        inverse_temperature=inverse_temperature,
    )


def _solved(
    parameters: SingleHeadParameters, ratio: float, start: np.ndarray | None
) -> SingleHeadState:
    return solve_single_head(
        measure_of(parameters),
        sample_ratio=ratio,
        noise=parameters.noise,
        regularisation=parameters.regularisation,
        tokens=parameters.tokens,
        inverse_temperature=parameters.inverse_temperature,
        start=start,
    )
