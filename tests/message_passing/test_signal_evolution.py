"""State evolution of matrices: published tables, plain iteration, limits, first-order jumps."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.spectra import discrete, marchenko_pastur


def sensing(noise):
    return GaussianIndices(np.array([2.0]), np.array([noise]))


@pytest.mark.parametrize(
    ("rho", "noise", "ratio", "error"),
    [
        (0.5, 0.25, 0.1895984, 0.541486),
        (0.5, 0.0, 0.2837087, 0.163771),
        (0.5, 0.25, 0.441063, 0.196819),
        (1.0, 0.1, 0.3, 0.34609),
        (1.0, 0.1, 0.6, 0.09466),
        (2.0, 0.5, 0.5, 0.34830),
    ],
)
def test_published_values(rho, noise, ratio, error):
    """Tables of arXiv:2408.03733 (rho = 0.5), and values of an independent solver (sensing 3)."""
    found = signal_evolution(SymmetricSignal(marchenko_pastur(rho)), sensing(noise), ratio)
    digits = 2e-6 if rho == 0.5 else 1e-5
    assert float(found.error) == pytest.approx(error, abs=digits)


def test_a_curve_is_where_plain_iteration_ends():
    signal, channel = SymmetricSignal(marchenko_pastur(0.3)), sensing(0.1)
    ratios = np.geomspace(0.03, 2.0, 7)
    found = signal_evolution(signal, channel, ratios)
    error = np.ones(7)
    for _ in range(400):
        error = signal.mmse(1 / (2 * ratios * channel.information(error)))
    assert found.error == pytest.approx(error, rel=1e-7)
    assert (np.diff(found.error) < 0).all()


def test_recovery_without_noise_is_a_limit():
    signal, threshold = SymmetricSignal(marchenko_pastur(0.4)), 0.4 - 0.08
    found = signal_evolution(signal, sensing(0.0), threshold * np.array([0.9, 0.999, 1.001, 3.0]))
    assert found.error[0] > 10 * found.error[1] > 0
    assert (found.error[2:] == 0).all()
    near = signal_evolution(signal, sensing(1e-7), 3 * threshold)
    assert 0 < float(near.error) < 1e-6
    # E = c t and t = (Delta + 2 E) / (4 alpha), with c the free parameters over d² / 2
    for noise in (1e-8, 1e-10, 1e-14):
        tiny = signal_evolution(signal, sensing(noise), 3 * threshold)
        expected = noise / (12 * threshold - 4 * threshold)
        assert float(tiny.noise) == pytest.approx(expected, rel=1e-4)


def test_general_spectra_and_multiples_of_the_identity():
    atoms = discrete(np.array([0.0, 3.0]), np.array([0.7, 0.3]))
    signal = SymmetricSignal(atoms)
    found = signal_evolution(signal, sensing(0.5), 50.0)
    # two well separated atoms: only the free parameters keep noise, E = t (1 - sum w²)
    assert float(found.error / found.noise) == pytest.approx(1 - 0.49 - 0.09, rel=1e-2)
    known = SymmetricSignal(discrete(np.array([2.0, 2.0])))
    assert float(signal_evolution(known, sensing(0.5), 1.0).error) == 0


def test_bad_ratio():
    with pytest.raises(InvalidParameter, match="sample_ratio"):
        signal_evolution(SymmetricSignal(marchenko_pastur(0.4)), sensing(0.1), -1.0)
