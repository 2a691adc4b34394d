"""Prediction of sequential feature recovery at finite size."""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.sequential.moments import Moments, draw_moments
from solvable.models.sequential.parameters import SequentialParameters
from solvable.spectra.density import SpectralDensity, weighted_density
from solvable.spectra.spikes import SpikePrediction, predict_spikes

DENSITY_WEIGHTS = 2_000
"""Weights that stand for their law in a density."""

THRESHOLD_SIZES = 48
"""Sample sizes between which thresholds are interpolated."""


def predict(parameters: SequentialParameters) -> Metrics:
    """Predicted metrics of a parameter set, under the names of the measured ones and more."""
    held, thresholds, floor = _moments(_key(parameters))
    spikes = _spikes(held, parameters.samples)
    n, features = parameters.samples, parameters.features
    chance = features / held.n_features
    overlap = spikes.squared_overlap + (1 - spikes.squared_overlap) * chance
    noise = float(np.sqrt(held.noise * held.n_features / n))
    errors = _errors(held, spikes, noise, in_units=parameters.label_map == "identity")
    kernel = _kernel_floor(held, parameters)
    return {
        "squared_overlap": overlap.tolist(),
        "mean_squared_overlap": float(overlap.mean()),
        "threshold_samples": [float(n) if np.isfinite(n) else None for n in thresholds],
        "eigenvalues": spikes.eigenvalues.tolist(),
        "bulk_edges": [float(edge) for edge in spikes.bulk_edges],
        "detection_edges": None,
        "noise_scale": noise,
        "detected_features": float(spikes.recovered.sum()),
        "neighbour_mixing": (held.mixing / n).tolist(),
        "normalised_mse": errors[parameters.second_layer],
        "normalised_mse_tail_only": errors["tail-only"],
        "normalised_mse_least_squares": errors["least-squares"],
        "normalised_mse_in_sample": errors["in-sample"],
        "normalised_mse_shrinkage": errors["shrinkage"],
        "population_floor": floor.tolist(),
        "label_variance": held.label_variance,
        "spectrum": None,
        "polynomial_kernel_normalised_mse": kernel,
        "rbf_kernel_normalised_mse": kernel,
    }


def bulk_density(parameters: SequentialParameters) -> SpectralDensity | None:
    """Predicted density of the bulk; None where the background has more than a semicircle."""
    held, *_ = _moments(_key(parameters))
    if held.background is not None and held.background.contraction is not None:
        return None
    chances = np.cumsum(held.sample.probabilities)
    places = (np.arange(DENSITY_WEIGHTS) + 0.5) / DENSITY_WEIGHTS
    return weighted_density(
        weights=np.interp(places, chances, held.sample.clipped(parameters.samples)),
        aspect_ratio=parameters.samples / held.n_features,
        background_variance=held.background.variance if held.background else 0.0,
    )


def _spikes(held: Moments, samples: float) -> SpikePrediction:
    return predict_spikes(
        sample=held.sample,
        heights=held.heights,
        n_samples=samples,
        n_features=held.n_features,
        background=held.background.at(samples) if held.background else None,
    )


def _key(parameters: SequentialParameters) -> SequentialParameters:
    """The same parameters with everything reset that the moments do not depend on."""
    same = {"samples": 2, "test_samples": 2, "kernel_samples": 0, "spectrum_samples": 0}
    return parameters.model_copy(update={**same, "second_layer": "least-squares"})


@lru_cache(maxsize=64)
def _moments(parameters: SequentialParameters) -> tuple[Moments, np.ndarray, np.ndarray]:
    """Moments of a parameter set, and the thresholds and floors that follow from them."""
    held = draw_moments(parameters)
    return held, _thresholds(held), _floor(held)


def _kernel_floor(held: Moments, parameters: SequentialParameters) -> float | None:
    """Least error of a rotation-invariant kernel: degree 2, and n of the D_4 of degree 4."""
    if held.kernel_energy is None:
        return None
    top = comb(parameters.dimension + 3, 4)
    learned = min(1.0, parameters.samples / top)
    return float((1 - held.kernel_energy) * (1 - learned))


def _errors(
    held: Moments, spikes: SpikePrediction, noise: float, *, in_units: bool
) -> dict[str, float]:
    """Normalised error for every kind of second layer, and that of the unrecovered tail alone."""
    weights, c2 = held.strengths, spikes.squared_overlap
    explained = float(np.sum(weights**2 * c2**2))
    tail = float(np.sum(weights[~spikes.recovered] ** 2))
    # A direction that is not out of the bulk has an eigenvalue near one of its edges.
    out, placed = spikes.recovered, spikes.eigenvalues
    size = np.where(out, np.abs(placed), 2 * noise)
    placed = np.sign(placed) * size
    shrunk = np.sign(placed) * np.sqrt(np.maximum(size**2 - 4 * noise**2, 0))
    return {
        "least-squares": _after_readout(held, explained),
        "tail-only": _after_readout(held, 1 - tail),
        "in-sample": _plug_in(held, placed, c2, in_units),
        "shrinkage": _plug_in(held, shrunk, c2, in_units),
    }


def _after_readout(held: Moments, explained: float) -> float:
    """Error of the best function of an index that explains a share of the true one."""
    power = held.coefficients[1:] ** 2
    orders = np.arange(1, power.size + 1)
    return float(power @ (1 - explained**orders) / power.sum())


def _plug_in(held: Moments, second_layer: np.ndarray, c2: np.ndarray, in_units: bool) -> float:
    """Error of the index made of given moments: as it is, or with its scale fitted by a readout."""
    power = float(np.sum(second_layer**2) / 2)
    overlap = float(np.sum(np.sqrt(2) * held.strengths * second_layer * c2))
    if in_units:
        return 1 - overlap + power
    return _after_readout(held, overlap**2 / (4 * power) if power else 0.0)


def _floor(held: Moments) -> np.ndarray:
    """Overlap lost to the background with infinitely many samples; 1 for a feature inside it."""
    huge = _spikes(held, 1e6 * held.n_features)
    return 1 - huge.sharp_squared_overlap


def _thresholds(held: Moments) -> np.ndarray:
    """Sample size at which each feature leaves the bulk; infinite if it never does."""
    closed = held.n_features * held.noise / np.maximum(held.heights**2, 1e-300)
    sizes = np.geomspace(closed.min() / 2, min(closed.max() * 4, 1e12), THRESHOLD_SIZES)
    excess = np.array([_spikes(held, n).excess for n in sizes])
    found = np.full(held.heights.size, np.inf)
    for i, column in enumerate(excess.T):
        above = np.flatnonzero(column > 0)
        if above.size and above[0] > 0:
            k = above[0]
            part = column[k - 1] / (column[k - 1] - column[k])
            found[i] = np.exp(np.interp(part, [0, 1], np.log(sizes[k - 1 : k + 1])))
        elif above.size:
            found[i] = sizes[0]
    return found
