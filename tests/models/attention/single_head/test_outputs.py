"""Attention matrices and the proximal step of their squared loss."""

import numpy as np
import pytest

from solvable.models.attention.single_head.outputs import (
    SoftmaxOutput,
    forces,
    inverses,
    losses,
    proximal,
)


def logits_of(output, s):
    """Symmetric logits from contrasts, plus a common shift that has no effect."""
    h = np.sqrt(output.variances) * (s @ output.contrasts.T) + 3.7
    full = np.zeros((len(s), output.tokens, output.tokens))
    rows, columns = output.pairs
    full[:, rows, columns] = full[:, columns, rows] = h
    return full


@pytest.mark.parametrize(("tokens", "beta"), [(2, 1.0), (3, 0.4), (5, 2.5)])
def test_values_are_the_softmax_of_symmetric_logits(tokens, beta):
    output = SoftmaxOutput(tokens, beta)
    s = np.random.default_rng(0).standard_normal((7, output.size))
    weights = np.exp(beta * logits_of(output, s))
    expected = weights / weights.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(output.values(s), expected.reshape(7, -1), rtol=1e-12)


@pytest.mark.parametrize("tokens", [2, 3, 4])
def test_contrasts_of_independent_indices_are_independent(tokens):
    output = SoftmaxOutput(tokens)
    C, v = output.contrasts, output.variances
    np.testing.assert_allclose(C.T @ C, np.eye(output.size), atol=1e-12)
    np.testing.assert_allclose(C.T @ (1 / np.sqrt(v)), 0.0, atol=1e-12)


@pytest.mark.parametrize(("tokens", "beta"), [(2, 1.3), (4, 0.7)])
def test_derivatives_are_those_of_the_loss(tokens, beta):
    output, rng = SoftmaxOutput(tokens, beta), np.random.default_rng(1)
    s, y = (
        rng.standard_normal((6, output.size)),
        output.values(2 * rng.standard_normal((6, output.size))),
    )
    H, J = output.hessian(s, y, convex=False), output.jacobian(s)
    for k in range(output.size):
        step = 1e-5 * np.eye(output.size)[k]
        up, down = s + step, s - step
        slope = (losses(output, up, y) - losses(output, down, y)) / 2e-5
        np.testing.assert_allclose(-slope, forces(output, s, y)[:, k], atol=1e-8)
        bend = (forces(output, up, y) - forces(output, down, y)) / 2e-5
        np.testing.assert_allclose(-bend, H[:, k], atol=1e-8)
        np.testing.assert_allclose(
            (output.values(up) - output.values(down)) / 2e-5, J[:, :, k], atol=1e-8
        )
    convex = output.hessian(s, y, convex=True)
    assert np.linalg.eigvalsh(convex - H).min() > -1e-12
    assert np.linalg.eigvalsh(convex).min() > -1e-12
    np.testing.assert_allclose(inverses(convex + np.eye(output.size)),
                               np.linalg.inv(convex + np.eye(output.size)), atol=1e-12)  # fmt: skip


@pytest.mark.parametrize(("tokens", "variance"), [(2, 0.3), (2, 40.0), (3, 5.0)])
def test_the_proximal_step_is_the_minimum(tokens, variance):
    from scipy.optimize import minimize

    output, rng = SoftmaxOutput(tokens, 1.5), np.random.default_rng(2)
    omega = rng.standard_normal((20, output.size))
    # as on trained samples, labels are close to outputs and there is one minimum
    y = output.values(omega + 0.5 * rng.standard_normal(omega.shape))
    found = proximal(output, y, omega, variance)
    for k in range(20):

        def objective(s, k=k):
            near = np.sum((s - omega[k]) ** 2) / 2
            return variance * losses(output, s[None], y[k : k + 1])[0] + near

        best = min(
            minimize(objective, start, method="BFGS").fun
            for start in (omega[k], np.zeros(output.size), 3 * rng.standard_normal(output.size))
        )
        assert objective(found[k]) == pytest.approx(best, abs=1e-7)
