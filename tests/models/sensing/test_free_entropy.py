"""Free entropy and mutual information by integrated errors, against other routes (sensing 24)."""

import numpy as np
import pytest

from solvable.message_passing.attention_channels import SignOfIndex
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.rectangular_signal import RectangularSignal
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.sensing.free_entropy import (
    _matrix_term,
    free_entropy,
    label_information,
    scored_information,
)
from solvable.models.sensing.information import polynomial_integral
from solvable.spectra import SpectralLaw, discrete, marchenko_pastur

SIGNALS = (
    (RectangularSignal(2.0, 0.5), 1.0),
    (SymmetricSignal(marchenko_pastur(0.5)), 2.0),
    (SymmetricSignal(discrete(np.array([2.0, -1.0, -1.0]))), 2.0),
)


def information(signal, factor, alpha, noise):
    channel = GaussianIndices(np.array([factor]), np.array([noise]))
    error = float(signal_evolution(signal, channel, alpha).error)
    return free_entropy(signal, channel).mutual_information(alpha, error), error


@pytest.mark.parametrize(("signal", "factor"), SIGNALS)
def test_information_grows_by_its_rate(signal, factor):
    """I-MMSE: derivatives of the information in the sample ratio and in the noise."""
    alpha, noise = 0.4, 0.2
    _, error = information(signal, factor, alpha, noise)
    step = 0.02
    low, high = (information(signal, factor, alpha * (1 + s), noise)[0] for s in (-step, step))
    rate = np.log1p(factor * error / noise) / 2
    assert (high - low) / (2 * step * alpha) == pytest.approx(rate, rel=3e-3)
    low, high = (information(signal, factor, alpha, noise * (1 + s))[0] for s in (-step, step))
    lost = -alpha * factor * error / (2 * noise * (noise + factor * error))
    assert (high - low) / (2 * step * noise) == pytest.approx(lost, rel=3e-3)


def test_the_matrix_term_is_the_log_energy():
    """psi(r) = -Sigma(mu_{1/r}) / 2 - log(r) / 4 + const for a symmetric matrix (arXiv:2503.14121)."""
    signal = SymmetricSignal(marchenko_pastur(0.5))

    def log_energy(t):
        law = SpectralLaw(signal.spectrum, noise=t**0.5)
        order = np.argsort(law.x)
        x, weights = law.x[order], law.weights[order]
        middle = np.cumsum(weights) - weights / 2
        # quantiles of equal mass; the diagonal of the double sum by the local density
        m = 1_500
        places = np.interp((np.arange(m) + 0.5) / m, middle / weights.sum(), x)
        distance = np.abs(places[:, None] - places)
        gaps = np.gradient(places)
        np.fill_diagonal(distance, gaps * np.exp(-1.5))
        return float(np.mean(np.log(distance)))

    E, matrix = _matrix_term(signal)

    def psi(t):  # -int_0^r mmse / 4
        r, e = 1 / t, float(signal.mmse(np.array([t]))[0])
        return -(np.interp(np.log(e), np.log(E), matrix) + r * e / 4)

    def energy_form(t):
        return -log_energy(t) / 2 + np.log(t) / 4

    assert psi(0.3) - psi(2.0) == pytest.approx(energy_form(0.3) - energy_form(2.0), abs=2e-3)


def highest(entropy, alpha):
    """Error of the node with the highest free entropy."""
    return entropy.error[np.argmax(entropy.values(alpha))]


@pytest.mark.parametrize(("signal", "factor"), SIGNALS)
def test_the_maximum_is_the_fixed_point(signal, factor):
    channel = GaussianIndices(np.array([factor]), np.array([0.1]))
    entropy = free_entropy(signal, channel)
    for alpha in (0.2, 0.6):
        error = float(signal_evolution(signal, channel, alpha).error)
        assert entropy.maxima(alpha) == 1
        # the nodes are 5 % apart
        assert highest(entropy, alpha) == pytest.approx(error, rel=0.06)


def test_published_free_entropy():
    """Data of arXiv:2410.18858 at L/d = 2, r/d = 1, alpha = 0.5, up to a constant.

    The published curve takes r = alpha / E from the labels instead of mmse(1 / r) = E; both forms have
    the same stationary points.
    """
    overlaps = np.array([0.1, 0.25261619535631386, 0.4845980833264829, 0.7048454047658499])
    published = np.array([-0.287733966, -0.274868403, -0.259894412, -0.264161922])
    signal, alpha = RectangularSignal(2.0, 1.0), 0.5
    error, matrix = _matrix_term(signal)
    E = 1 - overlaps
    denoised = signal.mmse(E / alpha)
    psi = -np.interp(np.log(denoised), np.log(error), matrix) - alpha / E * denoised / 2
    values = psi + alpha / 2 - alpha * np.log(E) / 2
    np.testing.assert_allclose(np.diff(values), np.diff(published), atol=3e-4)


def test_without_noise_the_maximum_moves_to_recovery():
    signal = RectangularSignal(1.0, 0.2)
    channel = GaussianIndices(np.array([1.0]), np.array([0.0]))
    entropy = free_entropy(signal, channel)
    assert highest(entropy, 0.5) == pytest.approx(0.0, abs=1e-6)
    assert highest(entropy, 0.3) == pytest.approx(0.347, rel=0.06)
    assert entropy.mutual_information(0.3, 0.347) is None


def test_a_sign_tells_at_most_one_bit():
    signal = SymmetricSignal(marchenko_pastur(0.5))
    channel = SignOfIndex(0.0, signal.second_moment)
    entropy = free_entropy(signal, channel)
    gained = [
        entropy.mutual_information(a, float(signal_evolution(signal, channel, a).error))
        for a in (0.01, 0.5, 1.0)
    ]
    # the sign of a known mean part is no information about the matrix
    assert 0.5 < gained[0] / (0.01 * np.log(2)) < 1
    assert gained[0] < gained[1] < gained[2] < np.log(2)


def test_a_score_and_an_integral():
    # a score with the true variance is the information
    assert scored_information(0.5, 1.5, 2.0) == pytest.approx(np.log(4) / 2)
    assert label_information(0.5, 1.5) == pytest.approx(np.log(4) / 2)
    x = np.array([0.1, 0.4, 0.5, 0.9])
    assert polynomial_integral(x, x**3) == pytest.approx((0.9**4 - 0.1**4) / 4)
