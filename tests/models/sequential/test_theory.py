"""`predict_sequential`: reference tables, limits, simulations, shapes and invalid arguments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.frame import registry
from solvable.frame.points import NO_PREDICTION
from solvable.models.sequential.predict import _uncovered
from solvable.theory import predict_sequential

D30 = 465
RATIOS = np.array([16, 32, 64, 128, 256, 512])
HARMONIC = np.arange(1, 17) ** -1.0


@pytest.fixture(scope="module")
def reference():
    """Prediction for 16 Gaussian features with decay 1."""
    return predict_sequential(weights=HARMONIC, n_features_total=D30, samples=RATIOS * D30)


def test_overlaps_far_above_threshold_are_those_of_the_closed_form(reference):
    """c² = (nu - 1) / (nu + 4 lambda²) to order D / n (sequential 8) (sequential 9)."""
    squares = HARMONIC**2 / np.sum(HARMONIC**2)
    nu = 2 * squares * RATIOS[:, None]
    closed = (nu - 1) / (nu + 4 * squares)
    far = nu > 8
    assert far.sum() > 12
    lost = 1 - reference.squared_overlap
    np.testing.assert_allclose(lost[far], 1 - closed[far], rtol=0.35, atol=0.01)


def test_reference_errors(reference):
    # Measured errors of in-sample layers for n/D = 32 to 512 (sequential 14).
    np.testing.assert_allclose(
        reference.normalised_mse_in_sample[1:], [1.23, 0.556, 0.257, 0.108, 0.044], rtol=0.15
    )
    # The closed form 1 - sum lambda² c⁴, to order D / n (sequential 11)
    np.testing.assert_allclose(
        reference.normalised_mse[2:], [0.193, 0.1180, 0.0681, 0.0365], rtol=0.12
    )
    assert np.all(reference.normalised_mse > reference.normalised_mse_tail_only)
    assert np.all(np.diff(reference.normalised_mse) < 0)


def test_thresholds_grow_as_the_closed_form(reference):
    """n_i = D / (2 lambda_i²) (sequential 7), up to the skewness of unmapped labels."""
    closed = D30 * np.sum(HARMONIC**2) / (2 * HARMONIC**2)
    np.testing.assert_allclose(reference.threshold_samples[-3:], closed[-3:], rtol=0.35)
    assert np.all(np.diff(reference.threshold_samples) > 0)
    out = reference.samples[:, None] > reference.threshold_samples
    assert np.all(reference.recovered == out)


def simulate(weights, D, ratio, seeds):
    """Simulated errors of fitted, in-sample and shrunk second layers, T = y."""
    p, rows = weights.size, []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        F = rng.standard_normal((ratio * D, D))
        y = (F[:, :p] ** 2 - 1) @ weights / np.sqrt(2)
        T = (y - y.mean()) / y.std()
        values, vectors = np.linalg.eigh((F.T * T) @ F / len(F))
        order = np.argsort(-np.abs(values))[:p]
        values, vectors = values[order] * y.std(), vectors[:, order]
        fresh = rng.standard_normal((20_000, D))
        label = (fresh[:, :p] ** 2 - 1) @ weights / np.sqrt(2)
        squares = (fresh @ vectors) ** 2 - 1
        half = squares[:10_000], squares[10_000:]
        layer = np.linalg.lstsq(half[0], label[:10_000], rcond=None)[0]
        test = label[10_000:]
        edge = 2 / np.sqrt(ratio)
        shrunk = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0))
        rows.append(
            [np.mean((half[1] @ b - test) ** 2) / test.var()
             for b in (layer, values / 2, shrunk / 2)]
        )  # fmt: skip
    return np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(seeds)


def test_simulated_errors_of_three_second_layers():
    weights = np.arange(1, 5) ** -0.7
    weights[1::2] *= -1
    weights /= np.linalg.norm(weights)
    D, ratio = 100, 64
    measured, error = simulate(weights, D, ratio, 6)
    prediction = predict_sequential(weights=weights, n_features_total=D, samples=ratio * D)
    predicted = [
        prediction.normalised_mse,
        prediction.normalised_mse_in_sample,
        prediction.normalised_mse_shrinkage,
    ]
    np.testing.assert_allclose(measured, predicted, rtol=0.09, atol=3 * error.max())


@pytest.mark.parametrize("samples", [10_000, np.array([10_000.0]), [10_000, 20_000]])
def test_shapes_follow_the_samples(samples):
    prediction = predict_sequential(
        weights=np.array([0.9, -0.4]), n_features_total=300, samples=samples
    )
    lead = np.shape(samples)
    assert prediction.squared_overlap.shape == prediction.recovered.shape == (*lead, 2)
    assert prediction.eigenvalues.shape == prediction.bulk_edges.shape == (*lead, 2)
    for name in ("", "_tail_only", "_in_sample", "_shrinkage"):
        assert np.shape(getattr(prediction, f"normalised_mse{name}")) == lead
    assert np.shape(prediction.noise_scale) == lead
    assert prediction.threshold_samples.shape == prediction.population_floor.shape == (2,)


@given(st.lists(st.floats(0.3, 1.0), min_size=1, max_size=3), st.floats(5.0, 300.0))
@settings(max_examples=5, deadline=None)
def test_weights_count_by_their_ratios(modulus, ratio):
    weights = np.array(modulus)
    arguments = {"n_features_total": 600, "samples": ratio * 600 * np.array([1.0, 2.0])}
    prediction = predict_sequential(weights=weights, **arguments)
    scaled = predict_sequential(weights=3 * weights, **arguments)
    np.testing.assert_allclose(scaled.squared_overlap, prediction.squared_overlap, rtol=1e-9)
    assert np.all((prediction.squared_overlap >= 0) & (prediction.squared_overlap < 1))
    assert np.all(np.diff(prediction.squared_overlap, axis=0) >= -1e-3)
    assert np.all((prediction.normalised_mse > 0) & (prediction.normalised_mse <= 1.05))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.array([0.8, 0.0])}, "finite and nonzero"),
        ({"weights": np.ones((2, 2))}, "weights have shape"),
        ({"weights": np.ones(51)}, "up to half of the directions, 50"),
        ({"n_features_total": 0}, "n_features_total"),
        ({"samples": 0}, "samples"),
        ({"samples": 1}, "fewer than the 2 directions"),
        ({"samples": np.ones((2, 2))}, "samples"),
    ],
)
def test_refusals(change, message):
    good = {"weights": np.array([0.8, 0.6]), "n_features_total": 100, "samples": 1000.0}
    with pytest.raises(InvalidParameter, match=message):
        predict_sequential(**{**good, **change})


def test_no_error_is_predicted_outside_the_range_of_unmapped_labels():
    """Many features, many samples, few inputs: 0.70, 0.44 and 0.79 by the theory.

    Measured are 0.666 +- 0.006, 0.396 +- 0.007 and 0.64 +- 0.02.
    """
    system = registry.load("sequential-recovery")
    for d, p, ratio in ((16, 9, 32), (20, 8, 170), (12, 2, 80)):
        setting = {"dimension": d, "features": p, "samples": ratio * d * (d + 1) // 2}
        assert _uncovered(system.parameters(**setting, label_map="identity"))
        assert not _uncovered(system.parameters(**setting))
    inside = {"dimension": 16, "features": 6, "samples": 30 * 136, "label_map": "identity"}
    assert not _uncovered(system.parameters(**inside))
    setting = {"dimension": 16, "features": 9, "signs": "positive", "samples": 4_352}
    refused = system.predict(system.parameters(**setting, label_map="identity"))
    assert refused["normalised_mse"] is None
    assert "24 % too high" in str(refused[NO_PREDICTION])
    mapped = system.predict(system.parameters(**setting))
    assert mapped["normalised_mse"] is not None
    assert NO_PREDICTION not in mapped
