"""Memory limit of a measurement, shared by the systems of this family."""

from __future__ import annotations

from solvable.frame.parameters import memory

SAMPLES_IN_MEMORY = memory(
    lambda p: p.samples * p.dimension,
    4,
    "{samples} samples of {dimension} coordinates",
    "sample_ratio or dimension",
)
