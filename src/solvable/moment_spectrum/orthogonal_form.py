"""Index of directions that are not orthogonal, as one of directions that are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.moment_spectrum.target_protocol import MomentTarget


@dataclass(frozen=True)
class OrthogonalForm:
    """Orthonormal directions, which the label tells apart, in place of those of a first layer."""

    # sum_i lambda_i <a_i, F>^2 = sum_k mu_k <b_k, F>^2 with the eigenvectors b_k of
    # sum_i lambda_i a_i a_i^T: a strong direction is half of what there is along a weak one.
    turn: np.ndarray | None  # b_k in the basis that the first layer was given in; None for itself
    strengths: np.ndarray  # mu_k, numbered as the weights are, by size and sign
    mixing: np.ndarray | None  # <b_k, a_i> / |a_i|, (p, p); None for the identity
    offset: float  # of the index, from norms other than one

    @classmethod
    def orthonormal(cls, weights: np.ndarray) -> OrthogonalForm:
        """The directions as they are."""
        return cls(None, weights, None, 0.0)

    @classmethod
    def of(cls, root: np.ndarray, weights: np.ndarray) -> OrthogonalForm:
        """Of directions with coordinates in the columns of a square matrix."""
        values, basis = np.linalg.eigh((root * weights) @ root.T)
        place = np.empty(weights.size, dtype=int)
        place[np.argsort(weights, kind="stable")] = np.arange(weights.size)
        turn = basis[:, place]
        unit = root / np.linalg.norm(root, axis=0)
        offset = float(values.sum() - weights.sum()) / np.sqrt(2)
        return cls(turn, values[place], turn.T @ unit, offset)

    def index(self, latent: np.ndarray) -> np.ndarray:
        """Index of features along the orthonormal directions."""
        # sum_i lambda_i (<a_i, F>^2 - 1) / sqrt(2)
        return np.asarray((latent**2 - 1) @ self.strengths / np.sqrt(2) + self.offset)


def orthonormal_directions(target: MomentTarget) -> tuple[OrthogonalForm, np.ndarray]:
    """Form of the first layer of a target and the directions b_k, (D, p)."""
    if target.first_layer == "orthonormal":
        return OrthogonalForm.orthonormal(target.weights), target.directions
    basis, root = np.linalg.qr(target.directions)
    form = OrthogonalForm.of(root, target.weights)
    return form, np.asarray(basis @ form.turn)
