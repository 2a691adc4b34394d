r"""Factor of a kernel matrix, truncated at its numerical rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidData


@dataclass(frozen=True)
class KernelFactor:
    """Pivoted Cholesky factor G = R R^T of a kernel on n samples."""

    # Row mu contains the coordinates of k(x_mu, .) in an orthonormal basis of the span of all k(x_nu, .),
    # so a filter on R is the filter on the infinitely wide features (lofi 3).
    rows: np.ndarray  # R, (n, r)
    landmarks: np.ndarray  # landmarks p: indices of the samples that span the space, (r,)
    corner: np.ndarray  # lower triangular L with G_pp = L L^T, (r, r)

    def dual(self, B: np.ndarray) -> np.ndarray:
        """Convert directions B in the coordinates of R to coefficients A on the landmarks, (r, k)."""
        from scipy.linalg import solve_triangular

        # A = L^-T B, so that f(x) = k(x, X_p) A and A^T G_pp A = B^T B   (lofi 3)
        return np.asarray(solve_triangular(self.corner, B, lower=True, trans="T"))

    def leading(self, rank: int) -> KernelFactor:
        """Restrict the factor to the first landmarks."""
        return KernelFactor(
            self.rows[:, :rank].copy(), self.landmarks[:rank], self.corner[:rank, :rank].copy()
        )


def factorise_kernel(
    kernel: np.ndarray, *, tolerance: float = 1e-10, max_rank: int | None = None
) -> KernelFactor:
    """Pivoted Cholesky factor of a positive kernel matrix; n r² flops."""
    # Modes below rounding are dropped instead of clipped, so that the inverse does not amplify noise.
    from scipy.linalg.lapack import dpstrf

    if not np.isfinite(kernel).all():
        raise InvalidData(
            "the kernel is NaN or infinite, because the samples are; allowed: finite samples."
        )
    largest = float(np.max(np.diag(kernel), initial=0.0))
    if largest <= 0:
        raise InvalidData(
            "the kernel is zero, because every sample is mapped to zero. Check that the columns vary."
        )
    factor, pivots, rank, _ = dpstrf(kernel, lower=1, tol=tolerance * largest)
    rank = rank if max_rank is None else min(rank, max_rank)
    lower = np.tril(factor)[:, :rank]
    order = pivots - 1
    rows = np.empty((len(kernel), rank))
    rows[order] = lower
    return KernelFactor(rows, order[:rank].copy(), lower[:rank].copy())
