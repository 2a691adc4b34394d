"""State evolution of a trained attention head."""

import numpy as np
import pytest
from linear_token import Linear

from solvable.models.attention.single_head.evolution import Evolution, gaussian_points
from solvable.models.attention.single_head.outputs import SoftmaxOutput, forces, proximal
from solvable.models.attention.single_head.theory import solve_output
from solvable.models.quadratic.narrow_theory import instability, solve_narrow
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.spectra.product_measure import marchenko_pastur
from solvable.spectra.thresholds import interpolation_threshold, perfect_recovery_threshold


def solve(alpha, rho, penalty, noise, *, tokens=2, inverse_temperature=1.0):
    output, target = SoftmaxOutput(tokens, inverse_temperature), marchenko_pastur(rho)
    return solve_output(Evolution(output, target, alpha, noise, penalty))


def roughly(alpha, rho, penalty, noise, *, tokens=2, start=None):
    """State evolution with few quadrature points."""
    output, target = SoftmaxOutput(tokens), marchenko_pastur(rho)
    return solve_output(Evolution(output, target, alpha, noise, penalty), start, 1_024)


@pytest.mark.parametrize(
    ("alpha", "rho", "noise", "penalty"),
    [(0.5, 0.2, 0.5, 0.02), (0.3, 1.5, 0.0, 0.3), (0.15, 0.5, 0.3, 0.05), (2.0, 0.1, 3.0, 0.4)],
)
def test_one_linear_token_is_the_quadratic_network(alpha, rho, noise, penalty):
    target = marchenko_pastur(rho)
    found = solve_output(Evolution(Linear(), target, alpha, noise, penalty))
    known = solve_quadratic(target, sample_ratio=alpha, label_noise=noise, regularisation=penalty)
    # 0.3 %: error of Sobol averages of quadratic functions
    for name in ("matrix_error", "train_error", "trace", "objective"):
        assert getattr(found, name) == pytest.approx(getattr(known, name), rel=3e-3), name
    # the noise variance of an index is v Delta / 2 = Delta
    assert found.noisy_test_error == pytest.approx(known.test_error, rel=3e-3)
    assert found.rank_fraction == pytest.approx(known.rank_fraction, abs=1e-3)
    narrow = solve_narrow(
        target, width_ratio=1.0, sample_ratio=alpha, label_noise=noise, regularisation=penalty
    )
    assert found.replicon == pytest.approx(instability(narrow, 600), rel=5e-3)


@pytest.mark.parametrize(
    ("setting", "test", "train", "error", "overlap", "norm"),
    [
        ((0.3, 0.3, 0.02, 0.4), 0.0679, 0.0217, 0.206, 1.022, 0.950),
        ((0.3, 1.0, 0.05, 1.0), 0.1712, 0.0491, 0.736, 1.012, 0.760),
        ((0.6, 0.3, 0.02, 0.4), 0.0347, 0.0373, 0.104, 1.136, 1.076),
        ((0.3, 0.3, 0.05, 0.0), 0.030, 0.012, 0.164, None, None),
    ],
)
def test_table_of_state_evolution(setting, test, train, error, overlap, norm):
    """Values of an independent solver (attention 11, attention 12)."""
    found = solve(*setting)
    # the reference agrees with itself to 0.4 % between scramblings; its last row is plain Monte Carlo
    within = 0.005 if overlap else 0.04
    assert found.test_error == pytest.approx(test, rel=within)
    assert found.train_error == pytest.approx(train, rel=within + 0.002)
    assert found.matrix_error == pytest.approx(error, rel=within + 0.002)
    if overlap:
        assert found.overlap == pytest.approx(overlap, rel=0.004)
        assert found.norm == pytest.approx(norm, rel=0.004)
    assert found.stable


@pytest.mark.parametrize(("tokens", "beta", "noise"), [(2, 1.0, 0.5), (3, 0.6, 0.0)])
def test_responses_are_derivatives_by_integration_by_parts(tokens, beta, noise):
    output = SoftmaxOutput(tokens, beta)
    evolution = Evolution(output, marchenko_pastur(0.4), 0.3, noise, 0.03)
    _, learned, seen, _ = evolution.fixed_point(2_048)
    s0, omega = evolution.indices(learned, 32_768, noise)
    y = output.values(s0)
    g = forces(output, proximal(output, y, omega, learned.response), y)
    moments = np.array([np.mean(np.sum(g * x, axis=1)) for x in (s0, omega)])
    m, q, total = learned.overlap, learned.norm, evolution.energy + noise / 2
    D0, D1 = np.linalg.solve([[total, m], [m, q]], moments)
    assert seen.overlap == pytest.approx(2 * 0.3 * D0, rel=0.02)
    assert seen.response == pytest.approx(-2 * 0.3 * D1, rel=0.02)


@pytest.mark.slow
def test_noiseless_heads_recover_beyond_the_threshold_whatever_the_tokens():
    for tokens in (2, 3):
        k = tokens * (tokens + 1) // 2 - 1
        threshold = perfect_recovery_threshold(0.2) / k
        below, above = (
            roughly(ratio * threshold, 0.2, 1e-4, 0.0, tokens=tokens) for ratio in (0.8, 1.25)
        )
        assert below.matrix_error > 0.02
        assert above.matrix_error < 1e-3


def test_noisy_labels_are_interpolated_below_the_threshold():
    threshold = interpolation_threshold(marchenko_pastur(0.3), label_noise=0.2).sample_ratio / 2
    assert threshold == pytest.approx(0.1511, abs=2e-4)
    below, above = (roughly(ratio * threshold, 0.3, 1e-5, 0.2) for ratio in (0.8, 1.25))
    assert below.train_error < 1e-5
    assert above.train_error > 2e-4


def test_much_regularisation_learns_nothing():
    found = solve(0.3, 0.3, 2.0, 0.4)
    assert found.rank_fraction == found.norm == found.overlap == 0
    assert found.matrix_error == pytest.approx(1.3, rel=1e-6)


def test_cold_heads_with_little_regularisation_are_called_unstable():
    assert not solve(0.3, 0.3, 1e-3, 4.0, inverse_temperature=3.0).stable


def test_neighbours_start_the_search_without_changing_the_answer():
    far = roughly(0.3, 0.3, 0.02, 0.4)
    near = roughly(0.35, 0.3, 0.02, 0.4, start=far.conjugates)
    assert near.matrix_error == pytest.approx(roughly(0.35, 0.3, 0.02, 0.4).matrix_error, rel=1e-5)


def test_points_are_always_the_same_and_balanced():
    points = gaussian_points(4, 1_024)
    np.testing.assert_array_equal(points[:512], -points[512:])
    assert not points.flags.writeable
    np.testing.assert_allclose(points.T @ points / 1_024, np.eye(4), atol=0.03)
