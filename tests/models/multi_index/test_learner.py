"""The two-stage learner: scikit-learn's contract, real tables, sources, and invalid input."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from solvable.arrays import GeneratedSource
from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded, NoFeatureFound
from solvable.learners import MultiIndexRegressor


def problem(n=3_000, d=25, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] ** 2 - 1.5 * np.abs(X[:, 1]) + noise * rng.standard_normal(n)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"readout": "monomials", "deflation": 1, "label_map": "clip", "whiten": "scale"},
    ],
    ids=str,
)
def test_scikit_learn_contract(parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(MultiIndexRegressor(**parameters), on_skip=None, on_fail="raise")
    assert sum(result["status"] == "passed" for result in results) > 40
    assert not [result for result in results if result["status"] == "xfail"]


def test_finds_both_signs_and_predicts():
    X, y = problem()
    model = MultiIndexRegressor(linear=False, random_state=0).fit(X, y)
    assert model.kinds_ == ("spectral", "spectral")
    lower, upper = model.edges_[0]
    assert sorted(np.sign(model.eigenvalues_)) == [-1, 1]
    assert (np.maximum(model.eigenvalues_ - upper, lower - model.eigenvalues_) > 0).all()
    assert np.sum(model.components_[:, :2] ** 2) > 1.85
    fresh, labels = problem(seed=1)
    assert model.score(fresh, labels) > 0.8
    assert model.transform(fresh).shape == (3_000, 2)
    names = model.get_feature_names_out().tolist()
    assert names == ["multiindexregressor0", "multiindexregressor1"]


def test_coordinates_of_coloured_inputs_are_those_of_the_label():
    # y depends on a direction of small variance, which scaling of the columns alone does not reveal.
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((12, 12)) * np.logspace(0, -1.5, 12)
    X = rng.standard_normal((6_000, 12)) @ mixing.T + 30
    latent = np.linalg.solve(mixing, (X - 30).T)[7]
    y = np.abs(latent) + 0.2 * rng.standard_normal(6_000)
    model = MultiIndexRegressor(random_state=0).fit(X, y)
    assert model.kinds_ == ("spectral",)
    assert np.corrcoef(model.transform(X)[:, 0], latent)[0, 1] ** 2 > 0.9
    blind = MultiIndexRegressor(1, whiten="scale", random_state=0).fit(X, y)
    assert model.score(X, y) > blind.score(X, y) + 0.3


def test_white_inputs_are_left_alone_by_whitening():
    X, y = problem(n=400, d=50)
    found = [
        MultiIndexRegressor(2, linear=False, whiten=whiten, random_state=0).fit(X, y).components_
        for whiten in ("none", "shrunk")
    ]
    overlap = [np.sum(components[:, :2] ** 2) / np.sum(components**2) for components in found]
    assert abs(overlap[0] - overlap[1]) < 0.03
    assert overlap[0] > 0.4


def test_odd_links_are_found_by_the_linear_direction():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4_000, 30))
    y = np.tanh(X[:, 2]) + 0.3 * rng.standard_normal(4_000)
    model = MultiIndexRegressor(random_state=0).fit(X, y)
    assert model.kinds_ == ("linear",)
    assert np.isnan(model.eigenvalues_).all()
    assert model.components_[0, 2] ** 2 / np.sum(model.components_**2) > 0.95
    # With label_map="square" the linear direction uses tanh and is still found.
    even = MultiIndexRegressor(label_map="square", random_state=0).fit(X, y)
    assert "linear" in even.kinds_
    with pytest.warns(NoFeatureFound, match="is not significant"):
        blind = MultiIndexRegressor(linear=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(blind.predict(X[:3]), y.mean())
    assert blind.transform(X).shape == (4_000, 0)


def test_deflation_finds_what_strong_features_hide():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2_400, 40))
    y = 3 * (X[:, 0] ** 2 - 1) + 0.25 * (X[:, 1] ** 2 - 1) + 0.1 * rng.standard_normal(2_400)
    plain = MultiIndexRegressor(readout="monomials", linear=False, random_state=0).fit(X, y)
    model = MultiIndexRegressor(readout="monomials", linear=False, deflation=1, random_state=0).fit(
        X, y
    )
    assert model.kinds_ == ("spectral", "residual")
    assert len(model.edges_) == 2
    assert plain.kinds_ == ("spectral",)
    assert model.components_[1, 1] ** 2 / np.sum(model.components_[1] ** 2) > 0.8
    assert model.score(X, y) > plain.score(X, y)
    filled = MultiIndexRegressor(
        4, readout="monomials", linear=False, deflation=1, random_state=0
    ).fit(X, y)
    assert filled.kinds_ == ("spectral", *["residual"] * 3)


def test_on_tables_it_is_near_ridge_or_above():
    # With its 442 rows diabetes cannot be distinguished from linear; friedman1 is not linear.
    for (X, y), gain in ((load_diabetes(return_X_y=True), -0.05), (friedman(), 0.05)):
        folds = KFold(5, shuffle=True, random_state=0)
        ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
        scores = [
            cross_val_score(model, X, y, cv=folds).mean()
            for model in (MultiIndexRegressor(random_state=0), ridge)
        ]
        assert scores[0] > scores[1] + gain


def friedman():
    return make_friedman1(2_000, 15, noise=1.0, random_state=1)


def test_pipeline_grid_search_and_pickle():
    X, y = problem(n=800, d=10)
    pipeline = make_pipeline(StandardScaler(), MultiIndexRegressor(random_state=0))
    search = GridSearchCV(
        pipeline, {"multiindexregressor__readout": ["monomials", "relu"]}, cv=2
    ).fit(X, y)
    assert search.best_score_ > 0.5
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    ridge = make_pipeline(MultiIndexRegressor(readout="none", random_state=0), RidgeCV()).fit(X, y)
    assert ridge.predict(X).shape == (800,)


def test_memory_maps_and_sources_give_the_result_of_arrays(tmp_path):
    source = GeneratedSource(lambda rows, rng: rng.standard_normal((rows, 12)), 9_000, 12, seed=4)
    X = np.concatenate([block for _, block in source.chunks(1_000)])
    y = X[:, 3] ** 2 + X[:, 5]
    np.save(tmp_path / "X.npy", X)
    models = [
        MultiIndexRegressor(random_state=0, n_neurons=20, deflation=1).fit(samples, y)
        for samples in (X, source, str(tmp_path / "X.npy"))
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.components_, models[0].components_, atol=1e-8)
        np.testing.assert_allclose(model.predict(source), models[0].predict(X), atol=1e-6)


def test_results_depend_on_the_seed_alone():
    X, y = problem(n=600)
    first, again, other = (
        MultiIndexRegressor(random_state=seed).fit(X, y).predict(X) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_directions": 26}, "n_directions is 26; allowed: an integer from 1 to 25"),
        ({"n_directions": 0}, "n_directions is 0"),
        ({"n_directions": "all"}, "n_directions is 'all'"),
        ({"label_map": "cube"}, "label_map"),
        ({"readout": "spline"}, "readout"),
        ({"whiten": True}, "whiten"),
        ({"deflation": -1}, "deflation is -1"),
        ({"deflation": 1, "readout": "none"}, "residuals are those of a readout"),
        ({"n_permutations": 0}, "n_permutations is 0"),
        ({"regularisation": -1.0}, "regularisation is -1.0"),
        ({"linear": "no"}, "linear is 'no'"),
        ({"chunk_rows": 0}, "chunk_rows is 0"),
    ],
    ids=str,
)
def test_parameters_out_of_range(parameters, message):
    X, y = problem(n=60)
    with pytest.raises(InvalidParameter, match=message):
        MultiIndexRegressor(**parameters).fit(X, y)


def test_bad_data():
    X, y = problem(n=60)
    with pytest.raises(InvalidData, match="labels must vary"):
        MultiIndexRegressor().fit(X, np.ones(60))
    with pytest.raises(InvalidData, match="NaN"):
        MultiIndexRegressor().fit(X, np.where(y > 1, np.nan, y))
    with pytest.raises(InvalidData, match="NaN"):
        MultiIndexRegressor().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(InvalidData, match=r"minimum of 2|at least 2"):
        MultiIndexRegressor().fit(X[:1], y[:1])
    with pytest.raises(InvalidData, match="25 features"):
        MultiIndexRegressor(1).fit(X, y).predict(X[:, :3])
    with pytest.raises(InvalidParameter, match="use transform"):
        MultiIndexRegressor(1, readout="none").fit(X, y).predict(X)


def test_fits_beyond_memory_are_refused(monkeypatch):
    X, y = problem(n=60)
    monkeypatch.setattr("solvable.models.multi_index.whitening.available_bytes", lambda: 1_000.0)
    with pytest.raises(MemoryLimitExceeded, match="whiten='scale'"):
        MultiIndexRegressor().fit(X, y)
    monkeypatch.setattr("solvable.models.multi_index.readout.available_bytes", lambda: 1_000.0)
    with pytest.raises(MemoryLimitExceeded, match="Keep fewer directions"):
        MultiIndexRegressor(10, whiten="none").fit(X, y)


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((250, 600))
    y = np.sign(X[:, 0]) * (1 + 0.1 * rng.standard_normal(250)) * 3 + X[:, 1]
    model = MultiIndexRegressor(random_state=0).fit(X, y)
    assert model.kinds_ == ("linear",)
    assert model.components_[0, 0] ** 2 / np.sum(model.components_[0] ** 2) > 0.1
    assert model.score(X, y) > 0


def test_tensors_are_fitted_where_they_are():
    torch = pytest.importorskip("torch")
    X, y = problem(n=900)
    here, there = (
        MultiIndexRegressor(readout="monomials", deflation=1, random_state=0).fit(*given)
        for given in ((X, y), (torch.asarray(X), torch.asarray(y)))
    )
    np.testing.assert_allclose(here.components_, there.components_, atol=1e-8)
    np.testing.assert_allclose(here.predict(X), there.predict(torch.asarray(X)), atol=1e-7)


def test_neurons_do_not_depend_on_the_units_of_inputs_that_are_not_whitened():
    X, y = problem(n=1_500, d=6)
    first, other = (
        MultiIndexRegressor(2, whiten="none", linear=False, random_state=0).fit(scale * X, y)
        for scale in (1.0, 40.0)
    )
    np.testing.assert_allclose(first.predict(X), other.predict(40 * X), atol=1e-6)
