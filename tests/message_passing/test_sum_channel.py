"""Information and messages of a sum of even links, against direct integrals and other code."""

from __future__ import annotations

import numpy as np
import pytest
from posteriors import messages_of, posterior_given

from solvable.errors import InvalidParameter
from solvable.inference.smooth import Noisy
from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel, additive_output
from solvable.message_passing.sum_channel import SumChannel


def channel(*names, noise=0.4):
    amplitudes = tuple(1 / (k + 1) for k in range(len(names)))
    return AdditiveChannel(tuple(make_link(name) for name in names), amplitudes, noise)


def quantiles(count):
    from scipy.special import ndtri

    return ndtri((np.arange(count) + 0.5) / count)


@pytest.mark.parametrize("name", ["he2", "abs", "cosmix"])
@pytest.mark.parametrize("q", [0.2, 0.8])
def test_information_of_one_direction(name, q):
    one = channel(name)
    found, _ = SumChannel(one).information(np.array([q]), quantiles(400)[:, None])
    assert found[0] == pytest.approx(Noisy(additive_output(one)).information(1 - q), rel=3e-3)


def test_information_of_two_directions_agrees_with_direct_integrals():
    two = channel("he2", "cosmix")
    overlaps, normals = np.array([0.5, 0.3]), np.array([[0.6, -1.1], [1.4, 0.2]])
    found, log_evidence = SumChannel(two).information(overlaps, normals)
    z, step = np.linspace(-6, 6, 97, retstep=True)
    y, cell = np.linspace(-7, 16, 160, retstep=True)
    values = two.links[0](z)[:, None] / 1 + two.links[1](z)[None, :] / 2
    expected, evidence = np.zeros(2), 0.0
    for row in normals:
        omega, V = np.sqrt(overlaps) * row, 1 - overlaps
        first, second = (
            np.exp(-((z - m) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v) * step
            for m, v in zip(omega, V, strict=True)
        )
        weight = (first[:, None] * second[None, :]).ravel()
        slopes = ((z - omega[0]) / V[0], (z - omega[1]) / V[1])
        likelihood = np.exp(-((y[:, None] - values.ravel()) ** 2) / 0.8) / np.sqrt(0.8 * np.pi)
        p = likelihood @ weight
        for k in range(2):
            slope = slopes[k][:, None] if k == 0 else slopes[k][None, :]
            derivative = likelihood @ (weight * np.broadcast_to(slope, (z.size, z.size)).ravel())
            expected[k] += np.sum(derivative**2 / np.maximum(p, 1e-300)) * cell / 2
        evidence += np.sum(p * np.log(np.maximum(p, 1e-300))) * cell / 2
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert log_evidence == pytest.approx(evidence, abs=1e-3)


def test_messages_of_one_direction_are_those_of_its_posterior():
    one, rng = channel("abs"), np.random.default_rng(2)
    z, omega, V = rng.standard_normal(600), 0.6 * rng.standard_normal((600, 1)), np.array([[0.4]])
    y = one.sample(z[:, None], rng)
    found = SumChannel(one).messages(y, omega, V)
    expected = messages_of(posterior_given(additive_output(one), y))(omega, V)
    np.testing.assert_allclose(found.values, expected.values, atol=5e-3)
    np.testing.assert_allclose(found.slope, expected.slope, rtol=5e-3)


def test_messages_of_two_directions_are_slopes_of_the_evidence():
    two, V = channel("he2", "abs"), np.array([0.5, 0.7])
    y, omega = np.array([0.4, 2.0]), np.array([[0.3, -0.8], [1.2, 0.5]])
    z = np.linspace(-6, 6, 241)
    values = two.clean(
        np.stack([part.ravel() for part in np.meshgrid(z, z, indexing="ij")], axis=1)
    )

    def log_evidence(label, mean):
        first, second = (np.exp(-((z - m) ** 2) / (2 * v)) for m, v in zip(mean, V, strict=True))
        weight = np.outer(first, second).ravel()
        return np.log(weight @ np.exp(-((label - values) ** 2) / 0.8))

    found = SumChannel(two).messages(y, omega, np.diag(V)).values
    for k in range(2):
        small = 1e-3 * np.eye(2)[k]
        for row in range(2):
            ends = [log_evidence(y[row], omega[row] + sign * small) for sign in (1, -1)]
            assert found[row, k] == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=5e-3)


@pytest.mark.parametrize(
    ("names", "noise", "words"),
    [(("he2", "tanh"), 0.4, "not even"), (("he2",), 0.0, "larger noise")],
)
def test_other_channels_are_refused(names, noise, words):
    with pytest.raises(InvalidParameter, match=words):
        SumChannel(channel(*names, noise=noise))
