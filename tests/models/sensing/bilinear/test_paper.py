"""Bilinear sequence regression: published values, message passing, limits (arXiv:2410.18858)."""

import time

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.rectangular_signal import RectangularSignal
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.models.sensing.bilinear.measure import estimate_by_messages, measure
from solvable.models.sensing.bilinear.parameters import BilinearParameters
from solvable.models.sensing.bilinear.predict import (
    curve,
    infinite_aspect_error,
    predict,
    recovery_ratio,
    ridge_error,
    weak_recovery,
)
from solvable.operators.rectangular_sensors import BilinearSensors


def error(beta, rho, noise, alpha):
    channel = GaussianIndices(np.array([1.0]), np.array([noise]))
    return signal_evolution(RectangularSignal(beta, rho), channel, alpha).error


@pytest.mark.parametrize(
    ("beta", "rho", "noise", "alpha", "published"),
    [
        (1, 0.2, 0.0, 0.1, 0.876891),
        (1, 0.2, 0.0, 0.3, 0.347405),
        (1, 0.2, 0.0, 0.34, 0.146506),
        (1, 0.2, 0.1, 0.2, 0.721679),
        (1, 0.2, 0.1, 0.4, 0.324512),
        (2, 1.0, 0.1, 0.2, 0.813220),
        (2, 1.0, 0.1, 0.4, 0.614743),
        (2, 0.2, 0.1, 0.2, 0.629276),
        (2, 0.2, 0.1, 0.4, 0.180141),
    ],
)
def test_tables_of_the_authors(beta, rho, noise, alpha, published):
    """State evolution against the published tables of arXiv:2410.18858 (sensing 15)."""
    assert float(error(beta, rho, noise, alpha)) == pytest.approx(published, abs=2e-6)


def test_message_passing_at_sixty_rows():
    """0.3245 within 0.05 at d = 60, three runs (sensing 15)."""
    parameters = BilinearParameters(sample_ratio=0.4, rank_ratio=0.2, noise=0.1, dimension=60)
    runs = [measure(parameters, random_stream("check 9", i))["matrix_error"] for i in range(3)]
    assert float(predict(parameters)["matrix_error"]) == pytest.approx(0.3245, abs=1e-4)
    assert np.mean(runs) == pytest.approx(0.3245, abs=0.05)


def test_recovery_is_where_the_degrees_of_freedom_are():
    """Without noise the error vanishes above r (d + L - r) samples, d L for r >= d (sensing 16)."""
    for beta, rho in ((1.0, 0.3), (4.0, 0.7), (2.0, 1.5)):
        threshold = recovery_ratio(beta, rho)
        below, above = error(beta, rho, 0.0, threshold * np.array([0.97, 1.01]))
        assert below > 0.005
        assert above == 0
    assert [recovery_ratio(3.0, 2.0), recovery_ratio(3.0, 1.0)] == pytest.approx([1, 1])


@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_many_factors_are_no_structure(noise):
    """rho -> infinity gives the ridge error, 0.821699 at alpha = 0.2 and Delta = 0.1 (sensing 18)."""
    assert float(ridge_error(0.2, 0.1)) == pytest.approx(0.821699, abs=1e-6)
    alpha = np.array([0.1, 0.6, 1.0, 3.0])
    assert error(2.0, 1e6, noise, alpha) == pytest.approx(ridge_error(alpha, noise), rel=1e-5)
    assert ridge_error(np.array([0.3, 2.0]), 0.0) == pytest.approx([0.7, 0.0])


@pytest.mark.parametrize(("rho", "alpha", "noise"), [(0.2, 0.3, 0.1), (1.0, 0.5, 0.1)])
def test_a_long_matrix(rho, alpha, noise):
    """beta -> infinity: closed equation for q = 1 - E of arXiv:2410.18858, against beta = 1,000."""
    q = 0.5
    for _ in range(500):
        D = (1 + noise - q) / alpha
        root = np.sqrt(1 + rho * ((D + 2) * rho * D + 2 * D + rho - 2))
        q = 1 - D + D / 2 * (root - (rho - 1) - D * rho)
    limit = {0.2: 0.12895, 1.0: 0.36820}[rho]
    assert 1 - q == pytest.approx(limit, abs=1e-5)
    curve_error = infinite_aspect_error(np.array([alpha]), rank_ratio=rho, noise=noise)[0]
    assert curve_error == pytest.approx(1 - q, abs=1e-9)
    # without noise the limit recovers from rho samples per entry
    quiet = infinite_aspect_error(rho * np.array([0.8, 1.1]), rank_ratio=rho, noise=0.0)
    assert quiet[0] > 0.01
    assert quiet[1] == pytest.approx(0.0, abs=1e-9)
    near = [float(error(beta, rho, noise, alpha)) for beta in (1e3, 1e4)]
    assert near[0] == pytest.approx({0.2: 0.12923, 1.0: 0.36920}[rho], abs=1e-5)
    assert abs(near[1] - limit) < 0.4 * abs(near[0] - limit)


@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_low_rank_is_found_from_a_threshold_on(beta):
    """rho -> 0 at fixed n / (r (d + L)): no overlap below (1 + Delta) sqrt(beta) / (1 + beta)."""
    rho, noise = 1e-5, 0.2
    threshold = weak_recovery(RectangularSignal(beta, rho), noise)["weak_recovery_per_parameter"]
    assert threshold == pytest.approx((1 + noise) * beta**0.5 / (1 + beta))
    for times in (0.7, 1.5, 3.0):
        scaled = times * threshold
        product = 1.0
        for _ in range(2_000):
            t = (1 + beta) * scaled / (1 + noise - product)
            gap = max(t**2 - beta, 0.0)
            product = gap**2 / (t**2 * (t + 1) * (t + beta))
        found = 1 - float(error(beta, rho, noise, scaled * rho * (1 + beta) / beta))
        assert found == pytest.approx(product, abs=0.02)


def test_no_hard_phase():
    """alpha(t) decreases in t, so every sample ratio has one fixed point (sensing 15)."""
    t = np.geomspace(1e-4, 100, 60)
    for beta in (1.0, 2.0, 10.0):
        for rho in (0.02, 0.3, 0.9, 1.5):
            E = RectangularSignal(beta, rho).mmse(t)
            for noise in (0.0, 0.1):
                assert (np.diff(np.log((noise + E) / t)) < 1e-5).all()  # rounding


def test_a_curve_of_sixty_points_is_cheap():
    parameters = BilinearParameters(aspect=2.0)
    alpha = np.linspace(0.05, 1.0, 60)
    curve(parameters, alpha)
    took = []
    for _ in range(3):
        start = time.process_time()
        error(2.0, 0.2, 0.1, alpha)
        took.append(time.process_time() - start)
    assert min(took) < 0.5  # 0.04 s on an idle core


@pytest.mark.slow
def test_sensors_of_rank_one_give_the_same_error():
    """Universality: sensors u v^T against Gaussian matrices at d = 160, up to order 1/d."""
    parameters = BilinearParameters(dimension=160, sample_ratio=0.3)
    (d, L), n = parameters.shape, parameters.samples
    rng = random_stream("rank one", 0)
    S = rng.standard_normal((d, parameters.rank)) @ rng.standard_normal((parameters.rank, L))
    S *= np.sqrt(d / np.sum(S**2))
    draws = (rng.standard_normal((n, size), dtype=np.float32) for size in (d, L))
    sensors = BilinearSensors(*draws)
    y = sensors.forward(S) + np.sqrt(parameters.noise) * rng.standard_normal((n, 1))
    found = estimate_by_messages(parameters, sensors, y)
    assert found is not None
    expected = float(predict(parameters)["matrix_error"])
    assert np.sum((found.estimate - S) ** 2) / d == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_response_to_the_norm_of_the_weights(noise):
    """E(P, Delta) = P E(1, Delta / P), by weights of norm P = 1 +- 5 % and by hand (sensing 19)."""
    parameters, alpha = BilinearParameters(noise=noise), np.array([0.4])
    metrics = curve(parameters, alpha)[0]
    rho = parameters.signal.rank_ratio
    errors = [P * float(error(1.0, rho, noise / P, 0.4)) for P in (0.95, 1.05)]
    response = np.log(errors[1] / errors[0]) / np.log(1.05 / 0.95)
    assert metrics["power_response"] == pytest.approx(response, rel=0.01)
    # derivative of E² + (alpha + Delta - 1) E - Delta = 0 in Delta
    E = float(ridge_error(0.4, noise))
    slope = (1 - E) / (2 * E + 0.4 + noise - 1)
    assert metrics["ridge_power_response"] == pytest.approx(1 - slope * noise / E, rel=0.01)
