from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from few_settings import few_settings

from solvable.learn import plan
from solvable.learn.competitors import CONSTANT, LEARNED


@pytest.fixture(scope="module", autouse=True)
def few(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tune the compared methods less, except in the files that test their tuning."""
    name = request.module.__name__
    tuned_trees, all_kernels = name.endswith("test_trees"), name.endswith("test_metric_kernel")
    with few_settings(tuned_trees=tuned_trees, all_kernels=all_kernels):
        yield


@pytest.fixture(scope="session")
def without_learning_curve() -> Callable[[], AbstractContextManager[None]]:
    """Context in which the fits to fewer rows are left out, which take half of the time."""

    @contextmanager
    def context() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plan, "training_sizes", lambda rows, **_: (rows,))
            yield

    return context


@pytest.fixture
def no_learning_curve(
    without_learning_curve: Callable[[], AbstractContextManager[None]],
) -> Iterator[None]:
    """Leave out the fits to fewer rows."""
    with without_learning_curve():
        yield


@pytest.fixture
def learned_features_alone(no_learning_curve: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare learned features with the constant alone, without a learning curve."""
    all_methods = plan.methods
    monkeypatch.setattr(
        plan,
        "methods",
        lambda design: [one for one in all_methods(design) if one.key in (LEARNED, CONSTANT)],
    )
