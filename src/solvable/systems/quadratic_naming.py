"""Names of the phases of a quadratic network: of its spectrum, and of its scaling law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from solvable.theory.quadratic import QuadraticState

if TYPE_CHECKING:
    from solvable.systems.quadratic_network import QuadraticParameters
    from solvable.theory.quadratic_phases import PhasePoint

SPECTRAL_PHASES = (
    "rank-collapse",
    "random-like",
    "bleeding-out",
    "bulk-and-spikes",
    "bulk-decay",
    "heavy-tailed",
)
"""The six of arXiv:1810.01075, read off the two scalars and the target's spectrum."""

FEW = 5.0
"""Learned directions below which a spectrum without a bulk counts as collapsed."""

ALMOST_ALL = 0.9
"""Fraction of directions above the noise from which no bulk of noise is left."""


def spectral_phase(state: QuadraticState, dimension: int) -> str:
    r"""Name of the learned spectrum.

    Parameters
    ----------
    state : QuadraticState
        Effective noise :math:`\delta`, threshold b and the law between them.
    dimension : int
        :math:`d`: a feature is :math:`d^{-1/3}` above the noise before it is told from its edge.

    Returns
    -------
    str
        One of :data:`SPECTRAL_PHASES`. Without a bulk (:math:`b\ge2\delta`): collapsed or
        heavy-tailed. With one: as the strongest features are below the noise, at it, apart from it, or
        mostly so close that they merge with it.

    Notes
    -----
    Criteria derived; a feature counts as merged if the law has no gap between it and the noise.
    """
    law, noise = state.law, state.effective_noise
    strengths, weights = law.target.nodes, law.target.node_weights
    learned = state.rank_fraction * dimension
    if learned < 0.5 or (state.threshold >= 2 * noise and learned < FEW):
        return "rank-collapse"
    out = strengths > noise
    share = float(weights[out].sum())
    if state.threshold >= 2 * noise or share >= ALMOST_ALL:
        return "heavy-tailed"
    rise = float(strengths[-1]) / noise - 1
    if rise < dimension ** (-1 / 3):
        return "random-like" if rise < -(dimension ** (-1 / 3)) else "bleeding-out"
    # The lowest component of the support is the noise, with whatever merges with it.
    merged = float(weights[out & (strengths <= law.intervals[0, 1])].sum())
    return "bulk-decay" if 2 * merged > share else "bulk-and-spikes"


def scaling_phase(parameters: QuadraticParameters) -> PhasePoint | None:
    """Phase of the scaling law of a power-law target, with that law; None for other targets."""
    if parameters.target != "power-law":
        return None
    from solvable.theory.quadratic_phases import quadratic_phase

    return quadratic_phase(
        dimension=parameters.dimension,
        exponent=parameters.exponent,
        effective_samples=parameters.n_samples / parameters.dimension,
        regularisation=parameters.regularisation,
        label_noise=parameters.noise,
    )


def phase_metrics(parameters: QuadraticParameters, state: QuadraticState) -> dict[str, float]:
    """Phases as metrics, which are numbers: the name of the one that holds, with the value 1."""
    found = {f"spectral_phase.{spectral_phase(state, parameters.dimension)}": 1.0}
    scaling = scaling_phase(parameters)
    if scaling is not None:
        found[f"scaling_phase.{scaling.phase.value}"] = 1.0
        found["scaling_law_matrix_error"] = float(scaling.matrix_error)
    return found


def phase_of(prediction: dict[str, object], kind: str = "spectral_phase") -> str:
    """Name of the phase in a prediction; empty if it has none."""
    return next((key.partition(".")[2] for key in prediction if key.startswith(f"{kind}.")), "")


def phase_changes(names: list[str], ratios: np.ndarray) -> list[tuple[float, str]]:
    """Places between neighbouring ratios where the name changes, with the new name."""
    return [
        (float(np.sqrt(ratios[k - 1] * ratios[k])), names[k])
        for k in range(1, len(names))
        if names[k] != names[k - 1]
    ]
