r"""The exact population matrix of true features of degree 2, its bulk and the overlaps it allows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded, unknown_choice
from solvable.moment_spectrum.quadratic_forms import weighted_square
from solvable.operators import HermiteFeatures
from solvable.operators.base import Correction

DENSE_FEATURES = 6_000
"""Largest D that is diagonalised densely: 0.3 GB and about a minute."""


@dataclass(frozen=True, eq=False)
class PopulationMatrix:
    r"""Mean of the moment matrix for :math:`T=y=h^{(2)}` and true features of degree 2.

    As an operator on symmetric matrices, with :math:`S=\sum_i\lambda_iM_i^2`,

    .. math::
        E[\hat C][U]=\sqrt2\sum_i\lambda_i\langle M_i,U\rangle M_i
        +\frac4{\sqrt2}\Big[SU+US+\sum_i\lambda_iM_iUM_i\Big];

    the Wick correction removes :math:`SU+US` and leaves the rest, the part of degree four.

    Parameters
    ----------
    matrices : array of shape (p, d, d)
        :math:`M_i`, symmetric, :math:`\|M_i\|_F=1`.
    weights : array of shape (p,)
        :math:`\lambda_i`.
    correction : {"none", "wick"}
        Which matrix.

    Notes
    -----
    Derived (fourth joint cumulant of quadratic forms); backed by
    ``tests/models/sequential/test_note_theory.py`` (Monte Carlo) and
    ``tests/models/sequential/test_population.py``.
    """

    matrices: np.ndarray
    weights: np.ndarray
    correction: Correction = "none"

    def __post_init__(self) -> None:
        M, weights = np.asarray(self.matrices, float), np.asarray(self.weights, float)
        if M.ndim != 3 or M.shape[1] != M.shape[2] or weights.shape != M.shape[:1]:
            raise InvalidData(
                f"matrices have shape {M.shape} and weights {weights.shape}; allowed: (p, d, d) "
                "and (p,)."
            )
        norms = np.linalg.norm(M, axis=(1, 2))
        if not (np.allclose(M, M.transpose(0, 2, 1)) and np.allclose(norms, 1)):
            raise InvalidData(
                f"matrices must be symmetric with Frobenius norm 1; their norms are {norms}."
            )
        if self.correction not in ("none", "wick"):
            raise InvalidParameter(unknown_choice("correction", self.correction, ["none", "wick"]))
        object.__setattr__(self, "matrices", M)
        object.__setattr__(self, "weights", weights)

    @property
    def dimension(self) -> int:
        """Number d of inputs."""
        return int(self.matrices.shape[1])

    @property
    def n_features(self) -> int:
        """Number D of features."""
        return self.dimension * (self.dimension + 1) // 2

    @cached_property
    def _square(self) -> np.ndarray:
        return weighted_square(self.matrices, self.weights)

    def apply(self, U: np.ndarray) -> np.ndarray:
        """Image of symmetric matrices, shape (k, d, d) to the same, O(k p d^3)."""
        # sqrt(2) sum_i lambda_i <M_i, U> M_i + (4/sqrt(2)) [S U + U S + sum_i lambda_i M_i U M_i]
        U = np.asarray(U, dtype=np.float64)
        inside = np.einsum("pab,kab->kp", self.matrices, U, optimize=True) * self.weights
        image = np.sqrt(2) * np.einsum("kp,pab->kab", inside, self.matrices, optimize=True)
        background = np.zeros_like(image)
        for weight, M in zip(self.weights, self.matrices, strict=True):
            background += weight * (M @ U @ M)
        if self.correction == "none":
            background += self._square @ U + U @ self._square
        return np.asarray(image + 2 * np.sqrt(2) * background)

    def dense(self) -> np.ndarray:
        """The D x D matrix, in the coordinates of `HermiteFeatures`."""
        D = self.n_features
        if D > DENSE_FEATURES:
            raise MemoryLimitExceeded(
                f"the population matrix has D = {D} rows, {8 * D**2 / 1e9:.1f} GB; allowed: at most "
                f"{DENSE_FEATURES}. Use apply(), or overlap_floor() for its leading order."
            )
        features = HermiteFeatures(2, self.dimension)
        matrix, unit = np.empty((D, D)), np.eye(D)
        for start in range(0, D, 256):
            columns = slice(start, min(start + 256, D))
            image = self.apply(features.to_symmetric(unit[:, columns]))
            matrix[:, columns] = features.from_symmetric(image)
        return matrix

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = np.linalg.eigh(self.dense())
        return values, vectors

    @cached_property
    def _directions(self) -> np.ndarray:
        return np.asarray(HermiteFeatures(2, self.dimension).from_symmetric(self.matrices))

    def eigenvalues(self) -> np.ndarray:
        """All eigenvalues, ascending, by dense diagonalisation."""
        return self._eigen[0]

    def squared_overlaps(self) -> np.ndarray:
        """Squared overlap with infinitely many samples: what the bias leaves of each feature."""
        from scipy.optimize import linear_sum_assignment

        overlaps = (self._directions.T @ self._eigen[1]) ** 2
        feature, vector = linear_sum_assignment(overlaps, maximize=True)
        matched = np.empty(len(self.weights))
        matched[feature] = overlaps[feature, vector]
        return matched

    def bulk_interval(self) -> tuple[float, float]:
        """Smallest and largest eigenvalue on the complement of the features."""
        A = np.linalg.qr(self._directions)[0]
        matrix = self.dense()
        image = matrix @ A
        rest = matrix - A @ image.T - image @ A.T + A @ (A.T @ image) @ A.T
        values = np.linalg.eigvalsh(rest)
        return float(values[0]), float(values[-1])


def population_bulk(
    *, strongest_weight: float, dimension: int, correction: Correction = "none"
) -> tuple[float, float]:
    r"""Population bulk where one feature dominates, to leading order in 1/d.

    :math:`M_1` has a semicircle of radius :math:`2/\sqrt d`; with eigenvalues a and b the background
    acts as :math:`\frac{4\lambda_1}{\sqrt2}(a^2+b^2+ab)`, corrected :math:`\frac{4\lambda_1}{\sqrt2}ab`:

    .. math::
        \text{plain: }\Big[0,\ \frac{48}{\sqrt2}\frac{\lambda_1}d\Big],\qquad
        \text{Wick: }\pm\frac{16}{\sqrt2}\frac{|\lambda_1|}d .

    Notes
    -----
    Derived; backed by ``tests/models/sequential/test_population.py`` (exact diagonalisation).
    """
    check_positive(dimension=dimension)
    if correction not in ("none", "wick"):
        raise InvalidParameter(unknown_choice("correction", correction, ["none", "wick"]))
    unit = float(16 / np.sqrt(2) * strongest_weight / dimension)
    if correction == "wick":
        return -abs(unit), abs(unit)
    return min(0.0, 3 * unit), max(0.0, 3 * unit)


def overlap_floor(
    *, weights: np.ndarray, dimension: int, correction: Correction = "none"
) -> np.ndarray:
    r"""Overlap lost to the bias with infinitely many samples, to leading order in 1/d.

    .. math::
        1-c_i^2\approx\frac{12/\lambda_i^2+24}{d^2}\ \text{(plain)},\qquad
        \frac4{\lambda_i^2d^2}\ \text{(Wick)} .

    Notes
    -----
    O(p). Derived by second-order perturbation; backed by ``tests/models/sequential/test_population.py``.
    """
    check_positive(dimension=dimension)
    squares = np.asarray(weights, dtype=np.float64) ** 2
    with np.errstate(divide="ignore"):
        if correction == "wick":
            lost = 4 / squares
        elif correction == "none":
            lost = 12 / squares + 24
        else:
            raise InvalidParameter(unknown_choice("correction", correction, ["none", "wick"]))
    return np.asarray(np.minimum(lost / dimension**2, 1.0))
