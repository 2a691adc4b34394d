"""The system `kernel-staircase`: limits of the mean-field theory, and claims that can fail."""

import numpy as np
import pytest

from solvable.models.kernel_staircase import (
    KernelParameters,
    measure,
    predict,
    sizes_of,
    system,
)
from solvable.moment_spectrum.kernel_degrees import degree_dimension
from solvable.moment_spectrum.kernel_ridge import ridge_on_degrees
from solvable.study import Study, run_study


def test_learned_directions_are_no_more_than_samples():
    parameters = KernelParameters(dimension=20, samples=150, ridge=1e-3, hierarchy=1.0)
    every = predict(parameters)["learned"]
    # Equal eigenvalues and a small ridge: the fit learns n of the D_1 + D_2 + D_3 directions.
    assert sizes_of(parameters) @ every == pytest.approx(150, rel=5e-3)
    # Lower degrees have larger shares, as they dominate for inputs of small norm.
    assert every[0] > every[1] > every[2]
    found = [measure(parameters, np.random.default_rng([seed, 2]))["learned"] for seed in range(30)]
    error = np.std(found, axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(np.mean(found, axis=0) - every) <= 3.5 * error).all()


def test_a_large_ridge_shrinks_every_degree_by_its_eigenvalue():
    parameters = KernelParameters(dimension=20, samples=200, ridge=1000.0, hierarchy=2.0)
    penalty = 1000 * degree_dimension(20, 3)
    expected = 200 * np.array([4.0, 2.0, 1.0]) / (penalty + 200 * np.array([4.0, 2.0, 1.0]))
    np.testing.assert_allclose(predict(parameters)["learned"], expected, rtol=0.01)


def test_two_degrees_far_apart_are_learned_one_after_the_other():
    # Degree 1 uses D_1 samples; the remaining samples learn degree 2 without a ridge.
    parameters = KernelParameters(
        dimension=60,
        samples=300,
        linear=0.5,
        quadratic=0.5,
        cubic=1e-9,
        hierarchy=1000.0,
        ridge=1e-3,
    )
    share = (300 - 60) / degree_dimension(60, 2)
    found = predict(parameters)
    np.testing.assert_allclose(found["learned"][:2], [1, share], atol=0.02)
    assert found["error"] == pytest.approx(0.5 * (1 - share) * 300 / 240, rel=0.03)
    assert found["error"] > found["best_error"]


@pytest.mark.parametrize(
    "setting",
    [
        {"dimension": 5, "samples": 90, "noise": 0.5, "hierarchy": 20.0, "ridge": 0.1},
        {"dimension": 8, "samples": 60, "linear": 0.1, "hierarchy": 5.0, "ridge": 3.0},
        {"dimension": 10, "samples": 240, "linear": 0.8, "cubic": 0.7, "hierarchy": 300.0, "ridge": 0.02},
        {"dimension": 16, "samples": 260, "noise": 2.0, "hierarchy": 60.0, "ridge": 0.3},
    ],
)  # fmt: skip
def test_error_and_shares_of_small_dimensions(setting):
    parameters = KernelParameters(**setting)
    records = [measure(parameters, np.random.default_rng([seed, 8])) for seed in range(40)]
    found = predict(parameters)
    for name, within in (("error", 0.05 * found["error"]), ("learned", 0.06)):
        values = np.array([np.ravel(record[name]) for record in records])
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - found[name]) <= 3.5 * error + within).all(), name


def test_in_many_dimensions_norms_are_equal_and_the_law_is_that_of_one_threshold():
    # n = sum_p D_p eta_p / (eta_p + kappa) + penalty / kappa for one degree (kernel-staircase 3)
    d, n, penalty, noise = 240, 540, 42.0, 0.3
    found = ridge_on_degrees(
        samples=n, dimension=d, degrees=(1,), energies=np.ones(1), eigenvalues=np.ones(1),
        penalty=penalty, noise=noise,
    )  # fmt: skip
    half = (d + penalty - n) / 2
    kappa = (half + np.sqrt(half**2 + n * penalty)) / n
    share = 1 / (1 + kappa)
    amplified = n / (n - d * share**2)
    assert found.learned[0] == pytest.approx(share, rel=0.015)
    assert found.amplification == pytest.approx(amplified, rel=0.015)
    assert found.error == pytest.approx(amplified * ((1 - share) ** 2 + noise) - noise, rel=0.015)


def test_a_degree_without_energy_is_not_measured():
    parameters = KernelParameters(dimension=8, samples=50, linear=0.0)
    assert measure(parameters, np.random.default_rng(0))["learned"][0] is None
    assert predict(parameters)["learned"][0] is None


def test_claims_hold_and_fail_for_wrong_predictions(tmp_path):
    study = Study(system, {"dimension": [20], "samples": [5, 80, 300]}, replicates=16)
    result = run_study(study, tmp_path / "run", workers=1)
    assert {verdict.status for verdict in result.verdicts} == {"holds"}
    assert all(row.passes for row in system.power(result.points))
    assert [figure.name for figure in system.figures(result.points)] == ["error", "learned"]
