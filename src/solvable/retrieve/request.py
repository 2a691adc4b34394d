"""Options, phases and pipelines of training. The command line imports this, so it imports little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from solvable.errors import InvalidParameter, unknown_choice

STUDENTS = ("static", "tiny", "minilm")
PIPELINE_NAMES = ("dense", "a", "b", "c")


@dataclass(frozen=True)
class TrainRequest:
    """Options of `solvable retrieve train` other than the corpus.

    Parameters
    ----------
    student : {"static", "tiny", "minilm"}
        Whitened token vectors with one learned matrix; an encoder of two layers from random weights;
        MiniLM with a new head.
    seeds : int
        Number of runs, 1 to 100, with different initial weights and orders of the data.
    seed : int
        Seed of the first run, not negative.
    unsupervised, supervised, distilled : int
        Largest number of documents, pairs and queries of the three phases, at least 32.
    tested : int
        Largest number of test queries, at least 10.
    batch : int
        Pairs per step of the unsupervised phase, 8 to 16,384; gradients are cached in chunks.

    Raises
    ------
    InvalidParameter
        If a value is out of range.

    Examples
    --------
    >>> TrainRequest(seeds=0)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: seeds is 0; allowed: whole numbers from 1 to 100.
    """

    student: str = "static"
    seeds: int = 3
    seed: int = 0
    unsupervised: int = 10_000
    supervised: int = 2_500
    distilled: int = 1_000
    tested: int = 500
    batch: int = 128

    def __post_init__(self) -> None:
        for name, least, most in (
            ("seeds", 1, 100),
            ("seed", 0, None),
            ("unsupervised", 32, None),
            ("supervised", 32, None),
            ("distilled", 32, None),
            ("tested", 10, None),
            ("batch", 8, 16_384),
        ):
            value = getattr(self, name)
            if value < least or (most is not None and value > most):
                allowed = f"from {least}" + (f" to {most:,}" if most else "")
                raise InvalidParameter(f"{name} is {value}; allowed: whole numbers {allowed}.")
        for name, choices in (("student", STUDENTS),):
            if getattr(self, name) not in choices:
                raise InvalidParameter(unknown_choice(name, getattr(self, name), choices))


def check_pipelines(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the pipelines, each once, or refuse unknown ones."""
    for name in names:
        if name not in PIPELINE_NAMES:
            raise InvalidParameter(unknown_choice("pipeline", name, PIPELINE_NAMES))
    return tuple(dict.fromkeys(names)) or PIPELINE_NAMES


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
