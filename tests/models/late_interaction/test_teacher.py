"""The teacher of late interaction: tokens, scores, labels and overlaps."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.late_interaction.teacher import (
    LateInteractionTeacher,
    label_weights,
    standardised,
)

TEACHER = LateInteractionTeacher(dimension=12, rank=3, decay=1.0, query_tokens=2, document_tokens=5)


def test_kernel_has_the_strengths_along_the_directions() -> None:
    """The eigenpairs of the kernel are the strengths k^-a and orthonormal directions."""
    values = np.linalg.eigvalsh(TEACHER.kernel)[::-1]
    np.testing.assert_allclose(values[:3], [1, 1 / 2, 1 / 3])
    np.testing.assert_allclose(values[3:], 0, atol=1e-12)
    np.testing.assert_allclose(TEACHER.directions.T @ TEACHER.directions, np.eye(3), atol=1e-12)
    assert not np.allclose(
        TEACHER.kernel, LateInteractionTeacher(dimension=12, rank=3, decay=1.0, seed=1).kernel
    )


def test_scores_are_sums_of_maxima() -> None:
    """Scores equal a loop over the tokens."""
    sample = TEACHER.sample(3, candidates=4, rng=0)
    for n in range(3):
        for c in range(4):
            table = sample.queries[n] @ TEACHER.kernel @ sample.documents[n, c].T
            assert sample.scores[n, c] == pytest.approx(sum(max(row) for row in table))


def test_chunks_hold_as_many_queries_as_asked() -> None:
    """Chunks have the number of queries, and each is a small sample."""
    teacher = LateInteractionTeacher(dimension=1000, rank=2, document_tokens=20)
    sizes = [
        len(part.scores)
        for part in teacher.chunks(70, candidates=8, rng=random_stream(0, "chunks"))
    ]
    assert sum(sizes) == 70
    assert max(sizes) < 70


def test_tokens_of_unit_variance_or_fixed_length() -> None:
    """Tokens have variance 1 per coordinate, or length sqrt(d) if they are normalised."""
    tokens = TEACHER.sample(2000, candidates=2, rng=1).documents
    assert tokens.var() == pytest.approx(1, abs=4 * np.sqrt(2 / tokens.size))
    fixed = LateInteractionTeacher(dimension=12, rank=3, normalise=True).sample(
        5, candidates=2, rng=1
    )
    for part in (fixed.queries, fixed.documents):
        np.testing.assert_allclose(np.linalg.norm(part, axis=-1), np.sqrt(12))


def test_copied_tokens_are_tokens_of_the_query() -> None:
    """A share of the documents' tokens equals a token of the same query."""
    teacher = LateInteractionTeacher(dimension=12, rank=3, copies=0.3)
    sample = teacher.sample(400, candidates=3, rng=2)
    equal = np.isclose(sample.documents[:, :, :, None, :], sample.queries[:, None, None, :, :]).all(
        -1
    )
    copied = equal.any(-1)
    assert copied.mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / copied.size))
    # Each token of the query is copied equally often.
    counts = equal.sum(axis=(0, 1, 2))
    np.testing.assert_allclose(counts, counts.mean(), atol=4 * np.sqrt(counts.mean()))


def test_noise_is_added_to_the_scores() -> None:
    """Scores with noise differ from those of the same tokens by normal noise."""
    clean = TEACHER.sample(2000, candidates=4, rng=3)
    noisy = LateInteractionTeacher(
        dimension=12, rank=3, decay=1.0, query_tokens=2, document_tokens=5, score_noise=0.5
    ).sample(2000, candidates=4, rng=3)
    np.testing.assert_array_equal(clean.documents, noisy.documents)
    assert (noisy.scores - clean.scores).std() == pytest.approx(0.5, rel=4 / np.sqrt(16_000))


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_weak_positives_follow_the_softmax(temperature: float) -> None:
    """Candidates are drawn with probability softmax(z / temperature)."""
    teacher = LateInteractionTeacher(weak_temperature=temperature)
    scores = np.repeat([[0.3, -1.0, 2.0, 0.0]], 40_000, axis=0)
    drawn = teacher.weak_positives(scores, random_stream(0, "weak"))
    z = standardised(scores)[0] / temperature
    expected = np.exp(z) / np.exp(z).sum()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 40_000, expected, atol=0.01)


def test_labels_of_each_kind() -> None:
    """Labels of a query with known scores."""
    scores = np.array([[1.0, 4.0, 3.0, 0.0]])
    rng = random_stream(0, "labels")
    np.testing.assert_allclose(label_weights(scores, "scores"), [[-1, 2, 1, -2]])
    np.testing.assert_allclose(label_weights(scores, "top-1"), [[-0.25, 0.75, -0.25, -0.25]])
    np.testing.assert_allclose(label_weights(scores, "runner-up"), [[0, 1, -1, 0]])
    drawn = label_weights(np.repeat(scores, 3000, axis=0), "random-negative", rng)
    np.testing.assert_allclose(drawn.mean(axis=0), [-1 / 3, 1, -1 / 3, -1 / 3], atol=0.04)
    np.testing.assert_array_equal(np.sort(drawn, axis=1)[:, [0, -1]], [[-1.0, 1.0]] * 3000)


def test_overlap_with_the_direction_of_the_same_rank() -> None:
    """The overlap is 1 for the kernel itself, and 0 for two directions that change places."""
    swapped = TEACHER.directions @ np.diag([0.5, 1.0, 0.2]) @ TEACHER.directions.T
    np.testing.assert_allclose(TEACHER.squared_overlap(TEACHER.kernel), 1)
    np.testing.assert_allclose(TEACHER.squared_overlap(swapped), [0, 0, 1], atol=1e-12)
    equal = LateInteractionTeacher(dimension=12, rank=3, decay=0.0)
    rotated = equal.directions @ np.diag([0.5, 1.0, 0.2]) @ equal.directions.T
    np.testing.assert_allclose(equal.squared_overlap(rotated), 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimension": 1},
        {"rank": 31},
        {"decay": -1.0},
        {"copies": 1.5},
        {"score_noise": -0.1},
        {"weak_temperature": 0.0},
        {"document_tokens": 0},
    ],
)
def test_values_out_of_range(wrong: dict[str, float]) -> None:
    """Each field outside its range is refused by name."""
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        LateInteractionTeacher(**wrong)  # type: ignore[arg-type]


def test_wrong_labels_and_scores() -> None:
    """Unknown labels, missing generators and wrong shapes are refused."""
    with pytest.raises(InvalidParameter, match="label"):
        label_weights(np.ones((2, 3)), "best")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="rng is None"):
        label_weights(np.ones((2, 3)), "random-negative")
    with pytest.raises(InvalidData, match="shape"):
        label_weights(np.ones(3), "scores")
    with pytest.raises(InvalidData, match="finite"):
        label_weights(np.full((2, 3), np.nan), "scores")
