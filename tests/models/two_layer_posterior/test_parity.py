"""Parity of two bits: overlaps, strength of its neurons, Langevin networks, and claims."""

from dataclasses import replace

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import Point
from solvable.hermite import gaussian_quadrature
from solvable.models.two_layer_posterior.langevin import Posterior
from solvable.models.two_layer_posterior.measure import draw_target
from solvable.models.two_layer_posterior.overlap import parity_overlap
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.parity import (
    ParityObserver,
    ParityTarget,
    carrier_strength,
    plant_carriers,
)
from solvable.models.two_layer_posterior.system import system

PARITY = {
    "target": "parity", "activation": "relu", "degree": 2, "readout": "mean-field", "dimension": 10,
    "kappa": 0.2, "scaled_samples": 11.0, "steps": 1_200,
}  # fmt: skip


def setting(**values):
    return CurseParameters(**PARITY | values)


def test_the_overlap_is_a_sum_over_the_bits():
    nodes, weights = gaussian_quadrature(200)
    first, second, r = 0.7, -1.9, 0.3
    total = 0.0
    for x in (1, -1):
        for y in (1, -1):
            h = first * x + second * y + np.sqrt(r) * nodes
            total += x * y * float(weights @ np.maximum(h, 0)) / 4
    found = parity_overlap(np.array(first), np.array(second), np.array(r))
    assert found == pytest.approx(total, abs=1e-4)


def test_the_target_is_the_product_of_two_bits():
    X, y = ParityTarget(5).sample(4_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.abs(X[:, :2]), 1)
    np.testing.assert_allclose(y, X[:, 0] * X[:, 1])
    assert np.std(X[:, 2:]) == pytest.approx(1, abs=0.03)


def test_strong_neurons_have_the_limiting_strength():
    # (two-layer-posterior 24): u² = sqrt(8) (A / 4) sqrt(chi N / d)
    ratios = []
    for width in (1_000, 10_000):
        limit = np.sqrt(8) * 0.7 / 4 * width / np.sqrt(10)
        ratios.append(carrier_strength(0.7, 10, width, "mean-field") ** 2 / limit)
    assert ratios[1] == pytest.approx(1, abs=0.01)
    assert abs(ratios[1] - 1) < abs(ratios[0] - 1) < 0.05


def test_the_strength_has_the_least_cost():
    # on a grid, with the cost written in a and w
    d, width, alignment = 10, 40, 0.7
    u, r = np.meshgrid(np.linspace(1, 6, 501), np.linspace(0.02, 0.8, 157), indexing="ij")
    readout = alignment / 4 / parity_overlap(u / np.sqrt(2), u / np.sqrt(2), r)
    cost = d / 2 * (u**2 + r - np.log(r)) + width**2 / 2 * readout**2
    best = np.unravel_index(np.argmin(cost), cost.shape)
    assert carrier_strength(alignment, d, width, "mean-field") == pytest.approx(u[best], abs=0.01)


def test_observed_alignment_is_that_of_samples():
    parameters = setting(width_ratio=4.0)
    rng = np.random.default_rng(5)
    target = draw_target(parameters, rng)
    posterior = Posterior(*target.sample(40_000, rng), 0.2, 1 / parameters.width, "relu")
    theta = rng.standard_normal((2, parameters.width, 11))
    theta[1] = plant_carriers(parameters, theta[1])
    seen = ParityObserver(parameters, target, posterior, rng)
    seen(theta)
    metrics = seen.metrics()
    products = posterior.outputs(theta) * posterior.y[:, None]
    error = products.std(axis=0) / np.sqrt(len(products))
    for k, name in enumerate(("alignment_prior", "alignment_planted")):
        assert abs(metrics[name] - products[:, k].mean()) < 4 * error[k]
    assert metrics["alignment_planted"] == pytest.approx(0.7, abs=0.1)
    strength = carrier_strength(0.7, 10, parameters.width, "mean-field")
    assert metrics["carrier_strength"] == pytest.approx(strength, rel=0.05)


def points(width_exponent=0.0):
    made = []
    for ratio in (2.0, 4.0, 8.0, 16.0):
        parameters = setting(width_ratio=ratio)
        strength = carrier_strength(0.7, 10, parameters.width, "mean-field")
        number = 4 * (ratio / 2) ** (2 * width_exponent)
        base = {
            "alignment_prior": 0.72, "alignment_planted": 0.72, "virial": 1.0, "duration": 20.0,
            "effective_samples": 40.0, "step_error": 0.001, "carried_alignment": 0.7,
        }  # fmt: skip
        records = [
            base
            | {
                "alignment": 0.72 * factor,
                "adjusted_alignment": None,
                "test_error": 0.1 * factor,
                "carriers": number * factor,
                "carrier_strength": strength * np.sqrt(4 / number) * factor,
            }
            for factor in (0.99, 1.0, 1.01, 1.0)
        ]
        made.append(Point(parameters.model_dump(), records, system.predict(parameters), parameters))
    return made


def statuses(made):
    return {verdict.claim: verdict.status for verdict in system.verdicts(made)}


NAMES = (
    "squared-strength-of-few-neurons", "few-neurons-carry-a-parity", "strength-grows-with-width",
)  # fmt: skip


def test_claims_hold_of_few_strong_neurons_and_fail_of_many():
    found = statuses(points())
    assert [found[name] for name in NAMES] == ["holds"] * 3
    many = statuses(points(width_exponent=0.5))
    assert [many[name] for name in NAMES] == ["holds", "fails", "fails"]
    weak = [
        replace(
            p, metrics=[m | {"carrier_strength": 0.8 * m["carrier_strength"]} for m in p.metrics]
        )
        for p in points()
    ]
    assert statuses(weak)[NAMES[0]] == "fails"


@pytest.mark.slow
def test_langevin_networks_have_few_strong_neurons():
    parameters = setting(width_ratio=8.0, steps=800)
    record = system.measure(parameters, random_stream("parity", 0))
    assert record["alignment_prior"] == pytest.approx(record["alignment_planted"], abs=0.04)
    carried = record["carried_alignment"]
    strength = carrier_strength(carried, 10, parameters.width, "mean-field")
    squares = record["carriers"] * record["carrier_strength"] ** 2
    assert squares == pytest.approx(4 * strength**2, rel=0.12)
    assert record["carriers"] == pytest.approx(4.5, abs=0.8)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"activation": "erf", "degree": 3}, "with relu"),
        ({"gain": 2.0, "width_ratio": 4.0}, "one trained hidden layer"),
    ],
)
def test_other_networks_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        setting(**values)
