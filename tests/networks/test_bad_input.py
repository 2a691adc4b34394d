"""Invalid and extreme input of the filtered estimators."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.learners import (
    Block,
    NeuralLoFiClassifier,
    NeuralLoFiRegressor,
    NeuralLoFiTransformer,
)

BLOCKS = [Block(None, 20), Block(2, 10)]


def sample(n=60, d=5):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] * X[:, 1]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"scaling": "rows"}, "scaling"),
        ({"multiclass": "one-vs-rest"}, "multiclass"),
        ({"solver": "arpack"}, "solver"),
        ({"null_replicates": 0}, "null_replicates is 0"),
        ({"null_replicates": 2.5}, "null_replicates is 2.5"),
        ({"blocks": []}, "blocks is"),
        ({"blocks": [20]}, "blocks is"),
        ({"blocks": [Block(), Block(None, 10)]}, "without a filter"),
        ({"image_shape": (5, 1)}, "image_shape is"),
        ({"image_shape": 5}, "image_shape is 5"),
        ({"image_shape": (5, -1, -1)}, "3 integers"),
        ({"final_reduce": 0}, "reduce is 0"),
        ({"regularisation": -1.0}, "regularisation is -1.0"),
        ({"regularisation": "gcv"}, "regularisation is 'gcv'"),
        ({"random_state": "seed"}, "seed"),
    ],
)
def test_parameters_out_of_range(changes, match):
    X, y = sample()
    with pytest.raises(InvalidParameter, match=match):
        NeuralLoFiRegressor(**{"blocks": BLOCKS, **changes}).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["X", "y"])
def test_values_that_are_not_finite(bad, place):
    X, y = sample()
    (X if place == "X" else y)[3] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        NeuralLoFiRegressor(BLOCKS).fit(X, y)
    model = NeuralLoFiRegressor(BLOCKS, random_state=0).fit(*sample())
    if place == "X":
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.predict(X)


def test_labels_without_content():
    X, _ = sample()
    with pytest.raises(InvalidData, match="one class only"):
        NeuralLoFiClassifier(BLOCKS).fit(X, np.ones(60, dtype=int))
    with pytest.raises(InvalidData, match="one class only"):
        NeuralLoFiTransformer(BLOCKS).fit(X, np.ones(60, dtype=int))
    for value in (0.0, 0.1, 1e300):
        with pytest.raises(InvalidData, match="constant"):
            NeuralLoFiRegressor(BLOCKS).fit(X, np.full(60, value))
    with pytest.raises(ValueError, match="continuous"):
        NeuralLoFiClassifier(BLOCKS).fit(X, sample()[1])


def test_samples_without_content():
    _, y = sample()
    for value in (0.0, 0.1):
        with pytest.raises(InvalidData, match="columns that vary"):
            NeuralLoFiRegressor([Block(), Block(2)]).fit(np.full((60, 3), value), y)


def test_labels_near_the_largest_number_are_learned_from():
    X, y = sample()
    base = NeuralLoFiRegressor(BLOCKS, random_state=0).fit(X, y).predict(X)
    found = NeuralLoFiRegressor(BLOCKS, random_state=0).fit(X, 1e300 * y).predict(X)
    np.testing.assert_allclose(found / 1e300, base, atol=1e-9)


def test_too_few_rows_and_other_columns():
    X, y = sample()
    with pytest.raises(ValueError, match="minimum of 2"):
        NeuralLoFiRegressor(BLOCKS).fit(X[:1], y[:1])
    model = NeuralLoFiRegressor(BLOCKS, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        model.predict(X[:, :4])


@pytest.mark.parametrize("blocks", [[Block(), Block(50, None)], [Block(3, None), Block(9, None)]])
def test_more_directions_than_the_rank_are_capped_with_a_warning(blocks):
    X, y = sample(40, 5)
    X = X[np.repeat(np.arange(10), 4)]
    y = np.sign(y[np.repeat(np.arange(10), 4)])
    with pytest.warns(UserWarning, match="reduce is .* and the features have rank"):
        model = NeuralLoFiTransformer(blocks, random_state=0).fit(X, y)
    assert model.transform(X).shape[1] == (10 if blocks[0].width else 3)


@pytest.mark.parametrize("blocks", [[Block(None, 10**10)], [Block(None, 50), Block(2, 10**11)]])
def test_widths_that_cannot_fit_are_refused_before_anything_is_made(blocks):
    X, y = sample()
    with pytest.raises(MemoryLimitExceeded, match="smaller width"):
        NeuralLoFiRegressor(blocks).fit(X, y)


def test_kernels_that_cannot_fit_are_refused(monkeypatch):
    from solvable.networks import in_memory_fit as lofi_memory

    monkeypatch.setattr(lofi_memory, "available_bytes", lambda: 1e5)
    X, y = sample(100)
    with pytest.raises(MemoryLimitExceeded, match="kernels of 100 samples"):
        NeuralLoFiRegressor([Block(2, math.inf)]).fit(X, y)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 12),
    d=st.integers(1, 6),
    k=st.integers(1, 5),
    infinite=st.booleans(),
    seed=st.integers(0, 1000),
)
@pytest.mark.filterwarnings("ignore:reduce is .* and the features have rank:UserWarning")
def test_tiny_tables_give_finite_predictions_or_a_clear_error(n, d, k, infinite, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    width = math.inf if infinite else 7
    model = NeuralLoFiRegressor([Block(None, width), Block(k, width)], random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


@settings(max_examples=15, deadline=None)
@given(exponent=st.integers(-120, 120))
def test_units_far_from_one_are_no_obstacle(exponent):
    X, y = sample()
    base = NeuralLoFiRegressor(BLOCKS, random_state=0).fit(X, y).predict(X)
    size = 10.0**exponent
    found = NeuralLoFiRegressor(BLOCKS, random_state=0).fit(size * X, y).predict(size * X)
    np.testing.assert_allclose(found, base, atol=1e-6)
