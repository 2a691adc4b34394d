"""Train one stage of a pipeline in a plain loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.retrieve.encoder import Student
from solvable.retrieve.materials import Example
from solvable.retrieve.maxsim import maxsim_scores
from solvable.retrieve.request import Phase, Schedule

CHUNK = 128
"""Rows per forward pass; a larger batch caches the gradients of its token vectors between chunks."""


def batches(
    examples: Sequence[Example], size: int, rng: np.random.Generator, *, by_domain: bool
) -> list[list[int]]:
    """Deal the examples into batches, of one domain each as far as its examples suffice."""
    order = rng.permutation(len(examples))
    groups: dict[str, list[int]] = {}
    for i in order:
        groups.setdefault(examples[i].domain if by_domain else "", []).append(int(i))
    dealt, left = [], []
    for members in groups.values():
        whole = len(members) // size * size
        dealt += [members[i : i + size] for i in range(0, whole, size)]
        left += members[whole:]
    mixed = [left[i : i + size] for i in range(0, len(left), size)]
    # A batch of one has no in-batch negative.
    dealt += [one for one in mixed if len(one) > 1]
    return [dealt[i] for i in rng.permutation(len(dealt))]


def minmax(scores: Any) -> Any:
    """Scale the scores of each query to the range from 0 to 1."""
    # t_k = (s_k - min s) / (max s - min s + 1e-8), as in the published distillation
    low, high = scores.amin(dim=-1, keepdim=True), scores.amax(dim=-1, keepdim=True)
    return (scores - low) / (high - low + 1e-8)


class Trainer:
    """One stage: loss of sentence-transformers, AdamW, warm-up, linear decay, clipped gradients."""

    def __init__(
        self,
        student: Student,
        phase: Phase,
        plan: Schedule,
        examples: Sequence[Example],
        *,
        seed: int,
    ) -> None:
        import torch

        self.student, self.phase, self.plan, self.examples = student, phase, plan, examples
        self._model = student.view(phase.mode)
        self._loss = self._make_loss()
        self._parameters = [one for one in self._model.parameters() if one.requires_grad]
        self._optimiser = torch.optim.AdamW(self._parameters, lr=plan.rate, weight_decay=0.01)
        self._dealt = [
            batch
            for epoch in range(plan.epochs)
            for batch in batches(
                examples,
                plan.batch,
                random_stream(seed, phase.label, epoch),
                by_domain=phase.name != "distillation",
            )
        ]
        self.done = 0

    @property
    def steps(self) -> int:
        """Number of steps of the stage."""
        return len(self._dealt)

    def encoded(self) -> int:
        """Return the number of documents that the whole stage encodes for its objective."""
        return sum(len(self.examples[i].documents) for batch in self._dealt for i in batch)

    def _make_loss(self) -> Any:
        from sentence_transformers.multi_vector_encoder import losses
        from sentence_transformers.multi_vector_encoder.scoring import colbert_kd_scores

        if self.phase.name == "distillation":

            def relative(*vectors: Any, **masks: Any) -> Any:
                return minmax(colbert_kd_scores(*vectors, **masks))

            return losses.MultiVectorDistillKLDivLoss(
                self._model, similarity_fct=relative, temperature=self.plan.temperature
            )

        options = {"scale": 1 / self.plan.temperature, "similarity_fct": maxsim_scores}
        # Similarities of 4096 pairs of texts, about 4 million numbers, are held at a time.
        options["score_mini_batch_size"] = max(1, 4096 // self.plan.batch)
        if self.plan.batch <= CHUNK:
            return losses.MultiVectorMultipleNegativesRankingLoss(self._model, **options)
        return losses.CachedMultiVectorMultipleNegativesRankingLoss(
            self._model, mini_batch_size=CHUNK, **options
        )

    def loss(self, batch: Sequence[int]) -> Any:
        """Return the loss of a batch of examples."""
        import torch

        rows = [self.examples[i] for i in batch]
        width = min(len(row.documents) for row in rows)
        columns = [self._model.preprocess([row.query for row in rows], task="query")]
        for place in range(width):
            texts = [row.documents[place] for row in rows]
            columns.append(self._model.preprocess(texts, task="document"))
        device = self._model.device
        columns = [{key: value.to(device) for key, value in one.items()} for one in columns]
        labels = None
        if self.phase.name == "distillation":
            labels = minmax(torch.tensor([row.scores[:width] for row in rows], device=device))
        return self._loss(columns, labels)

    def step(self) -> None:
        """Take the next step."""
        import torch

        warm = max(1, self.steps // 20)
        left = (self.steps - self.done) / max(self.steps - warm, 1)
        for group in self._optimiser.param_groups:
            group["lr"] = self.plan.rate * min((self.done + 1) / warm, left)
        self._model.train()
        self._optimiser.zero_grad()
        self.loss(self._dealt[self.done]).backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._optimiser.step()
        self.done += 1
