"""Cross-entropy under the prior, and softmax attention, against draws."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.scale.exponents.network_reader import read_network
from solvable.scale.prefactors.attention_sums import AttentionBlock
from solvable.scale.prefactors.random_energy import (
    cross_entropy_samples,
    mean_log_sum,
    softmax_response,
)
from solvable.scale.prefactors.samples_at_sizes import numbers_of


@pytest.mark.parametrize(("classes", "expected"), [(2, 0.00249), (10, 0.00450)])
def test_cross_entropy_expansion(classes, expected):
    assert mean_log_sum(0.1, classes) == pytest.approx(expected, abs=1e-5)
    # (scale 2): the first order in K is an upper bound.
    assert mean_log_sum(0.1, classes) < 0.5 * (1 - 1 / classes) * 0.01
    assert mean_log_sum(1.0, classes) == pytest.approx({2: 0.210, 10: 0.426}[classes], abs=1e-3)


@pytest.mark.parametrize(("scale", "count"), [(0.3, 3), (1.7, 2), (2.5, 40), (6.0, 7)])
def test_log_sums_and_softmax_by_draws(scale, count):
    scores = np.random.default_rng(count).normal(size=(400_000 // count, count))
    top = (scale * scores).max(1, keepdims=True)
    weight = np.exp(scale * scores - top)
    logs = np.log(weight.mean(1)) + top[:, 0]
    response = (weight * scores).sum(1) / weight.sum(1)
    for drawn, value in (
        (logs, mean_log_sum(scale, count)),
        (response, softmax_response(scale, count)),
    ):
        assert abs(drawn.mean() - value) < 4 * drawn.std() / sqrt(drawn.size)
    step = 1e-4
    slope = mean_log_sum(scale + step, count) - mean_log_sum(scale - step, count)
    assert softmax_response(scale, count) == pytest.approx(slope / (2 * step), rel=1e-6)


def test_samples_of_a_classifier():
    assert cross_entropy_samples(50.0, 4, kernel=0.0) == pytest.approx(50 / log(4))
    assert cross_entropy_samples(50.0, 4, kernel=0.0, kappa=3.0) == pytest.approx(150 / log(4))
    loss = np.log(np.exp(np.random.default_rng(0).normal(size=(300_000, 4))).sum(1))
    assert cross_entropy_samples(50.0, 4) == pytest.approx(50 / loss.mean(), rel=3e-3)
    for wrong in ({"classes": 1}, {"classes": 3, "kernel": -1.0}, {"classes": 3, "kappa": 0.0}):
        with pytest.raises(InvalidParameter):
            cross_entropy_samples(1.0, **wrong)


def scores(x, matrix):
    return x @ matrix @ x.transpose(0, 2, 1)


def softmax(s):
    weight = np.exp(s - s.max(2, keepdims=True))
    return weight / weight.sum(2, keepdims=True)


def target(x):
    return x[:, :, 0].sum(1) * (x[:, :, 1] * x[:, :, 2]).sum(1) / x.shape[1]


def drawn_alignment(context, d, draws, batch, seed):
    """Estimate <y, K, y> L d³ with two independent batches for each draw of the weights."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        matrix, w = rng.normal(size=(d, d)) / d, rng.normal(size=d) / sqrt(d)
        parts = []
        for _ in range(2):
            x = rng.normal(size=(batch, context, d))
            f = (softmax(scores(x, matrix)).sum(1) * (x @ w)).sum(1) / sqrt(context)
            parts.append((f * target(x)).mean())
        found.append(parts[0] * parts[1] * context * d**3)
    return np.mean(found), np.std(found) / sqrt(draws)


@pytest.mark.slow
def test_alignment_of_a_lazy_block():
    value, error = drawn_alignment(8, 3, 800, 3_000, 11)
    assert error < 0.1
    assert 0.5 <= value <= 1.4
    # The coefficient holds in high dimension, where scores of the prior are independent normals.
    assert value == pytest.approx(2 * AttentionBlock(3.0, 1.0, 8.0).around(0, 1 / 9) * 9, rel=0.35)


def test_first_order_of_a_block_loses_one_token_not_two():
    # (scale 18) at small A: <f, y> sqrt(L) / (A_12 w_3) = 1 - 1/L, as the softmax subtracts the mean
    # over keys.
    rng = np.random.default_rng(4)
    for context in (2, 5):
        x = rng.normal(size=(60_000, context, 3))
        s = np.einsum("na,nb->nab", x[:, :, 0], x[:, :, 1])
        centred = s - s.mean(2, keepdims=True)
        drawn = np.einsum("nab,nb->n", centred, x[:, :, 2]) * target(x) / context
        error = drawn.std() / sqrt(drawn.size)
        assert abs(drawn.mean() - (1 - 1 / context)) < 4 * error
        small = AttentionBlock(50.0, 1.0, float(context)).overlap(np.array(1e-3), 1e-6)
        assert small / 1e-3 == pytest.approx(1 - 1 / context, rel=1e-3)


@pytest.mark.parametrize(("context", "strength"), [(4, 1.5), (8, 0.5)])
def test_overlap_of_a_specialised_head(context, strength):
    rng = np.random.default_rng(context)
    d, found = 40, []
    for _ in range(24):
        matrix = rng.normal(size=(d, d)) / d
        matrix[0, 1] = strength
        x = rng.normal(size=(1_000, context, d))
        read = np.einsum("nab,nb->na", softmax(scores(x, matrix)), x[:, :, 1])
        found.append((x[:, :, 0] * read).mean())
    error = np.std(found) / sqrt(len(found))
    expected = AttentionBlock(float(d), 1.0, float(context)).overlap(np.array(strength))
    assert abs(np.mean(found) - expected) < 4 * error + 0.01 * expected


def test_numbers_of_an_attention_block():
    block = read_network({"attention": {"heads": "1/2", "context": "1/2"}})
    found = numbers_of(block, {"d": 400, "H": 400, "L": 900})
    # (scale 13): with many tokens the softmax is linear, and E = sqrt(H L d³).
    assert found.winner.energy == pytest.approx(sqrt(400 * 900 * 400**3), rel=0.03)
    lazy = next(row for row in found.patterns if row.name == "GP")
    assert lazy.energy == pytest.approx(900 * 400**3 / 4, rel=0.03)
    assert found.k == pytest.approx(2, abs=0.01)
