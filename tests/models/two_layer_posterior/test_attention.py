"""One block of softmax attention in Langevin dynamics: target, gradient, response, energy, and claims."""

from fractions import Fraction

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import Point
from solvable.models.two_layer_posterior import attention_energy
from solvable.models.two_layer_posterior.attention import (
    AttentionObserver,
    AttentionPosterior,
    AttentionTarget,
    plant_heads,
)
from solvable.models.two_layer_posterior.attention_energy import (
    adapted_alignment,
    conjugate_field,
    response,
    samples_for,
)
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.system import system
from solvable.scale.question import scale_network

SMALL = {"target": "attention", "dimension": 4, "context": 3, "scaled_samples": 4.0, "steps": 100}


def setting(**values):
    return CurseParameters(**SMALL | values)


def problem(samples=9, networks=2, heads=3, dtype=np.float64):
    rng = np.random.default_rng(3)
    X, y = AttentionTarget(4, 3).sample(samples, rng, dtype)
    theta = rng.standard_normal((networks, heads, 20)).astype(dtype)
    return AttentionPosterior(X, y, 0.5), theta, rng


def direct_outputs(theta, X):
    """Compute the outputs of one network input by input, head by head."""
    outputs = np.zeros(len(X))
    for number, tokens in enumerate(X):
        for head in theta:
            scores = np.exp(tokens @ head[:16].reshape(4, 4) @ tokens.T / 4)
            chances = scores / scores.sum(axis=1, keepdims=True)
            w = head[16:] / np.sqrt(4 * len(theta))
            outputs[number] += np.sum(chances @ tokens @ w) / np.sqrt(len(tokens))
    return outputs


def test_gradient_is_that_of_minus_the_log_posterior():
    posterior, theta, rng = problem()
    pull, error = posterior.gradient(theta)
    direction = rng.standard_normal(theta.shape[1:])

    def energy(state):
        left = direct_outputs(state, posterior.X) - posterior.y
        return left @ left / (2 * posterior.kappa) + np.sum(state**2) / 2

    for k in range(2):
        found = energy(theta[k] + 1e-5 * direction) - energy(theta[k] - 1e-5 * direction)
        assert np.sum(pull[k] * direction) == pytest.approx(found / 2e-5, rel=1e-5)
        left = direct_outputs(theta[k], posterior.X) - posterior.y
        assert error[k] == pytest.approx(np.mean(left**2), rel=1e-10)


def test_outputs_do_not_depend_on_the_order_of_tokens_and_heads():
    posterior, theta, _ = problem()
    f = posterior.outputs(theta)
    np.testing.assert_allclose(posterior.outputs(theta, posterior.X[:, ::-1]), f, rtol=1e-10)
    np.testing.assert_allclose(posterior.outputs(theta[:, ::-1]), f, rtol=1e-10)


@pytest.mark.parametrize("context", [2, 7])
def test_the_target_has_unit_variance_at_any_number_of_tokens(context):
    target = AttentionTarget(3, context)
    X, y = target.sample(200_000, np.random.default_rng(0))
    error = np.std(y**2) / np.sqrt(len(y))
    assert abs(np.mean(y**2) - 1) < 4 * error
    direct = np.einsum("na,nb->n", X[:5, :, 0], X[:5, :, 1] * X[:5, :, 2]) / context
    np.testing.assert_allclose(y[:5], direct)
    rows, labels = target.mirrored(50, np.random.default_rng(1))
    # a linear function averages to 0 over the signs
    assert float(labels @ rows[:, :, 0].sum(axis=1)) == pytest.approx(0, abs=1e-2)


def test_the_response_is_that_of_the_kernel_of_the_prior():
    # <y, K, y> = E |c(A)|² / d, c(A) = E_X y g(X), where g is the slope of f in w
    d, context, rng = 3, 8, np.random.default_rng(4)
    target, rows = AttentionTarget(d, context), []
    for _ in range(24):
        B = rng.standard_normal((1, 30, d * d)).astype(np.float32)
        overlaps = []
        for _ in range(2):
            X, y = target.mirrored(60, rng)
            parts = []
            for unit in np.eye(d, dtype=np.float32):
                # every head a network of its own, with w_h = unit
                w = np.broadcast_to(unit * np.sqrt(d), (1, 30, d))
                theta = np.concatenate([B, w], axis=2).transpose(1, 0, 2)
                parts.append(y @ AttentionPosterior(X, y, 1.0).outputs(theta) / len(y))
            overlaps.append(np.array(parts))
        rows.append(np.sum(overlaps[0] * overlaps[1]) / 30 / d * context * d**3)
    strength, error = np.mean(rows), np.std(rows) / np.sqrt(len(rows))
    # 0.88 ± 0.14 by an independent program; terms beyond first order add up to a quarter
    assert strength == pytest.approx(0.88, abs=3 * np.hypot(error, 0.14))
    first_order = 2 * response(d, context) ** 2
    assert first_order - 3 * error < strength < 1.3 * first_order + 3 * error


def test_the_response_tends_to_that_of_equal_chances():
    found = [response(4, context) for context in (3, 8)]
    assert 0.3 < found[0] < found[1] < 1
    assert response(4, 4, draws=20_000, size=0.0) == pytest.approx(0.75, abs=0.04)


def test_the_energy_is_that_of_a_sum_of_products_of_normal_numbers():
    # A = sqrt(v) sum over 2 H pairs of z z'; E(alpha) bounds -log Pr[A >= alpha] from below, and its
    # tilted mean is alpha
    parameters = setting(heads=2)
    v = response(4, 3) ** 2 / (2 * 3 * 64)
    rng = np.random.default_rng(5)
    V = v * rng.chisquare(4, 400_000)
    alpha = 0.15
    t, energy = conjugate_field(parameters, alpha)
    weights = np.exp(t * t * V / 2)
    assert t * np.mean(V * weights) / np.mean(weights) == pytest.approx(alpha, rel=0.05)
    assert energy == pytest.approx(t * alpha - np.log(np.mean(weights)), rel=0.03)
    drawn = np.sqrt(V) * rng.standard_normal(V.size)
    assert energy < -np.log(np.mean(drawn >= alpha))


def test_the_energy_has_the_exponents_of_scale(monkeypatch):
    monkeypatch.setattr(attention_energy, "response", lambda dimension, context: 1 - 1 / context)

    def slope(name, low, high, **values):
        logs = [
            np.log(conjugate_field(setting(**values | {name: size}), 1.0)[1])
            for size in (low, high)
        ]
        return (logs[1] - logs[0]) / np.log(high / low)

    # few heads: sqrt(H L d³), with a logarithmic correction
    assert slope("dimension", 50, 100, heads=1) == pytest.approx(1.5, abs=0.02)
    assert slope("context", 16, 64, dimension=100) == pytest.approx(0.5, abs=0.05)
    assert slope("heads", 1, 4, dimension=100, context=16) == pytest.approx(0.5, abs=0.05)
    scaled = scale_network(
        {"target": {"hermite": 3}, "attention": {"heads": "0", "context": "1/2"}}
    )
    assert scaled.exponent == Fraction(7, 4)


def test_the_adapted_alignment_solves_its_equation():
    parameters = setting(scaled_samples=7.0)
    alignment = adapted_alignment(parameters)
    assert samples_for(parameters, alignment) == pytest.approx(parameters.samples, rel=1e-6)
    t, energy = conjugate_field(parameters, alignment)
    near = [conjugate_field(parameters, alignment + step)[1] for step in (1e-4, -1e-4)]
    assert (near[0] - near[1]) / 2e-4 == pytest.approx(t, rel=1e-4)
    assert energy > 0


def test_planted_heads_carry_the_target():
    parameters = setting(dimension=5, context=8, heads=4)
    rng = np.random.default_rng(6)
    target = AttentionTarget(5, 8)
    X, y = target.sample(4, rng, np.float32)
    posterior = AttentionPosterior(X, y, 0.5)
    seen = AttentionObserver(parameters, target, posterior, rng)
    states = rng.standard_normal((2, 4, 30)).astype(np.float32)
    states[1] = plant_heads(parameters, states[1])
    seen(states)
    metrics = seen.metrics()
    assert abs(metrics["alignment_prior"]) < 0.3
    assert metrics["alignment_planted"] > 0.4
    rows, labels = target.sample(40_000, rng, np.float32)
    f = posterior.outputs(states, rows)
    error = np.std(f * labels[:, None], axis=0) / 200
    drawn = np.mean(f * labels[:, None], axis=0)
    for k, name in enumerate(("alignment_prior", "alignment_planted")):
        assert abs(metrics[name] - drawn[k]) < 4 * error[k] + 0.1


def made(along, extra):
    """Make learning curves that take the predicted samples times an additional power of a size."""
    sizes = {"context": (3, 6, 12), "dimension": (4, 6, 9)}[along]
    points = []
    for size in sizes:
        for scaled in (1.0, 2.0, 4.0, 8.0, 16.0):
            parameters = setting(**{"steps": 1_500, "scaled_samples": scaled, along: size})
            needed = 1.8 * samples_for(parameters, 0.2) * (size / sizes[1]) ** extra
            alignment = 0.2 * parameters.samples / needed
            base = {
                "virial": 1.0, "duration": 20.0, "effective_samples": 40.0, "step_error": 0.001,
                "adjusted_alignment": None, "test_error": 0.9, "head_strength": 3.0,
                "label_power": 1.0,
            }  # fmt: skip
            names = ("alignment", "alignment_prior", "alignment_planted")
            records = [base | dict.fromkeys(names, alignment * k) for k in (0.99, 1.0, 1.01, 1.0)]
            prediction = system.predict(parameters)
            points.append(Point(parameters.model_dump(), records, prediction, parameters))
    return points


@pytest.mark.parametrize(
    ("along", "claim", "extra"),
    [
        ("context", "samples-grow-with-context", 0.5),
        ("dimension", "samples-grow-with-dimension", 1.5),
    ],
)
def test_claims_hold_of_the_predicted_growth_and_fail_of_another(along, claim, extra):
    found = [
        next(v for v in system.verdicts(made(along, more)) if v.claim == claim)
        for more in (0.0, extra)
    ]
    assert [verdict.status for verdict in found] == ["holds", "fails"], found


def test_one_replicate_is_measured():
    record = system.measure(setting(steps=300), random_stream("attention", 0))
    assert record["virial"] == pytest.approx(1, abs=0.25)
    assert record["training_error"] < 1.2
    assert record["alignment"] is not None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"context": 1}, "from 2"),
        ({"second_width_ratio": 2.0}, "one trained hidden layer"),
        ({"width_ratio": 5.0}, "width_ratio=5.0 with target='attention'.*Leave width_ratio out"),
        ({"degree": 2}, "the default 3, as degree has no effect"),
        ({"activation": "relu"}, "the default 'erf', as activation has no effect"),
        ({"readout": "mean-field"}, "the default 'standard', as readout has no effect"),
        (
            {"target": "hermite"},
            "context=3 with target='hermite'.*Leave context out, or set target=attention",
        ),
        ({"target": "hermite", "context": 4, "heads": 2}, "the default 4, as heads has no effect"),
    ],
)
def test_other_networks_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        setting(**values)


def test_labels_of_more_power_count_as_more_samples():
    # docs/derivations/two-layer-posterior (28)
    parameters = setting(dimension=4, context=3, steps=300)
    records = [system.measure(parameters, random_stream("power", k)) for k in range(10)]
    power, alignment = (
        np.array([record[name] for record in records]) for name in ("label_power", "alignment")
    )
    assert np.corrcoef(power, alignment)[0, 1] > 0.6
