"""Majorities of three: exact covariances, cross-checks with products, and simulated cascades."""

import itertools

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.checks import check_system
from solvable.frame.system import Preset
from solvable.models.hierarchy.labels.learner import LabelCascadeClassifier
from solvable.models.hierarchy.labels.majority import (
    PopulationFit,
    all_signs,
    products,
    products_covariance,
)
from solvable.models.hierarchy.labels.measure import draw_teacher
from solvable.models.hierarchy.labels.parameters import LabelParameters
from solvable.models.hierarchy.labels.predict import predict
from solvable.models.hierarchy.labels.system import system
from solvable.models.hierarchy.labels.target import LabelHierarchy
from solvable.models.hierarchy.labels.theory import label_cascade, required_samples

SETTING = {"gate": "majority", "dimension": 14, "labels": 8, "depth": 2}


def test_a_label_is_the_majority_of_three_labels_of_the_level_below():
    target = LabelHierarchy(9, 3, 7, seed=2, gate="majority")
    X, Y = target.sample(200, rng=0)
    levels = [X, *np.split(Y, 3, axis=1)]
    assert target.parts.shape == (3, 7, 3)
    for parts, below, labels in zip(target.parts, levels[:-1], levels[1:], strict=True):
        assert len({tuple(triple) for triple in parts}) == 7
        a, b, c = below[:, parts].transpose(2, 0, 1)
        np.testing.assert_array_equal(labels, (a + b + c - a * b * c) / 2)
    assert set(draw_teacher(LabelParameters(**SETTING), random_stream("test", 0))) == {"triples"}


def test_a_majority_is_correlated_with_what_it_is_made_of():
    """1/2 with each vote, and 1/4 with an input two levels below, at all inputs; products: 0."""
    X = all_signs(12)
    target = LabelHierarchy(12, 2, 20, seed=0, gate="majority")
    first, second = np.split(target.labels_of(X), 2, axis=1)
    for label, triple in zip(first.T, target.parts[0], strict=True):
        np.testing.assert_allclose(label @ X[:, triple] / len(X), 0.5)
    votes = [np.unique(target.parts[0][parts]) for parts in target.parts[1]]
    disjoint = [k for k, inputs in enumerate(votes) if inputs.size == 9]
    assert disjoint
    for label in disjoint:
        np.testing.assert_allclose(second[:, label] @ X[:, votes[label]] / len(X), 0.25)
    product = LabelHierarchy(12, 2, 8, seed=0).labels_of(X)
    np.testing.assert_allclose(product.T @ X, 0, atol=1e-9)


def test_covariance_of_products_of_estimated_signs():
    """Sum over all outcomes of two estimated signs with given means at each of eight inputs."""
    X = all_signs(3)
    means = np.column_stack([X, *np.random.default_rng(0).uniform(-1, 1, (2, 8))])
    expected = np.zeros((16, 16))
    for flips in itertools.product((-1, 1), repeat=2):
        signs = means.copy()
        signs[:, 3:] = flips
        weights = np.prod((1 + means[:, 3:] * flips) / 2, axis=1) / 8
        features = products(signs)
        expected += (features * weights[:, None]).T @ features
    np.testing.assert_allclose(products_covariance(means, products(means), 3), expected, atol=1e-12)


def test_products_of_inputs_have_the_same_theory_on_both_roads():
    """The covariance over all inputs gives the closed form for products, without seen inputs."""
    target = LabelHierarchy(10, 1, 12, seed=1)
    X = all_signs(10)
    Y, features = target.labels_of(X), products(X)
    covariance = products_covariance(X, features, 10)
    values, vectors = np.linalg.eigh(covariance)
    for n in (30, 60, 120):
        fit = PopulationFit(values, vectors, features.T @ Y / len(X), n, 1.0)
        (block,) = label_cascade(target, samples=n, blocks=1)
        wrong = fit.wrong(features, covariance, Y, 0.0).mean(axis=0)
        np.testing.assert_allclose(wrong, block.error, rtol=1e-6)
        seen = fit.wrong(features, covariance, Y, 1.0).mean(axis=0)
        (block,) = label_cascade(target, samples=n, blocks=1, folds=1)
        np.testing.assert_allclose(seen, block.out_of_fold_error, rtol=1e-6)


@pytest.mark.parametrize(
    ("samples", "blocks", "folds"), [(150, 1, 4), (480, 1, 2), (480, 1, 1), (1100, 2, 4)]
)
def test_errors_of_simulated_cascades(samples, blocks, folds):
    """Eight replicates; the tolerance of the claim plus 4.5 standard errors."""
    target = LabelHierarchy(14, 2, 8, seed=0, gate="majority")
    rows = []
    for seed in range(8):
        X, Y = target.sample(samples, rng=seed)
        cascade = LabelCascadeClassifier(blocks, folds, threshold=0.025, random_state=seed).fit(
            X, Y
        )
        fresh, labels = target.sample(2000, rng=100 + seed)
        wrong = np.mean(cascade.predict(fresh) != labels, axis=0)
        rows.append(np.reshape([wrong, cascade.out_of_fold_error_], (2, 2, 8)).mean(axis=2))
    error = np.std(rows, axis=0, ddof=1) / np.sqrt(8)
    block = label_cascade(target, samples=samples, blocks=blocks, folds=folds, threshold=0.025)[-1]
    expected = np.reshape([block.error, block.out_of_fold_error], (2, 2, 8)).mean(axis=2)
    assert (np.abs(np.mean(rows, axis=0) - expected) <= 0.015 + 4.5 * error).all()


def test_a_second_block_finds_what_a_first_one_cannot():
    """One block keeps an error where all samples are known: the votes of votes are no sum of inputs."""
    target = LabelHierarchy(12, 2, 8, seed=0, gate="majority")
    blocks = label_cascade(target, samples=100_000, blocks=2, threshold=0.025)
    first, second = (block.error.reshape(2, 8).mean(axis=1) for block in blocks)
    X = all_signs(12)
    features, labels = products(X), target.labels_of(X)[:, 8:]
    best = np.sign(features @ np.linalg.lstsq(features, labels, rcond=None)[0])
    # All inputs are seen, but a fit with a ridge of 1 to D << n functions does not remember them.
    assert first[1] == pytest.approx(np.mean(best != labels), abs=0.01)
    assert second[1] < first[1] / 10


@pytest.mark.parametrize(
    ("change", "message"),
    [({"dimension": 15}, "dimension up to 14"), ({"labels": 21}, "up to 54 inputs and labels")],
)
def test_larger_hierarchies_are_measured_but_not_predicted(change, message):
    setting = LabelParameters(**SETTING | change)
    with pytest.raises(InvalidParameter, match=message):
        predict(setting)
    assert len(
        system.measure(setting.model_copy(update={"samples": 40}), random_stream("a"))["error"]
    )


def test_majorities_have_no_common_number_of_required_samples():
    target = LabelHierarchy(10, 2, 6, gate="majority")
    options = {"blocks": 2, "folds": 2, "threshold": 0.15, "ridge": 1.0}
    assert required_samples(target, **options) == (None, None)
    assert predict(LabelParameters(**SETTING, samples=200, blocks=1))["last_required"] is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"gate": "xor"}, "gate"),
        ({"gate": "majority", "labels": 3}, "at least 4"),
        ({"gate": "majority", "dimension": 8, "labels": 57}, "56 triples"),
    ],
)
def test_impossible_hierarchies_are_refused(setting, message):
    with pytest.raises(InvalidParameter, match=message):
        LabelParameters(**setting)


def test_targets_refuse_unknown_gates_and_too_few_triples():
    with pytest.raises(InvalidParameter, match="gate"):
        LabelHierarchy(gate="xor")
    with pytest.raises(InvalidParameter, match="only 1 triples"):
        LabelHierarchy(dimension=8, depth=2, labels=3, gate="majority")


def test_the_system_keeps_its_contract_with_majorities(monkeypatch):
    one = Preset("One point.", {"samples": (60,)})
    monkeypatch.setattr(system, "presets", {**system.presets, "one": one})
    check_system(system, preset="one", setting={**SETTING, "samples": 60, "blocks": 1})
