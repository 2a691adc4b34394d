r"""Two families of curves: the power law and the cascade.

A curve is :math:`e(n)=e_\infty+A\,g(n;\vartheta)`. It is linear in offset and amplitude, which are
solved exactly, and non-linear in one (power law) or three (cascade) parameters, found on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from solvable.spectra.near_semicircle import critical_profile

# dimension D that sets the finite-size rounding of a threshold; the relative width is D^(-1/3) = 0.14
ROUNDING_FEATURES = 400

# Numbers of features that are tried; 256 features act like infinitely many in any measured range.
RANKS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 256)


@dataclass(frozen=True)
class PowerLaw:
    """Power law with exponent b and an offset."""

    reference: float = 1.0  # reference size n_0, at which the power law equals the amplitude A
    name: str = "power law"
    parameters: tuple[str, ...] = ("exponent",)

    def coarse(self, sizes: np.ndarray) -> np.ndarray:
        """Return exponents from 0.02 to 4."""
        return np.geomspace(0.02, 4.0, 120)[:, None]

    def refined(self, kept: np.ndarray, coarse: np.ndarray) -> np.ndarray:
        """Return 120 exponents over the range of the kept exponents."""
        low, high = _widened(np.log(kept[:, 0]), np.log(coarse[:, 0]))
        return np.exp(np.linspace(low, high, 120))[:, None]

    def shapes(self, parameters: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the power-law shapes (n / n_0)^-b, with n_0 the reference size."""
        # e(n) = e_inf + A (n / n_0)^-b
        return np.asarray(np.exp(-parameters[:, :1] * np.log(sizes / self.reference)))


@dataclass(frozen=True)
class Cascade:
    """Cascade of features with power-law strengths and rounded emergence thresholds."""

    name: str = "cascade"
    parameters: tuple[str, ...] = ("decay", "first_threshold", "features")

    def coarse(self, sizes: np.ndarray) -> np.ndarray:
        """Return a grid of decays from 0.1 to 2.5, first thresholds and numbers of features."""
        decays = np.concatenate([np.linspace(0.1, 1.5, 15), [1.75, 2.0, 2.5]])
        low, high = np.log(sizes[0] / 300), np.log(sizes[-1])
        # Steps of about 0.4 in ln n_1.
        firsts = np.exp(np.linspace(low, high, max(int((high - low) / 0.4), 2)))
        grid = np.stack(np.meshgrid(decays, firsts, RANKS, indexing="ij"), axis=-1).reshape(-1, 3)
        # With a single feature the decay has no effect, so that a single value is enough.
        return grid[(grid[:, 2] > 1) | (grid[:, 0] == decays[0])]

    def refined(self, kept: np.ndarray, coarse: np.ndarray) -> np.ndarray:
        """Return a finer grid for each kept number of features."""
        grids = []
        for features in np.unique(kept[:, 2]):
            here = kept[kept[:, 2] == features]
            tried = coarse[coarse[:, 2] == features]
            first = np.exp(np.linspace(*_widened(np.log(here[:, 1]), np.log(tried[:, 1])), 20))
            if features == 1:
                decay = here[:1, 0]
            else:
                low, high = _widened(here[:, 0], tried[:, 0])
                decay = np.linspace(max(low, 0.02), high, 20)
            mesh = np.meshgrid(decay, first, [features], indexing="ij")
            grids.append(np.stack(mesh, axis=-1).reshape(-1, 3))
        return np.concatenate(grids)

    def shapes(self, parameters: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the relative error that remains, which is 1 below the first threshold."""
        shapes = np.empty((parameters.shape[0], sizes.size))
        for features in np.unique(parameters[:, 2]):
            rows = parameters[:, 2] == features
            shapes[rows] = _cascade(parameters[rows, 0], parameters[rows, 1], int(features), sizes)
        return shapes


Family: TypeAlias = PowerLaw | Cascade
"""Family of curves that are linear in offset and amplitude."""


def _widened(kept: np.ndarray, coarse: np.ndarray) -> tuple[float, float]:
    """Return the range of the kept values, widened by one step of the coarse grid on either side."""
    places = np.unique(coarse)
    first = int(np.searchsorted(places, kept.min()))
    last = int(np.searchsorted(places, kept.max()))
    return float(places[max(first - 1, 0)]), float(places[min(last + 1, places.size - 1)])


@cache
def _nodes(features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks of representative features, and the number of features each represents."""
    exact = 24  # number of features that are summed one by one; weaker features are grouped
    if features <= exact:
        return np.arange(1.0, features + 1), np.ones(features)
    edges = np.unique(np.geomspace(exact, features, 16).astype(int)).astype(float)
    counts = np.diff(edges)
    # The group of features first + 1 to last is represented by the geometric mean of its ends.
    middles = np.sqrt((edges[:-1] + 0.5) * (edges[1:] + 0.5))
    return (
        np.concatenate([np.arange(1.0, exact + 1), middles]),
        np.concatenate([np.ones(exact), counts]),
    )


@cache
def _excess_table() -> tuple[float, float, np.ndarray]:
    """Tabulate the log of the rounded (nu - 1)_+ in ln nu, as in ``spectra.spiked_overlap``."""
    low, high, count = -12.0, 12.0, 1292
    log_ratio = np.linspace(low, high, count)
    unit = float(ROUNDING_FEATURES) ** (-1 / 3)
    beyond = np.expm1(log_ratio)
    place = np.where(beyond < 0, 2 * np.sqrt(beyond + 1) - 2, beyond)
    return low, (high - low) / (count - 1), np.log(unit * critical_profile(place / unit))


def _rounded_excess(log_ratio: np.ndarray) -> np.ndarray:
    """Interpolate the table of the rounded (nu - 1)_+; even steps make this faster than a search."""
    low, step, values = _excess_table()
    place = np.minimum(np.maximum((log_ratio - low) / step, 0.0), values.size - 1.001)
    before = place.astype(np.intp)
    place -= before
    place *= np.diff(values)[before]
    place += values[before]
    return np.exp(place, out=place)


def _cascade(decay: np.ndarray, first: np.ndarray, features: int, sizes: np.ndarray) -> np.ndarray:
    # arXiv:2605.14567, Theorems 3.1 and 3.2, with constants for the identity readout; `decay` is gamma,
    # `first` is n_1.
    ranks, counts = _nodes(features)
    strengths = ranks ** (-2 * decay[:, None])
    # strengths lambda_i² ~ i^(-2 gamma), which sum to 1
    shares = strengths / (counts * strengths).sum(axis=1, keepdims=True)
    thresholds = np.log(first)[:, None] - np.log(strengths)  # thresholds n_i = n_1 i^(2 gamma)
    ratio = np.log(sizes)[None, :, None] - thresholds[:, None, :]
    # c_i² = (n / n_i - 1)_+ / ((n / n_i - 1)_+ + 1 + 4 lambda_i²)   (sequential 8)
    excess = _rounded_excess(ratio)
    overlap = excess / (excess + 1 + 4 * shares[:, None, :])
    # g(n) = sum_i lambda_i² (1 - c_i⁴)   (sequential 11)
    return np.asarray(np.einsum("gi,gki->gk", counts * shares, 1 - overlap**2))
