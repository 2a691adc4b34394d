"""Learners of two layers, Gaussian first layers, and the form of the first step."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.compositional.first_layer import model_of
from solvable.models.compositional.latent_layers import form_overlap
from solvable.models.compositional.measure import explained, measure
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.predict import predict
from solvable.models.compositional.two_layers import predicted_two_layer_error
from solvable.models.compositional.upper_layers import make_target
from solvable.operators import HermiteFeatures


def test_the_predicted_error_is_that_of_least_squares():
    # Independent route: ordinary least squares on all monomials of degree up to 2, for the four first
    # layers of the prediction. The mean test error of 4 x 40,000 rows has a standard error of 0.01, and
    # that of 4 fits as much.
    setting = CompositionalParameters(dimension=12, features=3, teacher=6, samples=4_000)
    rng = random_stream("two layers")
    upper = np.triu_indices(12)
    errors = []
    for seed in range(4):
        target = make_target(setting, seed)
        (X, y), (X_test, y_test) = (target.sample(n, rng) for n in (4_000, 40_000))
        A, B = (
            np.column_stack([np.ones(len(Z)), (Z[:, :, None] * Z[:, None, :])[:, *upper]])
            for Z in (X, X_test)
        )
        found = np.linalg.lstsq(A, y, rcond=None)[0]
        errors.append(np.mean((B @ found - y_test) ** 2) / y_test.var())
    model = model_of(setting)
    predicted = predicted_two_layer_error(
        setting, share=model.degree_two_share, noise_ratio=model.degree_two_noise
    )
    assert np.mean(errors) == pytest.approx(predicted, rel=0.05)


def test_the_overlap_of_a_form_is_its_squared_cosine():
    rng = random_stream("form")
    forms = rng.standard_normal((2, 4, 4))
    forms += forms.transpose(0, 2, 1)
    forms /= np.linalg.norm(forms, axis=(1, 2))[:, None, None]
    truth = np.asarray(HermiteFeatures(2, 4).from_symmetric(forms))
    np.testing.assert_allclose(form_overlap(truth, 3 * forms[0])[0], 1.0, atol=1e-12)
    cosine = np.sum(forms[0] * forms[1])
    np.testing.assert_allclose(form_overlap(truth, forms[0])[1], cosine**2, atol=1e-12)


def test_a_gaussian_first_layer_is_a_target_of_degree_one_in_all_features():
    setting = CompositionalParameters(
        dimension=12, features=2, samples=2_000, first_layer="gaussian"
    )
    equal = setting.equivalent
    assert (equal.dimension, equal.degree, equal.widths) == (78, 1, (2,))
    assert equal.n_features_total == setting.n_features_total
    # Gaussian features have no correction of order 1/d: c² = (nu - tau_2) / (nu - tau_2 + tau_2h) for
    # the mapped label; a strong feature at n/D = 26 is recovered better than with Hermite features.
    metrics, predicted = measure(setting, random_stream("g")), predict(setting)
    assert metrics["squared_overlap"] == pytest.approx(predicted["squared_overlap"], abs=0.08)
    hermite = predict(setting.model_copy(update={"first_layer": "orthonormal"}))
    assert predicted["subspace_overlap"] > hermite["subspace_overlap"] + 0.05


def test_explained_variance_is_that_of_a_known_mixture():
    rng = random_stream("mixture")
    h, noise = rng.standard_normal((2, 40_000, 2))
    features = np.column_stack([0.6 * h[:, 0] + 0.8 * noise[:, 0], noise[:, 1]])
    # standard error of a coefficient of determination: 2 (0.6)(0.64) / 200 = 0.004
    np.testing.assert_allclose(explained(h, features), [0.36, 0.0], atol=0.012)


def test_a_network_learns_degree_four_after_its_filter():
    setting = CompositionalParameters(
        learner="neural-lofi", dimension=10, features=1, samples=800, test_samples=2_000
    )
    metrics = measure(setting, random_stream("network"))
    assert metrics["squared_overlap"][0] > 0.8
    assert metrics["normalised_mse"] < 0.7 * metrics["two_layer_normalised_mse"]
    assert predict(setting)["normalised_mse"] is None


def test_gradient_descent_finds_more_of_linear_features_than_the_spectral_step():
    shared = {
        "degree": 1, "dimension": 40, "features": 2, "second_layer": "diagonal", "decay": 0.0,
        "readout": "tanh", "samples": 800, "test_samples": 2_000,
    }  # fmt: skip
    setting = CompositionalParameters(learner="gradient-descent", **shared)
    trained = measure(setting, random_stream("descent"))
    spectral = measure(CompositionalParameters(**shared), random_stream("descent"))
    assert min(trained["squared_overlap"]) > 0.95
    assert trained["subspace_overlap"] > spectral["subspace_overlap"] + 0.02
    assert trained["normalised_mse"] < 0.5
    assert predict(setting)["normalised_mse"] is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"learner": "gradient-descent", "samples": 600}, "degree 1"),
        ({"learner": "gradient-descent", "degree": 1, "samples": 10**6}, "1e7"),
        ({"learner": "neural-lofi", "samples": 6_000}, "up to 5000 samples"),
        ({"learner": "neural-lofi", "samples": 500, "degree": 3}, "degree 2"),
        ({"first_layer": "sphere"}, "allowed: .*gaussian"),
    ],
)
def test_settings_outside_the_range_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        CompositionalParameters(**values)
