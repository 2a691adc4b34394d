"""Moments behind the prediction of sequential recovery: exact where known, else Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.sample_kernel import (
    QuadraticBackground,
    SampleKernel,
    corrected_kernel,
    plain_kernel,
    quadratic_background,
)
from solvable.models.sequential.target import HierarchicalTarget, make_target
from solvable.operators import apply_label_map, standardise
from solvable.spectra.spikes import WeightedSample, compress_sample

TEACHERS = 8
"""Targets over which the moments are averaged, as the replicates of a study are."""

DRAWS = 200_000
"""Monte-Carlo draws over all targets."""

DRAW_FLOPS = 3e10
"""Arithmetic that the draws of a large dimension may cost."""

CHUNK_ROWS = 4_096
"""Rows drawn at a time."""


@dataclass(frozen=True)
class Moments:
    r"""Everything that a prediction needs and that does not depend on the sample size.

    Parameters
    ----------
    sample : WeightedSample
        Law of the weights and couplings of the per-sample kernel.
    heights : ndarray of shape (p,)
        :math:`\theta_i=E[T\langle A_i,KA_i\rangle]`.
    background : QuadraticBackground or None
        What the operator holds beside spikes and noise; None for Gaussian features and degree 3.
    noise : float
        :math:`\tau_2=E[T^2\|K\|_F^2]/D^2`.
    mixing : ndarray of shape (p - 1,)
        n times the squared overlap of neighbours to second order.
    strengths : ndarray of shape (p,)
        Weights of unit directions, :math:`\sum_i\lambda_i^2=1`.
    coefficients : ndarray
        Hermite coefficients of the readout.
    label_variance : float
        Variance of the label.
    kernel_energy : float or None
        Share of the label of degree 2 in the input, where it is known.
    n_features : int
        :math:`D`.
    """

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


@dataclass(frozen=True)
class Draw:
    """What one target contributes."""

    weights: np.ndarray
    couplings: np.ndarray
    heights: np.ndarray
    background: QuadraticBackground | None
    products: np.ndarray
    label_variance: float
    kernel_energy: float | None


def draw_moments(parameters: SequentialParameters) -> Moments:
    """Moments of a parameter set, from draws that depend on nothing else.

    Parameters
    ----------
    parameters : SequentialParameters
        The sample size does not matter.

    Returns
    -------
    Moments
        Averaged over :data:`TEACHERS` targets.
    """
    targets = [make_target(parameters, seed) for seed in range(TEACHERS)]
    draws = [draw_from(target, parameters) for target in targets]
    heights = np.mean([one.heights for one in draws], axis=0)
    weights = np.concatenate([one.weights for one in draws])
    couplings = np.concatenate([one.couplings for one in draws])
    norms = np.linalg.norm(targets[0].directions, axis=0)
    strengths = targets[0].weights * norms**2
    energies = [one.kernel_energy for one in draws if one.kernel_energy is not None]
    products = np.mean([one.products for one in draws], axis=0)
    return Moments(
        sample=compress_sample(weights, couplings),
        heights=heights,
        background=draws[0].background,
        noise=float(np.mean(weights**2)),
        mixing=products / np.diff(heights) ** 2,
        strengths=strengths / np.linalg.norm(strengths),
        coefficients=targets[0].readout_function.coefficients,
        label_variance=float(np.mean([one.label_variance for one in draws])),
        kernel_energy=float(np.mean(energies)) if energies else None,
        n_features=parameters.n_features_total,
    )


def draw_from(target: HierarchicalTarget, parameters: SequentialParameters) -> Draw:
    """Moments of one target.

    Parameters
    ----------
    target : HierarchicalTarget
        The target.
    parameters : SequentialParameters
        Label map and correction.

    Returns
    -------
    Draw
        Weights and couplings draw by draw, means of the rest.
    """
    norms = np.linalg.norm(target.directions, axis=0)
    y, latent, squared_norm, plain, corrected = _draw(target, norms)
    wick = parameters.correction == "wick" and corrected is not None
    kernel = corrected if wick and corrected is not None else plain
    T = apply_label_map(standardise(y)[0], parameters.label_map)
    index = ((latent * norms) ** 2 - norms**2) @ target.weights
    heights = controlled_mean(T, kernel.diagonal, index, exact_heights(target, norms, wick))
    background = None
    if corrected is not None:
        # The plain operator is the corrected one and a contraction with the input: both noises are
        # those of the corrected one, the contraction is part of the background.
        moved = None if wick else T @ (plain.diagonal - corrected.diagonal) / T.size
        noise = float(np.mean(T**2 * 2 * squared_norm) / parameters.dimension)
        background = _background(target, norms, T @ corrected.diagonal / T.size, moved, noise)
        kernel = corrected
    elif parameters.inputs == "hermite":
        # Degree 3: the leading effect of the dimension, the shift of the bulk, is taken out.
        heights = heights - np.mean(T * kernel.size) + T.mean() * kernel.size.mean()
    h2 = latent**2
    energy = None
    if corrected is not None and target.readout == "identity":
        energy = target.degree_two_energy / target.index_variance
    return Draw(
        weights=T * kernel.size,
        couplings=T[:, None] ** 2 * kernel.coupling,
        heights=heights,
        background=background,
        products=np.mean(T[:, None] ** 2 * h2[:, 1:] * h2[:, :-1], axis=0),
        label_variance=float(target.label_variance),
        kernel_energy=energy,
    )


def exact_heights(
    target: HierarchicalTarget, norms: np.ndarray, corrected: bool
) -> np.ndarray | None:
    r"""Exact mean of the index times the diagonal of the kernel.

    .. math::
        E\Big[\sum_j\lambda_j(h_j^2-Eh_j^2)\langle A_i,KA_i\rangle\Big]
        =\sum_j\lambda_j\big(2\langle A_i,A_j\rangle^2+8\,\mathrm{tr}M_i^2M_j^2
        +4\,\mathrm{tr}M_iM_jM_iM_j\big),

    without the second term for the corrected kernel, and the first alone for Gaussian features.

    Parameters
    ----------
    target : HierarchicalTarget
        The target.
    norms : ndarray of shape (p,)
        Of its directions.
    corrected : bool
        Whether the kernel is Wick corrected.

    Returns
    -------
    ndarray of shape (p,) or None
        None for degree 3. Derived from the fourth joint cumulant of quadratic forms; backed by
        ``tests/models/sequential/test_moments.py``.
    """
    weights, gram = target.weights * norms**2, target.gram / np.outer(norms, norms)
    gaussian = 2 * gram**2 @ weights
    if target.inputs == "gaussian" or target.degree == 1:
        return np.asarray(gaussian)
    if target.degree == 3:
        return None
    matrices = target.symmetric_matrices() / norms[:, None, None]
    squares = (matrices @ matrices).reshape(len(matrices), -1)
    crossed = np.array([[np.sum((M @ N) * (N @ M)) for N in matrices] for M in matrices])
    joint = 4 * crossed + (0 if corrected else 8) * squares @ squares.T
    return np.asarray(gaussian + joint @ weights)


def controlled_mean(
    T: np.ndarray, diagonal: np.ndarray, index: np.ndarray, exact: np.ndarray | None
) -> np.ndarray:
    """E[T diagonal] by Monte Carlo, with the index as control variate where its mean is known.

    Parameters
    ----------
    T : ndarray of shape (m,)
        Mapped labels.
    diagonal : ndarray of shape (m, p)
        Diagonal of the kernel.
    index : ndarray of shape (m,)
        Centred index.
    exact : ndarray of shape (p,) or None
        Exact mean of ``index[:, None] * diagonal``.

    Returns
    -------
    ndarray of shape (p,)
        The means; without Monte-Carlo noise where T is linear in the index.
    """
    plain = T @ diagonal / T.size
    if exact is None:
        return np.asarray(plain)
    control, response = index[:, None] * diagonal, T[:, None] * diagonal
    centred = control - control.mean(axis=0)
    slope = np.mean(centred * response, axis=0) / np.mean(centred**2, axis=0)
    return np.asarray(plain - slope * (control.mean(axis=0) - exact))


def _draw(
    target: HierarchicalTarget, norms: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, SampleKernel, SampleKernel | None]:
    """Labels, latent features of unit directions, squared norms, plain and corrected kernel."""
    D, p, d = target.n_features_total, target.features, target.dimension
    quadratic = target.inputs == "hermite" and target.degree == 2
    cost = d**2 * p * 4 if quadratic else p * target.input_columns * 4
    draws = int(np.clip(DRAW_FLOPS / cost, DRAWS / 10, DRAWS)) // TEACHERS
    rng = random_stream("sequential-recovery", "moments", target.seed)
    if not quadratic:
        y, latent, squared_norm = target.draw_moments(draws, rng)
        latent = latent / norms
        kernel = plain_kernel(latent=latent, squared_norm=squared_norm, n_features=D)
        return y, latent, squared_norm, kernel, None
    matrices = target.symmetric_matrices() / norms[:, None, None]
    traces = np.trace(matrices, axis1=1, axis2=2)
    stacked = matrices.transpose(1, 0, 2).reshape(d, -1)
    latent, images, s = np.empty((draws, p)), np.empty((draws, p)), np.empty(draws)
    for start in range(0, draws, CHUNK_ROWS):
        rows = slice(start, min(start + CHUNK_ROWS, draws))
        X = rng.standard_normal((rows.stop - start, d))
        moved = (X @ stacked).reshape(len(X), p, -1)
        images[rows] = np.einsum("npd,npd->np", moved, moved)
        latent[rows] = (np.einsum("nd,npd->np", X, moved) - traces) / np.sqrt(2)
        s[rows] = np.einsum("nd,nd->n", X, X)
    index = ((latent * norms) ** 2 - 1) @ target.weights / np.sqrt(2)
    squared_norm = (s**2 - 2 * s + d) / 2
    return (
        target.label(index),
        latent,
        squared_norm,
        plain_kernel(latent=latent, squared_norm=squared_norm, n_features=D),
        corrected_kernel(
            latent=latent,
            squared_input_norm=s,
            squared_images=images,
            traces=traces,
            dimension=d,
        ),
    )


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
    second = None
    if contracted is not None:
        S = np.einsum("i,iab,ibc->ac", weights, matrices, matrices, optimize=True)
        second = float(weights @ contracted / 2 / np.sum(S**2))
    return quadratic_background(
        matrices=matrices,
        weights=weights,
        attenuation=attenuation,
        second_chaos=second,
        contraction_noise=contraction_noise,
    )
