"""Names of the phases of a quadratic network: of its spectrum, and of its scaling law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from solvable.models.quadratic.spectral_phase import spectral_phase
from solvable.models.quadratic.theory import QuadraticState

if TYPE_CHECKING:
    from solvable.models.quadratic.phases import PhasePoint
    from solvable.models.quadratic.system import QuadraticParameters


def phase_of_spectrum(state: QuadraticState, dimension: int) -> str:
    """Name of the learned spectrum at this dimension, one of six after arXiv:1810.01075."""
    measure = state.law.target
    mass = np.cumsum(measure.node_weights[::-1])
    places = np.searchsorted(mass, (np.arange(dimension) + 0.5) / dimension)
    strengths = measure.node_weights.size - 1 - np.minimum(places, mass.size - 1)
    decision = spectral_phase(
        effective_noise=state.effective_noise,
        threshold=state.threshold,
        strengths=np.maximum(measure.nodes[strengths], 0.0),
    )
    return decision.phase.value


def scaling_phase(parameters: QuadraticParameters) -> PhasePoint | None:
    """Phase of the scaling law of a power-law target, with that law; None for other targets."""
    if parameters.target != "power-law":
        return None
    from solvable.models.quadratic.phases import quadratic_phase

    return quadratic_phase(
        dimension=parameters.dimension,
        exponent=parameters.exponent,
        effective_samples=parameters.n_samples / parameters.dimension,
        regularisation=parameters.regularisation,
        label_noise=parameters.noise,
    )


def phase_metrics(parameters: QuadraticParameters, state: QuadraticState) -> dict[str, float | str]:
    """Names of both phases, and the leading law of the second."""
    found: dict[str, float | str] = {
        "spectral_phase": phase_of_spectrum(state, parameters.dimension)
    }
    scaling = scaling_phase(parameters)
    if scaling is not None:
        found["scaling_phase"] = scaling.phase.value
        found["scaling_law_matrix_error"] = float(scaling.matrix_error)
    return found


def phase_of(prediction: dict[str, object], kind: str = "spectral_phase") -> str:
    """Name of the phase in a prediction; empty if it has none."""
    return str(prediction.get(kind, ""))


def phase_changes(names: list[str], ratios: np.ndarray) -> list[tuple[float, str]]:
    """Places between neighbouring ratios where the name changes, with the new name."""
    return [
        (float(np.sqrt(ratios[k - 1] * ratios[k])), names[k])
        for k in range(1, len(names))
        if names[k] != names[k - 1]
    ]
