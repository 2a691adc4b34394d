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
    """Parameters of matrix sensing."""

    dimension: int = Field(100, ge=4, le=100_000)
    """Number d of rows of the symmetric matrix; above 600 only `solvable theory` is allowed."""
    sample_ratio: float = Field(0.3, gt=0, le=1e6)
    """Number n of measurements over the squared dimension, n/d²."""
    noise: float = Field(0.25, ge=0, le=1e6)
    """Variance Delta of the noise on a measurement; noiseless measurements have variance 2 Tr S² / d."""
    rank_ratio: float = Field(0.5, gt=0, le=1e4)
    """Rank ratio r/d of the signal W W^T / sqrt(r d), with r the columns of W; r/d may exceed 1."""
    sensors: Literal["goe", "rank-one"] = "rank-one"
    """Measurement matrices: x x^T - I with Gaussian x, or independent GOE matrices."""
    signal: Literal["wishart", "power-law"] = "wishart"
    """Spectrum of the signal: that of the Wishart matrix W W^T, or eigenvalues sqrt(d) i^-exponent."""
    exponent: float = Field(1.0, gt=0.5, le=10)
    """Exponent of a power-law signal; the signal's second moment is the sum of i^(-2 exponent)."""
    estimator: Literal["bayes", "nuclear-norm"] = "bayes"
    """Bayes message passing with known spectrum, or least squares with the best nuclear-norm penalty.
    Without noise, `nuclear-norm` is the matrix of least nuclear norm that fits the measurements."""

    samples = Size("sample_ratio", "dimension", "dimension", least=1, name="measurements")
    rank = Size("rank_ratio", "dimension", floor=1)
    limits = (
        Limit(lambda p: p.dimension, 600, "dimension is {dimension}", "dimension"),
        Limit(
            lambda p: p.samples * p.dimension * ((p.dimension + 1) / 2 if p.sensors == "goe" else 1),
            5e8, "the sensors have {cost:.2g} entries",
            "sample_ratio or dimension (or take sensors=rank-one)",
        ),
    )  # fmt: skip

    @property
    def ratio(self) -> float:
        """Ratio n/d² for the integer number n of measurements."""
        return self.samples / self.dimension**2

    @property
    def spectrum(self) -> Measure:
        """Distribution of the signal's eigenvalues."""
        if self.signal == "power-law":
            return _power_law(self.dimension, self.exponent)
        return marchenko_pastur(self.rank / self.dimension)

    @property
    def channel(self) -> GaussianIndices:
        """Gaussian channel from the index of a measurement, with variance factor 2, to the label."""
        return GaussianIndices(np.array([2.0]), np.array([self.noise]))


def power_law_strengths(dimension: int, exponent: float) -> np.ndarray:
    """Eigenvalues sqrt(d) i^-gamma in descending order, with gamma the exponent."""
    return np.asarray(np.sqrt(dimension) * np.arange(1, dimension + 1) ** -exponent)


@lru_cache(maxsize=32)
def _power_law(dimension: int, exponent: float) -> Measure:
    """Distribution of the power-law eigenvalues; above 600 dimensions small eigenvalues are binned."""
    strengths = power_law_strengths(dimension, exponent)
    if dimension <= 600:
        return discrete(strengths)
    return bin_tail(strengths, heads=40)
