"""Parts of a matrix beyond the edge of its bulk: cut, denoised, or as two factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.errors import InvalidData


@dataclass(frozen=True, eq=False)
class Truncation:
    """Values beyond the edge with their vectors; for symmetric matrices, eigenvalues."""

    left: np.ndarray  # (p, k)
    values: np.ndarray  # (k,): values in the file, ascending
    denoised: np.ndarray  # (k,): values at their best size
    right: np.ndarray  # (k, q)
    norm: float  # Frobenius norm of the matrix
    bulk_norm: float  # Frobenius norm of the part that a cut removes

    def cut(self) -> np.ndarray:
        """Return the matrix without the values below the edge."""
        return np.asarray((self.left * self.values) @ self.right)

    def shrunk(self) -> np.ndarray:
        """Return the matrix of least predicted distance to the signals, with the same vectors."""
        return np.asarray((self.left * self.denoised) @ self.right)

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two factors of the cut matrix with equal norms."""
        root = np.sqrt(np.abs(self.values))
        return self.left * (np.sign(self.values) * root), root[:, None] * self.right


def truncated(weights: np.ndarray, row: MatrixDiagnosis) -> Truncation:
    """Decompose a diagnosed matrix; raise if its diagnosis has no edge."""
    if row.advice is None:
        raise InvalidData(f"{row.name} has no bulk of noise, so no edge at which to cut.")
    matrix = np.asarray(weights, dtype=np.float64).reshape(len(weights), -1)
    kept = row.advice.kept
    if row.symmetric and matrix.shape[0] == matrix.shape[1]:
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        # Values of both signs are measured from the centre of their bulk.
        both = row.values is not None and row.values.min() < 0
        centre = -row.shrinkage.value if both and row.shrinkage is not None else 0.0
        far = np.sort(np.argsort(-np.abs(values - centre))[:kept])
        left, values, right = vectors[:, far], values[far], vectors[:, far].T
    else:
        U, s, Vt = np.linalg.svd(matrix, full_matrices=False)
        left, values, right = U[:, :kept][:, ::-1], s[:kept][::-1], Vt[:kept][::-1]
    rest = float(np.linalg.norm(matrix - (left * values) @ right))
    norm = float(np.linalg.norm(matrix))
    return Truncation(left, values, _best_sizes(row, values), right, norm, rest)


def _best_sizes(row: MatrixDiagnosis, values: np.ndarray) -> np.ndarray:
    # A signal s u v^T is best estimated by s c u' v'^T, with the cosine c = (u.u') (v.v') of found
    # and true vectors (spectra 14). Features and values correspond in ascending order.
    sizes = values.copy()
    for place, feature in enumerate(sorted(row.features, key=lambda one: one.observed)):
        long = feature.squared_overlap if feature.long_overlap is None else feature.long_overlap
        sizes[place] = feature.strength.value * (feature.squared_overlap * long) ** 0.5
    return sizes
