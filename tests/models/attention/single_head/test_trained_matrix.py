"""Training of the matrix S with a penalty on its Frobenius norm (attention 23)."""

from dataclasses import replace

import numpy as np
import pytest
import studies
from linear_token import Linear

from solvable.arrays import random_stream
from solvable.models.attention.single_head import learner
from solvable.models.attention.single_head.evolution import Evolution
from solvable.models.attention.single_head.finite_size import finite_size
from solvable.models.attention.single_head.measure import draw_samples, draw_teacher, measure
from solvable.models.attention.single_head.parameters import SingleHeadParameters
from solvable.models.attention.single_head.predict import predict, state_of
from solvable.models.attention.single_head.system import system
from solvable.models.attention.single_head.theory import solve_output
from solvable.spectra.product_measure import marchenko_pastur


def ridge_error(energy, alpha, noise, penalty):
    """Error of ridge regression on the d²/2 entries of S, by the Marchenko-Pastur law of the samples."""
    # gamma = 1 / (2 alpha) unknowns per sample; the penalty over n is z = lambda gamma
    gamma, z = 1 / (2 * alpha), penalty / (2 * alpha)

    def resolvent(z):
        root = np.sqrt((1 - gamma + z) ** 2 + 4 * gamma * z)
        return (gamma - 1 - z + root) / (2 * gamma * z)

    square = -(resolvent(z * (1 + 1e-5)) - resolvent(z * (1 - 1e-5))) / (2e-5 * z)
    return energy * z**2 * square + noise / 2 * gamma * (resolvent(z) - z * square)


@pytest.mark.parametrize(
    ("alpha", "rho", "noise", "penalty"),
    [(0.3, 0.5, 0.5, 0.1), (0.3, 0.2, 0.0, 0.02), (1.0, 1.5, 2.0, 0.5), (0.1, 0.3, 1.0, 0.3)],
)
def test_one_linear_token_is_ridge_regression(alpha, rho, noise, penalty):
    evolution = Evolution(Linear(), marchenko_pastur(rho), alpha, noise, penalty, ridge=True)
    found = solve_output(evolution)
    expected = ridge_error(evolution.energy, alpha, noise, penalty)
    # 0.5 %: error of Sobol averages of quadratic functions
    assert found.matrix_error == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("ratio", [0.05, 0.15])
def test_without_noise_and_penalty_the_error_falls_linearly(ratio):
    state = state_of(
        SingleHeadParameters(
            trained="matrix", sample_ratio=ratio, noise=0.0, regularisation=1e-4, dimension=100
        )
    )
    # a sample shows k = 2 of the d²/2 entries, so the share 2 k alpha of S is known; the penalty
    # raises the error by 3 % of Q at most
    assert 0 < state.matrix_error / 1.3 - (1 - 4 * ratio) < 0.03


def test_both_derivatives_that_give_the_norm_agree():
    # the penalty is the norm itself, so lambda and the source h_q / 4 are interchangeable
    parameters = SingleHeadParameters(trained="matrix", sample_ratio=0.3)
    evolution = Evolution(
        parameters.output,
        parameters.law,
        0.3,
        parameters.noise,
        parameters.regularisation,
        ridge=True,
    )
    found = finite_size(
        evolution, solve_output(evolution, count=4_096), 0.3, size=60, samples=1_024
    )
    assert abs(found.norm) > 0.05
    assert found.norm == pytest.approx(found.trace, rel=0.05)


def test_trained_matrices_are_where_the_first_order_says():
    parameters = SingleHeadParameters(
        trained="matrix", dimension=40, target="power-law", noise=1.0, regularisation=0.1
    )
    prediction = predict(parameters)
    records = [measure(parameters, random_stream("matrix", seed)) for seed in range(16)]
    assert prediction["threshold"] is None
    for name in (
        "matrix_error",
        "test_error",
        "noisy_test_error",
        "train_error",
        "norm",
        "overlap",
    ):
        values = np.array([record[name] for record in records])
        expected = prediction[f"finite_size_{name}"]
        # the limit is 3 to 8 % away
        assert abs(values.mean() - expected) < 0.01 * expected + 3 * values.std(ddof=1) / 4, name


@pytest.mark.parametrize("tokens", [2, 3])
def test_the_trained_matrix_is_the_stationary_point_of_its_objective(tokens):
    parameters = SingleHeadParameters(dimension=20, tokens=tokens, sample_ratio=0.4)
    rng = np.random.default_rng(2)
    factor, output, d = draw_teacher(parameters, rng)["factor"], parameters.output, 20
    sensors, _, labels = draw_samples(parameters, factor @ factor.T, parameters.n_samples, rng)
    found = learner.train_matrix(sensors, labels, output, regularisation=0.05)

    def objective(matrix):
        contrasts = learner.contrasts_of(output, sensors, matrix)
        return learner.losses(output, contrasts, labels).sum() / d**2 + 0.05 * np.sum(matrix**2) / d

    assert found.objective == pytest.approx(objective(found.matrix), rel=1e-10)
    for _ in range(3):
        change = rng.standard_normal((d, d))
        change = 1e-4 * (change + change.T)
        up, down = objective(found.matrix + change), objective(found.matrix - change)
        # the slope along the change is small compared with the curvature
        assert abs(up - down) < 0.05 * (up + down - 2 * found.objective)


def test_the_claim_on_both_trainings_fails_if_they_are_equally_good():
    setting = {"dimension": 40, "sample_ratio": 0.4, "regularisation": 0.05, "target": "power-law"}
    weights, matrix = (
        studies.point_of(system, setting | {"trained": trained}, 4, stream="trained")
        for trained in ("weights", "matrix")
    )
    claim = "weights-beat-matrix"
    assert studies.verdict_of(system, claim, [weights, matrix]).status == "holds"
    equal = replace(matrix, metrics=weights.metrics)
    assert studies.verdict_of(system, claim, [weights, equal]).status == "fails"
    assert studies.verdict_of(system, "rank", [matrix]).status == "not testable"
    studies.check_chance(system, [weights, matrix])
    names = {figure.name for figure in studies.figures_of(system, [weights, matrix], 3)}
    assert {"error-trained-matrix", "spectrum-trained-matrix-ratio-0.4"} <= names
    assert "rank-trained-matrix" not in names
