"""Acceptance checks of a prototype of label hierarchies (issue 26, section 9), at its own sizes.

The prototype: 20 inputs, 4 levels of 16 labels, two folds, threshold 0.15.
"""

import numpy as np
import pytest

from solvable.models.hierarchy.labels.learner import LabelCascadeClassifier
from solvable.models.hierarchy.labels.target import LabelHierarchy


def errors_by_block(samples, seed):
    """Errors on fresh inputs, shape (blocks, levels)."""
    target, rng = LabelHierarchy(seed=seed), np.random.default_rng([samples, seed])
    X, Y = target.sample(samples, rng)
    fresh, labels = target.sample(2000, rng)
    cascade = LabelCascadeClassifier(random_state=seed).fit(X, Y)
    wrong = [np.mean(stage != labels, axis=0) for stage in cascade.staged_predict(fresh)]
    return np.reshape(wrong, (-1, 4, 16)).mean(axis=2)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_level_is_learned_by_its_block_and_not_before(seed):
    errors = errors_by_block(2400, seed)
    for level in range(4):
        assert errors[level, level] < 0.02
        assert (errors[:level, level] > 0.25).all()


def test_fewer_samples_stop_the_cascade_earlier():
    # prototype: at n = 800 level 3 has the error 0.26, at n = 400 level 2 has the error 0.10
    few, fewer = (
        np.mean([errors_by_block(n, seed)[-1] for seed in range(6)], axis=0) for n in (800, 400)
    )
    assert few[1] < 0.02
    assert few[2] == pytest.approx(0.26, abs=0.06)
    assert fewer[0] < 0.02
    assert fewer[1] == pytest.approx(0.10, abs=0.05)
