"""Tensors with a gradient are accepted as samples."""

from __future__ import annotations

import numpy as np
import pytest

from solvable import learners
from solvable.diagnose import diagnose_matrix
from solvable.forecast import LearningCurve

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "name",
    ["NeuralLoFiClassifier", "NeuralLoFiRegressor"],
)
def test_a_learner_takes_them_as_arrays(name):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((150, 6))
    y = (X[:, 0] > 0).astype(float)
    options = {"random_state": 0}
    plain = getattr(learners, name)(**options).fit(X, y).predict(X)
    kept = torch.tensor(X, requires_grad=True)
    other = getattr(learners, name)(**options).fit(kept, torch.tensor(y, requires_grad=True))
    # A network is fitted on the device of the tensor, with the same result to rounding.
    np.testing.assert_allclose(other.predict(kept), plain, rtol=1e-9, atol=1e-9)


def test_so_do_diagnosis_and_forecast():
    weights = torch.randn(30, 50, generator=torch.Generator().manual_seed(3), requires_grad=True)
    assert diagnose_matrix(weights).values.shape == (30,)
    curve = LearningCurve(
        torch.tensor([10.0, 20.0], requires_grad=True),
        torch.tensor([0.5, 0.25], requires_grad=True),
    )
    assert curve.errors.tolist() == pytest.approx([0.5, 0.25])
