r"""Priors of one entry of the signal: mixtures of Gaussians and atoms, densities, and one's own.

An entry w is observed as :math:`r=w+\xi/\sqrt A`. A prior gives the posterior mean and variance of w and
their mean error :math:`\mathrm{mmse}(A)=E\,\mathrm{Var}[w|r]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_real
from solvable.errors import InvalidParameter


@dataclass(frozen=True)
class Prior:
    """Mixture of Gaussians; a component of variance 0 is an atom."""

    shares: tuple[float, ...]
    means: tuple[float, ...]
    variances: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.variance > 0:
            raise InvalidParameter(
                f"the prior has variance {self.variance:.3g}; allowed: above 0. Give it two values or a "
                "density."
            )

    @property
    def mean(self) -> float:
        """Mean of an entry."""
        return float(np.dot(self.shares, self.means))

    @property
    def second_moment(self) -> float:
        """Mean square of an entry."""
        return float(np.dot(self.shares, np.square(self.means) + np.array(self.variances)))

    @property
    def variance(self) -> float:
        """Variance of an entry."""
        m = np.array(self.means) - self.mean
        return float(np.dot(self.shares, m**2 + np.array(self.variances)))

    def draw(self, size: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Independent entries of the signal."""
        k = rng.choice(len(self.shares), size, p=self.shares)
        return np.array(self.means)[k] + np.sqrt(self.variances)[k] * rng.standard_normal(size)


def Gaussian(variance: float = 1.0, mean: float = 0.0) -> Prior:
    """Gaussian entries."""
    check_real("variance", variance, 0)
    return Prior((1.0,), (float(mean),), (float(variance),))


def Rademacher(probability: float = 0.5) -> Prior:
    """Entries +1 with a probability, else -1."""
    return Discrete((1.0, -1.0), (probability, 1 - probability))


def GaussBernoulli(density: float, *, mean: float = 0.0, variance: float = 1.0) -> Prior:
    """Entries that are Gaussian with probability `density`, else 0."""
    return Prior((float(density), 1 - float(density)), (float(mean), 0.0), (float(variance), 0.0))


def Discrete(values: Sequence[float], probabilities: Sequence[float]) -> Prior:
    """Entries from a list of values."""
    return Prior(
        tuple(map(float, probabilities)), tuple(map(float, values)), (0.0,) * len(values)
    )
