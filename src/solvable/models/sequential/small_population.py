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
    """E[T K] of every target, features first; by Monte Carlo."""
    found = []
    for target in targets:
        features, d = target.feature_map, target.dimension
        X, y = target.sample(
            ROWS, random_stream("sequential-recovery", "small population", target.seed)
        )
        T = apply_label_map(standardise(y)[0], label_map)
        matrix = MomentOperator(X, T, features, correction=correction).dense()
        basis, root = np.linalg.qr(target.directions, mode="complete")
        p = target.features
        if target.first_layer == "random":
            turn = OrthogonalForm.of(root[:p], target.weights).turn
            basis[:, :p] = basis[:, :p] @ turn
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
        found.append(Population(basis.T @ matrix @ basis, 2 / d, generators, power))
    return tuple(found)
