"""Norms of features in the kernels of random layers: kernel matrices, drawn networks, and claims."""

from dataclasses import replace

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.frame.points import Point
from solvable.models.two_layer_posterior.feature_kernels import (
    draw_weights,
    layer_kernel,
    powers_of,
)
from solvable.models.two_layer_posterior.feature_norms import (
    _Grid,
    measure_norms,
    norm_limits,
    preactivation_powers,
    predict_norms,
)
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.system import system
from solvable.models.two_layer_posterior.target import HermiteTarget


def setting(samples=128, **values):
    sizes = {"dimension": 16, "width_ratio": 64.0} | values
    width = sizes.get("second_width_ratio") or sizes["width_ratio"]
    unit = 0.5 * np.sqrt(width * sizes["dimension"] ** 2)
    degree = 2 if values.get("activation") == "relu" else 3
    return CurseParameters(**sizes, scaled_samples=samples / unit, degree=degree)


def wide_norms(parameters, rng):
    """Norms on drawn samples in the kernel of one layer of infinite width."""
    d = parameters.dimension
    X = rng.standard_normal((parameters.samples, d))
    features = preactivation_powers(parameters, X[:, 0], np.sum(X[:, 1:] ** 2, axis=1))
    features /= np.sqrt(_Grid.of(parameters).power)[:, None]
    X[:, 0] *= np.sqrt(parameters.gain)
    inner = X @ X.T / d
    variance = np.diag(inner)
    kernel = layer_kernel(parameters.activation, inner, variance[:, None], variance)
    return np.sum(features.T * np.linalg.solve(kernel, features.T), axis=0)


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("gain", [1.0, 6.0])
def test_kernel_matrices_have_the_predicted_norms(activation, gain):
    # (two-layer-posterior 23), at infinite width
    parameters = setting(activation=activation, gain=gain, width_ratio=1_000.0)
    rng = random_stream("matrices", 1)
    rows = np.array([wide_norms(parameters, rng) for _ in range(40)])
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    expected = np.array(predict_norms(parameters)) * (1 - parameters.samples / parameters.width)
    assert (np.abs(rows.mean(axis=0) - expected) < 4 * error + 0.04 * expected).all()


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_a_power_has_the_inverse_coefficient_as_its_norm(activation):
    # (two-layer-posterior 22): the kernel c_p (u.u')^p has finite rank, so that its pseudoinverse on
    # enough samples gives the norm; the whole kernel approaches it from below
    parameters = setting(activation=activation, gain=2.0, dimension=3, width_ratio=1_000.0)
    rng = random_stream("limit", 0)
    limits = np.array(norm_limits(parameters))
    X = rng.standard_normal((60, 3))
    features = preactivation_powers(parameters, X[:, 0], np.sum(X[:, 1:] ** 2, axis=1))
    power = _Grid.of(parameters).power
    X[:, 0] *= np.sqrt(2)
    variance = np.sum(X**2, axis=1) / 3
    size, scale = (1, 1 + 2 * variance) if activation == "erf" else (variance**0.5, variance)
    U = X / np.sqrt(3 * scale)[:, None]
    step = 1e-2
    for place, degree in enumerate(powers_of(parameters)):
        # coefficient of t^p in the kernel at u.u' = t, by differences
        t = step * np.arange(-2, 3)
        if activation == "erf":
            values = layer_kernel("erf", t, 0 * t, 0 * t)
        else:
            values = layer_kernel("relu", t, 1 + 0 * t, 1 + 0 * t)
        weights = {1: [0, -0.5, 0, 0.5, 0], 2: [0, 1, -2, 1, 0], 3: [-0.5, 1, 0, -1, 0.5]}[degree]
        series = values @ weights / step**degree / {1: 1, 2: 2, 3: 6}[degree]
        kernel = series * np.multiply.outer(size, size) if activation == "relu" else series
        kernel = kernel * (U @ U.T) ** degree
        norm = features[place] @ np.linalg.pinv(kernel, rcond=1e-9) @ features[place]
        assert norm / power[place] == pytest.approx(limits[place], rel=3e-3)
    few = np.mean([wide_norms(parameters, rng) for _ in range(4)], axis=0)
    assert (few < 1.2 * limits).all()
    assert few[0] > 0.8 * limits[0]


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("second", [0.0, 64.0])
def test_drawn_networks_have_the_predicted_norms(activation, second):
    parameters = setting(activation=activation, gain=4.0, second_width_ratio=second)
    target = HermiteTarget(parameters.dimension)
    records = []
    for k in range(8):
        rng = random_stream("norms", k)
        W = draw_weights(parameters, target, rng)
        records.append(measure_norms(parameters, target, W, rng))
    rows = np.array(records)
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    expected = np.array(predict_norms(parameters))
    assert (np.abs(rows.mean(axis=0) - expected) < 4 * error + 0.05 * expected).all()


def test_norms_fall_like_powers_of_the_gain_and_saturate():
    exponents = {}
    for gain in (1.0, 900.0):
        near = [norm_limits(setting(dimension=100, gain=g)) for g in (gain, 1.01 * gain)]
        exponents[gain] = np.log(np.divide(*near)) / np.log(1 / 1.01)
    np.testing.assert_allclose(exponents[1.0], [-1, -3], atol=0.15)
    assert (np.abs(exponents[900.0]) < [0.3, 0.8]).all()


def test_spikes_and_many_samples_have_no_norms():
    assert predict_norms(setting(gain=2.0, spike=8)) is None
    crowded = setting(samples=800, gain=2.0)
    assert predict_norms(crowded) is None
    assert system.measure(crowded, random_stream("crowded"))["norms"] is None


def test_claims_hold_and_a_wrong_power_fails():
    points = []
    for gain in (8.0, 24.0, 64.0):
        parameters = setting(dimension=64, width_ratio=16.0, samples=256, gain=gain)
        predicted = system.predict(parameters)
        scatter = np.array([[0.99], [1.01], [1.0], [1.0]])
        strengths = (scatter * predicted["strengths"]).tolist()
        norms = (scatter * predicted["norms"]).tolist()
        records = [{"strengths": s, "norms": n} for s, n in zip(strengths, norms, strict=True)]
        points.append(Point(parameters.model_dump(), records, predicted, parameters))
    names = ("feature-norms", "norm-falls-with-the-gain")
    verdicts = {verdict.claim: verdict.status for verdict in system.verdicts(points)}
    assert [verdicts[name] for name in names] == ["holds", "holds"]
    wrong = [
        replace(
            point,
            metrics=[
                record
                | {"norms": [record["norms"][0], record["norms"][1] * point.setting.gain**0.4]}
                for record in point.metrics
            ],
        )
        for point in points
    ]
    verdicts = {verdict.claim: verdict.status for verdict in system.verdicts(wrong)}
    assert [verdicts[name] for name in names] == ["fails", "fails"]
