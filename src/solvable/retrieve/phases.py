"""Phases and pipelines of training as data."""

from __future__ import annotations

from typing import Literal, NamedTuple

Name = Literal["unsupervised", "supervised", "distillation"]


class Phase(NamedTuple):
    """One phase of training: its objective, and one vector per token ("multi") or text ("dense")."""

    name: Name
    mode: str

    @property
    def label(self) -> str:
        """Name of the phase in file names."""
        return f"{self.mode}-{self.name}"


def _pipeline(modes: str) -> tuple[Phase, ...]:
    names: tuple[Name, ...] = ("unsupervised", "supervised", "distillation")
    kinds = {"d": "dense", "m": "multi"}
    return tuple(Phase(name, kinds[mode]) for name, mode in zip(names, modes, strict=True))


PIPELINES = {
    "dense": _pipeline("ddd"),
    "a": _pipeline("ddm"),
    "b": _pipeline("dmm"),
    "c": _pipeline("mmm"),
}
"""Phases of each pipeline; all have the same data and differ in when token vectors begin."""


class Schedule(NamedTuple):
    """Optimisation of a phase."""

    rate: float  # peak learning rate of AdamW
    temperature: float  # of the scores (contrastive), or of both sides (distillation)
    batch: int
    epochs: int = 1


def schedule(student: str, phase: Phase, batch: int) -> Schedule:
    """Return the optimisation of a phase; ``batch`` is that of the unsupervised phase."""
    dense = phase.mode == "dense"
    if phase.name == "unsupervised":
        rates = {"static": 1e-2 if dense else 3e-3, "tiny": 1e-3, "minilm": 5e-5}
        # A sum of cosines over query tokens, or one cosine.
        temperature = 0.05 if dense else 0.5 if student == "static" else 1.0
        return Schedule(rates[student], temperature, batch, 2 if student == "static" else 1)
    if phase.name == "supervised":
        rates = {"static": 1e-3, "tiny": 5e-4, "minilm": 3e-5}
        temperature = 0.05 if dense else 0.5 if student == "static" else 1.0
        return Schedule(rates[student], temperature, 32)
    rates = {"static": 5e-4, "tiny": 2e-4, "minilm": 2e-5}
    return Schedule(rates[student], 0.25, 16)


def stages(pipelines: tuple[str, ...]) -> list[tuple[Phase, ...]]:
    """Return every beginning of the pipelines, each once, with a beginning before what follows it."""
    found: dict[tuple[Phase, ...], None] = {}
    for name in pipelines:
        phases = PIPELINES[name]
        for count in range(1, len(phases) + 1):
            found[phases[:count]] = None
    return list(found)


def stage_name(stage: tuple[Phase, ...]) -> str:
    """Return the name of a stage in files, such as ``dense-unsupervised.multi-supervised``."""
    return ".".join(phase.label for phase in stage)
