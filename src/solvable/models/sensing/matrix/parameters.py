"""Parameters of the system `matrix-sensing`."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from solvable.frame.parameters import Limit, Parameters, Size
from solvable.message_passing.attention_channels import SignOfIndex
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_laws import SymmetricSignal
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
    signal: Literal["wishart", "power-law", "own"] = "wishart"
    """Spectrum of the signal: that of the Wishart matrix W W^T, eigenvalues sqrt(d) i^-exponent, or the
    list `eigenvalues`."""
    eigenvalues: str = "2:0.25/0:0.75"
    """Spectrum of signal=own: eigenvalue:share pairs separated by slashes; shares add up to 1."""
    exponent: float = Field(1.0, gt=0.5, le=10)
    """Exponent of a power-law signal; the signal's second moment is the sum of i^(-2 exponent)."""
    estimator: Literal["bayes", "nuclear-norm"] = "bayes"
    """Bayes message passing with known spectrum, or least squares with the best nuclear-norm penalty of
    the limit, which vanishes where recovery is exact."""

    output: Literal["linear", "sign"] = "linear"
    """Label: the noisy measurement itself, or its sign (estimator=bayes)."""
    inner_noise: float = Field(0.0, ge=0, le=1e3)
    """Variance sigma² of noise added to each hidden unit before the square (sensors=rank-one and
    signal=wishart); it acts as label noise of variance 2 sigma² (2 + sigma²)."""

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

    @model_validator(mode="after")
    def _check(self) -> MatrixSensingParameters:
        if self.signal == "own":
            own_levels(self.eigenvalues)
        if self.output == "sign" and self.estimator != "bayes":
            raise ValueError(
                f"estimator is {self.estimator} with output sign; allowed: bayes, because the nuclear "
                "norm fits the measurements themselves. Set estimator=bayes, or output=linear"
            )
        network = self.sensors == "rank-one" and self.signal == "wishart"
        if self.inner_noise > 0 and not (network and self.output == "linear"):
            raise ValueError(
                f"inner_noise is {self.inner_noise:g} with sensors {self.sensors}, signal {self.signal} "
                f"and output {self.output}; allowed: sensors=rank-one, signal=wishart and "
                "output=linear, where measurements are those of a quadratic network. Set these, or "
                "inner_noise=0"
            )
        return self

    @property
    def label_noise(self) -> float:
        """Noise variance of a label, with that of the noise inside the activation."""
        # y = sum_k (a_k + sigma z_k)² / sqrt(r): variance 4 sigma² mean(a²) + 2 sigma⁴   (sensing 28)
        return self.noise + 2 * self.inner_noise * (2 + self.inner_noise)

    @property
    def ratio(self) -> float:
        """Ratio n/d² for the integer number n of measurements."""
        return self.samples / self.dimension**2

    @property
    def spectrum(self) -> Measure:
        """Distribution of the signal's eigenvalues."""
        if self.signal == "power-law":
            return _power_law(self.dimension, self.exponent)
        if self.signal == "own":
            return _own(self.eigenvalues)
        return marchenko_pastur(self.rank / self.dimension)

    @property
    def channel(self) -> GaussianIndices | SignOfIndex:
        """Channel from the index of a measurement, with variance factor 2, to the label."""
        if self.output == "sign":
            return SignOfIndex(self.noise, SymmetricSignal(self.spectrum).second_moment)
        return GaussianIndices(np.array([2.0]), np.array([self.label_noise]))


def own_levels(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Read eigenvalues and their shares from a text such as "2:0.25/0:0.75"."""
    try:
        levels, shares = np.array([pair.split(":") for pair in text.split("/")], dtype=float).T
    except ValueError:
        levels = shares = np.array([np.nan])
    known = np.isfinite(levels).all() and np.isfinite(shares).all()
    if not (known and (shares > 0).all() and abs(shares.sum() - 1) < 1e-6):
        raise ValueError(
            f"eigenvalues is {text!r}; allowed: pairs eigenvalue:share separated by slashes, with "
            "positive shares of sum 1, such as 2:0.25/0:0.75"
        )
    return levels, shares


def own_strengths(dimension: int, text: str) -> np.ndarray:
    """Draw d eigenvalues in descending order: the middle quantiles of the list of eigenvalues."""
    levels, shares = own_levels(text)
    order = np.argsort(-levels)
    places = (np.arange(dimension) + 0.5) / dimension
    chosen = np.searchsorted(np.cumsum(shares[order]), places)
    return np.asarray(levels[order][np.minimum(chosen, levels.size - 1)])


@lru_cache(maxsize=32)
def _own(text: str) -> Measure:
    """Distribution of a list of eigenvalues."""
    return discrete(*own_levels(text))


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
