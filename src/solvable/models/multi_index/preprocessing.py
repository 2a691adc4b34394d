"""Spectral estimators of one direction for a known channel: label maps and linearised AMP (LAMP)."""

from __future__ import annotations

import numpy as np

from solvable.arrays import as_source
from solvable.models.multi_index.spectral import InputMoment, end_pairs
from solvable.operators import leading_eigenpairs


def scalar_directions(
    X: np.ndarray, weights: np.ndarray, n_directions: int, *, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvalues and eigenvectors of the weighted second moment (1/d) sum T x x^T."""
    # Weights are not centred, because the outlier is at 1 only for T* without centring (multi-index 9).
    # The mean weight may be large, since single weights reach -1e4.
    operator = InputMoment(as_source(X), weights)
    pairs = end_pairs(operator, n_directions, 0, rng)
    # Without noise the best map reaches -1e4. Krylov spaces then resolve the lower end of the spectrum,
    # but not the upper end, where eigenvalues are of order one.
    if (pairs.residuals > 1e-3 * np.abs(pairs.values)).any():
        pairs = leading_eigenpairs(operator, n_directions, 0, route="dense", rng=rng)
    return pairs.values * len(X) / X.shape[1], pairs.vectors


class Lamp:
    """Linearised message passing: products with (X X^T / d - I) diag(G), without forming the matrix."""

    def __init__(self, X: np.ndarray, second: np.ndarray, rng: np.random.Generator) -> None:
        self.X, self.G, self.rng = X, second, rng

    def leading(self) -> tuple[float, np.ndarray]:
        """Eigenvalue of largest real part, and the estimate X^T G omega of the direction, shape (d,)."""
        values, vectors = self._eigenpairs(1, "LR", 1e-8)
        # The outlier is real; the bulk is a disc of complex eigenvalues.   (multi-index 10)
        return float(values[0].real), self.X.T @ (self.G * vectors[:, 0].real)

    def moduli(self, count: int) -> np.ndarray:
        """Moduli of the largest eigenvalues in descending order, to a relative precision of 0.001."""
        return np.sort(np.abs(self._eigenpairs(count, "LM", 1e-3)[0]))[::-1]

    def _eigenpairs(
        self, count: int, which: str, tolerance: float
    ) -> tuple[np.ndarray, np.ndarray]:
        from scipy.sparse.linalg import LinearOperator, eigs

        n, d = self.X.shape

        def product(omega: np.ndarray) -> np.ndarray:
            u = self.G * omega.ravel()
            return np.asarray(self.X @ (self.X.T @ u) / d - u)

        operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
        start = self.rng.standard_normal(n)
        values, vectors = eigs(operator, count, which=which, v0=start, tol=tolerance)
        return values, vectors
