"""Unusable data and parameters out of range raise one clear error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from solvable.arrays import ArraySource, GeneratedSource, random_stream
from solvable.errors import InvalidData, InvalidParameter, NoFeatureFound, SolvableError
from solvable.learners import LayerwiseSpectralRegressor


def data(n=60, d=5):
    rng = random_stream("bad input")
    X = rng.standard_normal((n, d))
    return X, X[:, 0] ** 2 - X[:, 1] ** 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"degree": 4}, "degree is 4; allowed: 1, 2, 3"),
        ({"degree": True}, "degree is True"),
        ({"n_directions": 0}, "n_directions is 0; allowed"),
        ({"n_directions": "all"}, "n_directions is 'all'; allowed"),
        ({"n_directions": 2.5}, "n_directions is 2.5"),
        ({"n_directions": ()}, "n_directions is empty"),
        ({"n_directions": (3, None)}, "n_directions is"),
        ({"n_directions": 16}, "more than the D = 15 features"),
        ({"selection": "forced"}, "'auto' with selection='forced'"),
        ({"selection": "all"}, "selection is 'all'; allowed: outliers, forced, modulus"),
        ({"label_map": "tan"}, "Did you mean 'tanh'"),
        ({"correction": "wicks"}, "Did you mean 'wick'"),
        ({"second_layer": "moment"}, "second_layer is 'moment'"),
        ({"readout": None}, "readout is None; allowed: spline, none"),
        ({"solver": "qr"}, "solver is 'qr'"),
        ({"solver": "gram"}, "route 'gram' needs"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"regularisation": np.inf}, "regularisation is inf"),
        ({"max_products": 0}, "max_products is 0"),
        ({"shuffle": "yes"}, "shuffle is 'yes'"),
        ({"cross_terms": 3}, "cross_terms is 3"),
        ({"held_back": 59}, "held_back is 59"),
        ({"held_back": 0}, "keeps no row"),
        ({"random_state": "seed"}, "random_state is 'seed'"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    X, y = data()
    with pytest.raises(InvalidParameter) as caught:
        LayerwiseSpectralRegressor(**{"solver": "lanczos", **parameters}).fit(X, y)
    assert message in str(caught.value)


def test_unknown_parameter():
    with pytest.raises(TypeError, match="n_component"):
        LayerwiseSpectralRegressor(n_component=3)
    with pytest.raises(ValueError, match="n_component"):
        LayerwiseSpectralRegressor().set_params(n_component=3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["X", "y", "source", "y of a source"])
def test_values_that_are_not_finite(value, where):
    X, y = data()
    (X if where in ("X", "source") else y)[3] = value
    samples = ArraySource(X) if "source" in where else X
    with pytest.raises(InvalidData, match=r"NaN|infinit"):
        LayerwiseSpectralRegressor(shuffle=False).fit(samples, y)


def test_held_back_rows_of_a_source_that_are_not_finite():
    X, y = data()
    X[-1, 0] = np.nan
    learner = LayerwiseSpectralRegressor(n_directions=2, selection="forced", shuffle=False)
    with pytest.raises(InvalidData, match="samples 0 to 14 are NaN"):
        learner.fit(ArraySource(X), y)


@pytest.mark.parametrize("wrap", [np.asarray, ArraySource])
def test_shapes_and_sizes(wrap):
    X, y = data()
    learner = LayerwiseSpectralRegressor()
    with pytest.raises(InvalidData, match=r"inconsistent|equal numbers"):
        learner.fit(wrap(X), y[:-1])
    with pytest.raises(InvalidData, match=r"1 sample|n_samples=1"):
        learner.fit(wrap(X[:1]), y[:1])
    with pytest.raises(InvalidData, match=r"0 sample|n_samples=0"):
        learner.fit(wrap(X[:0]), y[:0])
    with pytest.raises(InvalidData, match=r"1d array|two-dimensional|2D array"):
        learner.fit(wrap(X), np.stack([y, y], axis=1))
    with pytest.raises(InvalidData, match=r"2D array|two-dimensional"):
        learner.fit(wrap(X[:, 0]), y)


@pytest.mark.parametrize("value", [0.0, 1.0, -3e300, 0.1])
def test_constant_labels(value):
    X, _ = data()
    with pytest.raises(InvalidData, match="all 45 labels equal"):
        LayerwiseSpectralRegressor().fit(X, np.full(len(X), value))


def test_labels_constant_after_the_map():
    X, y = data()
    with pytest.raises(InvalidData, match="sends all labels to"):
        LayerwiseSpectralRegressor(label_map=np.ones_like).fit(X, y)


def test_two_samples_are_too_few_for_held_back_rows():
    X, y = data()
    with pytest.raises(InvalidParameter, match="keeps no row"):
        LayerwiseSpectralRegressor().fit(X[:2], y[:2])


def test_sparse_text_and_missing_labels():
    X, y = data()
    learner = LayerwiseSpectralRegressor()
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        learner.fit(sparse.csr_matrix(X), y)
    with pytest.raises(InvalidData, match="y"):
        learner.fit(X, None)
    with pytest.raises(InvalidData, match="could not convert"):
        learner.fit(X, np.array(["a"] * len(X)))
    with pytest.raises(InvalidData, match="1d array of numbers"):
        learner.fit(ArraySource(X), np.array(["a"] * len(X)))


def test_files_are_never_unpickled(tmp_path):
    _, y = data()
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidData, match="holds Python objects"):
        LayerwiseSpectralRegressor().fit(tmp_path / "objects.npy", y)
    with pytest.raises(FileNotFoundError):
        LayerwiseSpectralRegressor().fit(tmp_path / "absent.npy", y)


def test_prediction_for_other_columns_or_bad_values():
    X, y = data(200)
    learner = LayerwiseSpectralRegressor(1, n_directions=2, selection="forced", random_state=0).fit(
        X, y
    )
    for samples in (X[:, :-1], ArraySource(X[:, :-1])):
        for method in (learner.predict, learner.transform):
            with pytest.raises(InvalidData, match="X has 4 features, but Layerwise"):
                method(samples)
    X[5, 2] = np.nan
    for samples in (X, ArraySource(X)):
        with pytest.raises(InvalidData, match="NaN"):
            learner.predict(samples)


def test_samples_of_a_source_that_are_not_finite():
    source = GeneratedSource(lambda rows, rng: np.full((rows, 3), np.nan), 100, 3, seed=0)
    with pytest.raises(InvalidData, match="NaN or infinite"):
        LayerwiseSpectralRegressor().fit(source, np.arange(100.0))


def test_refused_for_want_of_memory(monkeypatch):
    X, y = data()
    monkeypatch.setattr("solvable.operators.routes.available_bytes", lambda: 100.0)
    with pytest.raises(SolvableError, match="exceeds the"):
        LayerwiseSpectralRegressor().fit(X, y)


def test_no_feature_is_a_warning_and_a_constant():
    rng = random_stream("nothing")
    X, y = rng.standard_normal((400, 20)), rng.standard_normal(400)
    learner = LayerwiseSpectralRegressor(random_state=0)
    with pytest.warns(NoFeatureFound, match=r"layer 1 found no feature .*inside the noise"):
        learner.fit(X, y)
    assert learner.directions_.shape == (210, 0)
    assert {one.reason for one in learner.rejected_} == {"below threshold"}
    np.testing.assert_allclose(learner.predict(X), np.full(400, y.mean()))
    assert learner.transform(X).shape == (400, 0)
    assert learner.get_feature_names_out().size == 0
