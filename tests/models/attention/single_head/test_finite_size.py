"""First order in 1/d of a trained head (attention 16, attention 17)."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from linear_token import Linear

from solvable.arrays import random_stream
from solvable.errors import NotConverged
from solvable.models.attention.single_head import outputs
from solvable.models.attention.single_head.evolution import Evolution
from solvable.models.attention.single_head.finite_size import _Order, finite_size
from solvable.models.attention.single_head.measure import measure
from solvable.models.attention.single_head.parameters import SingleHeadParameters
from solvable.models.attention.single_head.predict import predict
from solvable.models.attention.single_head.theory import solve_output
from solvable.models.attention.single_head.two_tokens import gap_proximal
from solvable.models.quadratic.network.finite_size import finite_sizes
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.product_measure import marchenko_pastur


@pytest.mark.parametrize(
    ("alpha", "rho", "noise", "penalty"),
    [(0.5, 0.5, 0.5, 0.1), (0.3, 1.0, 1.0, 0.2), (1.0, 0.3, 0.5, 0.05)],
)
def test_one_linear_token_has_the_closed_forms_of_the_quadratic_network(alpha, rho, noise, penalty):
    target = marchenko_pastur(rho)
    known = solve_quadratic(target, sample_ratio=alpha, label_noise=noise, regularisation=penalty)
    _, expected = finite_sizes(known)
    evolution = Evolution(Linear(), target, alpha, noise, penalty)
    found = finite_size(evolution, solve_output(evolution), rho, size=60, samples=4_096)
    # the scatter of four drawn targets is a fifth of the first order of the error
    assert found.matrix_error == pytest.approx(expected.matrix_error, rel=0.25)
    # the first order of the training error is small compared with that of the matrix error
    assert found.train_error == pytest.approx(expected.train_error, abs=0.15)


def solved(alpha, **values):
    parameters = SingleHeadParameters(sample_ratio=alpha, **values)
    evolution = Evolution(
        parameters.output, parameters.law, alpha, parameters.noise, parameters.regularisation
    )
    return evolution, solve_output(evolution, count=4_096)


def order_at(evolution, place):
    return _Order(evolution, place, 0.3, 60, 1_024, 0.0)


@pytest.mark.parametrize("alpha", [0.3, 0.6])
def test_differences_along_other_directions_have_the_same_first_order(alpha):
    """Central differences in q^, m^, Sigma^ and lambda, all computed afresh at each end."""
    evolution, state = solved(alpha)
    found = finite_size(evolution, state, 0.3, size=60, samples=1_024)
    x = np.append(state.conjugates, np.log(evolution.regularisation))
    low, high = (
        [order_at(evolution, x + step).at((0, 0, 0, 0)) for step in sign * 0.004 * np.eye(4)]
        for sign in (-1, 1)
    )
    moved = np.array([b.coordinates - a.coordinates for a, b in zip(low, high, strict=True)])
    change = [b.gaussian + b.shape - a.gaussian - a.shape for a, b in zip(low, high, strict=True)]
    slopes = np.linalg.solve(moved, change)
    here = order_at(evolution, x).at((0, 0, 0, 0))
    # steps of different length differ by about 0.005 in slopes of about 0.5
    assert found.overlap == pytest.approx(-2 * slopes[1], abs=0.02)
    assert found.norm == pytest.approx(4 * slopes[2], abs=0.02)
    train_error = (here.gaussian + here.shape - slopes[3]) / alpha
    assert found.train_error == pytest.approx(train_error, rel=0.02)


def test_the_derivative_of_the_envelope_in_the_variance_of_noisy_indices():
    evolution, state = solved(0.3)
    place = np.append(state.conjugates, np.log(evolution.regularisation))
    low, here, high = (
        order_at(replace(evolution, noise=noise), place) for noise in (0.39, 0.4, 0.41)
    )
    learned = here.one.learn(state.conjugates)
    # the variance Q + noise / 2 changes by 0.01
    expected = (high._envelope(learned)[0] - low._envelope(learned)[0]) / 0.01
    assert here._envelope(learned)[1] == pytest.approx(expected, rel=1e-3)


def test_no_first_order_where_samples_have_two_minima():
    evolution, state = solved(0.3, inverse_temperature=2.0)
    assert state.split > 0
    with pytest.raises(NotConverged, match="two proximal minima"):
        finite_size(evolution, state, 0.3, size=60, samples=1_024)


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        {"dimension": 40, "sample_ratio": 0.4, "rank_ratio": 0.7, "regularisation": 0.05, "noise": 0.8},
        {"dimension": 40, "sample_ratio": 0.2, "tokens": 3, "regularisation": 0.05, "noise": 0.3},
    ],
)  # fmt: skip
def test_trained_heads_are_where_the_first_order_says(setting):
    parameters = SingleHeadParameters(**setting)
    prediction = predict(parameters)
    records = [measure(parameters, random_stream("finite", seed)) for seed in range(16)]
    for name in ("matrix_error", "test_error", "train_error"):
        values = np.array([record[name] for record in records])
        error = values.std(ddof=1) / 4
        expected = prediction[f"finite_size_{name}"]
        assert abs(values.mean() - expected) < 0.05 * expected + 3 * error, name


@pytest.mark.parametrize("ratio", [0.1, 0.3, 1.0])
def test_a_prediction_takes_few_proximal_steps_and_spectra(ratio, monkeypatch):
    counts = {"samples": 0, "laws": 0}

    def counted_proximal(gaps, labels, *others):
        counts["samples"] += len(labels)
        return gap_proximal(gaps, labels, *others)

    def counted_law(self, *targets, **options):
        counts["laws"] += 1
        law(self, *targets, **options)

    law = SpectralLaw.__init__
    monkeypatch.setattr(outputs, "gap_proximal", counted_proximal)
    monkeypatch.setattr(SpectralLaw, "__init__", counted_law)
    predict(SingleHeadParameters(sample_ratio=ratio, dimension=55))
    # 160,000 to 174,000 samples with 15 to 26 laws
    assert 0 < counts["samples"] < 200_000
    assert 0 < counts["laws"] < 32


def test_scipy_is_imported_only_for_a_prediction():
    code = (
        "import sys; from solvable.models.attention.single_head import parameters, predict; "
        "parameters.SingleHeadParameters(); "
        "print(sorted(name for name in sys.modules if name.startswith('scipy')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
