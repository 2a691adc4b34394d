"""Belief propagation, against sums over all strings of small grammars."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy import inference
from solvable.models.hierarchy.ranks import choices_of
from solvable.models.hierarchy.target import RandomHierarchy


def enumerated(target):
    """Return all symbols of all derivations, level by level, and the probability of each."""
    ranks = np.arange(target.n_strings)
    X, _ = target.unrank(ranks)
    _, choices = choices_of(ranks, target.rules, target.branching, target.depth)
    weights = np.ones(len(ranks)) / target.n_classes
    for law, chosen in zip(target.laws, choices, strict=True):
        if law is None:
            weights /= target.rules ** chosen.shape[1]
        else:
            weights *= law[chosen].prod(axis=1)
    return target.parse(X), weights


def summed(target, evidence):
    """Laws of all symbols and the likelihood of one string, by a sum over all strings."""
    levels, weights = enumerated(target)
    leaves = levels[-1].astype(int)
    weights = weights * evidence[np.arange(leaves.shape[1]), leaves].prod(axis=1)
    total = weights.sum()
    laws = []
    for level, symbols in enumerate(levels):
        law = np.zeros((symbols.shape[1], target.vocabulary if level else target.n_classes))
        for place, column in enumerate(symbols.T):
            np.add.at(law[place], column, weights)
        laws.append(law / total)
    return laws, np.log(total)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.sampled_from([(4, 2, 2, 3), (3, 3, 2, 2), (5, 2, 2, 2), (2, 2, 3, 2), (6, 5, 2, 1)]),
    classes=st.integers(2, 3),
    zipf=st.sampled_from([0.0, 0.8]),
    sharpness=st.sampled_from([0.0, 1.0, 30.0]),
    seed=st.integers(0, 10_000),
)
def test_laws_are_sums_over_all_strings(sizes, classes, zipf, sharpness, seed):
    target = RandomHierarchy(
        *sizes, classes=classes, ensemble="uniform", zipf=zipf, zipf_levels=(1,), seed=seed
    )
    rng = np.random.default_rng(seed)
    evidence = rng.random((3, target.n_leaves, target.vocabulary)) ** sharpness
    laws, logs = target.belief_propagation(evidence)
    for row in range(3):
        expected, log_likelihood = summed(target, evidence[row])
        for level, law in enumerate(expected):
            np.testing.assert_allclose(laws[level][row], law, atol=1e-10)
        np.testing.assert_allclose(logs[row], log_likelihood, rtol=1e-10, atol=1e-10)


def test_masked_strings_have_the_law_of_the_strings_that_agree():
    target = RandomHierarchy(4, 2, 2, 3, seed=3)
    levels, _ = enumerated(target)
    X, _ = target.sample(20, rng=0)
    masked = np.where(np.random.default_rng(1).random(X.shape) < 0.6, -1, X)
    laws = target.posterior(masked)
    for row in range(20):
        agree = ((levels[-1] == masked[row]) | (masked[row] < 0)).all(axis=1)
        for level, symbols in enumerate(levels):
            for place in range(symbols.shape[1]):
                share = np.bincount(symbols[agree, place], minlength=4) / agree.sum()
                np.testing.assert_allclose(laws[level][row, place], share, atol=1e-12)
    np.testing.assert_allclose(target.label_probabilities(masked), laws[0][:, 0])


def test_whole_strings_leave_no_doubt():
    target = RandomHierarchy(32, 8, 2, 4, classes=16)
    tree = target.sample_tree(50, rng=0)
    for law, symbols in zip(target.posterior(tree[-1]), tree, strict=True):
        np.testing.assert_allclose(np.take_along_axis(law, symbols[..., None].astype(int), 2), 1)


def test_without_evidence_symbols_have_their_laws_in_the_grammar():
    target = RandomHierarchy(8, 3, 3, 2, ensemble="uniform", zipf=0.5, zipf_levels=(1, 2))
    laws = target.posterior(np.full((1, 9), -1))
    product = np.full(8, 1 / 8) @ target.transition(1, 2) @ target.transition(2, 1)
    np.testing.assert_allclose(laws[2][0, 7], product, atol=1e-12)
    tuples = target.patch_probabilities(2, [1])
    np.testing.assert_allclose(tuples.reshape(8, 3).sum(axis=1), laws[1][0, 1], atol=1e-12)


@pytest.mark.parametrize("levels", [0, 1, 2, 3])
def test_next_token_law_is_that_of_the_masked_string(levels):
    target = RandomHierarchy(8, 3, 2, 3, ensemble="uniform", zipf=0.4, seed=1)
    X, _ = target.sample(40, rng=0)
    masked = X.copy()
    masked[:, : 8 - 2**levels] = -1
    masked[:, -1] = -1
    law = target.next_token_law(X, levels)
    np.testing.assert_allclose(law, target.posterior(masked)[3][:, -1], atol=1e-12)
    if levels == 3:
        np.testing.assert_array_equal(law, target.next_token_law(X))


def test_upward_messages_use_the_leaves_below_only():
    target = RandomHierarchy(4, 2, 2, 3, seed=2)
    evidence = np.random.default_rng(0).random((1, 8, 4))
    up, logs = target.belief_propagation(evidence, downward=False)
    both, again = target.belief_propagation(evidence)
    np.testing.assert_allclose(up[0] / up[0].sum(), both[0])
    np.testing.assert_allclose(logs, again)
    # one tuple of leaves: Bayes' rule with equally likely parents
    table = target.tables[2]
    expected = (evidence[0, 2][table[..., 0]] * evidence[0, 3][table[..., 1]]).sum(axis=1)
    np.testing.assert_allclose(up[2][0, 1], expected / expected.sum())


def test_results_do_not_depend_on_the_chunks(monkeypatch):
    target = RandomHierarchy(8, 4, 2, 3)
    X, _ = target.sample(70, rng=0)
    evidence = target.noisy_evidence(X, 0.4, rng=1)
    laws, logs = target.belief_propagation(evidence)
    monkeypatch.setattr(inference, "CHUNK_NUMBERS", 1000)
    small, again = target.belief_propagation(evidence)
    np.testing.assert_allclose(logs, again)
    for law, other in zip(laws, small, strict=True):
        np.testing.assert_allclose(law, other)


def test_evidence_far_below_the_smallest_float_is_exact():
    target = RandomHierarchy(8, 4, 2, 9)
    X, _ = target.sample(2, rng=0)
    evidence = target.noisy_evidence(X, 0.5)
    laws, logs = target.belief_propagation(evidence * 1e-200)
    expected, plain = target.belief_propagation(evidence)
    np.testing.assert_allclose(laws[0], expected[0])
    # 512 leaves, each with a factor 10^-200
    np.testing.assert_allclose(logs, plain - 512 * 200 * np.log(10))


def test_label_probabilities_are_calibrated():
    target = RandomHierarchy(8, 4, 2, 3)
    X, y = target.sample(20_000, rng=0)
    masked = np.where(np.random.default_rng(1).random(X.shape) < 0.5, -1, X)
    law = target.label_probabilities(masked)
    best = law.max(axis=1)
    right = law.argmax(axis=1) == y
    error = np.sqrt((best * (1 - best)).sum()) / len(y)
    assert 0.2 < best.mean() < 0.9
    assert abs(right.mean() - best.mean()) < 4 * error


def test_noise_of_leaves_is_that_of_its_likelihood():
    target = RandomHierarchy(4, 2, 2, 3)
    X, _ = target.sample(5000, rng=0)
    X[:, 0] = -1
    evidence = target.noisy_evidence(X, 0.3, rng=1)
    np.testing.assert_array_equal(evidence[:, 0], 1)
    hit = np.take_along_axis(evidence[:, 1:], X[:, 1:, None].astype(int), 2)
    likelihood = 0.7 + 0.3 / 4
    np.testing.assert_allclose(np.unique(hit.round(12)), [0.075, likelihood])
    share = (hit > 0.5).mean()
    assert abs(share - likelihood) < 4 * np.sqrt(0.18 / hit.size)
    np.testing.assert_allclose(target.noisy_evidence(X, 0.3).max(axis=2)[:, 1:], likelihood)
    assert (X[:, 0] == -1).all()


def test_no_strings_have_no_laws():
    target = RandomHierarchy(4, 2, 2, 2)
    laws, logs = target.belief_propagation(np.ones((0, 4, 4)))
    assert [law.shape for law in laws] == [(0, 1, 4), (0, 2, 4), (0, 4, 4)]
    assert logs.shape == (0,)


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (np.ones((2, 4, 3)), r"shape \(2, 4, 3\) and type float64; allowed: .* \(n, 4, 4\)"),
        (np.ones((4, 4)), r"shape \(4, 4\)"),
        (np.full((2, 4, 4), "a"), "type <U1"),
        (np.full((2, 4, 4), np.nan), "negative numbers, NaN or infinity"),
        (np.full((2, 4, 4), -1.0), "negative numbers"),
        (np.full((2, 4, 4), np.inf), "infinity"),
        (np.arange(2.0)[::-1, None, None] * np.ones((2, 4, 4)), "row 1 has probability 0"),
    ],
)
def test_other_evidence_is_refused(evidence, message):
    with pytest.raises(InvalidData, match=message):
        RandomHierarchy(4, 2, 2, 2).belief_propagation(evidence)


def test_strings_that_nothing_agrees_with_are_refused(monkeypatch):
    target = RandomHierarchy(8, 2, 2, 3)
    X, _ = target.sample(40, rng=0)
    for row in (0, 33):
        wrong = X.copy()
        while target.contains(wrong[row : row + 1])[0]:
            wrong[row, 0] = (wrong[row, 0] + 1) % 8
        monkeypatch.setattr(inference, "CHUNK_NUMBERS", 500)
        with pytest.raises(InvalidData, match=f"row {row} has probability 0 under this grammar"):
            target.posterior(wrong)
    with pytest.raises(InvalidData, match=r"symbols from -2 .* -1 for a masked leaf"):
        target.posterior(np.full((1, 8), -2))
    with pytest.raises(InvalidParameter, match="levels is 4; allowed: an integer from 0 to 3"):
        target.next_token_law(X, 4)


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, np.nan, "0.1", None])
def test_noise_is_between_zero_and_one(epsilon):
    with pytest.raises(InvalidParameter, match=r"epsilon is .* allowed: a number from 0 to 1"):
        RandomHierarchy(4, 2, 2, 2).noisy_evidence(np.zeros((1, 4), int), epsilon)
