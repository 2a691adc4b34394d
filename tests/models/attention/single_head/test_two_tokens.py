"""The route of two tokens against the route of any number of tokens."""

import numpy as np
import pytest

from solvable.models.attention.single_head import outputs
from solvable.models.attention.single_head.outputs import SoftmaxOutput, proximal, responses


def slowly(function, *arguments):
    """Call a function with the fast route of two tokens switched off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs, "_paired", lambda output: False)
        return function(*arguments)


def drawn(beta, count=400):
    rng, output = np.random.default_rng(0), SoftmaxOutput(2, beta)
    seen, omega = rng.standard_normal((2, count, 2))
    return output, seen, omega, output.values(seen + 0.5 * rng.standard_normal(seen.shape))


@pytest.mark.parametrize(("beta", "variance"), [(1.0, 0.3), (0.7, 20.0), (2.0, 2.0), (0.2, 300.0)])
def test_both_routes_find_the_same_minimum(beta, variance):
    output, _, omega, labels = drawn(beta)
    arguments = (output, labels, omega, variance)
    np.testing.assert_allclose(proximal(*arguments), slowly(proximal, *arguments), atol=1e-7)


@pytest.mark.parametrize(("beta", "target"), [(1.0, 1.0), (0.6, 1.5)])
def test_both_routes_have_the_same_responses(beta, target):
    output, seen, omega, labels = drawn(beta)
    teacher = SoftmaxOutput(2, target)
    arguments = (output, teacher, proximal(output, labels, omega, 1.5), labels, seen, 1.5)
    for fast, slow in zip(responses(*arguments), slowly(responses, *arguments), strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-7, atol=1e-12)


def test_convexified_steps_are_needed_and_end_at_a_minimum():
    """Labels far from the outputs, where Newton's step alone would rise."""
    output, _, omega, labels = drawn(3.0)
    labels = labels[::-1]
    s = proximal(output, labels, 3 * omega, 5.0)
    gradient = s - 3 * omega - 5.0 * outputs.forces(output, s, labels)
    assert np.abs(gradient).max() < 1e-6
    bend = np.eye(2) + 5.0 * output.hessian(s, labels, convex=False)
    assert np.linalg.eigvalsh(bend).min() > 0
