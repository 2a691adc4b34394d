"""Phases of training as data: pipelines of phases, their data, and their cost in documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from solvable.arrays import check_integer, check_positive
from solvable.errors import InvalidParameter, unknown_choice
from solvable.models.late_interaction.scoring import maxsim
from solvable.models.late_interaction.student import (
    Adam,
    Scores,
    contrastive_gradient,
    distillation_gradient,
)
from solvable.models.late_interaction.teacher import LateInteractionTeacher

Kind = Literal["unsupervised", "supervised", "distillation"]
"""Loss and data of a phase."""

Pipeline = Literal["dense", "a", "b", "c"]
"""All phases dense; only distillation with MaxSim; supervision as well; all phases with MaxSim."""


@dataclass(frozen=True)
class Phase:
    """One phase of training.

    Source: arXiv:2602.16609, Section 3.

    Examples
    --------
    >>> phase = Phase("supervised", "multi-vector", queries=100, epochs=3, batch=32, negatives=2)
    >>> phase.steps, phase.documents(candidates=8)
    (12, 900)
    """

    kind: Kind
    """Contrastive loss on weak positives, drawn with probability softmax of the standardised scores;
    contrastive loss on the best candidate against hard negatives, the other candidates with the largest
    MaxSim of the plain tokens; or distillation of the teacher's scores of all candidates."""
    scores: Scores
    """Scores of the student."""
    queries: int
    """Number of queries, at least 1."""
    epochs: int = 3
    batch: int = 64
    """Passes over the queries, and queries of a batch, at least 1."""
    learning_rate: float = 1e-2
    temperature: float = 2.0
    """Largest learning rate of Adam and temperature of the loss, above 0."""
    negatives: int = 0
    """Number of hard negatives of each query of a supervised phase; 0 in other phases."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidParameter(unknown_choice("kind", self.kind, list(get_args(Kind))))
        if self.scores not in get_args(Scores):
            raise InvalidParameter(unknown_choice("scores", self.scores, list(get_args(Scores))))
        for name in ("queries", "epochs", "batch"):
            check_integer(name, getattr(self, name), 1)
        check_positive(learning_rate=self.learning_rate, temperature=self.temperature)
        check_integer("negatives", self.negatives, 0, None if self.kind == "supervised" else 0)

    @property
    def steps(self) -> int:
        """Number of gradient steps; the last batch of an epoch may be smaller."""
        return self.epochs * -(-self.queries // self.batch)

    def documents(self, candidates: int) -> int:
        """Return the number of documents that the student encodes in training."""
        # E n (1 + negatives) contrastive, E n K in distillation   (late-interaction 24)
        each = candidates if self.kind == "distillation" else 1 + self.negatives
        return self.epochs * self.queries * each


def pipeline_phases(
    pipeline: Pipeline,
    *,
    queries: int = 4_000,
    supervised_queries: int = 800,
    distillation_queries: int = 200,
) -> tuple[Phase, Phase, Phase]:
    """Return the three phases of a pipeline.

    Source: arXiv:2602.16609, Section 3.

    Parameters
    ----------
    pipeline : {"dense", "a", "b", "c"}
        Phases that train MaxSim scores: none; distillation; supervision and distillation; all. The
        phases before train dense scores.
    queries, supervised_queries, distillation_queries : int
        Number of queries of each phase.

    Returns
    -------
    tuple of Phase
        Unsupervised, supervised and distillation phase.

    Examples
    --------
    >>> [phase.scores for phase in pipeline_phases("b")]
    ['dense', 'multi-vector', 'multi-vector']
    """
    if pipeline not in get_args(Pipeline):
        raise InvalidParameter(unknown_choice("pipeline", pipeline, list(get_args(Pipeline))))
    number = {"dense": 0, "a": 1, "b": 2, "c": 3}[pipeline]  # of phases with MaxSim scores
    scores: list[Scores] = ["multi-vector" if k >= 3 - number else "dense" for k in range(3)]
    return (
        Phase("unsupervised", scores[0], queries),
        Phase("supervised", scores[1], supervised_queries, 3, 32, 5e-3, 2.0, negatives=2),
        Phase("distillation", scores[2], distillation_queries, 5, 16, 5e-3, 0.5),
    )


@dataclass(frozen=True)
class PhaseData:
    """Queries of a phase, their documents (positive first), and scores for distillation."""

    queries: np.ndarray  # (n, L_q, d)
    documents: np.ndarray  # (n, N, L_d, d)
    scores: np.ndarray | None = None  # (n, K)


@dataclass(frozen=True)
class Checkpoint:
    """Student after a phase, or before training."""

    factor: np.ndarray  # W, (k, d)
    documents: int  # encoded so far
    multi_vector_documents: int  # of them in phases with MaxSim scores


def draw_phase(
    teacher: LateInteractionTeacher, phase: Phase, *, candidates: int, rng: np.random.Generator
) -> PhaseData:
    """Draw the data of a phase, in float32."""
    if phase.negatives >= candidates:
        raise InvalidParameter(
            f"negatives is {phase.negatives} and candidates is {candidates}; allowed: at most "
            f"{candidates - 1} negatives."
        )
    parts = []
    for sample in teacher.chunks(phase.queries, candidates=candidates, rng=rng):
        scores = sample.scores
        if phase.kind == "distillation":
            chosen = np.broadcast_to(np.arange(candidates), scores.shape)
        elif phase.kind == "unsupervised":
            chosen = teacher.weak_positives(scores, rng)[:, None]
        else:
            chosen = _best_and_hard(sample.queries, sample.documents, scores, phase.negatives)
        documents = np.take_along_axis(sample.documents, chosen[:, :, None, None], axis=1)
        parts.append((sample.queries.astype(np.float32), documents.astype(np.float32), scores))
    queries, documents, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    return PhaseData(queries, documents, scores if phase.kind == "distillation" else None)


def _best_and_hard(
    queries: np.ndarray, documents: np.ndarray, scores: np.ndarray, negatives: int
) -> np.ndarray:
    """Candidate of the largest score, then those of the largest MaxSim of the plain tokens."""
    best = scores.argmax(axis=1)[:, None]
    plain = maxsim(queries, documents, np.eye(queries.shape[-1]))
    np.put_along_axis(plain, best, -np.inf, axis=1)
    return np.concatenate([best, np.argsort(-plain, axis=1)[:, :negatives]], axis=1)


def train_phase(
    factor: np.ndarray, phase: Phase, data: PhaseData, rng: np.random.Generator
) -> np.ndarray:
    """Train W on the data of a phase, in an order drawn from `rng`."""
    adam = Adam(phase.learning_rate, phase.steps)
    scores, temperature = phase.scores, phase.temperature
    for _ in range(phase.epochs):
        order = rng.permutation(len(data.queries))
        for rows in np.split(order, range(phase.batch, len(order), phase.batch)):
            queries, documents = data.queries[rows], data.documents[rows]
            if data.scores is None:
                _, gradient = contrastive_gradient(
                    factor, queries, documents, scores=scores, temperature=temperature
                )
            else:
                teacher = data.scores[rows]
                _, gradient = distillation_gradient(
                    factor, queries, documents, teacher, scores=scores, temperature=temperature
                )
            factor = adam.step(factor, gradient)
    return factor


def draw_phases(
    teacher: LateInteractionTeacher,
    phases: Sequence[Phase],
    *,
    candidates: int,
    rng: np.random.Generator,
) -> list[PhaseData]:
    """Draw the data that :func:`train_phases` draws for the same generator."""
    _, draws, _ = _streams(rng, len(phases))
    return [
        draw_phase(teacher, phase, candidates=candidates, rng=stream)
        for phase, stream in zip(phases, draws, strict=True)
    ]


def _streams(
    rng: np.random.Generator, count: int
) -> tuple[np.random.Generator, list[np.random.Generator], list[np.random.Generator]]:
    """Return generators of the start, and of the data and the order of each phase."""
    start, *others = rng.spawn(1 + 2 * count)
    return start, others[::2], others[1::2]


def train_phases(
    teacher: LateInteractionTeacher,
    phases: Sequence[Phase],
    *,
    candidates: int = 8,
    width: int = 16,
    rng: np.random.Generator,
    data: Sequence[PhaseData] | None = None,
) -> list[Checkpoint]:
    """Train a student through phases, from Gaussian entries of W of variance 1/d.

    Phases of one kind and size, at the same place, have the same data for the same generator, so that
    pipelines can be compared in pairs. arXiv:2602.16609, Section 3.

    Parameters
    ----------
    teacher, phases : LateInteractionTeacher, and sequence of Phase
        Source of queries, documents and scores, and phases in order.
    candidates, width : int
        Number of documents that are drawn for each query, and number k of rows of W.
    rng : Generator
        Random numbers.
    data : sequence of PhaseData, optional
        Data of each phase from :func:`draw_phases`, to draw them once for several pipelines.

    Returns
    -------
    list of Checkpoint
        Students before training and after each phase, with the documents encoded so far.

    Examples
    --------
    >>> teacher = LateInteractionTeacher(dimension=10, rank=2)
    >>> phases = pipeline_phases("a", queries=64, supervised_queries=32, distillation_queries=16)
    >>> [c.documents for c in train_phases(teacher, phases, rng=np.random.default_rng(0))]
    [0, 192, 480, 1120]
    """
    check_integer("candidates", candidates, 2)
    check_integer("width", width, 1)
    start, draws, orders = _streams(rng, len(phases))
    factor = start.standard_normal((width, teacher.dimension)) / np.sqrt(teacher.dimension)
    checkpoints = [Checkpoint(factor.astype(np.float32), 0, 0)]
    for k, phase in enumerate(phases):
        last = checkpoints[-1]
        drawn = (
            draw_phase(teacher, phase, candidates=candidates, rng=draws[k])
            if data is None
            else data[k]
        )
        encoded = phase.documents(candidates)
        checkpoints.append(
            Checkpoint(
                train_phase(last.factor, phase, drawn, orders[k]),
                last.documents + encoded,
                last.multi_vector_documents + encoded * (phase.scores == "multi-vector"),
            )
        )
    return checkpoints
