"""The spectral estimator of the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidData
from solvable.models.late_interaction.measure import moment_matrix, spectral_kernel
from solvable.models.late_interaction.teacher import LateInteractionTeacher, label_weights


def test_matrix_equals_a_loop_over_tokens() -> None:
    """The matrix is the mean of y q_i d_j^T over all pairs of tokens, symmetrised."""
    rng = random_stream(0, "loop")
    q, d, y = (rng.standard_normal(shape) for shape in ((3, 2, 4), (3, 5, 6, 4), (3, 5)))
    total = np.zeros((4, 4))
    for n in range(3):
        for c in range(5):
            for left in q[n]:
                for right in d[n, c]:
                    total += y[n, c] * np.outer(left, right) / 3
    np.testing.assert_allclose(moment_matrix(q, d, y), (total + total.T) / 2)
    sums = moment_matrix(q.sum(axis=1), d.sum(axis=2), y)
    np.testing.assert_allclose(sums, (total + total.T) / 2)


def test_uniform_attention_gives_the_gradient_of_the_loss() -> None:
    """The matrix is minus the derivative of the contrastive loss at uniform attention."""
    teacher = LateInteractionTeacher(dimension=8, rank=2, decay=1.0)
    sample = teacher.sample(6, candidates=5, rng=0)
    y = label_weights(sample.scores, "top-1")
    best = sample.scores.argmax(axis=1)

    def loss(kernel: np.ndarray) -> float:
        """Contrastive loss of the scores sum_ij q_i^T S d_j of all pairs of tokens."""
        s = np.einsum(
            "na,ab,ncb->nc", sample.queries.sum(axis=1), kernel, sample.documents.sum(axis=2)
        )
        return float(np.mean(np.log(np.exp(s).sum(axis=1)) - s[np.arange(6), best]))

    direction = random_stream(0, "direction").standard_normal((8, 8))
    direction = direction + direction.T
    small = 1e-6
    slope = (loss(small * direction) - loss(-small * direction)) / (2 * small)
    expected = -float((moment_matrix(sample.queries, sample.documents, y) * direction).sum())
    assert slope == pytest.approx(expected, rel=1e-4)


def test_kernel_keeps_eigenvalues_above_the_edge() -> None:
    """The kernel has the eigenvalues above the edge, and no negative ones."""
    rng = random_stream(0, "kernel")
    M = rng.standard_normal((9, 9))
    M = M + M.T
    values = np.linalg.eigvalsh(M)
    for edge in (0.0, 1.0, -1.0):
        kept = np.linalg.eigvalsh(spectral_kernel(M, edge=edge))
        np.testing.assert_allclose(kept, np.where(values > max(edge, 0), values, 0), atol=1e-12)


def test_shapes_that_do_not_fit() -> None:
    """Wrong shapes and numbers that are not finite are refused."""
    with pytest.raises(InvalidData, match="weights"):
        moment_matrix(np.ones((2, 3)), np.ones((2, 4, 3)), np.ones((2, 3)))
    with pytest.raises(InvalidData, match="queries have shape"):
        moment_matrix(np.ones((2, 3)), np.ones((2, 4, 5)), np.ones((2, 4)))
    with pytest.raises(InvalidData, match="finite"):
        moment_matrix(np.full((2, 3), np.inf), np.ones((2, 4, 3)), np.ones((2, 4)))
    with pytest.raises(InvalidData, match="matrix"):
        spectral_kernel(np.ones((2, 3)))
