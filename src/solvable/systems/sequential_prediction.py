"""Prediction of sequential feature recovery at finite size, from Monte-Carlo moments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from solvable.arrays import random_stream
from solvable.operators import apply_label_map, standardise
from solvable.spectra.spikes import (
    SpikePrediction,
    WeightedSample,
    compress_sample,
    predict_spikes,
)
from solvable.systems.base import Metrics
from solvable.systems.sequential_experiment import make_target
from solvable.theory.sample_kernel import (
    QuadraticBackground,
    SampleKernel,
    corrected_kernel,
    plain_kernel,
    quadratic_background,
)

if TYPE_CHECKING:
    from solvable.systems.sequential_recovery import SequentialParameters
    from solvable.targets import HierarchicalTarget

DRAWS = 200_000
"""Monte-Carlo draws behind the moments of a parameter set."""

DRAW_FLOPS = 1e11
"""Arithmetic that the draws of a large dimension may cost."""

CHUNK_ROWS = 4_096
"""Rows drawn at a time."""

THRESHOLD_SIZES = 48
"""Sample sizes between which thresholds are interpolated."""


@dataclass(frozen=True)
class Moments:
    """Everything that a prediction needs and that does not depend on the sample size."""

    sample: WeightedSample
    heights: np.ndarray
    background: QuadraticBackground | None
    noise: float
    mixing: np.ndarray
    strengths: np.ndarray
    coefficients: np.ndarray
    label_variance: float
    kernel_energy: float | None
    n_features: int
    thresholds: np.ndarray


def predict(parameters: SequentialParameters) -> Metrics:
    """Predicted metrics of a parameter set, under the names of the measured ones and more."""
    held = moments(_key(parameters))
    spikes = _spikes(held, parameters.samples)
    n, features = parameters.samples, parameters.features
    chance = features / held.n_features
    overlap = spikes.squared_overlap + (1 - spikes.squared_overlap) * chance
    noise = float(np.sqrt(held.noise * held.n_features / n))
    errors = _errors(held, spikes, noise)
    kernel = _kernel_floor(held, parameters)
    return {
        "squared_overlap": overlap.tolist(),
        "mean_squared_overlap": float(overlap.mean()),
        "threshold_samples": [float(n) if np.isfinite(n) else None for n in held.thresholds],
        "eigenvalues": spikes.eigenvalues.tolist(),
        "bulk_edges": [float(edge) for edge in spikes.bulk_edges],
        "noise_scale": noise,
        "detected_features": float(spikes.recovered.sum()),
        "neighbour_mixing": (held.mixing / n).tolist(),
        "normalised_mse": errors[parameters.second_layer],
        "normalised_mse_tail_only": errors["tail-only"],
        "normalised_mse_least_squares": errors["least-squares"],
        "normalised_mse_in_sample": errors["in-sample"],
        "normalised_mse_shrinkage": errors["shrinkage"],
        "population_floor": _floor(held).tolist(),
        "label_variance": held.label_variance,
        "spectrum": None,
        "polynomial_kernel_normalised_mse": kernel,
        "rbf_kernel_normalised_mse": kernel,
    }


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
def moments(parameters: SequentialParameters) -> Moments:
    """Moments of a parameter set, from draws that depend on nothing else."""
    target = make_target(parameters, seed=0)
    norms = np.linalg.norm(target.directions, axis=0)
    quadratic = parameters.inputs == "hermite" and parameters.degree == 2
    y, latent, squared_norm, plain, corrected = _draw(target, norms, quadratic)
    corrected_wanted = parameters.correction == "wick" and corrected is not None
    kernel = corrected if corrected_wanted and corrected is not None else plain
    T = apply_label_map(standardise(y)[0], parameters.label_map)
    index = ((latent * norms) ** 2 - norms**2) @ target.weights
    heights = _heights(T, kernel.diagonal, index, _exact_heights(target, norms, corrected_wanted))
    background = None
    if corrected is not None:
        # The plain operator is the corrected one and a contraction with the input: both noises are
        # those of the corrected one, the contraction is part of the background.
        plain_part = (
            None if corrected_wanted else (T @ (plain.diagonal - corrected.diagonal)) / T.size
        )
        noise = float(np.mean(T**2 * 2 * squared_norm) / parameters.dimension)
        background = _background(target, norms, T @ corrected.diagonal / T.size, plain_part, noise)
        kernel = corrected
    elif parameters.inputs == "hermite":
        # Degree 3: the leading effect of the dimension, the shift of the bulk, is taken out.
        heights = heights - np.mean(T * kernel.size) + T.mean() * kernel.size.mean()
    sample = compress_sample(T * kernel.size, T[:, None] ** 2 * kernel.coupling)
    strengths = target.weights * norms**2
    h2 = latent**2
    gaps = np.diff(heights)
    held = Moments(
        sample=sample,
        heights=heights,
        background=background,
        noise=float(np.mean((T * kernel.size) ** 2)),
        mixing=np.mean(T[:, None] ** 2 * h2[:, 1:] * h2[:, :-1], axis=0) / gaps**2,
        strengths=strengths / np.linalg.norm(strengths),
        coefficients=target.readout_function.coefficients,
        label_variance=float(target.label_variance),
        kernel_energy=_kernel_energy(target, quadratic),
        n_features=parameters.n_features_total,
        thresholds=np.empty(0),
    )
    object.__setattr__(held, "thresholds", _thresholds(held))
    return held


def _exact_heights(
    target: HierarchicalTarget, norms: np.ndarray, corrected: bool
) -> np.ndarray | None:
    r"""Exact :math:`E[\sum_j\lambda_j(h_j^2-E h_j^2)\langle A_i,KA_i\rangle]`; None for degree 3."""
    weights, gram = target.weights * norms**2, target.gram / np.outer(norms, norms)
    gaussian = 2 * gram**2 @ weights
    if target.inputs == "gaussian" or target.degree == 1:
        return gaussian
    if target.degree == 3:
        return None
    matrices = target.symmetric_matrices() / norms[:, None, None]
    flat = matrices.reshape(len(matrices), -1)
    squares = (matrices @ matrices).reshape(flat.shape)
    products = np.array([[np.sum((M @ N) * (N @ M).T) for N in matrices] for M in matrices])
    # The fourth joint cumulant of two quadratic forms; the correction takes the first part away.
    joint = 4 * products + (0 if corrected else 8) * squares @ squares.T
    return gaussian + joint @ weights


def _heights(
    T: np.ndarray, diagonal: np.ndarray, index: np.ndarray, exact: np.ndarray | None
) -> np.ndarray:
    """E[T diagonal] by Monte Carlo, with the index as control variate where its mean is known."""
    plain = T @ diagonal / T.size
    if exact is None:
        return plain
    control = index[:, None] * diagonal
    response = T[:, None] * diagonal
    centred = control - control.mean(axis=0)
    slope = np.mean(centred * response, axis=0) / np.mean(centred**2, axis=0)
    return plain - slope * (control.mean(axis=0) - exact)


def _draw(
    target: HierarchicalTarget, norms: np.ndarray, quadratic: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, SampleKernel, SampleKernel | None]:
    """Labels, latent features of unit directions, squared norms, plain and corrected kernel."""
    D, p = target.n_features_total, target.features
    cost = target.dimension**2 * p * 4 if quadratic else p * target.input_columns * 4
    draws = int(np.clip(DRAW_FLOPS / cost, DRAWS / 10, DRAWS))
    rng = random_stream("sequential-recovery", "moments")
    if not quadratic:
        y, latent, squared_norm = target.draw_moments(draws, rng)
        latent = latent / norms
        kernel = plain_kernel(latent=latent, squared_norm=squared_norm, n_features=D)
        return y, latent, squared_norm, kernel, None
    matrices = target.symmetric_matrices() / norms[:, None, None]
    stacked = matrices.transpose(1, 0, 2).reshape(target.dimension, -1)
    latent, images = np.empty((draws, p)), np.empty((draws, p))
    s, y = np.empty(draws), np.empty(draws)
    for start in range(0, draws, CHUNK_ROWS):
        rows = slice(start, min(start + CHUNK_ROWS, draws))
        X = rng.standard_normal((rows.stop - start, target.dimension))
        moved = (X @ stacked).reshape(len(X), p, -1)
        images[rows] = np.einsum("npd,npd->np", moved, moved)
        forms = np.einsum("nd,npd->np", X, moved)
        latent[rows] = (forms - np.trace(matrices, axis1=1, axis2=2)) / np.sqrt(2)
        s[rows] = np.einsum("nd,nd->n", X, X)
    index = ((latent * norms) ** 2 - 1) @ target.weights / np.sqrt(2)
    y = target.label(index)
    squared_norm = (s**2 - 2 * s + target.dimension) / 2
    plain = plain_kernel(latent=latent, squared_norm=squared_norm, n_features=D)
    corrected = corrected_kernel(
        latent=latent,
        squared_input_norm=s,
        squared_images=images,
        traces=np.trace(matrices, axis1=1, axis2=2),
        dimension=target.dimension,
    )
    return y, latent, squared_norm, plain, corrected


def _background(
    target: HierarchicalTarget,
    norms: np.ndarray,
    corrected_heights: np.ndarray,
    contracted: np.ndarray | None,
    contraction_noise: float,
) -> QuadraticBackground:
    r"""Population matrix beside the spikes; ``contracted`` is E[T 2 tr((x x^T - I) M_i^2)]."""
    matrices = target.symmetric_matrices() / norms[:, None, None]
    weights = target.weights * norms**2
    weights = weights / np.linalg.norm(weights)
    # The corrected height of T = y is sqrt(2) lambda (1 + 4 / d): the rest is the label map's.
    unit = np.sqrt(2) * (1 + 4 / target.dimension)
    attenuation = float(corrected_heights @ weights / unit)
    if contracted is None:
        return quadratic_background(matrices=matrices, weights=weights, attenuation=attenuation)
    S = np.einsum("i,iab,ibc->ac", weights, matrices, matrices, optimize=True)
    second = float(weights @ contracted / 2 / np.sum(S**2))
    return quadratic_background(
        matrices=matrices,
        weights=weights,
        attenuation=attenuation,
        second_chaos=second,
        contraction_noise=contraction_noise,
    )


def _kernel_energy(target: HierarchicalTarget, quadratic: bool) -> float | None:
    """Share of the label that a kernel learns from its part of degree 2, where it is known."""
    if not quadratic or target.readout != "identity":
        return None
    return float(target.degree_two_energy / target.index_variance)


def _kernel_floor(held: Moments, parameters: SequentialParameters) -> float | None:
    """Least error of a rotation-invariant kernel: degree 2, and n of the D_4 of degree 4."""
    if held.kernel_energy is None:
        return None
    top = comb(parameters.dimension + 3, 4)
    learned = min(1.0, parameters.samples / top)
    return float((1 - held.kernel_energy) * (1 - learned))


def _errors(held: Moments, spikes: SpikePrediction, noise: float) -> dict[str, float]:
    """Normalised error for every kind of second layer, and that of the unrecovered tail alone."""
    weights, c2 = held.strengths, spikes.squared_overlap
    explained = float(np.sum(weights**2 * c2**2))
    tail = float(np.sum(weights[~spikes.recovered] ** 2))
    placed = spikes.eigenvalues
    shrunk = np.sign(placed) * np.sqrt(np.maximum(placed**2 - 4 * noise**2, 0))
    return {
        "least-squares": _after_readout(held, explained),
        "tail-only": _after_readout(held, 1 - tail),
        "in-sample": _plug_in(held, placed, c2),
        "shrinkage": _plug_in(held, shrunk, c2),
    }


def _after_readout(held: Moments, explained: float) -> float:
    """Error of the best function of an index that explains a share of the true one."""
    power = held.coefficients[1:] ** 2
    orders = np.arange(1, power.size + 1)
    return float(power @ (1 - explained**orders) / power.sum())


def _plug_in(held: Moments, second_layer: np.ndarray, c2: np.ndarray) -> float:
    """Error of the index made of given second-layer moments, T = y."""
    truth = np.sqrt(2) * held.strengths
    return float(1 - np.sum(truth * second_layer * c2) + np.sum(second_layer**2) / 2)


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
