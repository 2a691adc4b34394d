"""Weak recovery of channels of several directions: closed forms, additive channels, sequences."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel, additive_output
from solvable.message_passing.outputs import GaussianOutput
from solvable.models.multi_index.recovery import recovery_sequence, weak_recovery


def product(z):
    return z[..., 0] * z[..., 1]


def sign_pair(z):
    return np.sign(product(z))


def square_and_sign(z):
    return z[..., 0] ** 2 + np.sign(z[..., 0] * z[..., 1] * z[..., 2])


@pytest.mark.parametrize(
    ("function", "p", "expected", "count"),
    [
        (lambda z: np.abs(z[..., 0]), 1, 0.5, 1),
        (product, 2, 0.593751, 2),
        (sign_pair, 2, np.pi**2 / 4, 2),
        (square_and_sign, 3, 0.57517, 1),
    ],
    ids=["modulus", "product", "sign pair", "square and sign"],
)
def test_thresholds_of_the_note(function, p, expected, count):
    step = weak_recovery(GaussianOutput(function, 0.0, p))
    assert step.kind == "easy"
    # 1e-3 is the note's tolerance; cells of 256 samples leave a few times that in tails
    assert step.threshold_ratio == pytest.approx(expected, rel=4e-3)
    assert step.directions.shape == (p, count)


@pytest.mark.parametrize(
    ("links", "noise"), [(("abs", "he2"), 0.3), (("relu",), 0.2), (("sign",), 0.5)]
)
def test_additive_channels_agree_with_their_exact_moments(links, noise):
    channel = AdditiveChannel(
        tuple(make_link(name) for name in links), (1.0, 0.7)[: len(links)], noise
    )
    step = weak_recovery(additive_output(channel))
    moments = channel.moments
    if moments.linear_information.max() > 1e-3:
        assert (step.kind, step.threshold_ratio) == ("trivial", 0.0)
    else:
        assert step.threshold_ratio == pytest.approx(moments.weak_recovery_ratio.min(), rel=0.01)


def test_directions_are_found_in_sequence():
    # The sign of the others is seen once the first coordinate is known: P(y, z_1) tells z_2 z_3.
    steps = recovery_sequence(GaussianOutput(square_and_sign, 0.0, 3))
    assert [step.kind for step in steps] == ["easy", "easy"]
    assert abs(steps[0].directions[0, 0]) == pytest.approx(1, abs=1e-3)
    assert steps[1].threshold_ratio == pytest.approx(np.pi**2 / 4, rel=0.05)
    assert steps[1].directions.shape == (3, 2)
    # A sign of three coordinates has no part of degree two, and none is known.
    hard = recovery_sequence(GaussianOutput(lambda z: np.sign(z.prod(axis=-1)), 0.0, 3))
    assert [step.kind for step in hard] == ["hard"]
    assert np.isinf(hard[0].threshold_ratio)


def test_known_directions_may_point_anywhere():
    output = GaussianOutput(lambda z: z[..., 0] + z[..., 0] * z[..., 1], 0.1, 2)
    known = np.array([[1.0], [0.0]])
    step = weak_recovery(output, known)
    assert step.kind == "trivial"
    assert abs(step.directions[1, 0]) == pytest.approx(1)
    with pytest.raises(InvalidParameter, match="allowed"):
        weak_recovery(output, np.eye(2))
    with pytest.raises(InvalidParameter, match="allowed"):
        weak_recovery(output, 2 * known)
