"""Mean of the moment operator in few directions, target by target: its background is no small part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.orthogonal_form import OrthogonalForm
from solvable.moment_spectrum.target_protocol import MomentTarget
from solvable.operators import HermiteFeatures, MomentOperator, apply_label_map, standardise
from solvable.operators.base import Correction
from solvable.operators.labels import LabelMap
from solvable.spectra.sampled_spikes import Population

ROWS = 60_000
"""Draws behind the mean operator of each target: a thousand per direction."""


def small_populations(
    targets: Sequence[MomentTarget], label_map: LabelMap, correction: Correction
) -> tuple[Population, ...]:
    """E[T K] of every target, features first: exact where T is the index, else by Monte Carlo."""
    found = []
    for target in targets:
        rng = random_stream("sequential-recovery", "small population", target.seed)
        X, y = target.sample(ROWS, rng)
        directions, root = np.linalg.qr(target.directions)
        if target.first_layer == "random":
            directions = directions @ OrthogonalForm.of(root, target.weights).turn
        mean = None
        if label_map == "identity" and target.readout == "identity":
            mean = index_population(
                target.feature_map, target.directions, target.weights, correction
            )
        T = apply_label_map(standardise(y)[0], label_map)
        found.append(small_population(target.feature_map, directions, X, T, correction, mean))
    return tuple(found)


def small_population(
    features: HermiteFeatures,
    directions: np.ndarray,
    X: np.ndarray,
    T: np.ndarray,
    correction: Correction,
    mean: np.ndarray | None = None,
) -> Population:
    """Mean operator of one target in a basis that starts with orthonormal directions, (D, p)."""
    p, d = directions.shape[1], features.dimension
    basis = np.linalg.qr(directions, mode="complete")[0]
    basis[:, :p] = directions
    if mean is None:
        mean = MomentOperator(X, T, features, correction=correction).dense()
    generators, power = None, 0.0
    if correction == "none":
        # Noise of U -> B_1 U + U B_1, B_1 = (1/n) sum_mu T_mu (x x^T - 1), in orthonormal B_1
        units = features.to_symmetric(np.eye(len(basis)))
        vectors = features.to_symmetric(basis)
        images = units[:, None] @ vectors + vectors @ units[:, None]
        generators = np.array([basis.T @ features.from_symmetric(image) for image in images])
        # n Var = E[T^2 |x x^T - 1|_F^2] / D of each of the D coefficients
        norms = (np.sum(X**2, axis=1) ** 2 - 2 * np.sum(X**2, axis=1) + d) / len(basis)
        power = float(np.mean(T**2 * norms))
    return Population(basis.T @ mean @ basis, 2 / d, generators, power)


def index_population(
    features: HermiteFeatures, directions: np.ndarray, weights: np.ndarray, correction: Correction
) -> np.ndarray:
    """E[T K] for T a standardised index itself, whose powers Monte Carlo hardly averages."""
    # For sum_i lambda_i h_i^2 / sqrt(2) less its mean it is
    # sqrt(2) sum_i lambda_i A_i A_i^T + (4 / sqrt(2)) [SU + US + sum_i lambda_i M_i U M_i] with
    # S = sum_i lambda_i M_i^2: the fourth joint cumulant of quadratic forms; corrected, without S
    units = np.eye(features.n_features)
    M, U = features.to_symmetric(directions), features.to_symmetric(units)
    S = np.einsum("i,iab,ibc->ac", weights, M, M)
    spikes = (directions * weights) @ directions.T
    inner = features.from_symmetric(
        np.einsum("i,iab,kbc,icd->kad", weights, M, U, M, optimize=True)
    )
    contraction = features.from_symmetric(S @ U + U @ S)
    plain = np.sqrt(2) * spikes + 4 / np.sqrt(2) * (inner + contraction)
    # Var = E[index <F, spikes F>] / sqrt(2) = <spikes, plain> / sqrt(2)
    scale = np.sqrt(np.sum(spikes * plain) / np.sqrt(2))
    mean = plain if correction == "none" else plain - 4 / np.sqrt(2) * contraction
    return np.asarray(mean / scale)
