"""Kernels of strings: functions of the Hamming distance, chosen by leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar.learner.kernel import KernelClassifier
from solvable.models.hierarchy.target import RandomHierarchy

TARGET = RandomHierarchy(vocabulary=5, rules=3, branching=2, depth=2, seed=0)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_outputs_are_kernel_ridge_of_the_hamming_distance(kernel):
    X, y = TARGET.sample(150, 0)
    Z, _ = TARGET.sample(40, 1)
    model = KernelClassifier(kernel=kernel, random_state=0).fit(X, y)
    fit = model.model_
    different = (X[:, None] != X[None]).sum(axis=2)
    across = (Z[:, None] != X[None]).sum(axis=2)
    median = np.median(different[different > 0])

    def of(distances):
        scaled = distances / (fit.bandwidth_ * median)
        return np.exp(-scaled if kernel == "gaussian" else -np.sqrt(scaled))

    # A free intercept is a penalty on the centred kernel only.
    K, Y = of(different), np.eye(5)[y]
    rows = of(across) - K.mean(axis=0)
    centre = np.eye(150) - 1 / 150
    dual = np.linalg.solve(centre @ K @ centre + fit.readout_.penalty * np.eye(150), Y - Y.mean(0))
    np.testing.assert_allclose(
        model._outputs(Z.astype(int)), rows @ centre @ dual + Y.mean(axis=0), atol=1e-6
    )


def test_the_linear_kernel_is_ridge_on_one_hot_columns():
    X, y = TARGET.sample(200, 0)
    model = KernelClassifier(kernel="linear", random_state=0).fit(X, y)
    columns = np.eye(5)[X].reshape(200, -1)
    fit = model.model_
    # One-hot vectors of norm 1 and mean 0 are sqrt(1 - 1/V) times shorter before standardisation.
    penalty = fit.readout_.penalty * fit.bandwidth_ * fit._median * (1 - 1 / 5)
    expected = Ridge(penalty).fit(columns, np.eye(5)[y]).predict(columns)
    np.testing.assert_allclose(model._outputs(X.astype(int)), expected, atol=1e-6)


def test_auto_is_the_kernel_with_the_least_leave_one_out_error():
    X, y = TARGET.sample(200, 0)
    single = {
        kernel: KernelClassifier(kernel=kernel, random_state=0).fit(X, y).model_.readout_.criterion
        for kernel in ("gaussian", "laplace", "linear")
    }
    chosen = KernelClassifier(random_state=0).fit(X, y)
    assert chosen.kernel_ == min(single, key=single.get)
    assert chosen.model_.readout_.criterion == pytest.approx(min(single.values()))


def test_unknown_kernel():
    X, y = TARGET.sample(20, 0)
    with pytest.raises(InvalidParameter, match=r"kernel .*cubic.*allowed"):
        KernelClassifier(kernel="cubic").fit(X, y)
