"""Groups of the target's features, strongest first, with their predicted errors and scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.theory import QuadraticState
from solvable.spectra.denoiser import feature_deviations, feature_errors
from solvable.spectra.measures import Measure


def feature_groups(parameters: QuadraticParameters) -> list[int]:
    """Last rank of each group of features, strongest features first; the last group ends at d."""
    d, rank = parameters.dimension, parameters.target_rank
    if parameters.target == "power-law":
        # Three single features, then groups whose last rank grows by a factor of 1.6.
        ends = [1, 2, 3]
        while ends[-1] < d:
            ends.append(min(d, max(ends[-1] + 1, int(1.6 * ends[-1]))))
        return ends
    # Five groups of a Marchenko-Pastur target; directions of eigenvalue 0 are the last group.
    ends = sorted({max(1, round(rank * part / 5)) for part in range(1, 6)})
    return ends if rank == d else [*ends, d]


def group_means(values: np.ndarray, ends: Sequence[int]) -> list[float]:
    """Means over groups of values that are ordered by rank."""
    starts = [0, *ends[:-1]]
    return [float(values[a:b].mean()) for a, b in zip(starts, ends, strict=True)]


def group_sizes(parameters: QuadraticParameters) -> np.ndarray:
    """Number of features in each feature group."""
    return np.diff([0, *feature_groups(parameters)])


def group_names(parameters: QuadraticParameters) -> list[str]:
    """Name each feature group by the ranks of its features."""
    ends = feature_groups(parameters)
    starts = [0, *ends[:-1]]
    names = [
        f"feature {b}" if b == a + 1 else f"features {a + 1}-{b}"
        for a, b in zip(starts, ends, strict=True)
    ]
    return [*names[:-1], "no feature"] if ends[-1] > parameters.target_rank else names


def group_errors(state: QuadraticState, ends: Sequence[int]) -> list[float]:
    """Predicted mean error of each group of features, strongest first (quadratic 8)."""
    return grouped(state.law.target, feature_errors(state.law, state.threshold), ends)


def group_scatter(parameters: QuadraticParameters, state: QuadraticState) -> list[float]:
    """Standard deviation of the error of each group between replicates (quadratic 9)."""
    ends, d = feature_groups(parameters), parameters.dimension
    m, e = feature_deviations(state.law, state.threshold)
    # E_ij ~ N(0, q/d) with q = e - m², E_ii ~ N(m, 2 q/d): Var |E v|² = 2 q (q + 4 m²) / d. The fourth
    # moment of samples adds 14 m² / n to Var E_ii for features that are learned (quadratic 9).
    q = np.maximum(e - m**2, 0)
    variance = 2 * q * (q + 4 * m**2) / d
    if parameters.sensing == "network":
        variance += 56 * m**4 / parameters.n_samples * np.minimum(q / state.law.variance, 1)
    alone, together = (
        np.array(grouped(state.law.target, values, ends))
        for values in (variance, 3 / d * q)  # measured scatter common to all features, about 3/d
    )
    return [float(s) for s in np.hypot(np.sqrt(alone / group_sizes(parameters)), together)]


def group_strengths(target: Measure, ends: Sequence[int]) -> list[float]:
    """Mean squared strength of each group of features, strongest first."""
    return grouped(target, target.nodes**2, ends)


def grouped(target: Measure, values: np.ndarray, ends: Sequence[int]) -> list[float]:
    """Means over groups of features of values at the nodes of the target."""
    weights = target.node_weights[::-1]
    # Cumulative sums at the boundaries of the nodes are exact for groups that end between atoms.
    mass = np.append(0.0, np.cumsum(weights))
    total = np.append(0.0, np.cumsum(weights * values[::-1]))
    places = np.append(0.0, np.asarray(ends) / ends[-1])
    means = np.diff(np.interp(places, mass, total)) / np.diff(places)
    return [float(mean) for mean in means]
