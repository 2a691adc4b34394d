"""Results of training: quality of each stage, differences of pipelines, and the files of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from solvable.answers.result_directory import RESULT, ResultDirectory
from solvable.errors import InvalidData, StudyConflict
from solvable.fitting.described_arrays import read_described, write_described
from solvable.fitting.intervals import CONFIDENCE, Interval, mean_interval
from solvable.paths import whole_directory
from solvable.plots.files import write_atomically
from solvable.plots.tables import Column, Table
from solvable.retrieve.request import PIPELINES, TrainRequest, stage_name
from solvable.retrieve.students import Description, save_student

MODELS = "models"
FORMAT = "solvable-retrieve-1"  # mark of a directory of `solvable retrieve train`

DIRECTORY = ResultDirectory("retrieve", "corpus", FORMAT, (RESULT, MODELS))
"""Output directory: its name, and checks that it may be replaced."""

STAGE = "solvable-retriever-stage-1"  # name and version of the file of a finished stage

UNTRAINED = {"bm25": "BM25", "model": "index of MiniLM", "hybrid": "index of MiniLM and BM25"}


START = "start"  # name of the untrained student among the stages


@dataclass(frozen=True)
class Measured:
    """A trained stage of one seed."""

    stage: str
    seed: int
    ndcg: dict[str, np.ndarray]  # nDCG at 10 of each query, by test set
    documents: int  # documents encoded for training, all phases so far


class Folder:
    """Hidden folder that keeps the finished stages of an unfinished run."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path, self.identity = path, identity

    def find(self, seed: int, stage: str) -> tuple[Measured, dict[str, np.ndarray]] | None:
        """Return a finished stage with its weights; None if missing, damaged or of another run."""
        try:
            path = self.path / f"{seed}.{stage}.safetensors"
            arrays, content = read_described(path, (STAGE,), "solvable retrieve train")
            if content["identity"] != self.identity:
                return None
            ndcg = {key[5:]: value for key, value in arrays.items() if key.startswith("ndcg.")}
            weights = {key[7:]: value for key, value in arrays.items() if key[:7] == "weight."}
            found = Measured(stage, seed, ndcg, content["documents"])
        except (InvalidData, KeyError, TypeError):
            return None
        return found, weights

    def keep(self, found: Measured, weights: dict[str, np.ndarray]) -> None:
        """Store a finished stage."""
        arrays = {f"ndcg.{name}": values for name, values in found.ndcg.items()}
        arrays |= {f"weight.{name}": values for name, values in weights.items()}
        content = {"format": STAGE, "identity": self.identity, "documents": found.documents}
        self.path.mkdir(parents=True, exist_ok=True)
        write_described(self.path / f"{found.seed}.{found.stage}.safetensors", arrays, content)


class Difference(NamedTuple):
    """nDCG at 10 of one pipeline minus that of another, on the same queries and seeds."""

    first: str
    second: str
    test: str
    interval: Interval  # over queries, of the mean over seeds; all differences hold together
    by_seed: tuple[float, ...]

    @property
    def is_one(self) -> bool:
        """True if the interval excludes zero, and two seeds or more all have its sign."""
        # One seed compares two trained models, not two pipelines.
        signs = {bool(value > 0) for value in self.by_seed}
        excluded = self.interval.lower > 0 or self.interval.upper < 0
        return excluded and len(signs) == 1 < len(self.by_seed)

    def sentence(self) -> str:
        """Write the difference, its interval and the seeds that agree."""
        value, lower, upper = self.interval
        agreeing = sum((one > 0) == (value > 0) for one in self.by_seed)
        verdict = "a difference" if self.is_one else "not shown to be a difference"
        verdict += " (needs 2 seeds)" if len(self.by_seed) == 1 else ""
        return (
            f"{self.first} − {self.second}, {self.test}: {value:+.3f} ({lower:+.3f} to {upper:+.3f}), "
            f"same sign in {agreeing} of {len(self.by_seed)} seeds: {verdict}"
        ).replace("-0.", "−0.")


@dataclass(frozen=True)
class Trained:
    """Results of `solvable retrieve train`.

    Parameters
    ----------
    name : str
        Name of the corpus.
    notes : tuple of str
        Changes to the corpus while it was read.
    request : TrainRequest
        Options of the run.
    pipelines : tuple of str
        Trained pipelines.
    measured : tuple of Measured
        Every stage of every seed.
    baseline : mapping of str to mapping
        nDCG at 10 of each query by indexes without training, by test set and ranking.
    fingerprint : str
        Identity of corpus and request.
    versions : mapping
        Versions of the packages that determine the numbers.
    """

    name: str
    notes: tuple[str, ...]
    request: TrainRequest
    pipelines: tuple[str, ...]
    measured: tuple[Measured, ...]
    baseline: Mapping[str, Mapping[str, np.ndarray]]
    fingerprint: str
    versions: Mapping[str, str]

    @property
    def tests(self) -> tuple[str, ...]:
        """Names of the test sets."""
        return tuple(self.measured[0].ndcg)

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages, the untrained student first."""
        return tuple(dict.fromkeys(one.stage for one in self.measured))

    def of_stage(self, stage: str) -> list[Measured]:
        """Return the results of a stage, one per seed."""
        return [one for one in self.measured if one.stage == stage]

    def of_pipeline(self, name: str) -> list[Measured]:
        """Return the results at the end of a pipeline, one per seed."""
        return self.of_stage(stage_name(PIPELINES[name]))

    def untrained(self, ranking: str, test: str) -> Interval:
        """Return the mean nDCG at 10 of an index without training with its interval over queries."""
        return mean_interval(self.baseline[test][ranking])

    def quality(self, stage: str, test: str) -> Interval:
        """Return the mean nDCG at 10 with its interval over queries, of the mean over seeds."""
        values = np.mean([one.ndcg[test] for one in self.of_stage(stage)], axis=0)
        return mean_interval(values)

    def differences(self) -> list[Difference]:
        """Return the differences of all pairs of pipelines on each test set."""
        pairs = list(combinations(self.pipelines, 2))
        # Bonferroni: the differences of one test set hold together at 95 %.
        confidence = 1 - (1 - CONFIDENCE) / max(len(pairs), 1)
        found = []
        for test in self.tests:
            for second, first in pairs:
                left, right = (
                    np.array([one.ndcg[test] for one in self.of_pipeline(name)])
                    for name in (first, second)
                )
                away = left - right
                interval = mean_interval(away.mean(axis=0), confidence)
                by_seed = tuple(away.mean(axis=1).tolist())
                found.append(Difference(first, second, test, interval, by_seed))
        return found

    def answer(self) -> str:
        """Name the best row of the table, BM25 included, and whether training improved on its start."""
        test, names = self.tests[0], self.labels()
        rows = {names[stage]: self.quality(stage, test).value for stage in self.stages}
        others = {name: self.untrained(key, test).value for key, name in UNTRAINED.items()}
        rows |= others
        best = max(rows, key=lambda name: rows[name])
        start, trained = (
            np.mean([one.ndcg[test] for one in held], axis=0)
            for held in (self.of_stage(START), self.of_pipeline(self.best))
        )
        value, lower, upper = mean_interval(trained - start)
        verdict = "improved" if lower > 0 else "did not improve" if value <= 0 else "hardly changed"
        return (
            f"Best {test}: {best}, nDCG@10 {rows[best]:.3f}. Training {verdict} the student: "
            f"{value:+.3f} ({lower:+.3f} to {upper:+.3f}) by pipeline {self.best}."
            + " An index without --model finds more."
            * (best in others)
        ).replace("-0.", "−0.")

    @property
    def best(self) -> str:
        """Pipeline with the largest mean nDCG at 10 in domain."""
        test = self.tests[0]
        names = {self.quality(stage_name(PIPELINES[name]), test): name for name in self.pipelines}
        return names[max(names)]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON values."""
        return {
            "name": self.name,
            "notes": list(self.notes),
            "fingerprint": self.fingerprint,
            "versions": dict(self.versions),
            "request": asdict(self.request),
            "pipelines": list(self.pipelines),
            "answer": self.answer(),
            "untrained": {
                name: {test: list(self.untrained(key, test)) for test in self.tests}
                for key, name in UNTRAINED.items()
            },
            "stages": [self._stage(stage) for stage in self.stages],
            "differences": [
                one._asdict() | {"is_a_difference": one.is_one} for one in self.differences()
            ],
        }

    def _stage(self, stage: str) -> dict[str, Any]:
        held = self.of_stage(stage)
        return {
            "stage": stage,
            "documents": held[0].documents,
            "ndcg": {test: list(self.quality(stage, test)) for test in self.tests},
            "seeds": [
                {
                    "seed": one.seed,
                    "ndcg": {test: float(values.mean()) for test, values in one.ndcg.items()},
                }
                for one in held
            ],
        }

    def labels(self) -> dict[str, str]:
        """Return the stages in words: pipelines by their letter, others by their phases."""
        ends = {stage_name(PIPELINES[name]): f"{name}: " for name in self.pipelines}
        short = {"unsupervised": "U", "supervised": "S", "distillation": "KD"}
        found = {}
        for stage in self.stages:
            parts = [] if stage == START else [one.split("-") for one in stage.split(".")]
            steps = " → ".join(f"{mode} {short[name]}" for mode, name in parts)
            found[stage] = ends.get(stage, "") + (steps or "untrained, multi")
        return found


def quality_table(found: Trained) -> Table:
    """Return the quality of each stage on each test set."""
    columns = [Column(f"nDCG@10 {test}", right=True) for test in found.tests]
    table = Table("stage", *columns, Column("documents", right=True))
    names = found.labels()
    for key, name in UNTRAINED.items():
        cells = [_shown(found.untrained(key, test)) for test in found.tests]
        table.add(name, *cells, "0", style="dim")
    for stage in found.stages:
        held = found.of_stage(stage)
        cells = [_shown(found.quality(stage, test)) for test in found.tests]
        table.add(names[stage], *cells, f"{held[0].documents:,}")
    return table


def _shown(held: Interval) -> str:
    return f"{held.value:.3f} ({held.lower:.3f}–{held.upper:.3f})"


def write_files(found: Trained, folder: Folder, directory: Path) -> None:
    """Write numbers and the models of the first seed in one atomic step."""
    with whole_directory(directory) as draft:
        content = {"format": FORMAT} | found.to_dict()
        write_atomically(
            draft / RESULT, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()
        )
        (draft / MODELS).mkdir()
        for name in found.pipelines:
            kept = folder.find(found.request.seed, stage_name(PIPELINES[name]))
            if kept is None:
                raise StudyConflict(
                    f"{folder.path} lost the weights of pipeline {name}. Run the command again."
                )
            described = Description(
                found.request.student,
                mode=PIPELINES[name][-1].mode,
            )
            save_student(draft / MODELS / f"{name}.safetensors", described, kept[1])
