"""The nuclear norm at the best penalty, as a denoiser that acts on eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.sensing.matrix.parameters import MatrixSensingParameters
from solvable.spectra.denoiser import denoising_error
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule
from solvable.spectra.measures import Measure

GROUPS = 8
"""Number of groups of eigenvalues whose means are reported."""


class BestThreshold(NamedTuple):
    """Best soft threshold at a noise level: cut, error, kept fraction (sensing 11) and divergence."""

    cut: float
    error: float
    kept: float
    divergence: float


@dataclass(frozen=True)
class NuclearNormSignal:
    """Symmetric signal whose eigenvalues are estimated by soft thresholding."""

    spectrum: Measure  # distribution of the eigenvalues, which the estimator does not use
    _known: dict[float, BestThreshold] = field(default_factory=dict, compare=False, repr=False)

    multiplicity = 2

    @property
    def second_moment(self) -> float:
        """Second moment Q of the eigenvalues."""
        return float(self.spectrum.node_weights @ self.spectrum.nodes**2)

    @property
    def variance(self) -> float:
        """Error of the estimate 0."""
        return self.second_moment

    def mmse(self, noise: np.ndarray) -> np.ndarray:
        """Error of the best soft threshold at each of the noise variances."""
        t = np.asarray(noise, dtype=np.float64)
        return np.array([self.best(value).error for value in t.ravel()]).reshape(t.shape)

    def best(self, variance: float) -> BestThreshold:
        """Best soft threshold at a noise variance."""
        if variance not in self._known:
            if len(self._known) > 4_096:
                self._known.clear()
            self._known[variance] = self._search(float(variance))
        return self._known[variance]

    def _search(self, variance: float) -> BestThreshold:
        # E(t) = mmse(t) + min_b int mu_t (f_b - xi)², f_b(x) = sign(x) (|x| - b)_+, xi = 2 u - x
        # (sensing 10)
        law = SpectralLaw(self.spectrum, noise=float(np.sqrt(variance)))
        # The noise spectrum ends at 2 sqrt(t), so the best cut is at most 2 sqrt(t).
        grid = np.linspace(0.0, 3.0, 10) * law.noise
        slopes, errors, _ = _cut_errors(law, grid)
        k = int(np.argmin(errors))
        cut = float(grid[k])
        left, right = (k, k + 1) if slopes[k] < 0 else (k - 1, k)
        if left >= 0 and right < grid.size and slopes[left] < 0 < slopes[right]:
            # The error is quadratic near the minimum, so an error of 1e-3 in the cut changes it by 1e-6.
            inner = np.linspace(grid[left], grid[right], 8)[1:-1]
            places = np.concatenate([grid[left : left + 1], inner, grid[right : right + 1]])
            along = np.concatenate(
                [slopes[left : left + 1], _cut_errors(law, inner)[0], slopes[right : right + 1]]
            )
            cut = float(np.interp(0.0, np.maximum.accumulate(along), places))
        _, errors, kept = _cut_errors(law, np.array([cut]))
        error = float(denoising_error(law) + errors[0])
        return BestThreshold(cut, error, float(kept[0]), _divergence(law, cut))

    def denoise(self, observed: np.ndarray, noise: float) -> np.ndarray:
        """Soft-threshold the eigenvalues of the observed matrix."""
        values, vectors = np.linalg.eigh(observed)
        return np.asarray((vectors * soft(values, self.best(noise).cut)) @ vectors.T)


def soft(values: np.ndarray, cut: float) -> np.ndarray:
    """Soft threshold sign(x) (abs(x) - cut)_+."""
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - cut, 0.0))


def _cut_errors(law: SpectralLaw, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half the error's derivative in the cut b, the excess over the Bayes error, the mass beyond b."""
    # excess error int (f_b - xi)², with f_b = 0 between -b and b; this form avoids cancellation at
    # small noise
    slope, mass = np.zeros(cuts.size), np.zeros(cuts.size)
    xi = 2 * law.u - law.x
    error = np.full(cuts.size, float(law.weights @ xi**2))
    for sign in (1.0, -1.0):
        index, points, weights = tail_rule(law, sign * cuts)
        rise = sign * points.x - cuts[index]
        above = [
            np.bincount(index, weights=weights * part, minlength=cuts.size)
            for part in _parts(rise, sign * (2 * points.u - points.x))
        ]
        if sign < 0:
            # integral below -b = total integral minus integral above -b
            every = _parts(-law.x[:, None] - cuts, -xi[:, None])
            above = [law.weights @ full - part for full, part in zip(every, above, strict=True)]
        slope, error, mass = slope + above[0], error + above[1], mass + above[2]
    return slope, np.asarray(error), mass


def _parts(rise: np.ndarray, best: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contributions of an eigenvalue beyond the cut to the slope, the error and the mass."""
    shifted = rise - best
    return -shifted, shifted**2 - best**2, np.ones_like(shifted)


def _divergence(law: SpectralLaw, cut: float) -> float:
    """Divergence D of the soft threshold in units of d² / 2."""
    # D = (2 / d²) sum_{i<j} (f_i - f_j) / (l_i - l_j) = 2 int mu f h   (sensing 10)
    total = 0.0
    for sign in (1.0, -1.0):
        _, points, weights = tail_rule(law, np.array([sign * cut]))
        pull = (points.x - points.u) / law.variance
        value = weights @ ((points.x - sign * cut) * pull)
        if sign < 0:
            value = law.weights @ ((law.x + cut) * (law.x - law.u) / law.variance) - value
        total += 2 * float(value)
    return total


@lru_cache(maxsize=64)
def law_of(parameters: MatrixSensingParameters) -> SymmetricSignal | NuclearNormSignal:
    """Signal model of the chosen estimator: `SymmetricSignal` for Bayes, else `NuclearNormSignal`."""
    kind = SymmetricSignal if parameters.estimator == "bayes" else NuclearNormSignal
    return kind(parameters.spectrum)


def group_means(values: np.ndarray, groups: int) -> list[float | None]:
    """Means of consecutive groups of equal size."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    places = np.linspace(0, values.size, groups + 1)
    sums = np.interp(places, np.arange(values.size + 1), total)
    return [float(mean) for mean in np.diff(sums) * groups / values.size]
