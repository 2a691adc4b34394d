"""Variance of MaxSim, the pooled fraction and the gain of MaxSim gradients."""

from __future__ import annotations

import numpy as np
import pytest
from retrieval_simulations import simulated_gain

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.late_interaction.maxima import max_covariance, max_moments
from solvable.models.late_interaction.measure import moment_matrix
from solvable.models.late_interaction.scoring import maxsim, pooled
from solvable.models.late_interaction.teacher import LateInteractionTeacher, label_weights
from solvable.models.late_interaction.theory import (
    gradient_gain,
    pooled_fraction,
    score_variance,
)


@pytest.mark.parametrize(
    ("strengths", "query_tokens", "document_tokens"),
    [(np.ones(12), 4, 8), (np.arange(1, 7) ** -1.0, 3, 5), (np.ones(2), 5, 20), (np.ones(1), 4, 2)],
)
def test_simulated_variance(strengths: np.ndarray, query_tokens: int, document_tokens: int) -> None:
    """The mean variance of scores over a query's documents."""
    rng = random_stream(0, "variance")
    n, r = 20_000, strengths.size
    queries = rng.standard_normal((n, query_tokens, r))
    documents = rng.standard_normal((n, 2, document_tokens, r))
    scores = maxsim(queries, documents, np.diag(np.sqrt(strengths)))
    halves = np.diff(scores, axis=1) ** 2 / 2
    expected = score_variance(
        strengths=strengths, query_tokens=query_tokens, document_tokens=document_tokens
    )
    assert expected == pytest.approx(halves.mean(), abs=4 * halves.std() / np.sqrt(n))


def test_closed_forms_of_the_variance() -> None:
    """A single query token, and a single direction, have closed forms."""
    lam, moments, cov = np.array([1.0, 0.5]), max_moments(8), max_covariance(8)
    one = score_variance(strengths=lam, query_tokens=1, document_tokens=8)
    assert one == pytest.approx(1.25 * moments.variance)
    # |u| |u'| has mean 2/pi, and the correlation is 1 or -1.
    line = score_variance(strengths=np.ones(1), query_tokens=4, document_tokens=8)
    ends = float(cov.covariance(1.0) + cov.covariance(-1.0)) / 2
    assert line == pytest.approx(4 * moments.variance + 12 * 2 / np.pi * ends, rel=2e-3)


def test_limit_of_many_strengths() -> None:
    """The fraction tends to 1 / (L Var max), and then to 12 ln L / (pi² L)."""
    found = [
        pooled_fraction(strengths=np.ones(r), query_tokens=4, document_tokens=8)
        for r in (10, 100, 1000)
    ]
    limit = 1 / (8 * max_moments(8).variance)
    gaps = 1 - np.array(found) / limit
    # The correction is of order 1 / r.
    np.testing.assert_allclose(gaps[1:] / gaps[:-1], 0.1, rtol=0.15)
    long = 1 / (1024 * max_moments(1024).variance)
    assert long == pytest.approx(12 * np.log(1024) / (np.pi**2 * 1024), rel=0.05)


def test_pooled_score_is_independent_of_the_rest() -> None:
    """Given the query, MaxSim minus the pooled score is independent of the pooled score."""
    rng = random_stream(0, "independence")
    teacher = LateInteractionTeacher(dimension=8, rank=3, decay=0.5)
    queries = np.repeat(rng.standard_normal((1, 4, 8)), 20, axis=0)
    documents = rng.standard_normal((20, 4000, 8, 8))
    mean = pooled(queries, documents, teacher.factor).ravel()
    rest = maxsim(queries, documents, teacher.factor).ravel() - mean
    mean, rest = (values / values.std() for values in (mean - mean.mean(), rest - rest.mean()))
    for power, other in ((1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3)):
        product = (mean**power - (mean**power).mean()) * (rest**other - (rest**other).mean())
        assert abs(product.mean()) < 4 * product.std() / np.sqrt(product.size)


def test_covariance_of_a_chosen_token() -> None:
    """Equation 9: the covariance of a maximum with the token that another row chooses."""
    a, b, c, tokens, n = 0.3, 0.5, 0.7, 6, 400_000
    root = np.linalg.cholesky(np.array([[1, a, c], [a, 1, b], [c, b, 1]]))
    rows = random_stream(0, "chosen").standard_normal((n, tokens, 3)) @ root.T
    z, w, chooser = rows.transpose(2, 0, 1)
    chosen = w[np.arange(n), chooser.argmax(axis=1)]
    products = (z.max(axis=1) - z.max(axis=1).mean()) * (chosen - chosen.mean())
    cov = max_covariance(tokens)
    expected = (a - b * c) * cov.same_column(c) + b * cov.covariance(c)
    assert float(expected) == pytest.approx(products.mean(), abs=4 * products.std() / np.sqrt(n))


def test_gain_at_the_truth_and_in_high_dimension() -> None:
    """The gain of the true kernel follows from the pooled fraction; many dimensions meet simulation."""
    teacher = LateInteractionTeacher(dimension=90, rank=4, decay=0.5, document_tokens=8)
    fraction = pooled_fraction(strengths=teacher.strengths, query_tokens=4, document_tokens=8)
    truth = gradient_gain(teacher, teacher.factor)
    assert truth == pytest.approx(1 / (8 * fraction**2), rel=0.02)
    # The gain does not depend on the scale of the student.
    assert gradient_gain(teacher, 3 * teacher.factor) == pytest.approx(truth)
    for factor in (teacher.factor, np.eye(90)):
        found, error = simulated_gain(teacher, factor, n=6_000)
        assert gradient_gain(teacher, factor) == pytest.approx(found, abs=4 * error)


def test_values_out_of_range() -> None:
    """Wrong strengths, factors and teachers are refused."""
    for wrong in (np.ones((2, 2)), np.zeros(3), np.array([1.0, -1.0]), np.array([np.nan])):
        with pytest.raises(InvalidData, match="strengths"):
            pooled_fraction(strengths=wrong, query_tokens=2, document_tokens=4)
    teacher = LateInteractionTeacher(copies=0.1)
    with pytest.raises(InvalidParameter, match=r"copies is 0\.1"):
        gradient_gain(teacher, teacher.factor)
    with pytest.raises(InvalidData, match="factor"):
        gradient_gain(LateInteractionTeacher(), np.ones((3, 4)))


def test_copied_tokens_favour_maxsim_from_the_start() -> None:
    """With copies of query tokens in documents, the gradient of an unaligned student gains too."""
    copying = LateInteractionTeacher(copies=0.1)
    random = random_stream(0, "student").standard_normal((16, 30))
    for factor, plain, expected in ((np.eye(30), 0.98, 2.4), (random, 0.45, 2.1)):
        assert gradient_gain(LateInteractionTeacher(), factor) == pytest.approx(plain, abs=0.1)
        found, error = simulated_gain(copying, factor, n=3_000)
        assert found == pytest.approx(expected, abs=0.25 + 3 * error)
        assert found - 3 * error > 1.2


def test_normalised_tokens_have_the_same_directions() -> None:
    """Tokens of length sqrt(d) leave the directions of the moment matrix, and shrink its eigenvalues."""
    teacher = LateInteractionTeacher(dimension=30, rank=3, decay=0.5, normalise=True)
    total, n = np.zeros((30, 30)), 20_000
    for sample in teacher.chunks(n, candidates=8, rng=random_stream(0, "normalised")):
        y = label_weights(sample.scores, "scores")
        total += moment_matrix(sample.queries, sample.documents, y) * len(y) / n
    assert teacher.squared_overlap(total).min() > 0.97
    heights = np.einsum("dk,de,ek->k", teacher.directions, total, teacher.directions)
    np.testing.assert_allclose(heights / (28 * teacher.strengths), 0.955, atol=0.03)
