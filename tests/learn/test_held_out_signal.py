"""Signal of directions on unseen rows: direct formulas, planted columns, and directions of noise."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from solvable.data import Preparation, load
from solvable.data.dataset import Split
from solvable.data.table import Table
from solvable.learn import Request, feature_words, learn
from solvable.learn.held_out_signal import Estimate, lost_without, signal_on_unseen, unseen_signal
from solvable.networks.filters import FilterReport
from solvable.networks.layers import Filter


def fitted(functions, linear=0):
    """Replacement of a fitted model, whose first filter keeps given functions, first moments first."""

    class Layer(Filter):
        def apply(self, h):
            return np.column_stack([function(h) for function in functions])

    ones = np.ones(len(functions) - linear)
    report = FilterReport(
        ones, ones, ones, ones, linear_strengths=np.ones(linear), linear_ratios=np.full(linear, 2.0)
    )
    network = SimpleNamespace(layers=[object.__new__(Layer)])
    return SimpleNamespace(network_=network, filters_=[report])


def split_of(X, y, train):
    table = Table(X, tuple(f"c{i}" for i in range(X.shape[1])), {})
    preparation = Preparation.fit(table)
    Z = preparation.transform(table)
    return Split(Z[:train], y[:train], Z[train:], y[train:], preparation)


def test_the_signal_of_one_direction_is_its_second_moment_over_that_of_training_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 2)), rng.standard_t(4, 300)
    split = split_of(X, y, 200)
    found = unseen_signal(fitted([lambda Z: Z[:, 0] + 2 * Z[:, 1]]), split, regression=True, seed=0)
    f = X[:, 0] + 2 * X[:, 1]
    centred = y - y[:200].mean()
    inside = np.mean(centred[:200] * f[:200] ** 2)
    np.testing.assert_allclose(found.signal[:, 0], centred[200:] * f[200:] ** 2 / inside)
    np.testing.assert_allclose(found.signal[:, 1], found.signal[:, 0])


def test_the_signal_of_a_first_moment_is_a_covariance_over_that_of_training_rows():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((300, 2)), rng.standard_t(4, 300)
    functions = [lambda Z: Z[:, 0] - Z[:, 1], lambda Z: Z[:, 1]]
    found = unseen_signal(fitted(functions, 1), split_of(X, y, 200), regression=True, seed=0)
    spread = y[:200].std()
    centred = (y - y[:200].mean()) / spread
    line = X[:, 0] - X[:, 1]
    inside = np.mean(centred[:200] * line[:200])
    np.testing.assert_allclose(found.signal[:, 0], centred[200:] * line[200:] / inside)
    # Second moments use the labels after the fit by first moments of the features (here the columns);
    # the first moment for a training row is computed from the other rows.
    Z = X - X[:200].mean(axis=0)
    told = np.array(
        [
            sum(centred[nu] * Z[nu] for nu in range(200) if nu != mu) @ Z[mu] / 200
            for mu in range(300)
        ]
    )
    told -= told[:200].mean()
    left = centred - told * (centred[:200] @ told[:200]) / (told[:200] @ told[:200])
    left -= left[:200].mean()
    inside = np.mean(left[:200] * X[:200, 1] ** 2)
    np.testing.assert_allclose(found.signal[:, 1], left[200:] * X[200:, 1] ** 2 / inside)


def test_of_many_classes_training_rows_have_a_mean_of_one():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((240, 3)), rng.integers(4, size=240)
    whole = split_of(np.vstack([X, X]), np.concatenate([y, y]), 240)
    functions = [lambda Z: Z[:, 0], lambda Z: Z[:, 1] * Z[:, 2], lambda Z: np.abs(Z[:, 1])]
    found = unseen_signal(fitted(functions), whole, regression=False, seed=0)
    np.testing.assert_allclose(found.signal.mean(axis=0), 1)


def test_a_column_that_carries_what_another_tells_takes_nothing():
    # The second moment of x_0 x_1 is correlated with y = x_0², but x_1 carries no signal.
    rng = np.random.default_rng(2)
    X = rng.standard_normal((6000, 3))
    y = X[:, 0] ** 2 + 0.3 * rng.standard_normal(6000)
    found = unseen_signal(
        fitted([lambda Z: Z[:, 0] * Z[:, 1]]), split_of(X, y, 3000), regression=True, seed=0
    )
    signal = signal_on_unseen([found], np.array([0]))
    assert signal.value == pytest.approx(1, abs=4 * signal.error)
    decides, carries, rest = (lost_without([found], np.array([0]), f"c{k}") for k in range(3))
    assert decides.value == pytest.approx(1, abs=4 * decides.error)
    assert decides.is_above_zero(50)
    for other in (carries, rest):
        assert abs(other.value) < 4 * other.error + 1e-12
    assert lost_without([found], np.array([0]), "none of them").value == 0


def test_the_level_is_that_of_all_tests_together():
    assert Estimate(1.7, 1.0).is_above_zero(1)
    assert not Estimate(1.6, 1.0).is_above_zero(1)
    assert not Estimate(3.2, 1.0).is_above_zero(100)  # 1 - Phi(3.29) = 0.05 / 100
    assert Estimate(3.4, 1.0).is_above_zero(100)


def planted(folder, seed):
    """Table with one to three relevant columns and five to twelve of noise; classes or numbers."""
    rng = np.random.default_rng([3, seed])
    k, m, n = int(rng.integers(1, 4)), int(rng.integers(5, 13)), int(rng.choice([300, 500]))
    X = rng.standard_normal((n, k + m))
    X[:, -1] = np.sign(X[:, -1])
    score = X[:, :k].sum(axis=1) / k**0.5
    z = (score if seed % 3 else score**2) + rng.choice([0.3, 0.8]) * rng.standard_normal(n)
    y = z if seed % 2 else np.where(z > np.median(z), "b", "a")
    names = [f"t{j}" for j in range(k)] + [f"n{j}" for j in range(m)]
    path = folder / f"planted{seed}.csv"
    lines = [",".join([*names, "y"])]
    lines += [",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return load(str(path), target="y")


def names_and_shares(found):
    """Return the named columns, and the largest share of noise columns in a direction."""
    layer = found.found[0]
    shown = [one for one in layer.strongest if one.number <= layer.directions]
    named = {part.column for one in shown for part in one.columns if part.named}
    named |= {part.column for part in layer.columns if part.named}
    noise = [sum(p.share for p in one.columns if p.column[0] == "n") for one in shown]
    return named, max(noise, default=0.0)


@pytest.mark.usefixtures("learned_features_alone")
def test_directions_rest_on_the_columns_that_decide(tmp_path):
    found = learn(planted(tmp_path, 7), Request(folds=3))
    named, noise = names_and_shares(found)
    # Without centred features, products with columns of noise had a share of 0.9 in a direction.
    assert noise < 0.5
    assert named
    assert {name[0] for name in named} == {"t"}
    assert "rests on 't" in feature_words.kinds_sentence(found.found[0], found)


@pytest.mark.slow
def test_columns_of_noise_are_named_in_at_most_five_of_a_hundred_tables(tmp_path, monkeypatch):
    import solvable.learn.fold_fits
    import solvable.learn.plan
    from solvable.learn.competitors import methods

    def few(design):
        return tuple(one for one in methods(design) if one.key in ("learned-features", "constant"))

    monkeypatch.setattr(solvable.learn.plan, "methods", few)
    monkeypatch.setattr(solvable.learn.fold_fits, "methods", few)
    wrong, right, carried = [], 0, 0
    for seed in range(1000, 1100):
        named, noise = names_and_shares(learn(planted(tmp_path, seed)))
        wrong += [seed] if any(name[0] == "n" for name in named) else []
        right += any(name[0] == "t" for name in named)
        carried += noise > 0.5
    assert len(wrong) <= 5, wrong
    assert right >= 75
    assert carried >= 30  # tables where the largest share belongs to a column of noise
