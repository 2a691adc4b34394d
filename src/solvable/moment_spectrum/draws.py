r"""Draws of a target: labels, latent features, and norms and entries of each sample's kernel.

Features of degree 1 and 2 are drawn over inputs *and* rotations of the first layer, like replicates of
a study: with the input rotated to the first axis, a direction is a random vector of features. Cubic
features are drawn for one first layer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.cubic_forms import CubicSample, draw_cubic
from solvable.moment_spectrum.orthogonal_form import OrthogonalForm, orthonormal_directions
from solvable.moment_spectrum.quadratic_forms import mean_traces
from solvable.moment_spectrum.sample_kernel import SampleKernel, corrected_kernel
from solvable.moment_spectrum.target_protocol import MomentTarget


@dataclass(frozen=True)
class LatentSample:
    """Draws for the moments, along orthonormal directions A_i."""

    labels: np.ndarray  # labels y, shape (m,)
    latent: np.ndarray  # latent features h_i = <A_i, F>, shape (m, p)
    squared_norm: np.ndarray  # squared norm of the Hermite features F, shape (m,)
    form: OrthogonalForm  # index of the target, written in the directions A_i
    corrected: SampleKernel | None = None  # Wick-corrected kernel, for degrees 2 and 3
    cubic: CubicSample | None = None

    def rows(self, rows: slice) -> LatentSample:
        """Return the draws for a range of rows."""
        return replace(
            self,
            labels=self.labels[rows],
            latent=self.latent[rows],
            squared_norm=self.squared_norm[rows],
            corrected=self.corrected.rows(rows) if self.corrected else None,
        )


def is_quadratic(target: MomentTarget) -> bool:
    """Return True for Hermite features of degree 2."""
    return target.inputs == "hermite" and target.degree == 2


def is_cubic(target: MomentTarget) -> bool:
    """Return True for Hermite features of degree 3."""
    return target.inputs == "hermite" and target.degree == 3


def draw_sample(target: MomentTarget, n: int, rng: np.random.Generator) -> LatentSample:
    """Draw n samples of a target."""
    if is_cubic(target):
        form, directions = orthonormal_directions(target)
        sample = draw_cubic(directions, n, rng)
        labels = np.asarray(target.observed_label(form.index(sample.latent), rng))
        latent, squared_norm = sample.latent, sample.squared_norm
        return LatentSample(labels, latent, squared_norm, form, sample.kernel, sample)
    form = rotated_form(target)
    if is_quadratic(target):
        latent, squared_norm, kernel = rotated_numbers(n, target, rng)
        labels = np.asarray(target.observed_label(form.index(latent), rng))
        return LatentSample(labels, latent, squared_norm, form, kernel)
    latent = rng.standard_normal((n, target.features))
    outside = rng.chisquare(target.n_features_total - target.features, n)
    labels = np.asarray(target.observed_label(form.index(latent), rng))
    return LatentSample(labels, latent, np.sum(latent**2, axis=1) + outside, form)


def rotated_form(target: MomentTarget) -> OrthogonalForm:
    """Orthogonal form of a random first layer with the distribution of the target's first layer."""
    p, D = target.features, target.n_features_total
    # Non-orthogonal directions are treated as orthonormal above 200 features.
    if target.first_layer == "orthonormal" or p > 200:
        return OrthogonalForm.orthonormal(target.weights)
    # The triangular factor of Gaussian columns has chi variables on the diagonal and normal variables
    # above it (Bartlett).
    rng = random_stream(target.seed, "teacher", "first layer", "gram")
    root = np.tril(rng.standard_normal((p, p)), -1)
    root[np.diag_indices(p)] = np.sqrt(rng.chisquare(D - np.arange(p)))
    return OrthogonalForm.of(root.T / np.sqrt(D), target.weights)


def index_energies(target: MomentTarget) -> tuple[float, float]:
    """Energy of the index in Hermite degree 2 and variance of the index, averaged over rotations."""
    strengths = rotated_form(target).strengths
    gaussian = float(strengths @ strengths)
    if not is_quadratic(target):
        return gaussian, gaussian
    # The variance is sum_ij mu_i mu_j [<B_i, B_j>² + 2 tr M_i M_j M_i M_j + 4 tr M_i² M_j²]
    # (sequential 21)
    alternating, squares = mean_traces(strengths.size, target.dimension)
    low = 4 * float(strengths @ squares @ strengths)
    return low, gaussian + 2 * float(strengths @ alternating @ strengths) + low


def rotated_numbers(
    n: int, target: MomentTarget, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, SampleKernel]:
    """Latent features, |F|² and the corrected kernel of features of degree 2."""
    # Drawing in blocks limits the memory.
    block = max(500_000 // target.features, 100)
    sizes = np.diff([*range(0, n, block), n])
    latent, norms, kernels = zip(*(_rotated_block(k, target, rng) for k in sizes), strict=True)
    return np.concatenate(latent), np.concatenate(norms), SampleKernel.joined(kernels)


def _rotated_block(
    n: int, target: MomentTarget, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, SampleKernel]:
    d, D, p = target.dimension, target.n_features_total, target.features
    s = rng.chisquare(d, n)
    # Components of the directions along e_1 e_1^T and (I - e_1 e_1^T) / sqrt(d - 1) are p entries of two
    # random orthonormal vectors of length D.
    first, second = rng.standard_normal((2, n, p))
    tail = np.sqrt(rng.chisquare(D - p, n))
    across = rng.standard_normal(n)
    beyond = rng.chisquare(D - p - 1, n)
    power = np.sum(first**2, axis=1) + tail**2
    share = (np.einsum("np,np->n", first, second) + tail * across) / power
    second -= share[:, None] * first
    other = across - share * tail
    first /= np.sqrt(power)[:, None]
    second /= np.sqrt(np.sum(second**2, axis=1) + other**2 + beyond)[:, None]
    # feature matrix F = (x x^T - I) / sqrt(2) with x = sqrt(s) e_1
    latent = first * ((s - 1) / np.sqrt(2))[:, None] - second * np.sqrt((d - 1) / 2)
    # |M x|² = s (M_11² + sum_a M_1a²), where the d - 1 entries M_1a are contained in the remaining norm.
    left = np.maximum(1 - first**2 - second**2, 0)
    entries = rng.chisquare(d - 1, (n, p))
    share_left = entries / (entries + rng.chisquare(D - d - 1, (n, p)))
    kernel = corrected_kernel(
        latent=latent,
        squared_input_norm=s,
        squared_images=s[:, None] * (first**2 + left * share_left / 2),
        traces=first + np.sqrt(d - 1) * second,
        dimension=d,
    )
    return latent, (s**2 - 2 * s + d) / 2, kernel
