"""The system `kernel-staircase`: mean-field theory in its limits, and claims that can fail."""

import numpy as np
import pytest

from solvable.frame.power import power_rows
from solvable.models.sequential.kernel_staircase import degree_dimension
from solvable.models.sequential.kernel_staircase_system import (
    KernelParameters,
    measure,
    predict,
    sizes_of,
    system,
)
from solvable.study import Study, run_study


def test_learned_directions_are_no_more_than_samples():
    parameters = KernelParameters(dimension=20, samples=150, ridge=1e-3, hierarchy=1.0)
    every = predict(parameters)["learned"]
    # Equal eigenvalues and hardly a ridge: n of the D_1 + D_2 + D_3 directions, of each the same.
    share = 150 / sizes_of(parameters).sum()
    np.testing.assert_allclose(every, [share] * 3, rtol=2e-3)
    # That is the projection on n random directions: what is left is 1 - n / D.
    assert predict(parameters)["error"] == pytest.approx(1 - share, rel=5e-3)


def test_a_large_ridge_shrinks_every_degree_by_its_eigenvalue():
    parameters = KernelParameters(dimension=20, samples=200, ridge=1000.0, hierarchy=2.0)
    penalty = 1000 * degree_dimension(20, 3)
    expected = 200 * np.array([4.0, 2.0, 1.0]) / (penalty + 200 * np.array([4.0, 2.0, 1.0]))
    np.testing.assert_allclose(predict(parameters)["learned"], expected, rtol=0.01)


def test_two_degrees_far_apart_are_learned_one_after_the_other():
    # Degree 1 takes D_1 samples, and the rest of them learns degree 2 as one ridgeless degree.
    parameters = KernelParameters(
        dimension=20,
        samples=100,
        linear=0.5,
        quadratic=0.5,
        cubic=1e-9,
        hierarchy=1000.0,
        ridge=1e-3,
    )
    share = (100 - 20) / degree_dimension(20, 2)
    found = predict(parameters)
    np.testing.assert_allclose(found["learned"][:2], [1, share], atol=0.02)
    assert found["error"] == pytest.approx(0.5 * (1 - share) * 100 / 80, rel=0.03)
    assert found["error"] > found["best_error"]


def test_a_degree_without_energy_is_not_measured():
    parameters = KernelParameters(dimension=8, samples=50, linear=0.0)
    assert measure(parameters, np.random.default_rng(0))["learned"][0] is None
    assert predict(parameters)["learned"][0] is None


def test_claims_hold_and_fail_for_wrong_predictions(tmp_path):
    study = Study(system, {"dimension": [20], "samples": [5, 80, 300]}, replicates=16)
    result = run_study(study, tmp_path / "run", workers=1)
    assert {verdict.status for verdict in result.verdicts} == {"holds"}
    error, learned, bound = power_rows(system, result.points)
    assert error.chance == learned.chance == "fails"
    # A fit that learns nothing keeps above every bound: only a wrong bound is noticed.
    assert None not in (error.fails_from_above, learned.fails_from_above, bound.fails_from_above)
    assert [figure.name for figure in system.figures(result.points)] == ["error", "learned"]
