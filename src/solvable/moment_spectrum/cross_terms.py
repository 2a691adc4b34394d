"""Columns of a quadratic readout of latent features, and whether products of them are among these."""

from __future__ import annotations

from typing import Literal


def count_columns(n_latent: int, *, cross_terms: bool, linear_terms: bool) -> int:
    """Number of coefficients beside the intercept."""
    quadratic = n_latent * (n_latent + 1) // 2 if cross_terms else n_latent
    return quadratic + (n_latent if linear_terms else 0)


def wants_cross_terms(
    cross_terms: bool | Literal["auto"], n_latent: int, n_rows: int, *, linear_terms: bool
) -> bool:
    """Whether products of different latent features are fitted."""
    if cross_terms == "auto":
        # Worth their variance with ten held-back rows per coefficient.
        columns = count_columns(n_latent, cross_terms=True, linear_terms=linear_terms)
        return 10 * columns <= n_rows
    return cross_terms
