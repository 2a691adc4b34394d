"""Posteriors of directions given labels: plain quadrature, closed forms, sampling."""

import numpy as np
import pytest
from posteriors import output_message, posterior_given

from solvable.errors import InvalidData, InvalidParameter
from solvable.links import make_link
from solvable.message_passing import AdditiveChannel
from solvable.message_passing.channels import additive_output
from solvable.message_passing.line_posterior import LinePosterior
from solvable.message_passing.outputs import GaussianOutput


def output_of(formula, noise, **options):
    return additive_output(AdditiveChannel((make_link(formula, **options),), (1.0,), noise))


@pytest.mark.parametrize("overlap", [0.0, 0.6, 0.97])
@pytest.mark.parametrize(
    ("formula", "noise"),
    [
        ("abs", 0.13),
        ("he4", 0.4),
        ("cos(3*z)", 0.07),
        ("step(abs(z)-0.7)", 0.2),
        ("relu", 0.02),
        ("he2", 9.0),
    ],
)
def test_one_direction_agrees_with_quadrature_between_breakpoints(formula, noise, overlap):
    output = output_of(formula, noise)
    rng = np.random.default_rng(3)
    omega = np.sqrt(overlap) * rng.standard_normal((12, 1))
    V = 1 - overlap
    y = output.sample(omega + np.sqrt(V) * rng.standard_normal((12, 1)), rng)
    found = posterior_given(output, y)(omega, np.array([[V]]))
    nodes, weights = np.polynomial.legendre.leggauss(24)
    for i in range(12):
        centre = omega[i, 0]
        ends = centre + 8.5 * np.sqrt(V) * np.linspace(-1, 1, 60)
        edges = np.union1d(ends, [p for p in output.breakpoints if ends[0] < p < ends[-1]])
        half = np.diff(edges)[:, None] / 2
        z = (edges[:-1, None] + half + half * nodes).ravel()
        misfit = (y[i] - output.scalar(z)) ** 2 / (2 * noise)
        share = (half * weights).ravel() * np.exp(-misfit - (z - centre) ** 2 / (2 * V))
        total, first, second = (share @ (z - centre) ** k for k in range(3))
        assert found.mean[i, 0] == pytest.approx(centre + first / total, abs=1e-6)
        variance = second / total - (first / total) ** 2
        assert found.covariance[i, 0, 0] == pytest.approx(variance, abs=1e-6)
        evidence = np.log(total / (2 * np.pi * np.sqrt(noise * V)))
        assert found.log_evidence[i] == pytest.approx(evidence, abs=1e-6)


def test_absolute_value_without_noise_is_the_hyperbolic_tangent():
    output = output_of("abs", 0.0, standardised=False)
    rng = np.random.default_rng(0)
    omega = rng.standard_normal((200, 1))
    for V in (0.7, 0.02, 1e-3):
        y = np.abs(omega + np.sqrt(V) * rng.standard_normal((200, 1)))[:, 0]
        g = output_message(
            posterior_given(output, y)(omega, np.array([[V]])), omega, np.array([[V]])
        )
        # g = (y tanh(omega y / V) - omega) / V
        tangent = np.tanh(omega[:, 0] * y / V)
        np.testing.assert_allclose(g.values[:, 0], (y * tangent - omega[:, 0]) / V, atol=1e-7 / V)
        slope = (y**2 * (1 - tangent**2) / V - 1) / V
        assert g.slope[0, 0] == pytest.approx(slope.sum(), rel=1e-6)


@pytest.mark.parametrize("formula", ["z**2", "cos(2*z)", "he4", "abs(z)+0.3*z", "z**3"])
def test_small_noise_leads_to_the_preimages(formula):
    output, noisy = output_of(formula, 0.0), output_of(formula, 4e-4 if formula == "he4" else 2e-5)
    rng = np.random.default_rng(1)
    omega = 0.6 * rng.standard_normal((40, 1))
    z = omega + 0.8 * rng.standard_normal((40, 1))
    V = np.array([[0.64]])
    y = output.sample(z, rng)
    exact = posterior_given(output, y)(omega, V)
    near = posterior_given(noisy, y)(omega, V)
    # noise changes the evidence by about noise (g'' / g'²)², and by more at a kink or an extremum
    steep = np.abs(output.scalar(z[:, 0] + 1e-4) - output.scalar(z[:, 0] - 1e-4)) / 2e-4 > 0.5
    assert steep.sum() > 10
    for part in ("mean", "log_evidence"):
        off = np.abs(getattr(exact, part) - getattr(near, part))[steep]
        assert np.median(off) < 4e-3
        assert off.max() < 0.1


def test_a_narrow_cavity_is_resolved_after_a_wide_one():
    output = output_of("abs", 0.05)
    y, omega = np.array([0.4, -0.2]), np.array([[0.9], [0.3]])
    kept = posterior_given(output, y)
    kept(omega, np.eye(1))
    for V in (0.1, 1e-3):
        again = posterior_given(output, y)(omega, np.array([[V]]))
        np.testing.assert_allclose(kept(omega, np.array([[V]])).mean, again.mean, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GaussianOutput(np.sum, -0.1), "at least 0"),
        (lambda: GaussianOutput(np.sum, 0.1, 4), "1, 2 or 3"),
        (lambda: posterior_given(output_of("relu", 0.0), np.zeros(2))(np.zeros((2, 1)), np.eye(1)),
         "constant"),
        (lambda: posterior_given(output_of("he8", 1e-5), np.zeros(2))(np.zeros((2, 1)), np.eye(1)),
         "Raise the noise"),
    ],
)  # fmt: skip
def test_channels_without_a_posterior_are_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()


def test_labels_of_another_channel_are_refused():
    for noise, words in ((0.0, "not a value of the link"), (0.01, "standard deviations")):
        output = output_of("tanh", noise, standardised=False)
        with pytest.raises(InvalidData, match=words):
            posterior_given(output, np.array([0.1, 9.0]))(np.zeros((2, 1)), np.eye(1))


@pytest.mark.parametrize("formula", ["he2", "cosmix", "tanh"])
@pytest.mark.parametrize("consistent", [True, False])
def test_narrow_cavities_agree_with_nodes_on_the_line(formula, consistent):
    output = output_of(formula, 0.5)
    rng = np.random.default_rng(5)
    omega, V = rng.standard_normal((300, 1)), np.array([[5e-4]])
    # Labels of other latent coordinates are far outside narrow cavities.
    z = omega if consistent else rng.standard_normal((300, 1))
    y = output.sample(z + np.sqrt(V[0, 0]) * rng.standard_normal((300, 1)), rng)
    around, line = LinePosterior(output, y), LinePosterior(output, y)
    assert around.narrow**2 > V[0, 0]
    line.narrow = 0.0
    found, expected = around(omega, V), line(omega, V)
    for name, scale in (("mean", V[0, 0] ** 0.5), ("covariance", V[0, 0]), ("log_evidence", 1)):
        difference = np.abs(getattr(found, name) - getattr(expected, name)).max()
        # A label at almost seven deviations of the noise is the worst case.
        assert difference < (1e-7 if consistent else 1e-3) * scale
