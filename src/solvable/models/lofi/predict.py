"""Predict the metrics of filters on Gaussian inputs."""

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
    """Predict metrics and thresholds of the chosen target."""
    law = label_law(parameters)
    # alpha_opt = 1 / E[(E[s² | T] - 1)²] for the best map of the label (lofi 7)
    best: Metrics = {"weak_recovery_ratio": listed(law.weak_recovery_ratio)}
    if parameters.lift != "none":
        return best | _lifted(parameters, law)
    # Thresholds take longest to compute but do not depend on the sample ratio, so one per curve is
    # cached.
    # alpha_c: E[T (s² - 1) / (lambda - T)] = E[T² / (lambda - T)²] = 1 / alpha_c   (lofi 7); balanced
    # labels: alpha_c Delta² = 1 + 1 / lambda²   (lofi 8)
    curve = parameters.model_copy(update={"ratio": 1.0})
    thresholds: Metrics = {"emergence_ratio": _thresholds(curve)}
    part = {"hidden": _hidden, "subspace": _subspace, "single-index": _single}[parameters.target]
    return best | thresholds | part(parameters, law)


def _single(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    # Edge psi at its minimum (lofi 5), outlier psi(lambda*) and overlap psi' / (psi' - phi') (lofi 6),
    # with rounding at finite d (lofi 9)
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
    """Squared overlaps of the directions (last axis) with the span of all kept eigenvectors."""
    # squared overlap q_i² + (1 - q_i²) sum_{j != i} (1 - q_j²) / (d - 1)   (lofi 24)
    rest = 1 - overlap
    others = rest.sum(axis=-1, keepdims=True) - rest
    return np.asarray(overlap + rest * others / (dimension - 1))


def _subspace(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    k, d = law.n_directions, parameters.n_inputs
    spectrum = label_weighted_spectrum(law, ratio=parameters.ratio, dimension=d)
    own, at_upper = spectrum.squared_overlap, spectrum.at_upper_end
    overlap = with_other_vectors(own, d)
    # the filter keeps the k largest eigenvalues: positive directions, then random directions (lofi 25)
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
    """Error of the best readout from learned coordinates with given squared overlaps (lofi 26)."""
    rng = random_stream("neural-lofi", "error floor")
    a = np.asarray(SADDLES)
    c2 = np.clip(overlap, 0.0, 1.0)
    # 4,000 draws of learned coordinates u, and for each 600 draws of the true coordinates:
    # s_i = q_i u_i + sqrt(1 - q_i²) z_i   (lofi 26)
    draws, rows = 4_000, 40  # rows of a block, which stays in the cache of the processor
    centres = np.sqrt(c2) * rng.standard_normal((draws, 1, a.size))
    wrong = 0
    for start in range(0, draws, rows):
        latent = rng.standard_normal((rows, 600, a.size))
        latent *= np.sqrt(1 - c2)
        latent += centres[start : start + rows]
        latent *= latent
        positive = latent @ a > 0
        # Half of the draws decide the label and the other half count the errors, which avoids a bias.
        decision = np.mean(positive[:, ::2], axis=1) > 0.5
        wrong += int(np.count_nonzero(positive[:, 1::2] != decision[:, None]))
    return wrong / (draws * 300)


def _hidden(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    n, k = parameters.samples, parameters.nuisance
    weak = np.ones(parameters.n_inputs - k - 1)
    strong = np.full(k, parameters.nuisance_variance)
    # Resolvent of anisotropic inputs (lofi 19)
    raw = direction_profile(
        law, variances=np.concatenate([strong, weak]), direction_variance=1.0, n_samples=n
    )
    metrics: Metrics = {
        "best_squared_overlap": raw.best_squared_overlap,
        "best_rank": raw.best_rank,
        "deflated_squared_overlap": None,
        "deflated_rank": None,
    }
    # Strong directions are the leading principal components if the least of their sample variances,
    # L (1 - sqrt(k / n))², exceeds c (1 + sqrt(d / n c)), c = 1 - k / n   (lofi 20)
    share = min(k / n, 0.5)
    rest = 1 - share
    least = rest * (1 + np.sqrt(weak.size / (rest * n))) / (1 - np.sqrt(share)) ** 2
    if parameters.nuisance_variance > least and k <= n / 2:
        left, kept = _projected(law, share, parameters.nuisance_variance)
        deflated = direction_profile(left, variances=weak, direction_variance=1.0, n_samples=n)
        return metrics | {
            "deflated_squared_overlap": kept * deflated.best_squared_overlap,
            "deflated_rank": deflated.best_rank,
        }
    reason = (
        f"nuisance_variance is {parameters.nuisance_variance:g}; the removal of strong directions is "
        f"predicted above {least:.3g}, where they are the leading principal components"
    )
    if k > n / 2:
        reason = (
            f"nuisance is {k} and removes {k} degrees of freedom from {n} samples; the removal is "
            "predicted up to half of the samples"
        )
    return metrics | {NO_PREDICTION: reason}


@lru_cache(maxsize=4)
def _components(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal basis that starts with random components of samples, and their variances."""
    draws = random_stream("neural-lofi", "free compression").standard_normal((size, count))
    basis, spread, _ = np.linalg.svd(draws)
    return basis, spread**2 / size


def _projected(law: LabelLaw, share: float, variance: float) -> tuple[LabelLaw, float]:
    """Label distribution and kept share of a direction after removal of this share of n components."""
    # A removed strong direction is a vector over the samples, so that Q T Q with a random projector Q
    # replaces T. At a variance L of the strong directions the components tilt towards the samples of
    # the weak directions: Q multiplies a component of variance L S by -c / (L S - c), c = 1 - k / n, and
    # a weak direction has the squared tangent t² = (1/n) sum L S / (L S - c)² with the components. The
    # law of Q T Q and E[s² | its eigenvalue] are those of one matrix, as both concentrate   (lofi 20)
    size = 600  # each sample is the mean over this part of the law
    borders = np.linspace(0, 1, size + 1)
    places = np.cumsum(np.append(0.0, law.probabilities))
    T, moments = (
        size
        * np.diff(np.interp(borders, places, np.cumsum(np.append(0.0, law.probabilities * values))))
        for values in (law.weights, law.second_moments[:, 0])
    )
    basis, spread = _components(size, max(1, round(share * size)))
    beyond = variance * spread - (1 - share)
    factors = np.concatenate([(share - 1) / beyond, np.ones(size - spread.size)])
    values, vectors = np.linalg.eigh(((basis.T * T) @ basis) * factors * factors[:, None])
    given = ((basis @ vectors) ** 2).T @ moments
    tangent = share * float(np.mean(variance * spread / beyond**2))
    return LabelLaw(values, np.full(size, 1 / size), given[:, None]), 1 / (1 + tangent)


def _lifted(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    n, d = parameters.samples, parameters.n_inputs
    if n > 2 * d**2:
        raise InvalidParameter(
            f"n is {n} in {d} dimensions with a lift; allowed: up to 2 d² = {2 * d**2} samples, as the "
            "theory covers the linear part of the activation only. Lower ratio or set lift=none."
        )
    published = parameters.features == "as-published"
    constant = activation_energies(parameters.lift)[0]
    if parameters.channel == "sign" and published and constant > 1e-9:
        raise InvalidParameter(
            f"the constant of the lift {parameters.lift} mixes with the direction of the odd label "
            "'sign', which the theory does not cover; allowed: features=centred, an even channel, or an "
            "odd lift (tanh, erf)."
        )
    # The lower end of the spectrum is the upper end for the label distribution with opposite sign.
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
    # (m² + (E[T² s²] - m²) / n) / (same + (d - 1) tau_2 / n), m = E[T s]   (lofi 17)
    target = make_target(parameters, 0)
    assert not isinstance(target, SubspaceChannel)
    n, d = parameters.samples, parameters.n_inputs
    mean = target.linear_strength(parameters.label_map)
    own = float((law.probabilities * law.weights**2) @ law.second_moments[:, 0])
    signal = mean**2 * (1 - 1 / n) + own / n
    return mean, signal / (signal + (d - 1) * law.weight_power / n)


def chance(parameters: NeuralLoFiParameters, prediction: Metrics) -> Metrics:
    """Metrics of random directions, and of a readout that guesses the label."""
    d, overlaps = parameters.n_inputs, prediction.get("squared_overlap")
    names = ("subspace_overlap", "upper_subspace_overlap", "best_squared_overlap")
    return {
        **dict.fromkeys((*names, "deflated_squared_overlap"), 1 / d),
        "squared_overlap": [1 / d] * (len(overlaps) if isinstance(overlaps, list) else 0),
        **dict.fromkeys(("best_rank", "deflated_rank"), d / 2),
        # Without an outlier the largest eigenvalue is the edge of the bulk.
        "eigenvalue": prediction.get("bulk_edge"),
        "error": 0.5,
    }
