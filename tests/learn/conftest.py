from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from solvable.learn import design, plan, trees
from solvable.learn.competitors import CONSTANT, LEARNED


@pytest.fixture(scope="module", autouse=True)
def narrow_random_features() -> Iterator[None]:
    """Use fewer random features than by default, as these take half of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "DEFAULT_WIDTH", 200)
        yield


@pytest.fixture(scope="module", autouse=True)
def few_trees(request: pytest.FixtureRequest) -> Iterator[None]:
    """Try one setting of the trees, as they take most of the time of small tables."""

    def effort(rows: int, *_: int) -> trees.Effort:
        return trees.Effort(rows, (trees.Setting(8, 20),), 0.3, 5, 1, "")

    with pytest.MonkeyPatch.context() as patch:
        if not request.module.__name__.endswith("test_trees"):
            patch.setattr(trees, "effort_for", effort)
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
