"""Check the memory that a measurement needs, for all systems of multi-index models."""

from __future__ import annotations

from solvable.frame.parameters import memory

SAMPLES_IN_MEMORY = memory(
    lambda p: p.samples * p.dimension,
    4,
    "{samples} samples of {dimension} coordinates",
    "sample_ratio or dimension",
)
