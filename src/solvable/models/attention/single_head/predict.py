"""Predictions of the single attention head: state evolution, first order in 1/d, thresholds."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solvable.errors import NotConverged
from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.models.attention.single_head.evolution import Evolution, Learned
from solvable.models.attention.single_head.finite_size import FiniteSize, finite_size, test_errors
from solvable.models.attention.single_head.outputs import SoftmaxOutput
from solvable.models.attention.single_head.parameters import NOISELESS_PENALTY, SingleHeadParameters
from solvable.models.attention.single_head.theory import SingleHeadState, fresh_error, solve_output
from solvable.spectra.error_parts import error_parts
from solvable.spectra.measures import Measure, power_law, second_moment
from solvable.spectra.product_measure import marchenko_pastur
from solvable.spectra.thresholds import interpolation_threshold

SIZED = ("matrix_error", "test_error", "noisy_test_error", "train_error", "overlap", "norm")
"""Metrics that are also predicted at a finite dimension."""

PARTS = (
    "overfitting_error", "underfitting_error", "approximation_error", "mismatch_error",
    "cut_over_noise",
)  # fmt: skip
"""Parts of the matrix error, and the threshold over the effective noise."""

NUMBERS = (
    "matrix_error", "test_error", "noisy_test_error", "train_error", "rank_fraction", "overlap",
    "norm", "objective", "effective_noise", "threshold", "scale",
)  # fmt: skip
"""Attributes of `SingleHeadState` that are reported as metrics."""


def predict(parameters: SingleHeadParameters) -> Metrics:
    """Predict the metrics of one setting, in the limit and at the setting's dimension."""
    state = state_of(parameters)
    reason = _refusal(parameters, state)
    orders, exact = None, None
    if parameters.trained_without_noise:
        exact = _state(_noiseless(_key(parameters))).matrix_error
    noiseless: Metrics = {"noiseless_matrix_error": exact}
    if not reason:
        try:
            orders = _orders(_key(parameters))
        except NotConverged as error:
            return _metrics(parameters, state, None) | noiseless | {NO_PREDICTION: str(error)}
    return _metrics(parameters, state, orders) | noiseless


def curve(parameters: SingleHeadParameters, ratios: np.ndarray) -> list[Metrics]:
    """Predict metrics at increasing sample ratios; each search starts at the previous fixed point."""
    states: list[SingleHeadState] = []
    exact: list[SingleHeadState] = []
    errors: list[float | None] = []
    places = [parameters.model_copy(update={"sample_ratio": float(r)}) for r in ratios]
    for place in places:
        start = states[-1].conjugates if states else None
        # curves use fewer quadrature points than single settings
        states.append(solve_output(_evolution(_key(place)), start, 4_096))
        if place.trained_without_noise:
            start = exact[-1].conjugates if exact else None
            exact.append(solve_output(_evolution(_noiseless(_key(place))), start, 4_096))
        errors.append(exact[-1].matrix_error if place.trained_without_noise else None)
    # curves show the limit; the first order in 1/d is predicted only at the measured points
    columns = zip(places, states, errors, strict=True)
    return [
        _metrics(place, state, None) | {"noiseless_matrix_error": error}
        for place, state, error in columns
    ]


def state_of(parameters: SingleHeadParameters) -> SingleHeadState:
    """Fixed point of state evolution for one setting."""
    return _state(_key(parameters))


def chance(parameters: SingleHeadParameters, prediction: Metrics) -> Metrics:
    """Metrics of a head with weights 0, which attends to all tokens equally."""
    nothing = _nothing(parameters)
    power = second_moment(state_of(parameters).law.target)
    return {
        "matrix_error": power,
        "noiseless_matrix_error": power,
        "test_error": nothing[0],
        "noisy_test_error": nothing[1],
        "train_error": nothing[1],
        "rank_fraction": 0.0,
        "overlap": 0.0,
        "norm": 0.0,
        "eigenvalues": [0.0] * parameters.dimension,
    }


def _nothing(parameters: SingleHeadParameters) -> tuple[float, float]:
    """Test errors of uniform attention, on noiseless and on noisy labels."""
    evolution = _evolution(_key(parameters))
    zero = Learned(state_of(parameters).law, 0.0, 0.0, 0.0, 0.0, 0.0)
    clean, noisy = (fresh_error(evolution, zero, noise) for noise in (0.0, parameters.noise))
    return clean, noisy


def _metrics(
    parameters: SingleHeadParameters, state: SingleHeadState, orders: FiniteSize | None
) -> Metrics:
    d, contrasts = parameters.dimension, parameters.output.size
    metrics: Metrics = {name: float(getattr(state, name)) for name in NUMBERS}
    if not np.isfinite(state.threshold):
        metrics["threshold"] = None
    metrics["eigenvalues"] = None
    if d <= 2_000:
        metrics["eigenvalues"] = [float(value) for value in state.eigenvalues(d)]
    metrics |= dict.fromkeys(f"finite_size_{name}" for name in SIZED)
    reason = _refusal(parameters, state)
    if reason:
        metrics = dict.fromkeys(metrics)
    elif orders is not None:
        sizes, reason = _at_this_size(parameters, state, orders)
        metrics |= sizes
    return {
        **metrics,
        "replicon": state.replicon,
        "stability": "stable" if state.stable else "unstable",
        **_thresholds(parameters, contrasts),
        **(_parts(state) if metrics["matrix_error"] is not None else dict.fromkeys(PARTS)),
        **({NO_PREDICTION: reason} if reason else {}),
    }


def _at_this_size(
    parameters: SingleHeadParameters, state: SingleHeadState, orders: FiniteSize
) -> tuple[Metrics, str]:
    """Limit plus first order in 1/d; if this sum is not predicted, also the reason."""
    d = parameters.dimension
    clean, noisy = test_errors(_evolution(_key(parameters)), state, orders, d)
    sizes: Metrics = {"finite_size_test_error": clean, "finite_size_noisy_test_error": noisy}
    for name in ("matrix_error", "train_error", "overlap", "norm"):
        sizes[f"finite_size_{name}"] = getattr(state, name) + getattr(orders, name) / d
    beyond = []
    for name in SIZED:
        limit, value = getattr(state, name), sizes[f"finite_size_{name}"]
        assert isinstance(value, float)
        # no prediction if the first-order term exceeds a third of the limit
        if not abs(value - limit) <= abs(limit) / 3:
            beyond.append(f"{name} {value - limit:+.2g} on {limit:.2g}")
    # if the expansion fails for one metric, none is predicted
    if beyond:
        sizes = dict.fromkeys(sizes)
    reason = (
        f"the first order in 1/d is more than a third of the limit: {', '.join(beyond)}. Raise "
        "dimension, sample_ratio or regularisation."
    )
    return sizes, reason if beyond and state.rank_fraction > 0 else ""


def _refusal(parameters: SingleHeadParameters, state: SingleHeadState) -> str:
    """Reason why the state does not describe a trained head; empty if there is none."""
    if not state.stable:
        return (
            "the prediction is unstable because the loss has many minima: the replicon is "
            f"{state.replicon:.2g} (allowed: below 1), and {state.split:.1%} of the samples have two "
            "proximal minima (allowed: up to 0.1%). Raise regularisation, or lower "
            "inverse_temperature or noise."
        )
    learned = state.rank_fraction * parameters.dimension
    # the learned rank scatters by about 1 between finite samples
    if parameters.trained == "weights" and parameters.width < min(
        learned + 2, parameters.dimension
    ):
        return (
            f"width_ratio is {parameters.width_ratio:g} ({parameters.width} columns), and the predicted "
            f"rank is {learned:.1f}; allowed: a width of at least the rank plus 2. Set width_ratio >= "
            f"{(learned + 2) / parameters.dimension:.2f}."
        )
    return ""


def _noiseless(key: Key) -> Key:
    """Key of weights that are trained on labels without noise."""
    return key._replace(noise=0.0, regularisation=NOISELESS_PENALTY)


def _parts(state: SingleHeadState) -> Metrics:
    """Parts of the matrix error, and the threshold over the effective noise (attention 19)."""
    if not np.isfinite(state.threshold):
        return dict.fromkeys(PARTS)
    parts = error_parts(
        state.law.target, effective_noise=state.effective_noise, threshold=state.threshold,
        scale=state.scale,
    )  # fmt: skip
    numbers = (parts.overfitting, parts.underfitting, parts.approximation, parts.mismatch)
    return {
        **{name: float(part) for name, part in zip(PARTS, numbers, strict=False)},
        "cut_over_noise": float(state.threshold / state.effective_noise),
    }


def _thresholds(parameters: SingleHeadParameters, contrasts: int) -> Metrics:
    """Interpolation threshold (attention 14) and recovery threshold (attention 15)."""
    # At vanishing regularisation a sample fixes k = (T² + T - 2) / 2 linear functions of the matrix. So
    # each threshold is the threshold for one linear measurement per sample, divided by k.
    recovery, interpolation = None, None
    if parameters.trained == "matrix":
        # as many linear functions as a symmetric matrix has free entries, k n = d² / 2   (attention 23)
        free = 1 / (2 * contrasts)
        recovery, interpolation = (None, free) if parameters.noise else (free, None)
    else:
        recovery = parameters.recovery_ratio if parameters.target == "wishart" else None
        if parameters.noise:
            key = _key(parameters)._replace(sample_ratio=1.0, regularisation=1.0)
            interpolation = _interpolation(key) / contrasts
    return {"recovery_ratio": recovery, "interpolation_ratio": interpolation}


@lru_cache(maxsize=256)
def _interpolation(key: Key) -> float:
    return interpolation_threshold(_evolution(key).target, label_noise=key.noise).sample_ratio


class Key(NamedTuple):
    """The parameters on which the prediction in the limit depends."""

    rank_ratio: float
    exponent: float
    """Exponent of a power law; 0 for a Wishart target."""
    dimension: int
    """Dimension of a power law; 0 for a Wishart target."""
    sample_ratio: float
    noise: float
    regularisation: float
    tokens: int
    inverse_temperature: float
    target_inverse_temperature: float
    ridge: bool
    """Penalty on the squared Frobenius norm of a trained matrix."""


def _key(parameters: SingleHeadParameters) -> Key:
    power_law = parameters.target == "power-law"
    return Key(
        1.0 if power_law else parameters.rank / parameters.dimension,
        parameters.exponent if power_law else 0.0, parameters.dimension if power_law else 0,
        parameters.ratio, parameters.noise, parameters.regularisation, parameters.tokens,
        parameters.inverse_temperature, parameters.teacher.inverse_temperature,
        parameters.trained == "matrix",
    )  # fmt: skip


def _evolution(key: Key) -> Evolution:
    output = SoftmaxOutput(key.tokens, key.inverse_temperature)
    teacher = SoftmaxOutput(key.tokens, key.target_inverse_temperature)
    target: Measure = marchenko_pastur(key.rank_ratio)
    if key.exponent:
        target = power_law(dimension=key.dimension, exponent=key.exponent)
    return Evolution(
        output, target, key.sample_ratio, key.noise, key.regularisation, teacher, key.ridge
    )


@lru_cache(maxsize=1024)
def _state(key: Key) -> SingleHeadState:
    return solve_output(_evolution(key))


@lru_cache(maxsize=1024)
def _orders(key: Key) -> FiniteSize:
    # samples in 60 dimensions give the first-order coefficients accurately enough
    samples = 2_048 if key.tokens == 2 else 1_024
    return finite_size(
        _evolution(key), _state(key), key.rank_ratio, size=key.dimension or 60, samples=samples,
        exponent=key.exponent,
    )  # fmt: skip
