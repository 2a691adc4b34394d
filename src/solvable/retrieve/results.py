"""Results of training: quality of each stage, paired differences of pipelines, and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from solvable.fitting.intervals import CONFIDENCE, Interval, mean_interval
from solvable.retrieve.phases import PIPELINES, stage_name
from solvable.retrieve.request import TrainRequest
from solvable.retrieve.seed_runs import START, Measured


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
        higher = value > 0
        agreeing = sum((one > 0) == higher for one in self.by_seed)
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
    baseline : mapping of str to ndarray
        nDCG at 10 of each query under BM25, by test set.
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
    baseline: Mapping[str, np.ndarray]
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

    def lexical(self, test: str) -> Interval:
        """Return the mean nDCG at 10 of BM25 with its interval over queries."""
        return mean_interval(self.baseline[test])

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
        """Answer whether multi-vector pre-training was worth its cost here."""
        pairs = {
            (one.first, one.second): one for one in self.differences() if one.test == "in domain"
        }
        found = pairs.get(("c", "b"))
        if found is None:
            value = self._mean(self.best)
            return f"Pipeline {self.best} has the largest nDCG@10 in domain, {value:.3f}."
        cost = [self.multi_documents(name) for name in ("c", "b")]
        value, lower, upper = found.interval
        verdict = {
            (True, True): "Multi-vector pre-training is worth it here",
            (True, False): "Multi-vector pre-training hurts here",
        }.get(
            (found.is_one, value > 0), "Whether multi-vector pre-training helps is not decided here"
        )
        return (
            f"{verdict}: nDCG@10 of c minus b is {value:+.3f} ({lower:+.3f} to {upper:+.3f}) in "
            f"domain. For it, c encoded {cost[0]:,} documents with one vector per token in training, "
            f"and b {cost[1]:,}, as its unsupervised phase is dense."
        ).replace("-0.", "−0.")

    def multi_documents(self, pipeline: str) -> int:
        """Return the number of documents encoded for training with one vector per token."""
        phases = PIPELINES[pipeline]
        dense = sum(phase.mode == "dense" for phase in phases)
        before = self.of_stage(stage_name(phases[:dense]))[0].documents if dense else 0
        return self.of_pipeline(pipeline)[0].documents - before

    @property
    def best(self) -> str:
        """Pipeline with the largest mean nDCG at 10 in domain."""
        return max(self.pipelines, key=self._mean)

    def _mean(self, pipeline: str) -> float:
        return self.quality(stage_name(PIPELINES[pipeline]), self.tests[0]).value

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
            "bm25": {test: list(self.lexical(test)) for test in self.tests},
            "stages": [self._stage(stage) for stage in self.stages],
            "differences": [
                {
                    "first": one.first,
                    "second": one.second,
                    "test": one.test,
                    "difference": list(one.interval),
                    "by_seed": list(one.by_seed),
                    "is_a_difference": one.is_one,
                }
                for one in self.differences()
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
                    "seconds": one.seconds,
                    "spectrum": one.spectrum._asdict(),
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
