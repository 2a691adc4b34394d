"""Prediction of filters on Gaussian inputs at a size."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from solvable.arrays import random_stream
from solvable.frame.points import Metrics
from solvable.models.lofi.measure import make_target
from solvable.models.lofi.subspace_channel import SubspaceChannel
from solvable.spectra import direction_profile, label_weighted_spectrum, with_chance

if TYPE_CHECKING:
    from solvable.models.lofi.system import NeuralLoFiParameters
    from solvable.spectra import LabelLaw

OUTER_DRAWS, INNER_DRAWS = 4_000, 600
"""Draws of learned coordinates, and of true ones given these, behind the floor of the error."""


@lru_cache(maxsize=64)
def label_law(parameters: NeuralLoFiParameters) -> LabelLaw:
    """Law of the label map of a target; the same for every seed."""
    target = make_target(parameters, 0)
    return target.law() if isinstance(target, SubspaceChannel) else target.law(parameters.label_map)


@lru_cache(maxsize=16)
def _thresholds(law_key: tuple[bytes, bytes, bytes], dimension: int) -> list[float | None]:
    from solvable.spectra import LabelLaw, emergence_ratio

    weights, chance = (np.frombuffer(one) for one in law_key[:2])
    moments = np.frombuffer(law_key[2]).reshape(weights.size, -1)
    return _listed(emergence_ratio(LabelLaw(weights, chance, moments), dimension=dimension))


def predict(parameters: NeuralLoFiParameters) -> Metrics:
    """What the target at hand has of the metrics of a replicate, and its thresholds."""
    law = label_law(parameters)
    found: Metrics = {"weak_recovery_ratio": _listed(law.weak_recovery_ratio)}
    if parameters.lift != "none":
        return found | _lifted(parameters, law)
    arrays = (law.weights, law.probabilities, law.second_moments)
    key = tuple(np.ascontiguousarray(one).tobytes() for one in arrays)
    found["emergence_ratio"] = _thresholds(key, parameters.n_inputs)
    if parameters.target == "hidden":
        return found | _hidden(parameters, law)
    return found | _isotropic(parameters, law)


def _listed(values: np.ndarray) -> list[float | None]:
    """Plain numbers, None where infinite or not a number."""
    return [float(one) if np.isfinite(one) else None for one in values]


def _isotropic(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    spectrum = label_weighted_spectrum(law, ratio=parameters.ratio, dimension=parameters.n_inputs)
    overlap = spectrum.squared_overlap
    if parameters.target == "single-index":
        upper = law.strengths[0] >= 0
        near, far = spectrum.upper, spectrum.lower
        near, far = (near, far) if upper else (far, near)
        return {
            "eigenvalue": float(near.eigenvalues[0]),
            "bulk_edge": float(near.edge),
            "opposite_edge": float(far.edge),
            "squared_overlap": [float(near.squared_overlap[0])],
            "subspace_overlap": float(near.squared_overlap[0]),
        }
    k, d = law.n_directions, parameters.n_inputs
    upper_only = np.where(spectrum.at_upper_end, overlap, 0.0)
    return {
        "squared_overlap": with_chance(overlap, n_directions=k, n_features=d).tolist(),
        "subspace_overlap": float(with_chance(overlap, n_directions=k, n_features=d).mean()),
        "upper_subspace_overlap": float(
            with_chance(upper_only, n_directions=k, n_features=d).mean()
        ),
        "error_floor": _error_floor(tuple(with_chance(overlap, n_directions=k, n_features=d))),
    }


@lru_cache(maxsize=256)
def _error_floor(overlap: tuple[float, ...]) -> float:
    """Error of the best readout of learned coordinates, each of its mean overlap with a true one."""
    rng = random_stream("neural-lofi", "error floor")
    a = np.asarray(SubspaceChannel(60).coefficients)
    c2 = np.clip(overlap, 0.0, 1.0)
    learned = rng.standard_normal((OUTER_DRAWS, 1, a.size))
    spread = rng.standard_normal((1, INNER_DRAWS, a.size))
    form = (np.sqrt(c2) * learned + np.sqrt(1 - c2) * spread) ** 2 @ a
    # One half of the draws decides, the other is judged: the smaller share of one half is biased.
    decision = np.mean(form[:, ::2] > 0, axis=1) > 0.5
    return float(np.mean((form[:, 1::2] > 0) != decision[:, None]))


def _hidden(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    weak = np.ones(parameters.n_inputs - parameters.nuisance - 1)
    strong = np.full(parameters.nuisance, parameters.nuisance_variance)
    profiles = [
        direction_profile(
            law, variances=variances, direction_variance=1.0, n_samples=parameters.samples
        )
        for variances in (np.concatenate([strong, weak]), weak)
    ]
    raw, deflated = profiles
    return {
        "best_squared_overlap": raw.best_squared_overlap,
        "best_rank": raw.best_rank,
        "deflated_squared_overlap": deflated.best_squared_overlap,
        "deflated_rank": deflated.best_rank,
    }


def _lifted(parameters: NeuralLoFiParameters, law: LabelLaw) -> Metrics:
    from solvable.models.lofi.lift import predict_lifted_filter

    sign = 1.0 if law.strengths[0] >= 0 else -1.0
    facing = law if sign > 0 else law.mirrored()
    found = predict_lifted_filter(facing, ratio=parameters.ratio, activation=parameters.lift)
    inside = np.isnan(found.eigenvalue)
    return {
        "eigenvalue": sign * (found.edge if inside else found.eigenvalue),
        "bulk_edge": sign * found.edge,
        "squared_overlap": [found.squared_overlap],
        "subspace_overlap": found.squared_overlap,
        "emergence_ratio": _listed(np.array([found.emergence_ratio])),
    }
