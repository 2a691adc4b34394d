"""Prediction of filters on Gaussian inputs at a size."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.models.lofi.constant import (
    kept_by_deflation,
    predict_lifted_null,
    predict_published_filter,
)
from solvable.models.lofi.lift import activation_energies, predict_lifted_filter
from solvable.models.lofi.parameters import NeuralLoFiParameters
from solvable.models.lofi.subspace_channel import SADDLES, SubspaceChannel
from solvable.models.lofi.target import label_law, make_target
from solvable.spectra.anisotropic import direction_profile
from solvable.spectra.label_emergence import emergence_ratio
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum


@lru_cache(maxsize=16)
def _thresholds(parameters: NeuralLoFiParameters) -> list[float | None]:
    return listed(emergence_ratio(label_law(parameters), dimension=parameters.n_inputs))


def predict(parameters: NeuralLoFiParameters) -> Metrics:
    """Predicted metrics of the chosen target, and its thresholds."""
    law = label_law(parameters)
    # alpha_opt = 1 / E[(E[s² | T] - 1)²], of the best map of the label
    best: Metrics = {"weak_recovery_ratio": listed(law.weak_recovery_ratio)}
    if parameters.lift != "none":
        return best | _lifted(parameters, law)
    # Thresholds take longer than the rest, and are equal for all sample ratios of a curve.
    curve = parameters.model_copy(update={"ratio": 1.0})
    thresholds: Metrics = {"emergence_ratio": _thresholds(curve)}
    part = {"hidden": _hidden, "subspace": _subspace, "single-index": _single}[parameters.target]
    return best | thresholds | part(parameters, law)


def _single(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    spectrum = label_weighted_spectrum(law, ratio=parameters.ratio, dimension=parameters.n_inputs)
    near, far = spectrum.upper, spectrum.lower
    if law.strengths[0] < 0:
        near, far = far, near
    return {
        "eigenvalue": float(near.eigenvalues[0]),
        "bulk_edge": float(near.following[0]),
        "opposite_edge": float(far.eigenvalues[0]),
        "squared_overlap": [float(near.squared_overlap[0])],
        "subspace_overlap": float(near.squared_overlap[0]),
    }


def with_other_vectors(overlap: np.ndarray, dimension: int) -> np.ndarray:
    """Overlap of each direction (last axis) with the span of the eigenvectors of all of them."""
    # What c_i² leaves is spread over the other d - 1 eigenvectors; of the kept ones each belongs to
    # its own direction by c_j^2.
    rest = 1 - overlap
    others = rest.sum(axis=-1, keepdims=True) - rest
    return np.asarray(overlap + rest * others / (dimension - 1))


def _subspace(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    k, d = law.n_directions, parameters.n_inputs
    spectrum = label_weighted_spectrum(law, ratio=parameters.ratio, dimension=d)
    own, at_upper = spectrum.squared_overlap, spectrum.at_upper_end
    overlap = with_other_vectors(own, d)
    # The upper end alone keeps k vectors there, some of no direction.
    rest = 1 - own
    kept = (rest * at_upper).sum() - rest * at_upper + k - at_upper.sum()
    upper_overlap = own * at_upper + rest * kept / (d - 1)
    return {
        "squared_overlap": overlap.tolist(),
        "subspace_overlap": float(overlap.mean()),
        "upper_subspace_overlap": float(upper_overlap.mean()),
        "error_floor": _error_floor(tuple(overlap)),
    }


@lru_cache(maxsize=256)
def _error_floor(overlap: tuple[float, ...]) -> float:
    """Error of the best readout of learned coordinates, each of its mean overlap with a true one."""
    rng = random_stream("neural-lofi", "error floor")
    a = np.asarray(SADDLES)
    c2 = np.clip(overlap, 0.0, 1.0)
    # 4,000 draws of learned coordinates, and 600 of the true ones given these:
    # s_i = c_i u_i + sqrt(1 - c_i²) z_i
    learned = rng.standard_normal((4_000, 1, a.size))
    spread = rng.standard_normal((1, 600, a.size))
    form = (np.sqrt(c2) * learned + np.sqrt(1 - c2) * spread) ** 2 @ a
    # One half of the draws decides, the other is judged: the smaller share of one half is biased.
    decision = np.mean(form[:, ::2] > 0, axis=1) > 0.5
    return float(np.mean((form[:, 1::2] > 0) != decision[:, None]))


def _hidden(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    n, k = parameters.samples, parameters.nuisance
    weak = np.ones(parameters.n_inputs - k - 1)
    strong = np.full(k, parameters.nuisance_variance)
    raw = direction_profile(
        law, variances=np.concatenate([strong, weak]), direction_variance=1.0, n_samples=n
    )
    metrics: Metrics = {
        "best_squared_overlap": raw.best_squared_overlap,
        "best_rank": raw.best_rank,
        "deflated_squared_overlap": None,
        "deflated_rank": None,
    }
    # A principal component stands for a strong direction if its variance is above 1 + sqrt(d / n)
    least = 1 + np.sqrt(parameters.n_inputs / n)
    if parameters.nuisance_variance > least and k <= n / 2:
        deflated = direction_profile(
            _projected(law, 1 - k / n), variances=weak, direction_variance=1.0, n_samples=n - k
        )
        return metrics | {
            "deflated_squared_overlap": deflated.best_squared_overlap,
            "deflated_rank": deflated.best_rank,
        }
    reason = (
        f"nuisance_variance is {parameters.nuisance_variance:g}; strong directions are the leading "
        f"principal components, and the theory of their removal holds, above {least:.3g}"
    )
    if k > n / 2:
        reason = (
            f"nuisance is {k} and takes as many degrees of freedom from {n} samples; the theory of its "
            "removal holds up to half of them"
        )
    return metrics | {NO_PREDICTION: reason}


def _projected(law: LabelLaw, share: float) -> LabelLaw:
    """The label map once a random subspace of the samples has been taken away, this share left."""
    # A strong direction is a vector over the samples and takes it with it: P T P in place of T. Free
    # compression keeps the mean and multiplies the variance by c, as it does E[T (s² - 1)] of what is
    # left of the direction, c E[T s²] + (1 - c) E[T] (derived; higher cumulants are left alone).
    mean, root = law.weights @ law.probabilities, np.sqrt(share)
    return LabelLaw(
        mean + root * (law.weights - mean), law.probabilities, 1 + root * (law.second_moments - 1)
    )


def _lifted(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    n, d = parameters.samples, parameters.n_inputs
    if n > 2 * d**2:
        raise InvalidParameter(
            f"{n} samples in {d} dimensions show a lifted filter more than the linear part of its "
            f"activation, to which the theory is confined; allowed: up to 2 d^2 = {2 * d**2} samples."
        )
    published = parameters.features == "as-published"
    constant = activation_energies(parameters.lift)[0]
    if parameters.channel == "sign" and published and constant > 1e-9:
        raise InvalidParameter(
            f"the constant of the lift {parameters.lift} mixes with the direction of an odd label, "
            "which the theory leaves out; allowed: features=centred, an even channel, or an odd lift, "
            "tanh or erf."
        )
    # The lower end is the upper end of the mirrored law.
    sign = 1.0 if law.strengths[0] >= 0 else -1.0
    facing = law if sign > 0 else law.mirrored()
    size: dict[str, Any] = {
        "ratio": parameters.ratio,
        "dimension": d,
        "activation": parameters.lift,
    }
    raw = parameters.label_map == "raw"
    if published:
        lifted = predict_published_filter(facing, raw_labels=raw, **size)
    else:
        lifted = predict_lifted_filter(facing, **size)
    mean, first = _first_moment(parameters, law)
    overlap = lifted.squared_overlap
    if parameters.features == "deflated":
        overlap *= kept_by_deflation(law, first_moment=(mean, first), **size)
    null = predict_lifted_null(law, centred=not published, raw_labels=raw, **size)
    return {
        "eigenvalue": sign * lifted.eigenvalue,
        "bulk_edge": sign * lifted.next_eigenvalue,
        "squared_overlap": [overlap],
        "subspace_overlap": overlap,
        "null_eigenvalue": null,
        "first_moment_overlap": first,
        "emergence_ratio": listed(np.array([lifted.emergence_ratio])),
    }


def _first_moment(parameters: NeuralLoFiParameters, law: LabelLaw) -> tuple[float, float]:
    """E[T s], and the squared overlap of (1/n) sum T x with the direction."""
    # m_s + noise along the direction, noise of variance tau_2 / n along the d - 1 others:
    # (m² + (E[T² s²] - m²) / n) / (same + (d - 1) tau_2 / n), m = E[T s]. No threshold.
    target = make_target(parameters, 0)
    assert not isinstance(target, SubspaceChannel)
    n, d = parameters.samples, parameters.n_inputs
    mean = target.linear_strength(parameters.label_map)
    own = float((law.probabilities * law.weights**2) @ law.second_moments[:, 0])
    signal = mean**2 * (1 - 1 / n) + own / n
    return mean, signal / (signal + (d - 1) * law.weight_power / n)


def chance(parameters: NeuralLoFiParameters, prediction: Metrics) -> Metrics:
    """Metrics of random directions, and of a readout that guesses."""
    d, overlaps = parameters.n_inputs, prediction.get("squared_overlap")
    names = ("subspace_overlap", "upper_subspace_overlap", "best_squared_overlap")
    return {
        **dict.fromkeys((*names, "deflated_squared_overlap"), 1 / d),
        "squared_overlap": [1 / d] * (len(overlaps) if isinstance(overlaps, list) else 0),
        **dict.fromkeys(("best_rank", "deflated_rank"), d / 2),
        # A direction that is found nowhere leaves the next eigenvalue as the first.
        "eigenvalue": prediction.get("bulk_edge"),
        "error": 0.5,
    }
