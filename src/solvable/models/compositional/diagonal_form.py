"""A compositional target of three layers as a hierarchical target in rotated features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.upper_layers import make_target, rotated_basis
from solvable.models.sequential.target import HierarchicalTarget
from solvable.teachers.base import LatentTarget


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
