"""Solve (K + ridge) x = y for one kernel matrix and many ridges, from half of its entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

STRIP_ROWS = 64  # size of a strip; a strip is read twice per product and should fit into the cache


class KernelMatrix:
    """Upper triangle of a symmetric matrix, in strips of rows."""

    def __init__(self, kernel: Callable[[np.ndarray, np.ndarray], np.ndarray], Z: np.ndarray):
        starts = range(0, len(Z), STRIP_ROWS)
        self.strips = [kernel(Z[start : start + STRIP_ROWS], Z[start:]) for start in starts]
        self.dtype = Z.dtype

    def _parts(self, rows: int) -> list[tuple[slice, np.ndarray]]:
        """Return the strips of the leading block of `rows` rows; each strip starts at the diagonal."""
        starts = range(0, rows, STRIP_ROWS)
        return [
            (slice(start, min(start + STRIP_ROWS, rows)), strip[: rows - start, : rows - start])
            for start, strip in zip(starts, self.strips, strict=False)
        ]

    def product(self, vector: np.ndarray) -> np.ndarray:
        """Multiply the leading block by a vector of the same length; sums are in float64."""
        narrow, total = vector.astype(self.dtype), np.zeros(len(vector))
        for part, strip in self._parts(len(vector)):
            total[part] += strip @ narrow[part.start :]
            total[part.stop :] += narrow[part] @ strip[:, len(strip) :]
        return total

    def solve(self, y: np.ndarray, ridge: float) -> np.ndarray:
        """Solve on the leading block by Cholesky, or by least squares if the block is singular."""
        from scipy.linalg.lapack import get_lapack_funcs

        size = len(y)
        upper = np.empty((size, size), dtype=self.dtype)
        for part, strip in self._parts(size):
            upper[part, part.start :] = strip
        upper[np.diag_indices(size)] += ridge
        potrf, potrs = get_lapack_funcs(("potrf", "potrs"), (upper,))
        # Only the filled triangle is read or written: n²/2 items of memory.
        factor, failed = potrf(upper.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return np.asarray(potrs(factor, y, lower=1)[0], dtype=np.float64)
        for part, strip in self._parts(size):
            upper[part, part.start :] = strip
            upper[part.start :, part] = strip.T
        upper[np.diag_indices(size)] += ridge
        return np.asarray(np.linalg.lstsq(upper, y, rcond=None)[0], dtype=np.float64)


class RidgePath:
    """Solver for one right-hand side and any ridge, with a single Krylov space if this is cheaper."""

    def __init__(self, matrix: KernelMatrix, y: np.ndarray):
        self.matrix, self.y = matrix, y
        self.norm = float(np.linalg.norm(y))
        # n/40 products take about as long as one Cholesky factor; small systems are factorised.
        self.limit = 0 if len(y) <= 1000 else min(400, len(y) // 40 + 5)
        self.basis = np.empty((len(y), self.limit + 1), order="F")
        self.basis[:, :1] = (y / (self.norm or 1.0))[:, None]
        self.diagonal = np.empty(self.limit)
        self.next_diagonal = np.empty(self.limit)
        self.count = 0

    def solve(self, ridge: float, tolerance: float) -> np.ndarray:
        """Solve for one ridge up to a relative residual."""
        if self.norm == 0:
            return np.zeros(len(self.y))
        coefficients = self._projected(ridge, tolerance)
        if coefficients is None:
            return self.matrix.solve(self.y, ridge)
        return np.asarray(self.basis[:, : coefficients.size] @ (self.norm * coefficients))

    def _projected(self, ridge: float, tolerance: float) -> np.ndarray | None:
        """Solve in the Krylov space, which is extended as needed; None beyond its largest size."""
        from scipy.linalg import LinAlgError, solveh_banded

        while True:
            k = self.count
            if k > 1:
                first = np.zeros(k)
                first[0] = 1.0
                band = np.stack([self.diagonal[:k] + ridge, self.next_diagonal[:k]])
                try:
                    x = solveh_banded(band, first, lower=True)
                except LinAlgError:
                    return None
                # With K Q = Q T + beta q e_k^T the residual of Q (T + ridge)^-1 e_1 is beta |x_k|.
                if self.next_diagonal[k - 1] * abs(x[-1]) <= tolerance:
                    return np.asarray(x)
            if k == self.limit:
                return None
            self._extend()

    def _extend(self) -> None:
        k = self.count
        held = self.basis[:, : k + 1]
        image = self.matrix.product(held[:, k])
        self.diagonal[k] = held[:, k] @ image
        for _ in range(2):
            image -= held @ (held.T @ image)
        size = float(np.linalg.norm(image))
        # A remainder as small as rounding errors means that the space is invariant.
        self.next_diagonal[k] = size if size > 1e-14 * abs(self.diagonal[k]) else 0.0
        self.basis[:, k + 1] = image / (self.next_diagonal[k] or 1.0)
        self.count = k + 1
