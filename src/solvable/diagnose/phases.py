"""Phase of a spectrum: a bulk of noise with or without signals, a power law, or neither."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.diagnose.bulk_fit import BulkFit
from solvable.diagnose.diagnosis import Curve, Estimate, Feature
from solvable.diagnose.noise import NoiseLaw, RectangularNoise, SymmetricNoise
from solvable.diagnose.spectrum import Spectrum
from solvable.fitting.power_tail import TailFit


@dataclass(frozen=True)
class WholeBulk:
    """Distribution of values y = (x - b)_+; x are values of noise of scale delta."""

    law: NoiseLaw  # distribution of the noise at unit scale
    scale: float  # noise scale delta of the values that are left without the outliers
    shift: float  # threshold b
    size: int  # number of values

    @staticmethod
    def of(spectrum: Spectrum, fit: BulkFit) -> WholeBulk:
        """Return the distribution of all values behind a fit, rescaled for the removed outliers."""
        p, q = spectrum.shape
        law = SymmetricNoise() if spectrum.symmetric else RectangularNoise(p / q)
        return WholeBulk(law, fit.noise * (1 - fit.n_outliers / q) ** 0.5, fit.shrinkage, p)

    @property
    def separated(self) -> float:
        """Smallest strength, in units of the threshold, of a signal that is surely above the bulk."""
        # At this strength the outlier minus one standard deviation is at the 1 % quantile of noise.
        kappa, edge = self.law.edge_scale(self.size), self.law.edges[1]
        grid = edge + kappa * np.linspace(0.0, 40.0, 4000)[1:]
        clear = grid - self.law.spread(grid, self.size) > edge + 2.02 * kappa
        first = grid[int(np.argmax(clear))] if clear.any() else grid[-1]
        strength = float(self.law.strength(np.array([first]))[0]) / self.law.threshold
        return float(np.clip(strength, 1.001, 4.0))

    def merging(self, decay: float) -> float:
        """Number of power-law signals from which on the weakest outliers merge   (spectra 9)."""
        # The spacing gamma s_c / K is then below the summed widths of two neighbours.
        far = np.array([30.0])
        width = 2 * float(self.law.spread(far, self.size)[0])
        return decay * self.law.threshold / width

    def phase(self, strengths: np.ndarray) -> str:
        """Return the phase of signals of these strengths, largest first, in units of the threshold."""
        if not strengths.size:
            return "random-like"
        if strengths[0] < self.separated:
            return "bleeding-out"
        # Maximum likelihood of gamma for strengths with the tail (s / s_c)^(-1/gamma).   (spectra 9)
        merging = self.merging(float(np.log(strengths).mean()))
        near = strengths[-1] < self.separated  # no gap between the bulk and the weakest signal
        return "bulk-decay" if near and strengths.size > merging else "bulk+spikes"

    def curve(self, spectrum: Spectrum, n_outliers: int) -> Curve:
        """Return the density for drawing, in the unit of the file; it leaves out the outliers."""
        low, high = (edge * self.scale - self.shift for edge in self.law.edges)
        atom = 0.0
        if spectrum.semidefinite:
            low = max(low, 0.0)
            if self.shift > 0:
                atom = float(self.law.cdf(np.array([self.shift / self.scale]))[0])
        x = np.linspace(low, high, 400)
        share = 1 - n_outliers / spectrum.values.size
        density = self.law.density((x + self.shift) / self.scale) / self.scale
        return Curve(x * spectrum.unit, density * share / spectrum.unit, atom * share)


def power_curve(tail: TailFit, spectrum: Spectrum) -> Curve:
    """Return the density of a power-law tail for drawing, in the unit of the file."""
    top = float(np.abs(spectrum.values).max())
    # Of squared singular values lambda = y² the density is lambda^(-alpha): y has 1 + 2 (alpha - 1).
    power = 1 if spectrum.symmetric else 2
    low, rate = tail.threshold ** (1 / power), power * (tail.exponent - 1)
    x = np.geomspace(low, top, 60)
    share = tail.n_tail / spectrum.values.size
    density = share * rate / low * (x / low) ** (-1 - rate)
    return Curve(x * spectrum.unit, density / spectrum.unit, 1 - share)


def features_of(fit: BulkFit, unit: float) -> tuple[Feature, ...]:
    """Features: outliers with the signals behind the outliers, in the unit of the file."""
    spikes = fit.spikes
    symmetric = spikes.short_overlap is spikes.long_overlap
    # Strength and interval stay above the threshold, because a weaker signal would not be visible.
    ends = np.sign(spikes.strengths)[:, None] * spikes.intervals(floor=fit.threshold)
    return tuple(
        Feature(
            float(spikes.observed[k] - fit.shrinkage) * unit,
            Estimate(
                float(spikes.strengths[k]) * unit, *(float(end) * unit for end in sorted(row))
            ),
            float(spikes.short_overlap[k]),
            None if symmetric else float(spikes.long_overlap[k]),
        )
        for k, row in enumerate(ends)
    )
