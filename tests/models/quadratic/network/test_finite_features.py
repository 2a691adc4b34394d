"""Errors of single features at a finite dimension."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.quadratic.network.feature_groups import (
    feature_groups,
    group_errors,
    group_means,
    group_sizes,
    grouped,
)
from solvable.models.quadratic.network.finite_size import finite_group_errors, noise_of_samples
from solvable.models.quadratic.network.measure import measure
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.predict import predict
from solvable.models.quadratic.network.solutions import state_of
from solvable.spectra.denoiser import feature_deviations

POWER_LAW = {"target": "power-law", "exponent": 1.0, "noise": 0.5, "regularisation": 0.2}
RANDOM = {"width_ratio": 0.3, "noise": 0.5, "regularisation": 0.1}


def drawn_changes(parameters: QuadraticParameters, draws: int) -> np.ndarray:
    """Change of the errors of groups and of their mean by the uneven noise, in each draw."""
    state, d = state_of(parameters), parameters.dimension
    rng = random_stream("uneven noise", d)
    if parameters.target == "power-law":
        strengths = np.sort(state.law.target.nodes)[::-1]
    else:  # typical eigenvalues of a random target, and exact zeros
        law = state.law.target
        places = (np.arange(d) + 0.5) / d
        mass = np.cumsum(law.node_weights) - law.node_weights / 2
        strengths = np.interp(places, mass, law.nodes)[::-1]
        strengths[parameters.target_rank :] = 0.0
    m, e = feature_deviations(state.law, state.threshold, strengths)
    excess = 8 * (e[:, None] + e + np.outer(m, m)) / (d * state.test_error)
    changes = []
    for _ in range(draws):
        noise = rng.standard_normal((d, d))
        noise = state.effective_noise * (noise + noise.T) / np.sqrt(2 * d)
        errors = []
        for factor in (1.0, np.sqrt(1 + excess)):
            values, vectors = np.linalg.eigh(np.diag(strengths) + noise * factor)
            learned = (vectors * np.maximum(values - state.threshold, 0)) @ vectors.T
            errors.append(np.sum((learned - np.diag(strengths)) ** 2, axis=0))
        change = errors[1] - errors[0]
        changes.append([*group_means(change, feature_groups(parameters)), change.mean()])
    return np.array(changes)


@pytest.mark.parametrize(
    "setting",
    [
        {**POWER_LAW, "dimension": 40, "sample_ratio": 0.8},
        {**POWER_LAW, "dimension": 60, "sample_ratio": 0.3, "regularisation": 1.0},
        {**RANDOM, "dimension": 60, "sample_ratio": 0.8},
    ],
    ids=["learned", "few samples", "random target"],
)
def test_uneven_noise_in_drawn_matrices(setting):
    """Errors change as predicted to first order (quadratic 39)."""
    parameters = QuadraticParameters(**setting)
    state, ends = state_of(parameters), feature_groups(parameters)
    deviations = feature_deviations(state.law, state.threshold)
    change = noise_of_samples(state, parameters.dimension, *deviations)
    predicted, errors = (
        np.append(groups, group_sizes(parameters) @ groups / parameters.dimension)
        for groups in (grouped(state.law.target, change, ends), group_errors(state, ends))
    )
    found = drawn_changes(parameters, 300)
    error = found.std(axis=0, ddof=1) / np.sqrt(300)
    largest = (predicted / errors).max()
    assert largest > 0.04
    assert np.all(np.abs(found.mean(axis=0) - predicted) < 4 * error + largest**2 * errors)


def test_few_nodes_resolve_narrow_peaks():
    """Neighbouring strengths of a continuous target have nearly equal changes."""
    state = state_of(QuadraticParameters(**RANDOM, dimension=60, sample_ratio=1.0))
    order = np.argsort(state.law.target.nodes)
    deviations = feature_deviations(state.law, state.threshold)
    change = noise_of_samples(state, 60, *deviations)[order]
    steps = np.abs(np.diff(change)) / change.max()
    assert change.min() > 0
    assert steps.max() < 0.05


@pytest.mark.parametrize("sensing", ["network", "goe"])
def test_the_mean_over_features_is_the_corrected_error(sensing):
    parameters = QuadraticParameters(**POWER_LAW, dimension=25, sample_ratio=1.0, sensing=sensing)
    found = predict(parameters)
    mean = group_sizes(parameters) @ found["finite_size_feature_errors"] / 25
    assert mean == pytest.approx(found["finite_size_matrix_error"], rel=1e-9)
    same = finite_group_errors(
        state_of(parameters), feature_groups(parameters), found["matrix_error"], samples=False
    )
    assert same == pytest.approx(found["feature_errors"], rel=1e-12)


def test_features_that_are_not_learned_keep_their_error():
    """Only the first feature is learned, and those below it have the error of their strength."""
    setting = POWER_LAW | {"regularisation": 20.0, "sample_ratio": 1.0, "dimension": 100}
    found = predict(QuadraticParameters(**setting))
    limit = np.array(found["feature_errors"])
    corrected = np.array(found["finite_size_feature_errors"])
    assert corrected[0] > 1.01 * limit[0]
    assert corrected[1:5] == pytest.approx(limit[1:5], rel=1e-3)


def test_measured_errors_of_single_features():
    """Corrected errors agree with trained networks; those of the limit do not."""
    parameters = QuadraticParameters(**POWER_LAW, dimension=24, sample_ratio=1.0)
    rows = [
        measure(parameters, random_stream("single features", k))["feature_errors"]
        for k in range(100)
    ]
    found, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
    prediction = predict(parameters)
    corrected = np.array(prediction["finite_size_feature_errors"])
    limit = np.array(prediction["feature_errors"])
    # leverages change the error of a feature by a relative d / n = 1 / 24
    assert np.all(np.abs(found - corrected) < 3 * error + corrected / 24)
    assert np.all(found - limit > 3 * error)
