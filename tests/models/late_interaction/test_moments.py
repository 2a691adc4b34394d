"""Moments of the label-weighted matrix."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.late_interaction.labels import label_factors
from solvable.models.late_interaction.moments import late_moments
from solvable.models.late_interaction.parameters import LabelKind
from solvable.models.late_interaction.teacher import LateInteractionTeacher, label_weights

LABELS: tuple[LabelKind, ...] = ("scores", "top-1", "random-negative", "runner-up")


@pytest.mark.parametrize(
    ("label", "noise"), [*((label, 0.0) for label in LABELS), ("scores", 1.0), ("top-1", 1.0)]
)
def test_simulated_moments(label: LabelKind, noise: float) -> None:
    """Heights, noise, couplings and products equal means over full tokens."""
    teacher = LateInteractionTeacher(
        dimension=6, rank=2, decay=1.0, document_tokens=5, score_noise=noise
    )
    moments = late_moments(teacher, candidates=6, label=label)
    rng = random_stream(0, "moments", label)
    rows = []
    for sample in teacher.chunks(40_000, candidates=6, rng=rng):
        y = label_weights(sample.scores, label, rng)
        q = sample.queries.sum(axis=1) @ teacher.directions
        e = np.einsum("nc,ncjd->nd", y, sample.documents) @ teacher.directions
        squares = (y**2).sum(axis=1)
        products = ((q[:, 0] * e[:, 1] + q[:, 1] * e[:, 0]) / 2) ** 2
        row = (5 * squares[:, None] * q**2 + 4 * e**2) / 2
        rows.append(np.column_stack([q * e, squares * 20 / 2, row, products, (q * e) ** 2]))
    values = np.concatenate(rows)
    mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))
    # The density of scores pooled over queries adds up to 3 % to the signals of ranks.
    slack = 0.005 if label == "scores" else 0.04
    np.testing.assert_allclose(
        moments.heights, mean[:2], rtol=slack, atol=3 * float(error[:2].max())
    )
    assert moments.noise == pytest.approx(mean[2], rel=0.01)
    np.testing.assert_allclose(moments.couplings, mean[3:5] / (2 * mean[2]), rtol=0.05)
    assert moments.products[0, 1] == pytest.approx(mean[5], rel=0.05)
    diagonal = (mean[6:] - mean[:2] ** 2) / 2
    np.testing.assert_allclose(np.diag(moments.products), diagonal, rtol=0.08)


def test_many_directions_have_the_factors_of_their_labels() -> None:
    """With many equal strengths the heights are gamma L_q lambda / sigma of independent tokens."""
    teacher = LateInteractionTeacher(dimension=120, rank=40, decay=0.0)
    for label in LABELS[1:]:
        factors = label_factors(label, 8, query_tokens=4, document_tokens=8)
        moments = late_moments(teacher, candidates=8, label=label)
        sigma = np.sqrt(late_moments(teacher, candidates=8, label="scores").noise * 2 / 32 / 7)
        # Terms of order 1/r lower the signal of the second best most.
        np.testing.assert_allclose(moments.heights.mean(), 4 * factors.signal / sigma, rtol=0.06)
        # Weak labels have the noise of independent numbers.
        np.testing.assert_allclose(moments.couplings, 1, atol=0.05)
        assert moments.noise == pytest.approx(factors.noise * 16)


def test_settings_without_a_theory() -> None:
    """Teachers with dependent tokens, and two candidates, are refused."""
    with pytest.raises(InvalidParameter, match="normalise is True"):
        late_moments(LateInteractionTeacher(normalise=True), candidates=8, label="scores")
    with pytest.raises(InvalidParameter, match="candidates"):
        late_moments(LateInteractionTeacher(), candidates=2, label="scores")
