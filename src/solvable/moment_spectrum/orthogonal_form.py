"""Index along non-orthogonal directions, rewritten in orthonormal directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.moment_spectrum.target_protocol import MomentTarget


@dataclass(frozen=True)
class OrthogonalForm:
    """Orthonormal directions that give the same index as the directions of a first layer."""

    # sum_i lambda_i <a_i, F>² = sum_k mu_k <b_k, F>² with eigenvectors b_k of
    # sum_i lambda_i a_i a_i^T   (sequential 18)
    turn: np.ndarray | None  # directions b_k in the given coordinates; None for the identity
    strengths: np.ndarray  # weights mu_k, in the order of the lambda_i
    mixing: np.ndarray | None  # cosines <b_k, a_i> / |a_i|, (p, p); None for the identity
    offset: float  # shift of the index due to norms other than one

    @classmethod
    def orthonormal(cls, weights: np.ndarray) -> OrthogonalForm:
        """Orthogonal form of directions that are already orthonormal."""
        return cls(None, weights, None, 0.0)

    @classmethod
    def of(cls, root: np.ndarray, weights: np.ndarray) -> OrthogonalForm:
        """Orthogonal form of directions whose coordinates are the columns of a square matrix."""
        values, basis = np.linalg.eigh((root * weights) @ root.T)
        place = np.empty(weights.size, dtype=int)
        place[np.argsort(weights, kind="stable")] = np.arange(weights.size)
        turn = basis[:, place]
        unit = root / np.linalg.norm(root, axis=0)
        offset = float(values.sum() - weights.sum()) / np.sqrt(2)
        return cls(turn, values[place], turn.T @ unit, offset)

    def index(self, latent: np.ndarray) -> np.ndarray:
        """Index computed from the features along the orthonormal directions."""
        # index sum_i lambda_i (<a_i, F>² - 1) / sqrt(2)
        return np.asarray((latent**2 - 1) @ self.strengths / np.sqrt(2) + self.offset)


def orthonormal_directions(target: MomentTarget) -> tuple[OrthogonalForm, np.ndarray]:
    """Orthogonal form of a target's first layer, and the directions b_k, (D, p)."""
    if target.first_layer == "orthonormal":
        return OrthogonalForm.orthonormal(target.weights), target.directions
    basis, root = np.linalg.qr(target.directions)
    form = OrthogonalForm.of(root, target.weights)
    return form, np.asarray(basis @ form.turn)
