"""Layer-wise networks on torch tensors: the same fit, and no copies to the host in a loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.utils.validation import check_is_fitted

from solvable.arrays import ArraySource, clipped, is_tensor, random_stream
from solvable.errors import InvalidData
from solvable.fitting.ridge import ReadoutMoments, kernel_ridge
from solvable.learners import (
    Block,
    NeuralLoFiClassifier,
    NeuralLoFiRegressor,
    NeuralLoFiTransformer,
    network_blocks,
)
from solvable.operators import LabelMoments, RandomLift, patches
from solvable.operators.activations import ACTIVATIONS, dual_kernel, evaluate, kernel_diagonal
from solvable.operators.lift import average_pool

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::solvable.errors.NoFeatureFound"),
]

LEAVING = {"cpu", "numpy", "tolist", "__array__", "__dlpack__"}

NETWORKS = {
    "kernels": None,
    "series kernels": [Block(None, activation="tanh"), Block(7, whitening="std")],
    "narrow": [Block(None, 40), Block(6, 30, activation="gelu", whitening="centred")],
    "wide": [Block(None, 130), Block("auto", 120, first_moment=True)],
    "no filter": network_blocks(2, activation="erf"),
    "raw filter": [Block(4, 50)],
}


class Tracer(torch.overrides.TorchFunctionMode):
    """Count the arrays of more than a few numbers that are copied to the host."""

    def __init__(self):
        super().__init__()
        self.arrays = []

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        if getattr(function, "__name__", "") in LEAVING and arguments[0].numel() > 1:
            self.arrays.append(tuple(arguments[0].shape))
        return function(*arguments, **(keywords or {}))


def classes(n=240, d=8, seed=0):
    rng = random_stream(seed, "lofi devices")
    X = rng.standard_normal((n, d))
    return X, np.digitize(X[:, 0] ** 2 + X[:, 1] * X[:, 2], [-0.5, 1.0])


def copies(work, *arguments):
    with Tracer() as tracer:
        work(*arguments)
    return tracer.arrays


@pytest.mark.parametrize("blocks", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("many", [False, True])
def test_a_tensor_is_classified_as_the_array_is(blocks, many):
    X, y = classes() if many else load_wine(return_X_y=True)
    y = y if many else y % 2
    host = NeuralLoFiClassifier(blocks, random_state=0).fit(X[::2], y[::2])
    there = NeuralLoFiClassifier(blocks, random_state=0)
    there.fit(torch.asarray(X[::2]), torch.asarray(y[::2]))
    rest = torch.asarray(X[1::2])
    np.testing.assert_allclose(
        there.decision_function(rest), host.decision_function(X[1::2]), atol=1e-6
    )
    np.testing.assert_allclose(there.transform(rest), host.transform(X[1::2]), atol=1e-8)
    np.testing.assert_array_equal(there.predict(rest), host.predict(X[1::2]))
    for found, wanted in zip(there.filters_, host.filters_, strict=True):
        assert found.n_significant == wanted.n_significant
        np.testing.assert_allclose(found.eigenvalues, wanted.eigenvalues, rtol=1e-6, atol=1e-12)
    # A model fitted to a tensor predicts for arrays, and a model fitted to an array for tensors.
    np.testing.assert_allclose(there.transform(X), host.transform(torch.asarray(X)), atol=1e-8)


@pytest.mark.parametrize("blocks", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("scaling", ["columns", "global", "none"])
def test_regression_on_a_tensor(blocks, scaling):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:150], y[:150]
    host = NeuralLoFiRegressor(blocks, scaling=scaling, random_state=0).fit(X, y)
    tensor = torch.asarray(X).requires_grad_()
    there = NeuralLoFiRegressor(blocks, scaling=scaling, random_state=0).fit(tensor, y)
    np.testing.assert_allclose(there.predict(tensor), host.predict(X), rtol=1e-5)
    assert there.readout_.penalty == pytest.approx(host.readout_.penalty, rel=1e-6)


def test_images_on_a_tensor():
    rng = random_stream(1, "lofi images")
    X = rng.random((120, 72))
    y = (X[:, :36].sum(axis=1) > X[:, 36:].sum(axis=1)).astype(int)
    blocks = [Block(None, 10, patch=3), Block(6, math.inf, first_moment=True, pooling=2)]
    settings = {"image_shape": (6, 6, 2), "random_state": 0}
    host = NeuralLoFiClassifier(blocks, **settings).fit(X, y)
    there = NeuralLoFiClassifier(blocks, **settings).fit(torch.asarray(X), y)
    np.testing.assert_allclose(
        there.decision_function(torch.asarray(X)), host.decision_function(X), atol=1e-7
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_what_leaves_does_not_grow(name):
    blocks = NETWORKS[name]
    if name == "wide":  # with reduce="auto" a block is copied in each step of a null: see below
        blocks = [blocks[0], Block(9, 120, first_moment=True)]
    counts = []
    for n in (140, 420):
        X, y = classes(n)
        model = NeuralLoFiClassifier(blocks, random_state=0, null_replicates=2)
        counts.append(len(copies(model.fit, torch.asarray(X), y)))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("learner", [NeuralLoFiTransformer, NeuralLoFiClassifier])
@pytest.mark.parametrize("classes_left", [2, 3])
def test_samples_stay_where_a_number_of_directions_is_chosen(learner, classes_left):
    """Nulls and permutations read the features on the device; only blocks are copied."""
    X, y = classes(411)
    settings = {"random_state": 3, "null_replicates": 2}
    blocks = [Block(None, 90), Block("auto", 70)]
    here = learner(blocks, **settings).fit(X, y % classes_left)
    there = learner(blocks, **settings)
    left = copies(there.fit, torch.asarray(X), y % classes_left)
    assert left
    assert all(max(shape) <= 90 for shape in left), sorted(set(left))
    assert [one.n_significant for one in there.filters_] == [
        one.n_significant for one in here.filters_
    ]
    np.testing.assert_allclose(there.transform(X), here.transform(X), atol=1e-6)


def test_copies_of_each_stage():
    X, y = classes(300)
    tensor = torch.asarray(X)
    model = NeuralLoFiClassifier(random_state=0)
    fitted = copies(model.fit, tensor, y)
    # Copies: kernel of the filter; landmarks; samples, weights and mean of the ridge; scale and bounds;
    # errors of coarse penalties, of fine ones, and of the best.
    assert fitted.count((300, 300)) <= 2  # each copy is two calls
    assert len(fitted) <= 2 * 12
    for work in (model.predict, model.transform):
        left = copies(work, torch.asarray(np.tile(X, (20, 1))))
        assert len(left) <= 2  # the result, in two calls, however many chunks of rows
        assert {shape[0] for shape in left} == {6000}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_their_kernels(name):
    rng = random_stream(2, "activations", name)
    X = rng.standard_normal((20, 3))
    inner, size = X @ X.T / 3, np.sum(X**2, axis=1) / 3
    size[0], inner[0], inner[:, 0] = 0, 0, 0
    tensors = [torch.asarray(part) for part in (inner, size, size)]
    np.testing.assert_allclose(
        evaluate(name, torch.asarray(X)).numpy(), evaluate(name, X), rtol=1e-12
    )
    np.testing.assert_allclose(
        dual_kernel(name, *tensors).numpy(), dual_kernel(name, inner, size, size), atol=1e-12
    )
    np.testing.assert_allclose(
        kernel_diagonal(name, tensors[1]).numpy(), kernel_diagonal(name, size), atol=1e-12
    )


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_lift_there(kind):
    X = random_stream(3, "lift").standard_normal((10, 4))
    lift = RandomLift(4, 30, "tanh", 2.0, seed=5)
    found = lift.transform(torch.asarray(X, dtype=kind))
    assert found.dtype == kind
    np.testing.assert_allclose(found.numpy(), lift.transform(X), atol=1e-6)
    nowhere = torch.empty(10, 4, dtype=kind, device="meta")  # reading a number of it raises
    assert lift.transform(nowhere).device.type == "meta"


@pytest.mark.parametrize("size", [1, 3, 5])
def test_patches_and_pools_there(size):
    images = random_stream(4, "images").standard_normal((3, 6, 7, 2))
    tensor = torch.asarray(images)
    np.testing.assert_array_equal(patches(tensor, size).numpy(), patches(images, size))
    np.testing.assert_allclose(
        average_pool(tensor, size).numpy(), average_pool(images, size), atol=1e-15
    )


@pytest.mark.parametrize("real", [False, True])
def test_sums_there_and_in_parts(real):
    rng = random_stream(5, "sums")
    Z, y = rng.standard_normal((90, 6)), rng.integers(0, 3, 90)
    labels = rng.standard_normal(90) if real else y
    groups = 2 if real else 3
    here = LabelMoments(6, groups, classes=not real).add(Z, labels)
    there = LabelMoments(6, groups, classes=not real)
    ridge, ridge_there = (ReadoutMoments(6, 1) for _ in range(2))
    ridge.add(Z, labels[:, None] * 1.0)

    def summed():
        for start in range(0, 60, 20):
            part = slice(start, start + 20)
            there.add(torch.asarray(Z[part]), labels[part])
            ridge_there.add(torch.asarray(Z[part]), labels[part, None] * 1.0)

    assert not copies(summed)
    there.add(Z[60:], labels[60:])  # the rest from the host
    there.fetch()
    for group in range(groups):
        np.testing.assert_allclose(there.second(group), here.second(group), atol=1e-12)
    np.testing.assert_allclose(there.first, here.first, atol=1e-12)
    ridge_there.add(torch.asarray(Z[60:]), labels[60:, None] * 1.0)
    np.testing.assert_allclose(
        ridge_there.solve().coefficients, ridge.solve().coefficients, rtol=1e-9
    )


def test_ridge_of_a_large_kernel_there(monkeypatch):
    rng = random_stream(6, "ridge")
    Z, Y = rng.standard_normal((150, 12)), rng.standard_normal((150, 2))
    monkeypatch.setattr("solvable.fitting.ridge.TUNING_ROWS", 80)
    here = kernel_ridge(Z @ Z.T, Y)
    there = kernel_ridge(torch.asarray(Z @ Z.T), Y)
    np.testing.assert_allclose(there.coefficients, here.coefficients, rtol=1e-6, atol=1e-12)
    assert there.criterion == pytest.approx(here.criterion)


def test_single_precision():
    X, y = classes()
    single = NeuralLoFiClassifier(NETWORKS["narrow"], random_state=0)
    single.fit(torch.asarray(X, dtype=torch.float32), y)
    host = NeuralLoFiClassifier(NETWORKS["narrow"], random_state=0).fit(X.astype(np.float32), y)
    found = single.decision_function(torch.asarray(X, dtype=torch.float32))
    np.testing.assert_allclose(found, host.decision_function(X.astype(np.float32)), atol=2e-3)


def test_features_without_a_readout_and_whole_numbers():
    X, y = classes()
    whole = np.round(3 * X).astype(int)
    host = NeuralLoFiTransformer([Block(5, None)], random_state=0).fit(whole, y)
    there = NeuralLoFiTransformer([Block(5, None)], random_state=0).fit(torch.asarray(whole), y)
    check_is_fitted(there)
    np.testing.assert_allclose(
        there.transform(torch.asarray(whole)), host.transform(whole), atol=1e-10
    )
    assert is_tensor(torch.ones(2))
    assert not is_tensor(ArraySource(X))
    assert clipped(torch.asarray([-1.0, 3.0]), 0, 2).tolist() == [0, 2]


def broken(change):
    X, y = classes(20)
    X, y = torch.asarray(X), torch.asarray(y)
    return change(X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X[:, 0], y), "Expected 2D array, got 1D"),
        (lambda X, y: (X / 0, y), "NaN or infinity"),
        (lambda X, y: (X, y[1:]), "20 samples and y is 19 labels"),
        (lambda X, y: (X, None), "y is None"),
        (lambda X, y: (X[:1], y[:1]), "at least 2"),
        (lambda X, y: (torch.ones(20, 8), y), "all samples are the same"),
        (lambda X, y: (X, torch.zeros(20)), "one class only"),
    ],
)
def test_bad_tensors(change, words):
    with pytest.raises(InvalidData, match=words):
        NeuralLoFiClassifier().fit(*broken(change))


def test_other_columns_than_those_of_the_fit():
    X, y = classes()
    model = NeuralLoFiClassifier(NETWORKS["raw filter"], random_state=0).fit(torch.asarray(X), y)
    with pytest.raises(InvalidData, match="X has 3 features"):
        model.predict(torch.ones(2, 3))
