"""Simulations of the spectral estimator and of gradients of late interaction."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.models.late_interaction.measure import moment_matrix
from solvable.models.late_interaction.parameters import LabelKind
from solvable.models.late_interaction.scoring import similarities
from solvable.models.late_interaction.teacher import LateInteractionTeacher, label_weights


def measured_overlaps(
    teacher: LateInteractionTeacher, *, candidates: int, queries: int, label: LabelKind, reps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean squared overlaps of the spectral estimator on full tokens, and their standard errors."""
    rows = []
    for replicate in range(reps):
        rng = random_stream("measured overlaps", replicate)
        total = np.zeros((teacher.dimension, teacher.dimension))
        for sample in teacher.chunks(queries, candidates=candidates, rng=rng):
            y = label_weights(sample.scores, label, rng)
            total += len(y) * moment_matrix(sample.queries, sample.documents, y)
        rows.append(teacher.squared_overlap(total))
    values = np.array(rows)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(reps)


def simulated_gain(
    teacher: LateInteractionTeacher, factor: np.ndarray, *, n: int, blocks: int = 12
) -> tuple[float, float]:
    """Squared signal-to-noise of the MaxSim gradient over that of pooling, and its standard error."""
    rng = random_stream(0, "gain")
    rows = []
    for _ in range(blocks):
        sums = np.zeros(4)
        for sample in teacher.chunks(n // blocks, candidates=2, rng=rng):
            y = sample.scores[:, 0] - sample.scores[:, 1]
            place = similarities(sample.queries, sample.documents, factor).argmax(axis=2)
            winners = np.take_along_axis(sample.documents, place[..., None], axis=2)
            parts = (
                (sample.queries, winners[:, 0] - winners[:, 1]),
                (
                    sample.queries.sum(axis=1, keepdims=True),
                    (sample.documents[:, 0] - sample.documents[:, 1]).sum(axis=1, keepdims=True),
                ),
            )
            for k, (q, d) in enumerate(parts):
                gradient = np.einsum("nia,nib->nab", q, d)
                sums[2 * k] += y @ np.einsum("nab,ab->n", gradient, teacher.kernel)
                sums[2 * k + 1] += y**2 @ (gradient**2).sum(axis=(1, 2))
        rows.append(sums)
    values = np.array(rows)

    def ratio(total: np.ndarray) -> float:
        """Ratio of squared signal to noise."""
        return float(total[0] ** 2 / total[1] / (total[2] ** 2 / total[3]))

    without = [ratio(values.sum(axis=0) - row) for row in values]
    return ratio(values.sum(axis=0)), float(np.std(without) * np.sqrt(blocks - 1))
