"""The kernel of the lazy limit against wide networks with explicit gradients."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar.learner import kernel
from solvable.models.hierarchy.grammar.learner.kernel import LazyCNNClassifier, lazy_kernel
from solvable.models.hierarchy.target import RandomHierarchy


def features_and_gradients(string, vocabulary, branching, weights, readout):
    """Last activations, and the gradient of the output for all weights, which positions share.

    Scaling of the tangent kernel: relu with gain sqrt 2, and 1 / sqrt(width) also at the output.
    """
    V, s, width = vocabulary, branching, len(readout)
    states = np.stack(
        [
            np.full(V, V**-0.5) if a < 0 else (np.eye(V)[a] - 1 / V) / np.sqrt(1 - 1 / V)
            for a in string
        ]
    )
    inputs, slopes, norm = [], [], np.sqrt(s)
    for matrix in weights:
        patches = states.reshape(len(states) // s, -1) / norm
        before = patches @ matrix
        inputs.append(patches)
        slopes.append(np.sqrt(2) * (before > 0))
        states = np.sqrt(2) * np.maximum(before, 0)
        norm = np.sqrt(s * width)
    gradients = [states[0] / np.sqrt(width)]
    back = readout[None] / np.sqrt(width)
    for level in range(len(weights) - 1, -1, -1):
        back = back * slopes[level]
        gradients.append((inputs[level].T @ back).ravel())
        if level:
            back = (back @ weights[level].T / norm).reshape(-1, width)
    return states[0] / np.sqrt(width), np.concatenate(gradients)


@pytest.mark.parametrize(("vocabulary", "branching", "depth"), [(3, 2, 3), (4, 3, 2)])
def test_wide_networks_have_this_kernel(vocabulary, branching, depth):
    rng = random_stream(0, depth)
    X = rng.integers(0, vocabulary, (6, branching**depth))
    X[1] = X[0]
    X[1, 0] = (X[0, 0] + 1) % vocabulary  # near neighbours
    X[2, -1] = -1  # a masked leaf
    width, draws = 300, []
    for _ in range(12):
        sizes = [branching * vocabulary, *[branching * width] * (depth - 1)]
        weights = [rng.standard_normal((size, width)) for size in sizes]
        readout = rng.standard_normal(width)
        gradients = np.stack(
            [features_and_gradients(x, vocabulary, branching, weights, readout)[1] for x in X]
        )
        draws.append(gradients @ gradients.T)
    error = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    kernel = lazy_kernel(X, X, branching, vocabulary)
    # Four standard errors, plus corrections of order 1 / width.
    assert np.all(np.abs(np.mean(draws, axis=0) - kernel) < 4 * error + 3 * (depth + 1) / width)
    assert np.ptp(kernel) > 1


def test_kernel_is_positive_with_diagonal_of_one_more_than_the_depth():
    X, _ = RandomHierarchy(5, 2, 2, 3, seed=0).sample(60, 0, replace=False)
    kernel = lazy_kernel(X.astype(int), X.astype(int), 2, 5)
    np.testing.assert_allclose(np.diag(kernel), 4)
    np.testing.assert_allclose(kernel, kernel.T)
    assert np.linalg.eigvalsh(kernel)[0] > 1e-6


def test_blocks_of_rows_do_not_change_the_kernel(monkeypatch):
    rng = random_stream(1)
    X, Z = rng.integers(0, 3, (10, 4)), rng.integers(0, 3, (7, 4))
    whole = lazy_kernel(X, Z, 2, 3)
    monkeypatch.setattr(kernel, "BLOCK_NUMBERS", 60)
    np.testing.assert_array_equal(lazy_kernel(X, Z, 2, 3), whole)


def test_a_given_ridge_solves_the_centred_problem():
    from sklearn.kernel_ridge import KernelRidge

    X, y = RandomHierarchy(4, 2, 2, 2, seed=0).sample(50, 0)
    model = LazyCNNClassifier(regularisation=0.1).fit(X, y)
    K = lazy_kernel(X.astype(int), X.astype(int), 2, 4)
    centre = np.eye(50) - 1 / 50
    Y = np.eye(4)[y]
    other = KernelRidge(alpha=model.readout_.penalty, kernel="precomputed")
    other.fit(centre @ K @ centre, centre @ Y)
    expected = centre @ K @ centre @ other.dual_coef_ + Y.mean(axis=0)
    np.testing.assert_allclose(model._outputs(X.astype(int)), expected, atol=1e-8)
    with pytest.raises(InvalidParameter, match="regularisation is -1"):
        LazyCNNClassifier(regularisation=-1).fit(X, y)
