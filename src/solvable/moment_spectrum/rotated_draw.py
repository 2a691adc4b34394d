r"""Draws of a target whose first layer is itself random: what replicates see, without its matrices.

The law of one sample over inputs *and* rotations of the first layer needs a few numbers per feature:
turn the input to the first axis, and a direction is a random vector of the space of features.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.draws import LatentDraw, LatentSample, gaussian_sample
from solvable.moment_spectrum.orthogonal_form import OrthogonalForm
from solvable.moment_spectrum.sample_kernel import SampleKernel, corrected_kernel
from solvable.moment_spectrum.target_protocol import MomentTarget

MIXED = 200
"""Features up to which directions that are not orthogonal are drawn as such."""


@dataclass(frozen=True)
class TraceMeans:
    """Mean traces of random symmetric matrices of norm 1, for given inner products of two."""

    alternating: np.ndarray  # E tr M_i M_j M_i M_j, (p, p)
    squares: np.ndarray  # E tr M_i^2 M_j^2


def mean_traces(gram: np.ndarray, dimension: int) -> TraceMeans:
    """Mean traces of four random symmetric matrices whose inner products are a Gram matrix."""
    d, D = dimension, comb(dimension + 1, 2)
    # Entries of variance (1 + delta_ab) / 2: E tr M^2 W^2 = d ((d + 1) / 2)^2, and
    # E tr M W M W = E [tr M^2 + (tr M)^2] / 2 = (D + d) / 2; E tr M^4 is the sum over pairings.
    squares, alternating = d * (d + 1) ** 2 / 4, (D + d) / 2
    same = (2 * squares + alternating) / (D * (D + 2))
    found = []
    for mean in (alternating, squares):
        # Independent unit vectors have an inner product of mean square 1/D; orthogonal ones none.
        other = (mean / D**2 - same / D) / (1 - 1 / D)
        found.append(gram**2 * same + (1 - gram**2) * other)
    return TraceMeans(*found)


def can_rotate(target: MomentTarget) -> bool:
    """Whether draws over rotations are known: all but cubic features."""
    return target.inputs == "gaussian" or target.degree <= 2


def mean_index_variance(target: MomentTarget) -> float:
    """Mean variance of the index over rotations of the first layer."""
    strengths = rotated_form(target).strengths
    # Var = sum_ij mu_i mu_j [<B_i, B_j>^2 + 2 tr M_i M_j M_i M_j + 4 tr M_i^2 M_j^2]
    total = np.eye(strengths.size)
    if target.inputs == "hermite" and target.degree == 2:
        traces = mean_traces(total, target.dimension)
        total = total + 2 * traces.alternating + 4 * traces.squares
    return float(strengths @ total @ strengths)


def mean_degree_two_energy(target: MomentTarget) -> float:
    """Mean energy of the index in Hermite degree 2, for features of degree 2."""
    strengths = rotated_form(target).strengths
    squares = mean_traces(np.eye(strengths.size), target.dimension).squares
    return float(4 * strengths @ squares @ strengths)


def rotated_form(target: MomentTarget) -> OrthogonalForm:
    """Orthogonal form of one first layer, of the law of those of its kind."""
    p, D = target.features, target.n_features_total
    if target.first_layer == "orthonormal" or p > MIXED:
        return OrthogonalForm.orthonormal(target.weights)
    # Gaussian columns have the triangular factor of Bartlett: chi on the diagonal, normal below.
    rng = random_stream(target.seed, "teacher", "first layer", "gram")
    root = np.tril(rng.standard_normal((p, p)), -1)
    root[np.diag_indices(p)] = np.sqrt(rng.chisquare(D - np.arange(p)))
    return OrthogonalForm.of(root.T / np.sqrt(D), target.weights)


def rotated_draw(target: MomentTarget) -> LatentDraw:
    """Draw of a target of degree 1 or 2, or of Gaussian features, over rotations of its first layer."""
    form = rotated_form(target)
    if target.inputs == "gaussian" or target.degree == 1:
        return lambda n, rng: gaussian_sample(target, form, n, rng)
    block = max(500_000 // target.features, 100)

    def draw(n: int, rng: np.random.Generator) -> LatentSample:
        # In blocks, as they need many numbers at a time.
        sizes = np.diff([*range(0, n, block), n])
        latents, norms, kernels = zip(
            *(rotated_numbers(k, target, rng) for k in sizes), strict=True
        )
        latent = np.concatenate(latents)
        return LatentSample(
            np.asarray(target.label(form.index(latent))),
            latent,
            np.concatenate(norms),
            SampleKernel.joined(kernels),
            form.strengths,
            np.eye(target.features),
            dimension=target.dimension,
            mixing=form.mixing,
        )

    return draw


def rotated_numbers(
    n: int, target: MomentTarget, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, SampleKernel]:
    """Latent features, |F|^2 and the corrected kernel of features of degree 2."""
    d, D, p = target.dimension, target.n_features_total, target.features
    s = rng.chisquare(d, n)
    # Rows of the directions on e_1 e_1^T and on the rest of the identity, (I - e_1 e_1^T) / sqrt(d - 1):
    # p entries of two orthonormal vectors of length D.
    first, second = rng.standard_normal((2, n, p))
    rest = D - p
    tail = np.sqrt(rng.chisquare(rest, n)) if rest else np.zeros(n)
    across = rng.standard_normal(n) if rest else np.zeros(n)
    beyond = rng.chisquare(rest - 1, n) if rest > 1 else np.zeros(n)
    power = np.sum(first**2, axis=1) + tail**2
    share = (np.einsum("np,np->n", first, second) + tail * across) / power
    second -= share[:, None] * first
    other = across - share * tail
    first /= np.sqrt(power)[:, None]
    second /= np.sqrt(np.sum(second**2, axis=1) + other**2 + beyond)[:, None]
    # F = (x x^T - I) / sqrt(2), x = sqrt(s) e_1
    latent = first * ((s - 1) / np.sqrt(2))[:, None] - second * np.sqrt((d - 1) / 2)
    # |M x|^2 = s (M_11^2 + sum_a M_1a^2), the d - 1 entries of what is left of the norm
    left = np.maximum(1 - first**2 - second**2, 0)
    entries = rng.chisquare(d - 1, (n, p))
    spread = D - d - 1
    share_left = entries / (entries + (rng.chisquare(spread, (n, p)) if spread else 0.0))
    images = s[:, None] * (first**2 + left * share_left / 2)
    kernel = corrected_kernel(
        latent=latent,
        squared_input_norm=s,
        squared_images=images,
        traces=first + np.sqrt(d - 1) * second,
        dimension=d,
    )
    return latent, (s**2 - 2 * s + d) / 2, kernel
