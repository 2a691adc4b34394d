"""Learners refuse numbers whose products overflow; no prediction is NaN."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import solvable.learners
from solvable.errors import InvalidData, InvalidParameter, SolvableError
from solvable.learners import LangevinEnsemble, MultiIndexRegressor, QuadraticNetRegressor

REGRESSORS = [
    learner
    for learner in (getattr(solvable.learners, name) for name in solvable.learners.__all__)
    if inspect.isclass(learner) and hasattr(learner, "predict") and "Class" not in learner.__name__
]


def samples() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).standard_normal((60, 6))
    return X, X[:, 0] ** 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learner", REGRESSORS)
@pytest.mark.parametrize("factors", [(1e250, 1.0), (1.0, 1e250), (1e150, 1e150)])
def test_no_learner_predicts_nan(learner, factors):
    X, y = samples()
    with np.errstate(all="ignore"):
        try:
            predicted = learner().fit(factors[0] * X, factors[1] * y).predict(factors[0] * X[:3])
        except SolvableError:
            return
    assert np.isfinite(predicted).all()


@pytest.mark.parametrize("learner", [LangevinEnsemble(steps=20), QuadraticNetRegressor()])
def test_products_that_overflow_are_refused(learner):
    X, y = samples()
    for factors in ((1e35, 1.0), (1.0, 1e35)):
        with (
            np.errstate(all="ignore"),
            pytest.raises(InvalidData, match=r"allowed: up to 1e\+30"),
        ):
            learner.fit(factors[0] * X, factors[1] * y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learner", [LangevinEnsemble(steps=20), QuadraticNetRegressor()])
def test_new_samples_whose_predictions_overflow_are_refused(learner):
    X, y = samples()
    fitted = learner.fit(X, y)
    with np.errstate(all="ignore"), pytest.raises(InvalidData, match="predictions overflow"):
        fitted.predict(1e250 * X)


def test_passes_without_end_are_refused():
    with pytest.raises(InvalidParameter, match=r"deflation is 1000000000; allowed: .*100"):
        MultiIndexRegressor(deflation=10**9).fit(*samples())
