r"""Phase of a learned spectrum, from effective noise, threshold and the target's strengths."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.quadratic.network.theory import QuadraticState
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.measures import discrete

MERGING = 2.83
"""Gap in units of delta / sqrt(d) below which the peaks of neighbouring features merge."""

# An outlier lies (s - delta)² / s above the edge. The 99 % quantile of the edge is 2.02 delta d^(-2/3).
WINDOW = 1.42
"""Half-width of the phase bleeding-out in (s_1 / delta - 1) d^(1/3): the square root of 2.02."""

MANY = 5
"""Smallest number of features that counts as a tail or a decay instead of single spikes."""


class SpectralPhase(StrEnum):
    """Six spectral phases of arXiv:1810.01075, ordered from noise to structure."""

    RANDOM = "random-like"
    BLEEDING = "bleeding-out"
    SPIKES = "bulk+spikes"
    DECAY = "bulk-decay"
    HEAVY = "heavy-tailed"
    COLLAPSE = "rank-collapse"


@dataclass(frozen=True)
class SpectralDecision:
    """Phase of a learned spectrum, with the numbers that decide on the phase."""

    phase: SpectralPhase
    cut: float  # threshold over edge of the bulk, b / 2 delta; the bulk disappears at 1
    separation: (
        float  # (s_1 / delta - 1) d^(1/3); the first feature touches the edge within 1.42 of 0
    )
    above_noise: int  # number K of features with s > delta
    kept: int  # number of learned features: s > delta and s + delta² / s > b
    gap: float  # mean gap in the weakest quarter of the K over 2.83 delta / sqrt(d); NaN for K < 2
    local_exponent: (
        float  # log(s_1 / s_k) / log k at k = ceil(sqrt(K)); near 0 if bounded, NaN for K < 4
    )
    structured: bool  # True if the K features are many and bounded: a second bulk instead of a tail
    margin: float  # smallest change of the logarithm of a field above that changes the phase


def spectral_phase(
    *, effective_noise: float, threshold: float, strengths: np.ndarray, dimension: int | None = None
) -> SpectralDecision:
    r"""Name the phase of :math:`(S^\star+\delta Z-b)_+`, with its distance from other phases.

    The phase depends on the cut b, the edge :math:`2\delta` of the bulk, and the outliers
    :math:`s_i+\delta^2/s_i`:

    ============= ===========================================================================
    rank-collapse fewer than 5 learned features and no bulk, :math:`b\ge2\delta`
    heavy-tailed  5 learned features or more and no bulk; or half of all directions above the noise
    random-like   :math:`b<2\delta`, and :math:`s_1<\delta` by more than the window below
    bleeding-out  :math:`|s_1/\delta-1|\le1.42\,d^{-1/3}`; or many bounded features inside the bulk
    bulk-decay    5 features or more whose peaks merge with the bulk
    bulk+spikes   features separate from the bulk, or a second bulk of features
    ============= ===========================================================================

    The power :math:`d^{-1/3}` is that of Baik, Ben Arous and Peche, and the gaps follow from the free
    convolution. The window and the counts are conventions.

    Parameters
    ----------
    effective_noise : float
        :math:`\delta`.
    threshold : float
        b, at least 0.
    strengths : array of shape (m,)
        Eigenvalues of the target, at least 0; the remaining d - m are 0.
    dimension : int, optional
        :math:`d\ge m`; m by default.

    Returns
    -------
    SpectralDecision
        Phase and margins.

    Examples
    --------
    >>> decision = spectral_phase(
    ...     effective_noise=1.0, threshold=0.5, strengths=[4.0, 2.5], dimension=1000
    ... )
    >>> decision.phase.value, decision.above_noise
    ('bulk+spikes', 2)
    """
    check_positive(effective_noise=effective_noise)
    if not 0 <= threshold < np.inf:
        raise InvalidParameter(f"threshold is {threshold}; allowed: a finite number of at least 0.")
    values = np.sort(np.asarray(strengths, dtype=np.float64).ravel())[::-1] / effective_noise
    size = values.size if dimension is None else int(dimension)
    if values.size == 0 or not np.isfinite(values).all() or values[-1] < 0:
        raise InvalidData("the strengths must be finite numbers of at least 0, and at least one.")
    if size < values.size or size < 2:
        raise InvalidParameter(
            f"dimension is {size} with {values.size} strengths; allowed: at least the number of "
            "strengths, and at least 2."
        )
    return _decide(values, threshold / effective_noise, size)


def _decide(values: np.ndarray, a: float, size: int) -> SpectralDecision:
    above = values[values > 1]
    count = above.size
    kept = int(np.count_nonzero(above + 1 / above > a))
    separation = float((values[0] - 1) * size ** (1 / 3))
    gap, exponent = _weakest_gap(above, size), _local_exponent(above)
    bounded = count >= MANY and exponent <= 0.5
    bulk_share = 1 - count / size
    margins = [abs(np.log(a / 2)) if a > 0 else np.inf]
    if a >= 2:
        phase = SpectralPhase.HEAVY if kept >= MANY else SpectralPhase.COLLAPSE
        margins.append(abs(np.log(max(kept, 0.5) / (MANY - 0.5))))
    elif bulk_share < 0.5 and not bounded:
        phase = SpectralPhase.HEAVY
        margins.append(abs(np.log(2 * bulk_share)) if bulk_share > 0 else np.inf)
    elif abs(separation) <= WINDOW or count == 0:
        phase = SpectralPhase.RANDOM if separation < -WINDOW else SpectralPhase.BLEEDING
        margins.append(abs(np.log(max(abs(separation), 1e-300) / WINDOW)))
    elif count >= MANY and gap < 1 and not bounded:
        phase = SpectralPhase.DECAY
        margins += [-np.log(gap), np.log(count / (MANY - 0.5))]
    elif bounded and not _apart(values, size):
        phase = SpectralPhase.BLEEDING
        margins.append(np.log(separation / WINDOW))
    else:
        phase = SpectralPhase.SPIKES
        margins.append(np.log(separation / WINDOW))
        if count >= MANY and not bounded:
            margins.append(np.log(gap))
    return SpectralDecision(
        phase=phase,
        cut=a / 2,
        separation=separation,
        above_noise=count,
        kept=kept,
        gap=gap,
        local_exponent=exponent,
        structured=bool(bounded),
        margin=float(max(min(margins), 0.0)),
    )


def _weakest_gap(above: np.ndarray, size: int) -> float:
    if above.size < 2:
        return np.nan
    first = min(int(0.75 * above.size), above.size - 2)
    mean = (above[first] - above[-1]) / (above.size - 1 - first)
    # Peaks of neighbouring features with weights w and w' merge if their gap is below g, the solution of
    # (w^(1/3) + w'^(1/3))³ / g² = 1 / delta². For w = w' = 1/d this is sqrt(8) delta / sqrt(d).
    return float(mean * np.sqrt(size) / MERGING)


def _local_exponent(above: np.ndarray) -> float:
    if above.size < 4:
        return np.nan
    rank = int(np.ceil(np.sqrt(above.size)))
    return float(np.log(above[0] / above[rank - 1]) / np.log(rank))


def _apart(values: np.ndarray, size: int) -> bool:
    """Return True if most features lie outside the part of the spectrum that contains the bulk."""
    places = np.concatenate([values, [0.0]])
    masses = np.concatenate([np.ones(values.size), [size - values.size]])
    law = SpectralLaw(discrete(places, masses), noise=1.0)
    bulk = int(np.searchsorted(law.intervals[:, 1], 0.0))
    beyond = float(law.masses[bulk + 1 :].sum())
    return bool(beyond >= np.count_nonzero(values > 1) / (2 * size))


def decision_at(state: QuadraticState, dimension: int) -> SpectralDecision:
    """Spectral phase of a solution at a finite dimension."""
    measure = state.law.target
    mass = np.cumsum(measure.node_weights[::-1])
    places = np.searchsorted(mass, (np.arange(dimension) + 0.5) / dimension)
    strengths = measure.node_weights.size - 1 - np.minimum(places, mass.size - 1)
    return spectral_phase(
        effective_noise=state.effective_noise,
        threshold=state.threshold,
        strengths=np.maximum(measure.nodes[strengths], 0.0),
    )


def measured_phase(
    eigenvalues: np.ndarray, *, effective_noise: float, threshold: float, shape: float
) -> SpectralPhase:
    """Spectral phase of learned spectra, shape (replicates, d), at the estimated noise and threshold."""
    # `shape` is d/n for samples and 0 for Gaussian matrices.
    replicates, size = eigenvalues.shape
    # Learned eigenvalues are those of the noisy matrix minus b, whose mean at each rank scatters less.
    ranked = np.sort(eigenvalues, axis=1)[:, ::-1]
    learned = ranked.mean(axis=0)[(ranked > 0).mean(axis=0) > 0.5] + threshold
    places = learned / effective_noise
    # The noise of n samples has the fourth free cumulant 3 d/n, which moves its edge from 2 to 2 + 3 d/n.
    # The Tracy-Widom law has mean -1.21 and standard deviation 1.27: two standard errors for the mean.
    largest = (-1.21 + 2 * 1.27 / replicates**0.5) * size ** (-2 / 3)
    outside = places[places > 2 + max(3 * shape + largest, 0.0)]
    strengths = np.zeros(size)
    # nu = s + delta² / s, solved for s / delta  (quadratic 12)
    strengths[: outside.size] = (outside + np.sqrt(outside**2 - 4)) / 2
    return _decide(strengths, threshold / effective_noise, size).phase


def outlier_edge(noise: float, threshold: float, dimension: int) -> float:
    """Smallest learned eigenvalue that stands out of the noise."""
    # 2 delta (1 + d^(-2/3)) - b: the edge, with a margin for the largest of d eigenvalues (quadratic 12)
    return max(2 * noise * (1 + dimension ** (-2 / 3)) - threshold, 0.0)
