"""Query-key product of a head, from its two factors: singular values, symmetry, parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream


@dataclass(frozen=True, eq=False)
class Factors:
    """Query and key matrices of one head; the rank of the product query^T key is at most h."""

    query: np.ndarray  # query, shape (h, d): one row per dimension of the head
    key: np.ndarray  # key, shape (h, D); the query itself if ``tied``
    tied: bool = False  # True if the product is symmetric with no eigenvalue below zero

    @property
    def width(self) -> int:
        """Number of dimensions of the head."""
        return self.query.shape[0]

    @property
    def sides(self) -> tuple[int, int]:
        """Number of rows and columns of the product, d and D."""
        return self.query.shape[1], self.key.shape[1]


@dataclass(frozen=True, eq=False)
class Product:
    """Singular value decomposition of query^T key, computed without forming the product."""

    values: np.ndarray  # (h,): singular values, descending; zeros exact
    left: np.ndarray  # (d, h): singular vectors on the query's side, as columns
    right: np.ndarray  # (D, h): singular vectors on the key's side, as columns

    @property
    def rank(self) -> int:
        """Number of singular values that are not zero."""
        return int((self.values > 0).sum())


def product_of(query: np.ndarray, key: np.ndarray, precision: float) -> tuple[Factors, Product]:
    """Decompose query^T key; the factors are tied if the product is symmetric and semidefinite."""
    left, first = np.linalg.qr(query.T)
    right, second = np.linalg.qr(key.T)
    small_left, values, small_right = np.linalg.svd(first @ second.T)
    left, right = left @ small_left, right @ small_right.T
    # Values up to this limit count as zero: either they are below single precision (weight decay moves
    # values towards zero but not to zero), or they are zeros changed by rounding of both factors.
    vanishing = max(2.0**-23 * max(query.shape[1], key.shape[1]), precision**2)
    values = np.where(values <= vanishing * values[0], 0.0, values)
    # Tr M = sum_i s_i u_i.v_i equals sum_i s_i only if u_i = v_i for all i.
    rounding, trace = max(1e-10, (8 * precision) ** 2), 0.0
    if query.shape[1] == key.shape[1]:
        trace = float(np.einsum("ij,ij->", query, key))
    tied = trace >= (1 - rounding) * float(values.sum()) > 0
    if tied and not np.array_equal(query, key):
        # Find tied factors (query = key) of the same product.
        query = key = np.sqrt(values)[:, None] * left.T
    # Rotations of the head do not change the product. After a random rotation all rows have similar
    # size, even if a direction was learned in one dimension of the head.
    turn = _no_axes(values.size)
    one = turn @ query
    return Factors(one, one if tied else turn @ key, tied), Product(values, left, right)


def _no_axes(width: int) -> np.ndarray:
    """Draw a fixed random rotation."""
    mixed = random_stream(0, "head axes").standard_normal((width, width))
    return np.asarray(np.linalg.qr(mixed)[0])


def values_of_grams(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Singular values of query^T key from the factors' products with themselves, shape (h, h)."""
    # With key key^T = L L^T, the squared values are the eigenvalues of L^T (query query^T) L. Squares
    # lose values below 1e-8 of the largest; the factors are known to single precision. This takes a
    # sixth of the time of the factors' QR decompositions.
    try:
        lower = np.linalg.cholesky(key)
    except np.linalg.LinAlgError:  # unused dimensions: any root of the product will do
        sizes, axes = np.linalg.eigh(key)
        lower = axes * np.sqrt(np.maximum(sizes, 0.0))
    squares = np.linalg.eigvalsh(lower.T @ query @ lower)
    return np.asarray(np.sqrt(np.maximum(squares[::-1], 0.0)))


def gram_of(factor: np.ndarray) -> np.ndarray:
    """Product of a factor with its transpose, summed in the precision of the factor."""
    from scipy.linalg.blas import dsyrk, ssyrk

    multiply = ssyrk if factor.dtype == np.float32 else dsyrk
    # The transpose of a row-major array is column-major, which BLAS takes without a copy.
    product = np.asarray(multiply(1.0, factor.T, trans=1, lower=1), dtype=np.float64)
    return np.asarray(product + np.tril(product, -1).T)


def symmetry_of(query: np.ndarray, key: np.ndarray) -> float:
    """Symmetry Tr(M M) / Tr(M^T M): 1 for symmetric products, -1 for antisymmetric products."""
    return symmetry_of_grams(query, key, gram_of(query), gram_of(key))


def symmetry_of_grams(
    query: np.ndarray, key: np.ndarray, query_gram: np.ndarray, key_gram: np.ndarray
) -> float:
    """Symmetry of query^T key, with the factors' products with themselves already known."""
    if query.shape[1] != key.shape[1]:
        return 0.0
    mixed = key @ query.T
    return float((mixed * mixed.T).sum() / (query_gram * key_gram).sum())


def used(factors: Factors, rank: int) -> Factors:
    """Factors of the same product, without the head's unused dimensions."""
    if rank == factors.width:
        return factors
    for factor in (factors.query, factors.key):
        axes, sizes, _ = np.linalg.svd(factor, full_matrices=False)
        if (sizes > 1e-5 * sizes[0]).sum() == rank:
            kept = axes[:, :rank] @ _no_axes(rank)
            query = kept.T @ factors.query
            key = query if factors.tied else kept.T @ factors.key
            return Factors(query, key, factors.tied)
    return factors


def without(factors: Factors, product: Product, count: int) -> Factors:
    """Factors of the product without its largest singular values; the width shrinks by their number."""
    if not count:
        return factors
    left, right = product.left[:, :count], product.right[:, :count]
    # (1 - u u^T) M (1 - v v^T) = M - s u v^T, and u lies in the rows of the query.
    query = factors.query - (factors.query @ left) @ left.T
    key = factors.key - (factors.key @ right) @ right.T
    # Dimensions in which the query became zero are removed from both factors. The rest is rotated at
    # random, because rows along singular vectors would have unequal sizes.
    left_over = factors.width - count
    kept = np.linalg.svd(query, full_matrices=False)[0][:, :left_over]
    axes = kept @ _no_axes(left_over)
    query, key = axes.T @ query, axes.T @ key
    return Factors(query, query if factors.tied else key, factors.tied)
