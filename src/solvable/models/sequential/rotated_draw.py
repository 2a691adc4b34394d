r"""Draws of a target whose first layer is itself random: what replicates see, without its matrices.

The law of one sample over inputs *and* rotations of the first layer needs a few numbers per feature:
turn the input to the first axis, and a direction is a random vector of the space of features.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from solvable.arrays import random_stream
from solvable.models.sequential.draws import LatentDraw, LatentSample
from solvable.models.sequential.sample_kernel import SampleKernel, corrected_kernel
from solvable.models.sequential.target import HierarchicalTarget

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


def can_rotate(target: HierarchicalTarget) -> bool:
    """Whether draws over rotations are known: all but cubic features."""
    return target.inputs == "gaussian" or target.degree <= 2


def mean_index_variance(target: HierarchicalTarget) -> float:
    """Mean variance of the index over rotations of the first layer."""
    gram, strengths = first_layer(target)[1:3]
    # Var = sum_ij lambda_i lambda_j [<A_i, A_j>^2 + 2 tr M_i M_j M_i M_j + 4 tr M_i^2 M_j^2]
    total = gram**2
    if target.inputs == "hermite" and target.degree == 2:
        traces = mean_traces(gram, target.dimension)
        total = total + 2 * traces.alternating + 4 * traces.squares
    return float(strengths @ total @ strengths)


def mean_degree_two_energy(target: HierarchicalTarget) -> float:
    """Mean energy of the index in Hermite degree 2, for features of degree 2."""
    gram, strengths = first_layer(target)[1:3]
    return float(4 * strengths @ mean_traces(gram, target.dimension).squares @ strengths)


def first_layer(
    target: HierarchicalTarget,
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray, np.ndarray]:
    """Root of the Gram matrix of unit directions (None for 1), Gram matrix, strengths, norms."""
    p, D = target.features, target.n_features_total
    if target.first_layer == "orthonormal" or p > MIXED:
        return None, np.eye(p), target.weights, np.ones(p)
    # Gaussian columns have the triangular factor of Bartlett: chi on the diagonal, normal below.
    rng = random_stream(target.seed, "teacher", "first layer", "gram")
    root = np.tril(rng.standard_normal((p, p)), -1)
    root[np.diag_indices(p)] = np.sqrt(rng.chisquare(D - np.arange(p)))
    norms = np.linalg.norm(root, axis=1) / np.sqrt(D)
    root /= np.linalg.norm(root, axis=1)[:, None]
    return root.T, root @ root.T, target.weights * norms**2, norms


def rotated_draw(target: HierarchicalTarget) -> LatentDraw:
    """Draw of a target of degree 1 or 2, or of Gaussian features, over rotations of its first layer."""
    turn, gram, strengths, norms = first_layer(target)
    offset = target.weights @ (norms**2 - 1) / np.sqrt(2)
    gaussian = target.inputs == "gaussian" or target.degree == 1
    block = max(500_000 // target.features, 100)

    def draw(n: int, rng: np.random.Generator) -> LatentSample:
        kernel = None
        if gaussian:
            latent, squared_norm = _gaussian(n, target, turn, rng)
        else:
            # In blocks, as they need many numbers at a time.
            sizes = np.diff([*range(0, n, block), n])
            latent, norm, kernels = zip(
                *(_quadratic(k, target, turn, rng) for k in sizes), strict=True
            )
            latent, squared_norm = np.concatenate(latent), np.concatenate(norm)
            kernel = SampleKernel.joined(kernels)
        index = (latent**2 - 1) @ strengths / np.sqrt(2) + offset
        return LatentSample(
            np.asarray(target.label(index)),
            latent,
            squared_norm,
            kernel,
            strengths,
            gram,
            dimension=None if gaussian else target.dimension,
            gaussian=gaussian,
        )

    return draw


def _gaussian(
    n: int, target: HierarchicalTarget, turn: np.ndarray | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    coordinates = rng.standard_normal((n, target.features))
    rest = target.n_features_total - target.features
    outside = rng.chisquare(rest, n) if rest else 0.0
    latent = coordinates if turn is None else coordinates @ turn
    return latent, np.sum(coordinates**2, axis=1) + outside


def _quadratic(
    n: int, target: HierarchicalTarget, turn: np.ndarray | None, rng: np.random.Generator
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
    if turn is not None:
        first, second = first @ turn, second @ turn
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
