"""Estimators coupled backwards: limits, symmetries, a target that needs coupling, held-back rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.networks import backlofi_trainer
from solvable.networks.backlofi import BackLoFiClassifier, BackLoFiRegressor, split_rows
from solvable.networks.backlofi_network import Column, forward_layers, propagate
from solvable.networks.backlofi_signals import SIGNALS
from solvable.networks.backlofi_steps import DROPS

SMALL = {"depth": 2, "reduce": 4, "width": 60, "scaling": "none"}


def sample(n=400, d=8, seed=0):
    """Target with a linear feature and a cubic one, whose direction e_2 has no lower moment."""
    X = random_stream(seed, "backlofi test").standard_normal((n, d))
    return X, X[:, 0] + (X[:, 0] ** 2 - 1) * X[:, 2]


@parametrize_with_checks(
    [
        BackLoFiClassifier(depth=2, reduce=3, width=20),
        BackLoFiRegressor("exact", depth=3, reduce=3, width=20, damping=0.5),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("nothing", [{"fraction": 0.0}, {"n_passes": 0}, {"held_back": 0}])
def test_without_coupling_it_is_the_forward_fit(nothing):
    X, y = sample()
    settings = {"held_back": 80, "random_state": 3, **SMALL, **nothing}
    model = BackLoFiRegressor(**settings).fit(X, y)
    rows = 400 - settings["held_back"]
    labels = (y - y[:rows].mean()) / y[:rows].std()
    layers = forward_layers(
        X[:rows],
        labels[:rows, None],
        reduce=(4, 4),
        widths=(60, 60),
        activation="relu",
        first_moment=True,
        seed=3,
    )
    readout = backlofi_trainer.ridge(propagate(layers, X[:rows]), labels[:rows, None], 0.01)
    expected = propagate(layers, X) @ readout.coefficients + readout.intercept
    model.set_params(regularisation=0.01).fit(X, y)
    np.testing.assert_allclose(
        model.predict(X), expected[:, 0] * y[:rows].std() + y[:rows].mean(), atol=1e-9
    )
    assert model.best_pass_ == 0
    assert len(model.history_) == 1
    assert model.stopped_reason_.startswith("no ")


def test_coupling_finds_what_forward_filters_cannot_see():
    # E[y x_2] = E[y x_i x_j] = 0 for e_2, so a forward filter keeps it by chance only. The gates of the
    # second layer depend on x_0² - 1, which makes y s linear in x_2.
    gains, overlaps = [], []
    for seed in range(4):
        X, y = sample(4000, 30, seed)
        test, truth = sample(4000, 30, seed + 100)
        model = BackLoFiRegressor(
            depth=2,
            reduce=(5, 20),
            width=300,
            fraction=0.4,
            amplitude=1.0,
            scaling="none",
            random_state=seed,
        )
        coupled = model.fit(X, y)
        after = coupled.score(test, truth)
        overlaps.append([silent_overlap(coupled)])
        forward = model.set_params(fraction=0.0).fit(X, y)
        overlaps[-1].append(silent_overlap(forward))
        gains.append(after - forward.score(test, truth))
    error = np.std(gains, ddof=1) / np.sqrt(4)
    assert np.mean(gains) > 3 * error
    assert np.mean(gains) > 0.08
    coupled, forward = np.mean(overlaps, axis=0)
    assert coupled > 0.85
    assert forward < 0.6


def silent_overlap(model):
    """Squared length of the projection of e_2 on the span of the first filter."""
    return float(np.sum(np.linalg.qr(model.layers_[0].columns)[0][2] ** 2))


@pytest.mark.parametrize("signal", SIGNALS)
def test_every_signal_learns_ten_digits(signal):
    X, y = load_digits(return_X_y=True)
    rows = random_stream(0, "digits").permutation(len(X))
    model = BackLoFiClassifier(
        signal, depth=3, reduce=20, width=150, n_passes=2, scaling="global"
    ).fit(X[rows[:900]], y[rows[:900]])
    assert model.score(X[rows[900:]], y[rows[900:]]) > 0.93
    assert model.transform(X[:3]).shape == (3, 150)
    errors = [record.held_back_error for record in model.history_]
    assert np.all((np.array(errors) >= 0) & (np.array(errors) < 0.2))


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("damping", [0.3, 1.0])
def test_every_drop_rule_keeps_the_number_of_columns(drop, damping):
    X, y = sample(d=12)
    model = BackLoFiRegressor(
        "exact", drop=drop, damping=damping, fraction=0.25, depth=3, reduce=8, width=60, n_passes=3
    ).fit(X, y)
    for layer in model.layers_:
        assert layer.columns.shape[1] == 9
        assert np.count_nonzero(layer.kinds == Column.FIRST_MOMENT) == 1
    made = model.layers_[1]
    if model.best_pass_ and drop == "earlier":
        assert np.count_nonzero(made.kinds == Column.READ) == 2
        assert np.count_nonzero(made.kinds == Column.WRITTEN) == 2


# Large amplitudes overfit few noisy samples, so early passes increase the error.
HARMFUL = {
    "fraction": 0.5,
    "n_passes": 12,
    "amplitude": 30.0,
    "depth": 3,
    "reduce": 10,
    "width": 80,
}


def test_the_guard_ends_harmful_passes_and_keeps_the_best():
    X, y = load_digits(return_X_y=True)
    rows = random_stream(1, "digits").permutation(len(X))[:500]
    model = BackLoFiClassifier("local", scaling="global", **HARMFUL).fit(X[rows], y[rows] % 2)
    assert "more than 1.25 times" in model.stopped_reason_
    assert len(model.history_) < 13
    losses = [record.held_back_loss for record in model.history_]
    assert losses[-1] > 1.25 * min(losses)
    assert model.best_pass_ == int(np.argmin(losses))
    # The fit returns the kept pass and not the last one.
    apart = rows[model.held_back_rows_]
    errors = np.mean(model.predict(X[apart]) != y[apart] % 2)
    assert errors == pytest.approx(model.history_[model.best_pass_].held_back_error)


@pytest.mark.parametrize(
    ("factor", "reason"),
    [
        (np.nan, "features of pass 2 are not finite"),
        (np.inf, "features of pass 2 are not finite"),
        (1e-3, "times the power of the forward fit"),
        (1e3, "times the power of the forward fit"),
    ],
)
def test_the_guard_sees_features_blow_up(monkeypatch, factor, reason):
    def broken(layers, *arguments):
        layers = list(layers)
        if arguments[-1] == 2:
            layers[-1] = replace(layers[-1], lift=layers[-1].lift * factor)
        return tuple(layers)

    monkeypatch.setattr(backlofi_trainer, "coupled_pass", broken)
    X, y = sample()
    model = BackLoFiRegressor(**SMALL).fit(X, y)
    assert reason in model.stopped_reason_
    assert model.best_pass_ == 0
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("signal", ["exact", "mean_field", "first_order"])
def test_the_sign_of_the_label_only_changes_the_sign_of_the_prediction(signal):
    X, y = sample()
    model = BackLoFiRegressor(signal, depth=3, reduce=5, width=60, n_passes=2)
    expected = model.fit(X, y).predict(X)
    passes = [record.held_back_loss for record in model.history_]
    np.testing.assert_allclose(model.fit(X, -y).predict(X), -expected, atol=1e-6)
    np.testing.assert_allclose([one.held_back_loss for one in model.history_], passes, rtol=1e-6)
    np.testing.assert_allclose(model.fit(X, 7 * y + 2).predict(X), 7 * expected + 2, atol=1e-5)


def test_swapping_two_classes_swaps_the_predictions():
    X, y = sample()
    model = BackLoFiClassifier("exact", held_back=80, **SMALL)
    expected = model.fit(X, y > 0).predict(X)
    np.testing.assert_array_equal(model.fit(X, y <= 0).predict(X), ~expected)


@pytest.mark.parametrize("signal", SIGNALS)
def test_the_order_of_the_rows_does_not_matter(signal):
    X, y = sample()
    rows = np.concatenate([random_stream(1).permutation(320), np.arange(320, 400)])
    model = BackLoFiRegressor(signal, held_back=80, n_passes=2, **SMALL)
    expected = model.fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(X[rows], y[rows]).predict(X), expected, atol=1e-6)


def test_held_back_rows_are_seen_by_nothing_but_the_choice_of_the_pass():
    X, y = sample()
    settings = {"held_back": 80, "n_passes": 1, "fraction": 0.25, **SMALL}
    spoiled_X, spoiled_y = X.copy(), y.copy()
    spoiled_X[320:] *= -3
    spoiled_y[320:] = 1e3 * random_stream(5).standard_normal(80)
    honest = BackLoFiRegressor(**settings).fit(X, y)
    other = BackLoFiRegressor(**settings).fit(spoiled_X, spoiled_y)
    assert [one.training_loss for one in honest.history_] == [
        one.training_loss for one in other.history_[: len(honest.history_)]
    ]
    assert other.history_[0].held_back_loss > 100 * honest.history_[0].held_back_loss


def test_the_seed_decides():
    X, y = sample()
    fits = [BackLoFiRegressor(random_state=s, **SMALL).fit(X, y).predict(X) for s in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert np.abs(fits[0] - fits[2]).max() > 1e-3


def test_the_same_fraction_of_every_class_is_held_back():
    groups = np.repeat([0, 1, 2], [100, 50, 4])
    kept, apart = split_rows(groups, 0.2, seed=0)
    np.testing.assert_array_equal(np.bincount(groups[apart], minlength=3), [20, 10, 0])
    np.testing.assert_array_equal(np.sort(np.concatenate([kept, apart])), np.arange(154))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"signal": "exakt"}, "Did you mean 'exact'"),
        ({"drop": "rayleight"}, "Did you mean 'rayleigh'"),
        ({"scaling": "row"}, "scaling is 'row'"),
        ({"activation": "rely"}, "Did you mean 'relu'"),
        ({"activation": "step"}, "there is no backward signal"),
        ({"depth": 1}, "depth is 1; allowed: an integer of at least 2"),
        ({"reduce": (3, 3)}, "reduce has 2 entries for depth 3"),
        ({"reduce": 0}, "reduce is 0"),
        ({"width": 2.5}, "width is 2.5"),
        ({"n_passes": -1}, "n_passes is -1"),
        ({"fraction": 0.6}, "fraction is 0.6.*from 0 to 0.5"),
        ({"fraction": np.nan}, "fraction is nan"),
        ({"amplitude": 0}, "amplitude is 0.*above 0"),
        ({"amplitude": np.inf}, "amplitude is inf"),
        ({"damping": 0.0}, "damping is 0.0"),
        ({"damping": 1.5}, "damping is 1.5"),
        ({"held_back": 1.0}, "held_back is 1.0"),
        ({"held_back": 399}, "held_back is 399 rows of 400"),
        ({"first_moment": 1}, "first_moment is 1; allowed: True, False"),
        ({"regularisation": -1.0}, "regularisation is -1.0"),
    ],
)
def test_bad_settings(setting, words):
    X, y = sample()
    with pytest.raises(InvalidParameter, match=words):
        BackLoFiClassifier(**{"reduce": 3, "width": 20, **setting}).fit(X, y > 0)


def test_classes_that_cannot_be_learned_are_refused():
    X, _ = sample()
    with pytest.raises(InvalidData, match="at least two classes"):
        BackLoFiClassifier(**SMALL).fit(X, np.ones(400))
    last = np.repeat([0, 1], [300, 100])
    with pytest.raises(InvalidData, match="1 of 2 classes have held-back rows only"):
        BackLoFiClassifier(held_back=100, **SMALL).fit(X, last)
    with pytest.raises(InvalidData, match="constant"):
        BackLoFiRegressor(**SMALL).fit(X, np.full(400, 0.1))
