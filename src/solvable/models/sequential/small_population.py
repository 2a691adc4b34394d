"""Mean of the moment operator in few directions, target by target: its background is no small part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.arrays import random_stream
from solvable.models.sequential.orthogonal_form import OrthogonalForm
from solvable.models.sequential.target import HierarchicalTarget
from solvable.operators import Correction, LabelMap, MomentOperator, apply_label_map, standardise
from solvable.spectra.drawn_spikes import Population

ROWS = 60_000
"""Draws behind the mean operator of each target: a thousand per direction."""


def small_populations(
    targets: Sequence[HierarchicalTarget], label_map: LabelMap, correction: Correction
) -> tuple[Population, ...]:
    """E[T K] of every target, features first: exact where T is the index, else by Monte Carlo."""
    found = []
    for target in targets:
        features, d = target.feature_map, target.dimension
        rng = random_stream("sequential-recovery", "small population", target.seed)
        X, y = target.sample(ROWS, rng)
        T = apply_label_map(standardise(y)[0], label_map)
        basis, root = np.linalg.qr(target.directions, mode="complete")
        p = target.features
        if target.first_layer == "random":
            turn = OrthogonalForm.of(root[:p], target.weights).turn
            basis[:, :p] = basis[:, :p] @ turn
        if label_map == "identity" and target.readout == "identity":
            mean = index_population(target, correction)
        else:
            mean = MomentOperator(X, T, features, correction=correction).dense()
        generators, power = None, 0.0
        if correction == "none":
            # Noise of U -> B_1 U + U B_1, B_1 = (1/n) sum_mu T_mu (x x^T - 1), in orthonormal B_1
            units = features.to_symmetric(np.eye(len(basis)))
            vectors = features.to_symmetric(basis)
            images = units[:, None] @ vectors + vectors @ units[:, None]
            rows = [basis.T @ features.from_symmetric(image) for image in images]
            generators = np.array(rows)
            # n Var = E[T^2 |x x^T - 1|_F^2] / D of each of the D coefficients
            norms = (np.sum(X**2, axis=1) ** 2 - 2 * np.sum(X**2, axis=1) + d) / len(basis)
            power = float(np.mean(T**2 * norms))
        found.append(Population(basis.T @ mean @ basis, 2 / d, generators, power))
    return tuple(found)


def index_population(target: HierarchicalTarget, correction: Correction) -> np.ndarray:
    """E[T K] for T the standardised index itself, whose powers Monte Carlo hardly averages."""
    # sqrt(2) sum_i lambda_i A_i A_i^T + (4 / sqrt(2)) [SU + US + sum_i lambda_i M_i U M_i] with
    # S = sum_i lambda_i M_i^2: the fourth joint cumulant of quadratic forms; corrected, without S
    features, units = target.feature_map, np.eye(target.n_features_total)
    M, U = features.to_symmetric(target.directions), features.to_symmetric(units)
    image = np.einsum("i,iab,kbc,icd->kad", target.weights, M, U, M, optimize=True)
    if correction == "none":
        S = np.einsum("i,iab,ibc->ac", target.weights, M, M)
        image = image + S @ U + U @ S
    spikes = (target.directions * target.weights) @ target.directions.T
    mean = np.sqrt(2) * spikes + 4 / np.sqrt(2) * features.from_symmetric(image)
    return np.asarray(mean / np.sqrt(target.index_variance))
