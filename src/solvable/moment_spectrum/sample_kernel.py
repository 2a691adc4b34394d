r"""Norms and entries of one sample's contribution to the moment operator.

Sample :math:`\mu` adds :math:`T_\mu K_\mu/n` to the operator. The theory needs the norm of K on the
complement of the features, its diagonal entry for each feature, and the couplings of each feature to
the complement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True)
class SampleKernel:
    """Draws of the kernel K of a sample; P projects on the complement of the p features."""

    size: np.ndarray  # norm |K|_F / D, (m,)
    diagonal: np.ndarray  # diagonal entries <A_i, K A_i>, (m, p)
    rest: np.ndarray  # norm |P K P|_F / (D - p) on the complement, (m,)
    outer: np.ndarray  # couplings |P K A_i|² / (D - p), (m, p)

    def rows(self, rows: slice) -> SampleKernel:
        """Return the draws for a range of rows."""
        return SampleKernel(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def joined(cls, kernels: Sequence[SampleKernel]) -> SampleKernel:
        """Concatenate the draws of several kernels."""
        columns = zip(*([getattr(k, f.name) for f in fields(cls)] for k in kernels), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def plain_kernel(*, latent: np.ndarray, squared_norm: np.ndarray, n_features: int) -> SampleKernel:
    """Norms and entries of K = F F^T - I, for features of any degree."""
    # |K|_F² = |F|⁴ - 2 |F|² + D, <A, K A> = h² - 1
    frobenius = squared_norm**2 - 2 * squared_norm + n_features
    # F = sum_i h_i A_i + F_perp, and the contribution of the features to |F|² is correlated with T.
    others = max(n_features - latent.shape[1], 1)
    outside = np.maximum(squared_norm - np.sum(latent**2, axis=1), 0)
    inner = (outside - 2) * outside + others
    return SampleKernel(
        np.sqrt(np.maximum(frobenius, 0)) / n_features,
        latent**2 - 1,
        np.sqrt(np.maximum(inner, 0)) / others,
        outside[:, None] * latent**2 / others,
    )


def corrected_kernel(
    *,
    latent: np.ndarray,
    squared_input_norm: np.ndarray,
    squared_images: np.ndarray,
    traces: np.ndarray,
    dimension: int,
) -> SampleKernel:
    """Norms and entries of the Wick-corrected degree-2 kernel, from the squared norms of M_i x."""
    # K[U] = <F, U> F - U - (X U + U X) with X = x x^T - I, F = X / sqrt(2)   (sequential 20)
    s, d = squared_input_norm, dimension
    D = d * (d + 1) / 2
    # Traces of the first three powers of X, whose eigenvalues are s - 1 and -1.
    first, second, third = s - d, (s - 1) ** 2 + d - 1, (s - 1) ** 3 - (d - 1)
    squared_norm = second / 2
    frobenius = (
        squared_norm**2 + D - 2 * squared_norm
        - 2 * third + (d + 2) * second + first**2 + 2 * (d + 1) * first
    )  # fmt: skip
    # These are x^T M x, 2 <M², X>, <F, X M + M X> and |X M + M X|².
    column = s[:, None]
    forms = np.sqrt(2) * latent + traces
    moved = 2 * (squared_images - 1)
    crossing = np.sqrt(2) * ((column - 2) * forms + traces)
    contraction = 2 * ((column - 2) * squared_images + 1) + 2 * (forms**2 - 2 * squared_images + 1)
    diagonal = latent**2 - 1 - moved
    image = (
        squared_norm[:, None] * latent**2 + 1 + contraction
        - 2 * latent**2 - 2 * latent * crossing + 2 * moved
    )  # fmt: skip
    return corrected_numbers(latent, frobenius, diagonal, image, round(D))


def corrected_numbers(
    latent: np.ndarray,
    frobenius: np.ndarray,
    diagonal: np.ndarray,
    image: np.ndarray,
    n_features: int,
) -> SampleKernel:
    """Draws of a corrected kernel from |K|_F², <A_i, K A_i> and the squared norms of K A_i."""
    # <A_i, K A_j> is h_i h_j plus a term of variance 4 / d, which is neglected.
    squares = latent**2
    crossed = squares * (squares.sum(axis=1)[:, None] - squares)
    outer = np.maximum(image - diagonal**2 - crossed, 0)
    rest = frobenius - np.sum(2 * outer + diagonal**2 + crossed, axis=1)
    others = max(n_features - latent.shape[1], 1)
    return SampleKernel(
        np.sqrt(np.maximum(frobenius, 0)) / n_features,
        diagonal,
        np.sqrt(np.maximum(rest, 0)) / others,
        outer / others,
    )
