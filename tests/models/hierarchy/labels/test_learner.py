"""The cascade as an estimator: conventions of scikit-learn, folds, accepted labels."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.labels.learner import LabelCascadeClassifier, kernel
from solvable.models.hierarchy.labels.target import LabelHierarchy


@parametrize_with_checks(
    [LabelCascadeClassifier(random_state=0), LabelCascadeClassifier(folds=1, blocks=1)]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def samples(n, seed=0, **sizes):
    target = LabelHierarchy(**{"dimension": 8, "depth": 3, "labels": 5, **sizes})
    return target.sample(n, np.random.default_rng(seed))


def test_each_block_learns_a_level():
    (X, Y), (fresh, labels) = samples(500), samples(300, seed=1)
    cascade = LabelCascadeClassifier(random_state=0).fit(X, Y)
    assert (cascade.accepted_ > 0).all()
    assert (cascade.accepted_[:5] == 1).all()
    assert cascade.n_blocks_ == cascade.accepted_.max() > 1
    stages = list(cascade.staged_predict(fresh))
    assert len(stages) == cascade.n_blocks_
    np.testing.assert_array_equal(stages[-1], cascade.predict(fresh))
    errors = [np.mean(stage != labels) for stage in stages]
    assert errors[0] > 0.05 > 1e-12 >= errors[-1]


def test_accepted_labels_stay_as_they_are():
    (X, Y), (fresh, _) = samples(120, dimension=12), samples(300, seed=1, dimension=12)
    cascade = LabelCascadeClassifier(random_state=0, threshold=0.3).fit(X, Y)
    stages = list(cascade.staged_predict(fresh))
    accepted_first = cascade.accepted_ == 1
    assert accepted_first.any()
    for stage in stages[1:]:
        np.testing.assert_array_equal(stage[:, accepted_first], stages[0][:, accepted_first])


def test_out_of_fold_error_of_random_labels_is_one_half_and_in_sample_error_is_zero():
    rng = np.random.default_rng(0)
    X, Y = rng.choice([-1, 1], (400, 30)), rng.choice([-1, 1], (400, 20))
    honest = LabelCascadeClassifier(random_state=0).fit(X, Y)
    deviation = np.abs(honest.out_of_fold_error_.mean() - 0.5)
    assert deviation < 4 * np.sqrt(0.25 / (400 * 20))
    assert honest.n_blocks_ == 1
    assert not honest.accepted_.any()
    fitted = LabelCascadeClassifier(folds=1, ridge=1e-6).fit(X, Y)
    assert not fitted.out_of_fold_error_.any()
    assert (fitted.accepted_ == 1).all()


def test_out_of_fold_predictions_are_those_of_separate_fits():
    X, Y = samples(90, dimension=10)
    cascade = LabelCascadeClassifier(blocks=1, folds=3, ridge=2.0, random_state=4).fit(X, Y)
    fold = np.random.RandomState(4).permutation(90) % 3
    wrong = np.zeros(Y.shape[1])
    for number in range(3):
        out, used = fold == number, fold != number
        # Ridge regression in the space of products, without a kernel.
        features = [
            np.column_stack(
                [np.ones(len(Z)), Z * np.sqrt(2)]
                + [Z[:, [a]] * Z[:, [b]] for a in range(10) for b in range(10)]
            )
            / np.sqrt(2)
            for Z in (X[used], X[out])
        ]
        normal = features[0].T @ features[0] + 2.0 * np.eye(features[0].shape[1])
        predicted = features[1] @ np.linalg.solve(normal, features[0].T @ Y[used])
        wrong += np.sum(predicted * Y[out] <= 0, axis=0)
    np.testing.assert_allclose(cascade.out_of_fold_error_, wrong / 90, atol=1e-12)


def test_kernel_is_the_sum_over_features_and_products():
    rng = np.random.default_rng(1)
    u, v = rng.standard_normal((2, 4))
    direct = 0.5 + u @ v + 0.5 * np.sum(np.outer(u, u) * np.outer(v, v))
    np.testing.assert_allclose(kernel(u[None], v[None])[0, 0], direct)


def test_labels_of_any_two_values():
    X, Y = samples(300)
    words = np.where(Y > 0, "yes", "no")
    cascade = LabelCascadeClassifier(random_state=0).fit(X, Y)
    named = LabelCascadeClassifier(random_state=0).fit(X, words)
    np.testing.assert_array_equal(named.predict(X) == "yes", cascade.predict(X) > 0)
    alone = LabelCascadeClassifier(random_state=0).fit(X, words[:, 0])
    assert alone.predict(X).shape == (300,)
    assert alone.classes_.tolist() == ["no", "yes"]
    assert alone.score(X, words[:, 0]) > 0.999


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"blocks": 0}, "blocks is 0"),
        ({"folds": 31}, "folds is 31 for 30 samples"),
        ({"ridge": 0.0}, "ridge is 0"),
        ({"threshold": -0.1}, "threshold is -0.1"),
        ({"threshold": 2}, "threshold is 2; allowed: above 0 and at most 0.5"),
        ({"random_state": "a"}, "random_state is 'a'; allowed"),
        ({"random_state": -1}, "random_state is -1; allowed"),
    ],
)
def test_invalid_parameters(wrong, words):
    with pytest.raises(InvalidParameter, match=words):
        LabelCascadeClassifier(**wrong).fit(*samples(30))


@pytest.mark.parametrize(
    ("X", "Y", "words"),
    [
        ([[0, np.nan]] * 4, [0, 1, 0, 1], "NaN; allowed: finite numbers"),
        ([0.0, 1.0], [0, 1], r"allowed: shape \(n, d\)"),
        (np.zeros((0, 2)), [], "0 sample"),
        (np.eye(4), [0, 1, 0], "inconsistent numbers of samples"),
        (np.eye(4), [0, 1, 0.5, 0.2], "continuous.*allowed: two values"),
        (np.eye(4), None, "target y is None"),
        (np.eye(4), [0, 1, 0, np.nan], "NaN; allowed: finite"),
        (None, [0, 1], r"allowed: shape \(n, d\)"),
    ],
)
def test_invalid_data_in_one_line(X, Y, words):
    with pytest.raises(InvalidData, match=words) as caught:
        LabelCascadeClassifier().fit(X, Y)
    assert "\n" not in str(caught.value)


def test_other_columns_are_refused_when_predicting():
    model = LabelCascadeClassifier(random_state=0).fit(*samples(30))
    with pytest.raises(InvalidData, match="X has 7 features"):
        model.predict(np.ones((3, 7)))


def test_a_label_with_three_values():
    X, Y = samples(30)
    Y[0, 2] = 0
    with pytest.raises(InvalidData, match="label 2 has 3 values"):
        LabelCascadeClassifier().fit(X, Y)
