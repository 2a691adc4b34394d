"""Layer-wise learner: ridge solutions against dense ones, and tokens against exact laws of the label."""

import numpy as np
import pytest

from solvable.arrays import ArraySource, GeneratedSource
from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.models.hierarchy.grammar.learner import filters
from solvable.models.hierarchy.grammar.learner.layerwise import LayerwiseRBFClassifier, joined
from solvable.models.hierarchy.rules import tuple_numbers
from solvable.models.hierarchy.target import RandomHierarchy
from solvable.operators.lift import RandomLift

TARGET = RandomHierarchy(6, 3, 2, 2, seed=2)
X, Y = TARGET.sample(500, rng=0)
FRESH, FRESH_Y = TARGET.sample(400, rng=1)


def one_hot_patches(strings, vocabulary=6):
    return np.eye(vocabulary)[strings].reshape(len(strings), -1)


def test_kernel_filters_solve_the_ridge_problem_with_one_row_per_string():
    model = LayerwiseRBFClassifier(rules=3).fit(X, Y)
    targets = np.eye(6)[Y]

    def dense(train, test, sigma):
        """Kernel ridge regression with all strings, repeated ones included."""
        squared = ((train[:, None] - train[None]) ** 2).sum(-1)
        kernel = np.exp(-squared / (2 * sigma**2))
        dual = np.linalg.solve(kernel + len(train) / 18 * np.eye(len(train)), targets)
        across = ((test[:, None] - train[None]) ** 2).sum(-1)
        raw = np.exp(-across / (2 * sigma**2)) @ dual
        total = raw.sum(axis=1, keepdims=True)
        return np.where(np.abs(total) < 0.05, 1 / 6, raw / total)

    bottom = one_hot_patches(X[:, :2])
    halves = [[one_hot_patches(part[:, i : i + 2]) for i in (0, 2)] for part in (X, FRESH)]
    tokens = [
        np.concatenate([dense(bottom, half, 0.3 * np.sqrt(2)) for half in part], axis=1)
        for part in halves
    ]
    lower, top = model.level_embeddings(FRESH)
    np.testing.assert_allclose(lower.reshape(400, -1), tokens[1], atol=1e-8)
    expected = dense(tokens[0], tokens[1], 0.3 * np.sqrt(2 / 3))
    np.testing.assert_allclose(top[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(model.bandwidths_, 0.3 * np.sqrt([2, 2 / 3]))


@pytest.mark.parametrize("steps", [None, 40])
def test_feature_filters_solve_the_ridge_problem_with_one_row_per_string(steps):
    lift = RandomLift(12, 30, "fourier", np.sqrt(2) * 0.4, seed=3)
    patches = one_hot_patches(X[:, :2])
    features = filters.fourier_pairs(lift, patches).astype(float)
    gram, moment = features.T @ features / 500, features.T @ np.eye(6)[Y] / 500
    expected = np.linalg.solve(gram + np.eye(60) / 18, moment)
    if steps:
        # The error of gradient descent is multiplied by I - eta (G + lambda) in each step.
        shrink = np.eye(60) - 2 / (1 + 1 / 18) * (gram + np.eye(60) / 18)
        expected = expected - np.linalg.matrix_power(shrink, steps) @ expected
    kept, places = np.unique(patches, axis=0, return_inverse=True)
    counts = np.zeros((len(kept), 6))
    np.add.at(counts, (places.ravel(), Y), 1)
    parts = [(kept[:4], counts[:4]), (kept[4:], counts[4:])]
    fitted = filters.fit_features(parts, lift, 1 / 18, steps)
    np.testing.assert_allclose(fitted.weights, expected, atol=2e-5)
    np.testing.assert_allclose(
        fitted.outputs(kept), filters.fourier_pairs(lift, kept) @ expected, atol=1e-4
    )


def test_features_have_norm_one_and_the_gaussian_kernel_with_error_of_order_one_over_root_m():
    patches = np.random.default_rng(0).standard_normal((30, 5))
    exact = np.exp(-((patches[:, None] - patches[None]) ** 2).sum(-1) / (2 * 1.3**2))
    np.testing.assert_allclose(filters.gaussian_kernel(patches, patches, 1.3), exact, atol=1e-12)
    errors = []
    for width in (100, 10_000):
        squares = []
        for seed in range(10):
            lift = RandomLift(5, width, "fourier", np.sqrt(2) * 1.3, seed=seed)
            rows = filters.fourier_pairs(lift, patches)
            np.testing.assert_allclose((rows**2).sum(axis=1), 1, atol=1e-5)
            squares.append(np.mean((rows @ rows.T - exact) ** 2))
        errors.append(np.sqrt(np.mean(squares)))
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.2)


def test_features_approach_the_kernel_at_all_levels():
    exact = LayerwiseRBFClassifier(rules=3).fit(X, Y).level_embeddings(FRESH)
    errors = []
    for width in (100, 1000):
        model = LayerwiseRBFClassifier(rules=3, mode="features", n_features=width, random_state=1)
        tokens = model.fit(X, Y).level_embeddings(FRESH)
        errors.append([np.sqrt(np.mean((a - b) ** 2)) for a, b in zip(tokens, exact, strict=True)])
    # 0.32 for errors of order M^(-1/2)
    assert np.all(np.array(errors[1]) < 0.6 * np.array(errors[0]))


def test_tokens_estimate_the_law_of_the_label_given_the_patch():
    """Against transition matrices of the grammar, with the sampling error of a frequency."""
    target = RandomHierarchy(8, 4, 2, 2, seed=1)
    strings, labels = target.sample(64_000, rng=0)
    top = target.tables[0]
    transition = np.zeros((8, 8))
    np.add.at(transition, (np.repeat(np.arange(8), 4), top[..., 0].ravel()), 1 / 4)
    law = transition / transition.sum(axis=0)  # label given the first symbol of level 1
    everything = target.unrank(np.arange(target.n_strings))[0]
    model = LayerwiseRBFClassifier(rules=4).fit(strings, labels)
    tokens, classes = model.level_embeddings(everything)
    parents = target.parse(everything)[1][:, 0]
    # 2,000 strings per patch give a standard error of at most 0.011 per entry.
    np.testing.assert_allclose(tokens[:, 0], law[:, parents].T, atol=0.05)
    # At the top the law is certain; kernels between the closest symbols take away up to 0.15.
    np.testing.assert_array_equal(np.argmax(classes[:, 0], axis=1), target.classify(everything))
    assert classes[:, 0].max(axis=1).min() > 0.85


def test_pooled_counts_use_all_positions():
    for positions, columns in (("first", [0]), ("shared", [0, 1])):
        model = LayerwiseRBFClassifier(rules=3, positions=positions)
        source, labels = model._start_source(X, Y)
        model.filters_ = []
        patches, counts = next(model._patches_of(source, labels, 2))
        numbers = tuple_numbers(X, 6, 2)[:, columns]
        expected = {
            number: np.bincount(Y[np.nonzero(numbers == number)[0]], minlength=6)
            for number in np.unique(numbers)
        }
        got = np.argmax(patches.reshape(-1, 2, 6), axis=2) @ [6, 1]
        assert counts.sum() == 500 * len(columns)
        for number, row in zip(got, counts, strict=True):
            np.testing.assert_array_equal(row, expected[number])


def test_fresh_samples_use_one_part_of_the_rows_for_each_level():
    expected = LayerwiseRBFClassifier(rules=3, fresh=True).fit(X, Y)
    changed = np.concatenate([X[:250], FRESH[:250]])
    labels = np.concatenate([Y[:250], FRESH_Y[:250]])
    model = LayerwiseRBFClassifier(rules=3, fresh=True).fit(changed, labels)
    bottom, top = zip(model.level_embeddings(X), expected.level_embeddings(X), strict=True)
    np.testing.assert_allclose(*bottom, atol=1e-10)
    assert np.abs(top[0] - top[1]).max() > 0.01
    alone = LayerwiseRBFClassifier(rules=3).fit(X[:250], Y[:250])
    np.testing.assert_allclose(alone.level_embeddings(X)[0], bottom[0], atol=1e-10)


@pytest.mark.parametrize("mode", ["kernel", "features"])
def test_strings_in_chunks_give_the_same_model(mode, tmp_path):
    model = LayerwiseRBFClassifier(rules=3, mode=mode, n_features=80)
    expected = model.fit(X, Y).level_embeddings(FRESH)
    np.save(tmp_path / "strings.npy", X)
    for strings in (ArraySource(X), tmp_path / "strings.npy"):
        model.set_params(chunk_rows=64).fit(strings, Y)
        for got, wanted in zip(model.level_embeddings(FRESH), expected, strict=True):
            np.testing.assert_allclose(got, wanted, atol=2e-3)


def test_strings_that_are_drawn_again_at_each_reading():
    source = GeneratedSource(lambda rows, rng: TARGET.sample(rows, rng)[0], 9000, 4, 0, np.int8)
    labels = np.concatenate([TARGET.classify(block) for _, block in source.chunks(4096)])
    model = LayerwiseRBFClassifier(mode="features", n_features=400).fit(source, labels)
    assert model.score(FRESH, FRESH_Y) > 0.97
    with pytest.raises(InvalidData, match="9000 strings and y has 8999"):
        model.fit(source, labels[1:])


def test_distances_of_tokens_are_estimated_without_the_number_of_rules():
    target = RandomHierarchy(12, 3, 2, 3, seed=0)
    strings, labels = target.sample(1296, rng=0)
    known = LayerwiseRBFClassifier(rules=3).fit(strings, labels)
    estimated = LayerwiseRBFClassifier().fit(strings, labels)
    assert estimated.regularisation_ == pytest.approx(1 / 36)
    ratios = np.array(estimated.bandwidths_) / known.bandwidths_
    assert ratios[0] == pytest.approx(1)
    assert 0.6 < ratios.min() <= ratios.max() < 1.7
    assert estimated.score(*target.sample(1000, rng=1)) > 0.95


def test_a_patch_that_resembles_none_of_the_training_set_is_uniform():
    outputs = np.array([[0.01, 0.02], [-0.03, 0.01], [0.3, 0.1], [-1.0, 0.2]])
    expected = [[0.5, 0.5], [0.5, 0.5], [0.75, 0.25], [1.25, -0.25]]
    np.testing.assert_allclose(filters.normalised(outputs), expected)
    model = LayerwiseRBFClassifier(rules=3).fit(X[X[:, 0] != 5], Y[X[:, 0] != 5])
    strings = FRESH[FRESH[:, 0] == 5]
    np.testing.assert_allclose(model.level_embeddings(strings)[0][:, 0], 1 / 6, atol=0.02)


def test_patches_are_numbered_without_overflow():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 1 << 20, (7, 8))
    codes[3] = codes[5]
    tokens = rng.standard_normal((1 << 20, 1))
    numbers, patches = joined(codes, tokens, 8)
    assert numbers.shape == (7, 1)
    assert patches.shape == (6, 8)
    np.testing.assert_array_equal(patches[numbers[:, 0]], tokens[codes][..., 0])


def test_bad_parameters_are_refused(monkeypatch):
    for parameters, message in (
        ({"mode": "dual"}, "mode is 'dual'; allowed: kernel, features"),
        ({"positions": "all"}, "positions is 'all'"),
        ({"rules": 0}, "rules is 0"),
        ({"steps": 0, "mode": "features"}, "steps is 0"),
        ({"steps": 5}, "steps is 5 in mode 'kernel'"),
        ({"n_features": 0}, "n_features is 0"),
        ({"chunk_rows": 0}, "chunk_rows is 0"),
        ({"bandwidth": 0.0}, "bandwidth is 0"),
        ({"bandwidth": "a"}, "bandwidth is 'a'; allowed: a finite number"),
        ({"regularisation": -1.0}, "regularisation is -1"),
        ({"regularisation": "x"}, "regularisation is 'x'; allowed: .* or 'auto'"),
        ({"fresh": "x"}, "fresh is 'x'; allowed: True or False"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            LayerwiseRBFClassifier(**parameters).fit(X, Y)
    with pytest.raises(InvalidData, match=r"1 strings for 2 levels|at least 2 classes"):
        LayerwiseRBFClassifier(fresh=True).fit(X[:1], Y[:1])
    monkeypatch.setattr(filters, "available_bytes", lambda: 1e3)
    with pytest.raises(MemoryLimitExceeded, match="use mode='features'"):
        LayerwiseRBFClassifier().fit(X, Y)
