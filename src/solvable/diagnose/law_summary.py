"""Summary of a spectrum's fitted law: features, exponent, drawn curve."""

from __future__ import annotations

import numpy as np

from solvable.diagnose.bulk_fit import BulkFit
from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.diagnosis import Curve, Estimate, Exponent, Feature
from solvable.diagnose.phase_likelihood import PhaseLaw
from solvable.diagnose.spectrum import Spectrum
from solvable.fitting.power_tail import TailFit


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


def exponent_of(tail: TailFit | None, bulk_p_value: float | None) -> Exponent | None:
    """Collect the exponent of the spectrum with its tests."""
    if tail is None:
        return None
    return Exponent(
        Estimate(tail.exponent, *tail.interval),
        tail.p_value,
        tail.power_law_p_value,
        bulk_p_value,
        tail.n_tail,
    )


def curve_of(
    spectrum: Spectrum, bulk: WholeBulk | None, fit: BulkFit | None, law: PhaseLaw
) -> Curve:
    """Curve of the likeliest law for drawing, in the unit of the file."""
    # The curve leaves out the outliers; its integral is the share of the other values.
    unit, p, points = spectrum.unit, spectrum.values.size, 400
    if law.smooth is not None or bulk is None or fit is None:
        if law.smooth is None:
            return Curve(np.zeros(0), np.zeros(0), spectrum.zeros / p)
        y = np.abs(spectrum.values)
        y = np.sort(y[y > 0])
        x = np.geomspace(y[0], y[-1], points)
        atom = spectrum.zeros / p
        return Curve(x * unit, law.smooth.density(x) * (1 - atom) / unit, atom)
    low, high = (edge * bulk.scale - bulk.shift for edge in bulk.law.edges)
    atom = 0.0
    if spectrum.semidefinite:
        low = max(low, 0.0)
        if bulk.shift > 0:
            atom = float(bulk.law.cdf(np.array([bulk.shift / bulk.scale]))[0])
    x = np.linspace(low, high, points)
    share = 1 - fit.n_outliers / p
    density = bulk.law.density((x + bulk.shift) / bulk.scale) / bulk.scale
    return Curve(x * unit, density * share / unit, atom * share)
