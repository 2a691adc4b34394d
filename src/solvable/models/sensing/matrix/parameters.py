"""Parameters of the system `matrix-sensing`."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from pydantic import Field

from solvable.frame.parameters import Limit, Parameters, Size
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.spectra.measures import Measure, bin_tail, discrete
from solvable.spectra.product_measure import marchenko_pastur


class MatrixSensingParameters(Parameters):
    """Parameters of a symmetric matrix and its measurements."""

    dimension: int = Field(100, ge=4, le=100_000)
    """Rows d of the symmetric matrix; beyond 600 for `solvable theory` alone."""
    sample_ratio: float = Field(0.3, gt=0, le=1e6)
    """Measurements per squared dimension, n/d^2."""
    noise: float = Field(0.25, ge=0, le=1e6)
    """Variance Delta of the noise of a measurement, whose signal has variance 2 Tr S² / d."""
    rank_ratio: float = Field(0.5, gt=0, le=1e4)
    """Rank of the factor W over d, of a signal W W^T / sqrt(rank d); may exceed 1."""
    sensors: Literal["goe", "rank-one"] = "rank-one"
    """Measurements by x x^T - I of Gaussian x, or by independent Gaussian matrices (the control)."""
    signal: Literal["wishart", "power-law"] = "wishart"
    """Spectrum of the signal: that of W W^T, or eigenvalues sqrt(d) i^-exponent."""
    exponent: float = Field(1.0, gt=0.5, le=10)
    """Exponent of a power-law signal, not scaled: its second moment is the sum of i^(-2 exponent)."""
    estimator: Literal["bayes", "nuclear-norm"] = "bayes"
    """Bayes message passing that knows the spectrum, or least squares with the best penalty of the
    nuclear norm, which knows nothing; without noise the least nuclear norm that fits."""

    samples = Size("sample_ratio", "dimension", "dimension", least=1, name="measurements")
    rank = Size("rank_ratio", "dimension", floor=1)
    limits = (
        Limit(lambda p: p.dimension, 600, "dimension is {dimension}", "dimension"),
        Limit(
            lambda p: p.samples * p.dimension * ((p.dimension + 1) / 2 if p.sensors == "goe" else 1),
            5e8, "the sensors hold {cost:.2g} numbers",
            "sample_ratio or dimension (or take sensors=rank-one)",
        ),
    )  # fmt: skip

    @property
    def ratio(self) -> float:
        """Measurements per squared dimension, of a whole number of them."""
        return self.samples / self.dimension**2

    @property
    def spectrum(self) -> Measure:
        """Law of the signal's eigenvalues."""
        if self.signal == "power-law":
            return _power_law(self.dimension, self.exponent)
        return marchenko_pastur(self.rank / self.dimension)

    @property
    def channel(self) -> GaussianIndices:
        """Channel of a measurement."""
        return GaussianIndices(np.array([2.0]), np.array([self.noise]))


def power_law_strengths(dimension: int, exponent: float) -> np.ndarray:
    """Eigenvalues sqrt(d) i^-gamma, descending."""
    return np.asarray(np.sqrt(dimension) * np.arange(1, dimension + 1) ** -exponent)


@lru_cache(maxsize=32)
def _power_law(dimension: int, exponent: float) -> Measure:
    """Law of the eigenvalues of a power law, the smaller ones of many binned."""
    strengths = power_law_strengths(dimension, exponent)
    if dimension <= 600:
        return discrete(strengths)
    return bin_tail(strengths, heads=40)
