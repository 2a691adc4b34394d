"""Columns of a quadratic second layer: squares of latent features and, on request, products."""

from __future__ import annotations

from typing import Literal


def count_columns(n_latent: int, *, cross_terms: bool, linear_terms: bool) -> int:
    """Number of coefficients of the second layer without the intercept."""
    quadratic = n_latent * (n_latent + 1) // 2 if cross_terms else n_latent
    return quadratic + (n_latent if linear_terms else 0)


def wants_cross_terms(
    cross_terms: bool | Literal["auto"], n_latent: int, n_rows: int, *, linear_terms: bool
) -> bool:
    """Return True if products of different latent features are fitted."""
    if cross_terms == "auto":
        # Products are fitted with at least ten held-back rows per coefficient.
        columns = count_columns(n_latent, cross_terms=True, linear_terms=linear_terms)
        return 10 * columns <= n_rows
    return cross_terms
