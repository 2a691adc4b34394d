"""Constant part of lifted features: nulls, mixing with a direction, and centred features.

Equations 13 to 18 of docs/derivations/lofi.md.
"""

import math

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.learners import Block, NeuralLoFiClassifier
from solvable.models.lofi.constant import predict_lifted_null, predict_published_filter
from solvable.models.lofi.lift import activation_energies, predict_lifted_filter
from solvable.models.lofi.measure import measure
from solvable.models.lofi.parameters import NeuralLoFiParameters
from solvable.models.lofi.predict import predict
from solvable.models.lofi.target import GaussianChannel, draw_target
from solvable.spectra.label_emergence import emergence_ratio
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum

LAW = LabelLaw.balanced(0.8573481658)
BOUNDED = GaussianChannel(10, "square").law("tanh")


def measured(replicates, **setting):
    """Means and standard errors of the metrics of lifted filters, and their predictions."""
    parameters = NeuralLoFiParameters(**({"lift": "relu", "label_map": "tanh"} | setting))
    records = [measure(parameters, random_stream("constant", r)) for r in range(replicates)]
    names = ("eigenvalue", "subspace_overlap", "null_eigenvalue", "first_moment_overlap")
    values = {name: np.array([record[name] for record in records]) for name in names}
    means = {name: float(value.mean()) for name, value in values.items()}
    errors = {
        name: float(value.std(ddof=1)) / math.sqrt(replicates) for name, value in values.items()
    }
    return means, errors, predict(parameters)


@pytest.mark.parametrize("features", ["as-published", "centred", "deflated"])
@pytest.mark.parametrize(
    ("dimension", "ratio"), [(16, 20.0), pytest.param(30, 6.0, marks=pytest.mark.slow), (60, 3.0)]
)
def test_direction_and_null_are_predicted_at_three_sizes(features, dimension, ratio):
    means, errors, expected = measured(
        24, dimension=dimension, ratio=ratio, channel="square", features=features
    )
    # Tolerance for terms of order 1/d from fluctuating norms of the inputs
    small = 0.03 + 1.5 / dimension
    for name in ("eigenvalue", "null_eigenvalue"):
        within = small * expected[name] + 3 * errors[name]
        assert means[name] == pytest.approx(expected[name], abs=within), name
    within = 0.04 + 3 * errors["subspace_overlap"]
    assert means["subspace_overlap"] == pytest.approx(expected["subspace_overlap"], abs=within)


def test_a_direction_is_lost_where_it_crosses_the_eigenvalues_of_the_constant():
    setting = {"dimension": 20, "ratio": 30.0, "channel": "square", "lift": "gelu"}
    means, errors, expected = measured(12, features="as-published", **setting)
    name = "subspace_overlap"
    # Tolerance 0.1: nearly equal eigenvalues share the direction at random.
    assert means[name] == pytest.approx(expected[name], abs=0.1 + 3 * errors[name])
    centred, _, kept = measured(4, features="centred", **setting)
    assert centred[name] == pytest.approx(kept[name], abs=0.03)
    assert kept[name] - expected[name] > 0.3 < centred[name] - means[name]


@pytest.mark.parametrize("raw", [True, False])
def test_a_lift_without_constant_part_has_nothing_to_centre(raw):
    size = {"ratio": 5.0, "dimension": 40, "activation": "tanh", "raw_labels": raw}
    nulls = [predict_lifted_null(LAW, centred=centred, **size) for centred in (True, False)]
    assert nulls[0] == pytest.approx(nulls[1])
    plain = predict_lifted_filter(LAW, ratio=5.0, dimension=40, activation="tanh")
    assert predict_published_filter(LAW, **size) == plain
    # Measured on the same draws with both kinds of features, which differ by terms of order 1/n
    found = [
        measured(4, lift="tanh", dimension=30, ratio=4.0, channel="square", features=features)[0]
        for features in ("as-published", "centred")
    ]
    for name in ("eigenvalue", "null_eigenvalue", "subspace_overlap"):
        assert found[0][name] == pytest.approx(found[1][name], abs=0.05), name


def test_the_mixing_vanishes_in_many_dimensions():
    centred = predict_lifted_filter(LAW, ratio=5.0, dimension=10**6)
    plain = predict_published_filter(LAW, ratio=5.0, dimension=10**6)
    assert plain.squared_overlap == pytest.approx(centred.squared_overlap, abs=1e-4)
    assert plain.eigenvalue == pytest.approx(centred.eigenvalue, rel=1e-4)
    assert plain.emergence_ratio == pytest.approx(centred.emergence_ratio)


def test_the_null_of_the_constant_has_its_leading_order():
    constant, linear, tail = activation_energies("relu")
    n = 4.0 * 10**6
    expected = math.sqrt(constant * (linear + tail) * n * BOUNDED.weight_power)
    found = predict_lifted_null(BOUNDED, ratio=4.0, dimension=10**6)
    assert found == pytest.approx(expected, rel=2e-3)


def samples_to_exceed(dimension, *, centred):
    """Sample size above which the direction exceeds 1.5 times the null, interpolated on a grid."""
    size = {"dimension": dimension, "activation": "relu"}
    ratios = np.geomspace(2.0, 12.0, 5) if centred else dimension * np.geomspace(0.4, 4.0, 5)
    if centred:
        first = [predict_lifted_filter(BOUNDED, ratio=a, **size).eigenvalue for a in ratios]
    else:
        first = [predict_published_filter(BOUNDED, ratio=a, **size).eigenvalue for a in ratios]
    null = [predict_lifted_null(BOUNDED, ratio=a, centred=centred, **size) for a in ratios]
    excess = np.log(np.array(first) / null / 1.5)
    k = int(np.flatnonzero(excess < 0)[-1])
    share = excess[k] / (excess[k] - excess[k + 1])
    return dimension * float(
        np.exp((1 - share) * np.log(ratios[k]) + share * np.log(ratios[k + 1]))
    )


def test_centred_features_need_samples_of_order_d_and_others_of_order_d_squared():
    sizes = np.array([100, 400])
    slopes = {}
    for centred in (True, False):
        samples = [samples_to_exceed(int(d), centred=centred) for d in sizes]
        slopes[centred] = float(np.log(samples[1] / samples[0]) / np.log(sizes[1] / sizes[0]))
    assert slopes[True] == pytest.approx(1.0, abs=0.1)
    # The exponent is 1.9 at these d because of terms of order d^(-1/2).
    assert slopes[False] == pytest.approx(2.0, abs=0.2)


def test_a_filter_of_the_inputs_is_the_upper_bound_of_a_centred_one():
    for law in (LAW, BOUNDED):
        for ratio in (1.0, 3.0, 10.0):
            raw = label_weighted_spectrum(law, ratio=ratio)
            for lift in ("tanh", "relu", "step"):
                found = predict_lifted_filter(law, ratio=ratio, activation=lift)
                assert found.squared_overlap <= raw.squared_overlap[0] + 1e-9
                assert found.emergence_ratio > emergence_ratio(law)[0]


@pytest.mark.parametrize(("dimension", "ratio"), [(20, 2.0), (40, 5.0), (80, 1.0)])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_first_moment_has_its_direction_without_a_threshold(dimension, ratio, noise):
    means, errors, expected = measured(
        16, dimension=dimension, ratio=ratio, channel="sign", features="deflated", noise=noise,
        label_map="raw",
    )  # fmt: skip
    name = "first_moment_overlap"
    assert means[name] == pytest.approx(expected[name], abs=3 * errors[name] + 0.5 / dimension)
    # After its removal the second moment has little overlap with the direction.
    assert means["subspace_overlap"] < 2.5 / dimension


def test_an_even_label_has_no_linear_strength():
    assert GaussianChannel(10, "square-sign").linear_strength() == pytest.approx(0.0, abs=1e-12)
    noisy = GaussianChannel(10, "sign", noise=0.1).linear_strength()
    assert noisy == pytest.approx(0.8 * math.sqrt(2 / math.pi))


@pytest.mark.parametrize("features", ["as-published", "centred"])
def test_the_measured_filter_is_that_of_the_estimators(features):
    parameters = NeuralLoFiParameters(dimension=20, ratio=6.0, lift="relu", features=features)
    record = measure(parameters, random_stream("same", 0))
    rng = random_stream("same", 0)
    X, y = draw_target(parameters, rng).sample(parameters.samples, rng)
    blocks = [Block(None, math.inf), Block(8, None, centre_features=features == "centred")]
    model = NeuralLoFiClassifier(blocks, scaling="none", random_state=0).fit(X, y)
    # Leave out the eigenvalue of the constant, as the measurement does.
    upper = np.sort(model.filters_[0].eigenvalues)[::-1][int(features == "as-published")]
    assert record["eigenvalue"] == pytest.approx(parameters.samples * upper, rel=1e-6)


def test_the_default_filter_after_a_lift_keeps_the_direction() -> None:
    rng = np.random.default_rng(5)
    d, n = 60, 900
    # Independent of the system: 6,000 random ReLU features minus their mean, and a leading eigenvector
    X, theta = rng.standard_normal((n, d)), np.eye(d)[0]
    T = np.where(X[:, 0] ** 2 > 0.454936423, 1.0, -1.0)
    W = rng.standard_normal((d, 6_000))
    Z = np.maximum(X @ W / np.sqrt(d), 0.0)
    Z -= Z.mean(axis=0)
    values, vectors = np.linalg.eigh(Z @ Z.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    _, leading = np.linalg.eigh(root.T @ (T[:, None] * root))
    linear = W @ (Z.T @ (vectors @ (leading[:, -1] / np.sqrt(np.maximum(values, 1e-9)))))
    overlap = float((theta @ linear) ** 2 / (linear @ linear))
    parameters = NeuralLoFiParameters(lift="relu", dimension=d, ratio=n / d)
    assert parameters.features == "centred"
    # Standard deviation of the overlap between samples: about 0.02
    assert abs(overlap - predict(parameters)["squared_overlap"][0]) < 0.08
