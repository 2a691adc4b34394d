"""Train all stages of one seed, and measure each; finished stages are read again after a stop."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidData
from solvable.fitting.described_arrays import read_described, write_described
from solvable.plots.files import write_atomically
from solvable.retrieve.encoder import Student, encode, new_student
from solvable.retrieve.evaluation import evaluate
from solvable.retrieve.materials import Example, HeldOut, Materials
from solvable.retrieve.phases import Phase, schedule, stage_name, stages
from solvable.retrieve.request import TrainRequest
from solvable.retrieve.spectrum import Spectrum, kernel_eigenvalues, spectrum
from solvable.retrieve.students import Description
from solvable.retrieve.training import Trainer

FORMAT = "solvable-retriever-stage-1"  # name and version of the file of a finished stage

START = "start"  # name of the untrained student among the stages


@dataclass(frozen=True)
class Measured:
    """A trained stage of one seed."""

    stage: str
    seed: int
    ndcg: dict[str, np.ndarray]  # nDCG at 10 of each query, by test set
    spectrum: Spectrum
    documents: int  # documents encoded for training, all phases so far
    seconds: float  # of the last phase


class Folder:
    """Hidden folder that keeps the materials and the finished stages of an unfinished run."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path, self.identity = path, identity

    def stage(self, seed: int, stage: str) -> Path:
        """Return the file of a finished stage."""
        return self.path / f"{seed}.{stage}.safetensors"

    def keep_materials(self, materials: Materials) -> None:
        """Store the examples, so that teacher scores are not computed again."""
        text = json.dumps({"identity": self.identity, "materials": materials})
        write_atomically(self.path / "materials.json", text.encode())

    def find_materials(self) -> Materials | None:
        """Return the stored examples; None if they are missing, damaged or of another run."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            content = json.loads((self.path / "materials.json").read_text("utf-8"))
            if content["identity"] == self.identity:
                *phases, tests = content["materials"]
                examples = [
                    [Example(q, tuple(d), domain, tuple(s)) for q, d, domain, s in rows]
                    for rows in phases
                ]
                held = {name: HeldOut(*map(tuple, test)) for name, test in tests.items()}
                return Materials(examples[0], examples[1], examples[2], held)
        return None

    def find(self, seed: int, stage: str) -> tuple[Measured, dict[str, np.ndarray]] | None:
        """Return a finished stage with its weights; None if missing, damaged or of another run."""
        try:
            path = self.stage(seed, stage)
            arrays, content = read_described(path, (FORMAT,), "solvable retrieve train")
            if content["identity"] != self.identity:
                return None
            ndcg = {key[5:]: value for key, value in arrays.items() if key.startswith("ndcg.")}
            weights = {key[7:]: value for key, value in arrays.items() if key[:7] == "weight."}
            held = Spectrum(**content["spectrum"])
            found = Measured(stage, seed, ndcg, held, content["documents"], content["seconds"])
        except (InvalidData, KeyError, TypeError):
            return None
        return found, weights

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)

    def keep(self, found: Measured, weights: dict[str, np.ndarray]) -> None:
        """Store a finished stage."""
        arrays = {f"ndcg.{name}": values for name, values in found.ndcg.items()}
        arrays |= {f"weight.{name}": values for name, values in weights.items()}
        content = {"format": FORMAT, "identity": self.identity, "documents": found.documents}
        content |= {"spectrum": found.spectrum._asdict(), "seconds": found.seconds}
        self.path.mkdir(parents=True, exist_ok=True)
        write_described(self.stage(found.seed, found.stage), arrays, content)


def run_seed(
    folder: Folder,
    materials: Materials,
    request: TrainRequest,
    pipelines: tuple[str, ...],
    seed: int,
    after: Callable[[int], None],
) -> list[Measured]:
    """Train every stage of the pipelines; ``after`` is called with the number of encoded documents."""
    import torch

    torch.set_num_threads(1)
    described = Description(request.student, prompts=request.prompts in ("pretraining", "both"))
    texts = [one.documents[0] for one in materials.unsupervised]
    student = new_student(described, texts, seed)
    initial = student.arrays()
    found = [_untrained(folder, student, materials, seed)]
    for stage in stages(pipelines):
        name = stage_name(stage)
        kept = folder.find(seed, name)
        if kept is None:
            before = folder.find(seed, stage_name(stage[:-1])) if stage[1:] else None
            student.load(before[1] if before else initial)
            earlier = before[0].documents if before else 0
            kept = _train(folder, student, materials, request, stage, (seed, earlier), after), {}
        else:
            examples = getattr(materials, stage[-1].name)
            plan = schedule(request.student, stage[-1], request.batch)
            after(plan.epochs * sum(len(one.documents) for one in examples))
        found.append(kept[0])
    return found


def _untrained(folder: Folder, student: Student, materials: Materials, seed: int) -> Measured:
    kept = folder.find(seed, START)
    if kept is not None:
        return kept[0]
    found = _measure(student, "multi", materials, Measured(START, seed, {}, _none(), 0, 0.0))
    folder.keep(found, {})
    return found


def _none() -> Spectrum:
    return Spectrum([], 0.0, [], 0.0, 0)


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
    first = phase.name == "unsupervised"
    student.prompted(request.prompts in ("both", "pretraining" if first else "finetuning"))
    plan = schedule(request.student, phase, request.batch)
    learned = request.temperature == "learned"
    trainer = Trainer(
        student, phase, plan, getattr(materials, phase.name), seed=seed, learned=learned
    )
    path = folder.path / f"{seed}.{name}.part.safetensors"
    started = time.perf_counter()
    per_step = trainer.encoded() // max(trainer.steps, 1)
    trainer.run(path, folder.identity, lambda: after(per_step))
    seconds = time.perf_counter() - started
    documents = earlier + trainer.encoded()
    found = _measure(
        student, phase.mode, materials, Measured(name, seed, {}, _none(), documents, seconds)
    )
    folder.keep(found, student.arrays())
    path.unlink(missing_ok=True)
    return found


def _measure(student: Student, mode: str, materials: Materials, blank: Measured) -> Measured:
    """Fill in the quality on the test sets and the spectra."""
    view = student.view(mode)
    ndcg = {name: evaluate(view, test) for name, test in materials.tests.items()}
    return replace(blank, ndcg=ndcg, spectrum=_spectrum_of(student, mode, materials))


def _spectrum_of(student: Student, mode: str, materials: Materials) -> Spectrum:
    """Return the spectra from the pairs of the supervised phase."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    pairs = materials.supervised[:1000]
    states: Any = MultiVectorEncoder(modules=[student.backbone, MultiVectorMask()])
    documents = encode(states, [one.documents[0] for one in pairs], "document")
    queries = encode(states, [one.query for one in pairs], "query")
    head = student.arrays()["head"]
    if mode == "dense" and student.described.student != "static":
        # Its texts are compared before the head: S is the identity.
        head = np.eye(head.shape[1], dtype=head.dtype)
    tokens = np.concatenate(documents)
    rng = random_stream(0, "tokens of a spectrum")
    some = tokens[rng.permutation(len(tokens))[:20_000]]
    kernel = kernel_eigenvalues(head, some)
    return spectrum(kernel, [one @ head.T for one in queries], [one @ head.T for one in documents])
