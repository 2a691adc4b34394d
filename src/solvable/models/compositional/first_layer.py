"""Theory of the first spectral step of a compositional target, and draws for later layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.target import CompositionalTarget
from solvable.models.compositional.theory import (
    FEW_INPUTS,
    crossing_samples,
    degree_two_noise,
    degree_two_share,
)
from solvable.models.compositional.upper_layers import (
    make_target,
    rotated_basis,
    rotated_directions,
)
from solvable.models.sequential.target import HierarchicalTarget
from solvable.moment_spectrum.cubic import check_cubic, cubic_law
from solvable.moment_spectrum.cubic_forms import CubicSample, cubic_sample
from solvable.moment_spectrum.degree_two_background import quadratic_background
from solvable.moment_spectrum.latent_draws import LatentDraws, random_features, sample_lean
from solvable.moment_spectrum.operator_draws import drawn_background
from solvable.moment_spectrum.sample_kernel import SampleKernel, corrected_kernel, plain_kernel
from solvable.moment_spectrum.spike_heights import controlled_mean, exact_heights
from solvable.moment_spectrum.spike_law import SpikeLaw, check_dimension, check_range, ranking_room
from solvable.operators import apply_label_map, standardise
from solvable.spectra.structured_spikes import compress_sample
from solvable.teachers.base import LatentTarget


@dataclass(frozen=True)
class Model:
    """Quantities of a prediction that do not depend on the sample size."""

    law: SpikeLaw
    draws: tuple[LatentDraws, ...]  # draws for each first layer
    degree_two_share: float
    degree_two_noise: float  # label noise of a fit of degree 2, relative to independent noise
    true_last_layer: list[float | None] | None  # eigenvalues of the true last layer, descending
    degree: int
    dimension: int

    @cached_property
    def crossing(self) -> float:
        """Number of samples at which the mean squared overlap is 0.5; infinite for degree 3."""
        if self.degree == 3:  # the overlap near 0.5 is not predicted
            return np.inf
        return crossing_samples(self.law, drawn=self.dimension <= FEW_INPUTS)


def model_of(parameters: CompositionalParameters) -> Model:
    """Model of a parameter set, from the cache if only parameters without effect on it changed."""
    check_dimension(parameters.dimension)
    check_range(parameters.samples, parameters.widths[0], parameters.n_features_total)
    same = {"samples": 4, "test_samples": 2, "kernel_samples": 0}
    return _model(parameters.model_copy(update=same))


@lru_cache(maxsize=64)
def _model(parameters: CompositionalParameters) -> Model:
    if parameters.degree == 3:
        check_cubic(parameters.dimension, parameters.widths[0], parameters.correction)
    targets = [make_target(parameters, seed) for seed in range(TEACHERS)]
    parts = [draw_latent(target, parameters) for target in targets]
    # The scale of the labels differs between first layers and has no effect on the learner, which
    # standardises the labels.
    labels, _, scales = zip(*(standardise(part.labels) for part in parts), strict=True)
    mapped = [apply_label_map(own, parameters.label_map) for own in labels]
    law = _law(parameters, parts, mapped)
    shares = [
        degree_two_share(
            part.second_moment, draws=part.labels.size, label_variance=float(part.labels.var())
        )
        for part in parts
    ]
    true_last_layer = None  # eigenvalues in the units of the labels; None for a nonlinear readout
    if parameters.readout == "identity":
        values = np.linalg.eigvalsh(targets[0].matrix)[::-1] / float(np.mean(scales))
        true_last_layer = list(values.tolist())
    return Model(
        law=law,
        draws=tuple(
            _latent_draws(parameters, part, y, T, place)
            for place, (y, part, T) in enumerate(zip(labels, parts, mapped, strict=True))
        ),
        degree_two_share=float(np.mean(shares)),
        degree_two_noise=degree_two_noise(
            np.concatenate(labels),
            np.concatenate([part.squared_input_norm for part in parts]),
            parameters.dimension,
        ),
        true_last_layer=true_last_layer,
        degree=parameters.degree,
        dimension=parameters.dimension,
    )


def _latent_draws(
    parameters: CompositionalParameters,
    part: LatentMoments,
    y: np.ndarray,
    T: np.ndarray,
    place: int,
) -> LatentDraws:
    """Draws of the latent features of one first layer, for the fit of the last layer."""
    rng = random_stream("compositional-target", "noise", place)
    noise = random_features(part.squared_norm, part.signal, parameters.n_features_total, rng)
    lean = None
    if part.images is not None:
        s = part.squared_input_norm
        lean = sample_lean(T, part.signal, part.images, s, parameters.dimension)
    return LatentDraws(y, part.signal, noise, lean)


def _law(
    parameters: CompositionalParameters, parts: list[LatentMoments], mapped: Sequence[np.ndarray]
) -> SpikeLaw:
    """Spike theory of the first step, from the draws of all first layers."""
    # The spikes have heights theta_k = E[T (u_k² - 1)]   (compositional 4) and positions and overlaps
    # (sequential 5) (sequential 6).
    cubic = [part.cubic for part in parts if part.cubic is not None]
    if cubic:
        return cubic_law(cubic, mapped)
    D, d, T = parameters.n_features_total, parameters.dimension, np.concatenate(mapped)
    quadratic, wick = parameters.degree == 2, parameters.correction == "wick"
    signal = np.concatenate([part.signal for part in parts])
    squared_norm = np.concatenate([part.squared_norm for part in parts])
    plain = plain_kernel(latent=signal, squared_norm=squared_norm, n_features=D)
    corrected = [part.corrected for part in parts if part.corrected is not None]
    kernel = SampleKernel.joined(corrected) if corrected else plain
    strengths = rotated_basis(parameters).weights
    index = (signal**2 - 1) @ strengths

    def heights(diagonal: np.ndarray, wick: bool) -> np.ndarray:
        """Spike heights E[T <A_k, K A_k>], estimated with a diagonal layer's index as control variate."""
        exact = exact_heights(strengths, corrected=wick, dimension=d if quadratic else None)
        return controlled_mean(T, diagonal, index, exact)

    background = None
    if quadratic:
        # This term is the contraction 2 tr((x x^T - I) M_k²), which the correction subtracts.
        moved = plain.diagonal - kernel.diagonal
        background = quadratic_background(
            heights(kernel.diagonal, True),
            d,
            contracted=None if wick else T @ moved / T.size,
            contraction_noise=float(np.mean(T**2 * 2 * squared_norm) / d),
        )
    law = SpikeLaw(
        heights=heights(kernel.diagonal if wick else plain.diagonal, wick),
        sample=compress_sample(T * kernel.rest, (T**2)[:, None] * kernel.outer),
        background=background,
        n_features=D - strengths.size,
        room=ranking_room(d, parameters.degree, wick),
    )
    # Without orthonormal directions the target has no diagonal form in orthonormal features.
    if parameters.layers > 3 or parameters.first_layer != "orthonormal":
        return law
    # In few inputs a few directions of low rank end the bulk, and the formula puts the edges too far
    # inside: by 8 % at d = 20, where a feature then ranks before eigenvalues of the other end.
    forms = diagonal_forms(parameters, 8)
    drawn = drawn_background(law, forms, parameters.label_map, always=d <= FEW_INPUTS)
    return replace(law, background=drawn)


@dataclass(frozen=True)
class DiagonalForm(HierarchicalTarget):
    """Hierarchical target with given weights whose label is the label of a compositional target."""

    strengths: tuple[float, ...] = ()
    scale: float = 1.0  # Frobenius norm of the last layer B
    original: LatentTarget | None = None

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights lambda_k: the eigenvalues of B, divided by the Frobenius norm of B."""
        return np.array(self.strengths)

    def label(self, index: np.ndarray) -> np.ndarray:
        """Standardised label for the index sum_k lambda_k (u_k² - 1) / sqrt(2)."""
        assert self.original is not None
        # The original index is s = h^T B h - tr B = |B|_F sum_k lambda_k (u_k² - 1)   (compositional 3).
        return np.asarray(self.original.label(np.sqrt(2) * self.scale * index))


def diagonal_forms(parameters: CompositionalParameters, count: int) -> list[DiagonalForm]:
    """Diagonal forms of `count` targets that differ in the first layer."""
    basis = rotated_basis(parameters)
    return [
        DiagonalForm(
            dimension=parameters.dimension,
            degree=parameters.degree,
            features=parameters.widths[0],
            seed=seed,
            strengths=tuple(basis.weights.tolist()),
            scale=basis.scale,
            original=make_target(parameters, seed),
        )
        for seed in range(count)
    ]


TEACHERS = 4
"""Number of drawn first layers over which a prediction is averaged."""


@dataclass(frozen=True)
class LatentMoments:
    """Labels, latent features and norms of m draws, for one first layer."""

    labels: np.ndarray  # labels g(s), (m,)
    signal: np.ndarray  # rotated latent features u_k, (m, p)
    squared_norm: np.ndarray  # squared norm of the Hermite features, (m,)
    squared_input_norm: np.ndarray  # squared norm of the input x, (m,)
    second_moment: np.ndarray  # moment E[y (x x^T - I)], (d, d)
    images: np.ndarray | None  # squared norms of M_k x, (m, p), for degree 2
    corrected: SampleKernel | None  # Wick-corrected kernel, for degree 2
    cubic: CubicSample | None  # cubic forms, for degree 3


def draw_latent(target: CompositionalTarget, parameters: CompositionalParameters) -> LatentMoments:
    """Draw labels, latent features and kernel values of fresh samples of one target."""
    d, p, q = parameters.dimension, parameters.widths[0], parameters.degree
    # All first layers together get 80,000 draws, fewer if the draws would cost more than 1e11 operations.
    most = 80_000
    count = int(np.clip(1e11 / (4 * p * d**q), most / 10, most)) // TEACHERS
    rng = random_stream("compositional-target", "moments", target.seed)
    features = target.feature_map
    truth = rotated_directions(target, rotated_basis(parameters))
    matrices = np.asarray(features.to_symmetric(truth)) if q == 2 else np.empty((0, d, d))
    traces = np.trace(matrices, axis1=1, axis2=2)
    signal, images = np.zeros((2, count, p))
    labels, squared_norm, squared_input_norm = np.empty((3, count))
    second_moment, blocks = np.zeros((d, d)), []
    for start in range(0, count, 4_096):
        rows = slice(start, min(start + 4_096, count))
        X = rng.standard_normal((rows.stop - start, d), dtype=np.float32)
        if q == 3:
            blocks.append(X)
        elif q == 1:
            signal[rows] = features.project(X, truth)
        for k, M in enumerate(matrices.astype(np.float32)):
            image = X @ M
            # rotated features u_k = (x^T M_k x - tr M_k) / sqrt(2)
            signal[rows, k] = (np.einsum("na,na->n", image, X) - traces[k]) / np.sqrt(2)
            images[rows, k] = np.einsum("na,na->n", image, image)
        squared_norm[rows] = features.squared_norm(X)
        squared_input_norm[rows] = np.sum(X.astype(float) ** 2, axis=1)
        labels[rows] = target.readout_function(target.index(X))
        second_moment += (X * labels[rows, None]).T @ X
    cubic = cubic_sample(truth, blocks) if q == 3 else None
    corrected = None
    if q == 2:
        corrected = corrected_kernel(
            latent=signal,
            squared_input_norm=squared_input_norm,
            squared_images=images,
            traces=traces,
            dimension=d,
        )
    return LatentMoments(
        labels,
        signal if cubic is None else cubic.latent,
        squared_norm,
        squared_input_norm,
        second_moment / count - labels.mean() * np.eye(d),
        images if q == 2 else None,
        corrected,
        cubic,
    )
