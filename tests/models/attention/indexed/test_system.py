"""The system `attention-indexed`: parameters, one replicate, prediction, claims, figures."""

from functools import partial

import numpy as np
import pytest
import studies

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION, Point
from solvable.message_passing.loop import MessagePassingResult
from solvable.models.attention.indexed.claims import CLAIMS
from solvable.models.attention.indexed.measure import draw_weights
from solvable.models.attention.indexed.measure import test_error as error_of_attention
from solvable.models.attention.indexed.parameters import IndexedParameters
from solvable.models.attention.indexed.system import system
from solvable.models.attention.indexed.theory import bayes_test_error

record_of = partial(studies.record_of, system)
point_of = partial(studies.point_of, system)


@pytest.fixture(scope="module")
def points():
    small = {"dimension": 40, "rank_ratio": 0.1, "activation": "linear", "tokens": 1, "noise": 0.25}
    chosen = [
        ({"dimension": 60, "sample_ratio": 0.13}, 8),
        ({"dimension": 60, "sample_ratio": 0.35}, 2),
        ({"dimension": 60, "sample_ratio": 0.3, "activation": "hardmax"}, 8),
        (small | {"sample_ratio": 0.3}, 8),
        ({"dimension": 60, "sample_ratio": 0.052, "tokens": 3}, 8),
        ({"dimension": 60, "sample_ratio": 0.13, "tokens": 3}, 2),
        (
            {
                "dimension": 40,
                "sample_ratio": 0.07,
                "rank_ratio": 0.7,
                "estimator": "gradient-descent",
            },
            7,
        ),
    ]
    return [point_of(*each) for each in chosen] + [two_layers(d) for d in (50, 100)]


def two_layers(dimension):
    """Return a point with drawn records 8/d above the limit; test_layers measures."""
    setting = IndexedParameters(dimension=dimension, sample_ratio=0.2, layers=2, noise=0.2)
    prediction = system.predict(setting)
    names = ("first_layer_error", "last_layer_error", "test_error")
    factors = 1 + (8 + 2 * np.random.default_rng(dimension).standard_normal((8, 3))) / dimension
    records = [
        dict.fromkeys(prediction)
        | {name: prediction[name] * f for name, f in zip(names, row, strict=True)}
        for row in factors
    ]
    return Point(setting.model_dump(), records, prediction)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"tokens": 1}, "no information"),
        ({"tokens": 1, "activation": "hardmax"}, "no information"),
        ({"tokens": 4, "activation": "hardmax"}, "2 or 3"),
        ({"noise": -1.0}, "from 0"),
        ({"sample_ratio": 1e-4, "dimension": 50}, "at least 4"),
        ({"activation": "relu"}, "allowed: "),
        ({"samples": 10}, "a parameter of"),
    ],
)
def test_bad_parameters_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        IndexedParameters(**values)


def test_the_teacher_is_what_was_measured():
    parameters = IndexedParameters(dimension=30, sample_ratio=0.1)
    arrays = system.teacher(parameters, random_stream("one", 0))
    np.testing.assert_array_equal(
        arrays["weights"], draw_weights(parameters, random_stream("one", 0))
    )


@pytest.mark.parametrize(("activation", "tokens"), [("softmax", 2), ("softmax", 4), ("hardmax", 3)])
def test_test_error_of_drawn_indices(activation, tokens):
    """Mean attention over many draws against the formula with two copies (attention 6)."""
    parameters = IndexedParameters(activation=activation, tokens=tokens, dimension=100)
    channel, Q, error = parameters.channel, parameters.signal.second_moment, 0.4
    rng, v = np.random.default_rng(3), parameters.channel.variances
    omega = np.sqrt(v * (Q - error)) * rng.standard_normal((3_000, v.size))

    def attention():
        h = omega + np.sqrt(v * error) * rng.standard_normal(omega.shape)
        if activation == "softmax":
            return channel.attention(h)
        return np.eye(tokens)[channel.choices(h)]

    draws, mean = 100, 0.0
    for _ in range(draws):
        mean = mean + attention() / draws
    each = np.sum((attention() - mean) ** 2, axis=(1, 2)) / (1 + 1 / draws)
    parameters = parameters.model_copy(update={"dimension": 10**9})
    found = bayes_test_error(parameters, error, 1.0)
    assert found == pytest.approx(each.mean(), abs=4 * each.std() / 3_000**0.5)
    assert bayes_test_error(parameters, 0.0, 1.0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("dimension", "rank_ratio", "tokens", "activation"),
    [(137, 6.0, 6, "softmax"), (80, 2.0, 3, "hardmax"), (200, 0.5, 2, "softmax")],
)
def test_test_error_of_drawn_weights(dimension, rank_ratio, tokens, activation):
    """Denoised drawn matrices whose indices are skewed (attention 7)."""
    parameters = IndexedParameters(
        dimension=dimension, rank_ratio=rank_ratio, tokens=tokens, activation=activation
    )
    signal, noise, rng = parameters.signal, 4.0, np.random.default_rng(1)
    found, errors, variance = [], [], signal.mmse(np.array([noise]))[:, None]
    for _ in range(8):
        S = draw_weights(parameters, rng)
        G = rng.standard_normal(S.shape)
        F = signal.denoise(S + np.sqrt(noise / (2 * dimension)) * (G + G.T), noise)
        result = MessagePassingResult(F, variance, np.zeros(0), 0, 0.0, F)
        found.append(error_of_attention(parameters, S, result, rng))
        errors.append(np.sum((F - S) ** 2) / dimension)
    expected = bayes_test_error(parameters, float(np.mean(errors)), noise)
    error = np.std(found) / len(found) ** 0.5
    assert expected == pytest.approx(np.mean(found), abs=3 * error + 0.01 * expected)


def test_hardmax_of_two_tokens_is_an_angle():
    pair = IndexedParameters(activation="hardmax", dimension=100)
    # without information each of the two rows has error 1/2
    assert bayes_test_error(pair, pair.signal.second_moment, 1e6) == pytest.approx(1.0, rel=5e-3)


def test_near_recovery_nothing_is_predicted_and_beyond_it_the_limit():
    near = IndexedParameters(dimension=60, sample_ratio=0.2)
    found = system.predict(near)
    assert found["finite_size_matrix_error"] is None
    assert "recovery_ratio" in found[NO_PREDICTION]
    beyond = system.predict(IndexedParameters(dimension=100, sample_ratio=0.5))
    assert beyond["matrix_error"] == beyond["test_error"] == 0
    tiny = system.predict(IndexedParameters(dimension=20, sample_ratio=0.175))
    assert "first order" in tiny[NO_PREDICTION]
    few = system.predict(
        IndexedParameters(dimension=40, sample_ratio=0.0144, rank_ratio=0.2, tokens=4, noise=0.3)
    )
    assert few["finite_size_matrix_error"] is few["finite_size_test_error"] is None
    assert "tokens per dimension" in few[NO_PREDICTION]
    narrow = system.predict(IndexedParameters(dimension=60, rank_ratio=0.1, noise=0.4))
    assert narrow["finite_size_matrix_error"] > narrow["matrix_error"]
    assert narrow["finite_size_test_error"] is None
    assert "kurtosis" in narrow[NO_PREDICTION]


def test_more_tokens_and_fewer_hidden_logits_lower_the_error():
    def error(**setting):
        return system.predict(IndexedParameters(sample_ratio=0.06, noise=0.2, **setting))[
            "matrix_error"
        ]

    assert error(tokens=3) < error(tokens=2)
    assert error(activation="linear") < error() < error(activation="hardmax")


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_claims_find_their_points(claim, points):
    verdict = claim.verdict(system.settled(points))
    assert verdict.status == "holds", verdict.reason
    studies.check_without_points(claim)


@pytest.mark.parametrize(
    ("claim", "metric", "factor"),
    [
        ("error-of-weights", "matrix_error", 1.4),
        ("error-of-attention", "test_error", 0.7),
        ("recovery-without-noise", "matrix_error", 0.5),
        ("collapse", "matrix_error", 0.5),
        ("average-of-gradient-descent", "matrix_error", 1.5),
        ("error-of-first-layer", "first_layer_error", 1.4),
        ("error-of-last-layer", "last_layer_error", 1.4),
        ("error-of-two-layers", "test_error", 1.4),
        ("last-layer-first", "last_layer_error", 1.5),
    ],
)
def test_claims_fail_on_records_that_contradict_them(claim, metric, factor, points):
    (row,) = [each for each in CLAIMS if each.name == claim]
    moved = [
        Point(
            point.parameters,
            [record | {metric: factor * (record[metric] or 0.0)} for record in point.metrics],
            point.prediction,
        )
        for point in points
    ]
    assert row.verdict(system.settled(moved)).status == "fails"


def test_no_claim_holds_of_the_prior_mean(points):
    studies.check_chance(system, points)


def test_figures(points):
    figures = studies.figures_of(system, points, 6, gaps=True)
    names = [one.name for one in figures]
    assert {name.split("-")[0] for name in names} == {
        "error",
        "attention",
        "collapse",
        "descent",
        "layers",
    }


def test_a_measurement_beyond_memory_is_refused_and_theory_is_not():
    studies.check_predicted_alone(
        system, {"sample_ratio": 10.0, "dimension": 600}, "allowed for a measurement: up to 2 GB"
    )
