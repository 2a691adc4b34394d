"""Strength of features in kernels of random layers: integrals, drawn networks, and claims."""

from dataclasses import replace

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import Point
from solvable.models.two_layer_posterior.feature_kernels import STRENGTH, strengths_of
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.predict import linear_gain_of
from solvable.models.two_layer_posterior.system import system
from solvable.scale.prefactors.lazy_kernels import lazy_alignment, mode_moments

SMALL = {"dimension": 20, "width_ratio": 10.0, "scaled_samples": 1.0}


def setting(**values):
    return CurseParameters(**SMALL | values)


@pytest.mark.parametrize("gain", [1.0, 4.0, 30.0])
def test_the_kernel_of_one_layer_is_the_mean_over_neurons(gain):
    # (scale 6): the mean square overlap of a neuron, over its component u and its norm r
    found = strengths_of(setting(gain=gain))
    expected = np.diag(mode_moments("erf", (1, 3), 20.0, gain))
    np.testing.assert_allclose(found, expected, rtol=3e-4)


def test_the_kernel_of_two_layers_is_the_sum_over_harmonics():
    # (scale 16)
    found = strengths_of(setting(gain=1.0, second_width_ratio=10.0))
    expected = [lazy_alignment(("erf", "erf"), degree, 20.0) for degree in (1, 3)]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_exponents_tend_to_the_degrees_of_the_features():
    gaps = []
    for dimension in (25, 50, 100):
        one, two = (strengths_of(setting(dimension=dimension, gain=gain)) for gain in (1.0, 1.01))
        gaps.append(np.array([1, 3]) - np.log(two / one) / np.log(1.01))
    # corrections of order 1/d
    np.testing.assert_allclose(np.array(gaps[:-1]) / gaps[1:], 2, rtol=0.1)
    assert (gaps[-1] > 0).all()
    assert (gaps[-1] < [0.05, 0.3]).all()


def test_a_spike_adds_its_share():
    # (scale 5): K = (1 - M/N) K_prior + (M/N) s s^T
    # E erf(mu z)² = (2 / pi) arcsin(2 mu² / (1 + 2 mu²))
    power = 2 / np.pi * np.arcsin(2 * STRENGTH**2 / (1 + 2 * STRENGTH**2))
    found = strengths_of(setting(gain=1.0, spike=50))[2]
    lazy = strengths_of(setting(gain=1.0, spike=50), lazy=True)[2]
    assert found == pytest.approx(0.75 * lazy + 0.25 * power, rel=1e-3)


def test_a_lazy_layer_multiplies_linear_features():
    # (two-layer-posterior 19): kappa_1² = 4 / (pi (1 + 2 q_1)) for erf
    one, two = (
        strengths_of(setting(dimension=100, gain=1.0, second_width_ratio=second))
        for second in (0.0, 10.0)
    )
    gain = linear_gain_of("erf")
    assert gain == pytest.approx(4 / np.pi / (1 + 4 / np.pi * np.arcsin(2 / 3)))
    assert two[0] / one[0] == pytest.approx(gain, rel=0.01)


@pytest.mark.parametrize("values", [{"gain": 6.0}, {"gain": 2.0, "spike": 20}])
@pytest.mark.parametrize("second", [0.0, 10.0])
def test_drawn_networks_have_the_predicted_strengths(values, second):
    parameters = setting(second_width_ratio=second, **values)
    records = [system.measure(parameters, random_stream("drawn", k)) for k in range(12)]
    rows = np.array([record["strengths"] for record in records])
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    expected = np.array(system.predict(parameters)["strengths"])
    # a narrow second layer sees the first layer's fluctuations, of order 1 / N
    assert (np.abs(rows.mean(axis=0) - expected) < 4 * error + 0.05 * expected).all()


def test_claims_hold_and_a_wrong_power_fails():
    points = []
    for gain in (1.0, 2.0, 4.0, 8.0):
        parameters = setting(dimension=64, gain=gain)
        predicted = system.predict(parameters)
        scatter = np.array([[0.99], [1.01], [1.0], [1.0]])
        records = [{"strengths": row} for row in (scatter * predicted["strengths"]).tolist()]
        points.append(Point(parameters.model_dump(), records, predicted, parameters))
    names = ("feature-strengths", "power-of-the-gain")
    verdicts = {verdict.claim: verdict.status for verdict in system.verdicts(points)}
    assert [verdicts[name] for name in names] == ["holds", "holds"]
    wrong = [
        replace(
            point,
            metrics=[
                {"strengths": [row[0], row[1] / point.setting.gain**0.4]}
                for row in (record["strengths"] for record in point.metrics)
            ],
        )
        for point in points
    ]
    verdicts = {verdict.claim: verdict.status for verdict in system.verdicts(wrong)}
    assert [verdicts[name] for name in names] == ["fails", "fails"]
    assert "holds" not in set(verdicts.values())


@pytest.mark.parametrize(
    "values",
    [{"gain": 0.5}, {"spike": 3}, {"gain": 1.0, "spike": 300}, {"gain": 2.0, "activation": "tanh"}],
)
def test_gains_and_spikes_out_of_range_are_refused(values):
    with pytest.raises(InvalidParameter, match="a gain of at least 1"):
        setting(**values)
