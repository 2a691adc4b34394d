"""Backward signals against finite differences, and one pass of coupling step by step."""

from dataclasses import replace

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.networks.backlofi_network import (
    Column,
    CoupledLayer,
    forward_layers,
    propagate,
    states_of,
)
from solvable.networks.backlofi_signals import SIGNALS, ForwardGain, backward_signal
from solvable.networks.backlofi_steps import (
    PassSettings,
    column_importance,
    coupled_pass,
    replaced_columns,
)

SETTINGS = PassSettings("exact", (2, 2), 0.25, "rayleigh", 1.0, seed=0)


def network(n=200, d=10, activation="tanh", seed=0, outputs=1, widths=(40, 50, 30)):
    """Fit forward layers to a target with linear, quadratic and cubic parts."""
    X = random_stream(seed, "signals").standard_normal((n, d))
    y = np.stack([X[:, 0] + X[:, 1] * X[:, 2], X[:, 3] ** 2 - 1, X[:, 1]], axis=1)[:, :outputs]
    layers = forward_layers(
        X,
        y,
        reduce=(6, 6, 6),
        widths=widths,
        activation=activation,
        first_moment=True,
        seed=seed,
    )
    coefficients = random_stream(seed, "readout").standard_normal((widths[-1], outputs))
    return layers, X, y, coefficients


def coupled(n=200, passes=1, settings=SETTINGS, **options):
    layers, X, y, coefficients = network(n, **options)
    forward = ForwardGain.of(layers, states_of(layers, X))
    after = layers
    for number in range(1, passes + 1):
        after = coupled_pass(after, X, y, coefficients, forward, settings, number)
    return after, layers, X, y, coefficients, forward


def signal(kind, layers, X, y, coefficients, level, forward):
    return backward_signal(kind, layers, states_of(layers, X), y, coefficients, level, forward)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("damping", [1.0, 0.4])
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_exact_signal_is_the_derivative(level, damping, outputs):
    settings = replace(SETTINGS, damping=damping)
    after, _, X, y, a, forward = coupled(settings=settings, outputs=outputs)
    states = states_of(after, X)
    change = random_stream(3).standard_normal(states.fields[level].shape)

    def objective(step):
        features = after[level].activate(states.fields[level] + step * change)
        return np.sum(y * (propagate(after[level + 1 :], features) @ a))

    numerical = (objective(1e-5) - objective(-1e-5)) / 2e-5
    found = signal("exact", after, X, y, a, level, forward)
    assert np.sum(found * change) == pytest.approx(numerical, rel=1e-6)


@pytest.mark.parametrize("kind", ["exact", "mean_field", "first_order"])
def test_all_chains_agree_at_the_top(kind):
    after, _, X, y, a, forward = coupled()
    expected = y * (after[-1].gate(states_of(after, X).fields[-1]) * a[:, 0])
    np.testing.assert_allclose(signal(kind, after, X, y, a, 2, forward), expected, rtol=1e-12)


@pytest.mark.parametrize("level", [0, 1])
def test_a_mean_over_one_row_is_that_row(level):
    after, _, X, y, a, forward = coupled()
    one = (after, X[:1], y[:1], a, level, forward)
    np.testing.assert_allclose(signal("mean_field", *one), signal("exact", *one), rtol=1e-10)


def test_first_order_keeps_the_written_rows_of_the_layer_above():
    after, layers, X, y, a, _ = coupled()
    # With one row, and the network without its written columns as the network before coupling, the
    # mean-field gain is exact below the top; the remaining part is that of the written rows.
    one = X[:1]
    states = states_of(after, one)
    bare = [
        replace(
            layer,
            columns=layer.columns * (layer.kinds != Column.WRITTEN),
        )
        for layer in after
    ]
    gates = tuple(layer.gate(fields)[0] for layer, fields in zip(after, states.fields, strict=True))
    forward = ForwardGain(tuple(bare), gates)
    found = signal("first_order", after, one, y[:1], a, 1, forward)
    np.testing.assert_allclose(found, signal("exact", after, one, y[:1], a, 1, forward), rtol=1e-10)
    without = signal("first_order", bare, one, y[:1], a, 1, forward)
    assert np.abs(found - without).max() > 1e-6
    assert len(layers) == 3


def test_the_mean_field_forgets_only_what_varies_with_the_sample():
    # With the identity the gates are constant, so the mean equals every value.
    after, _, X, y, a, forward = coupled(activation="identity")
    for level in (0, 1):
        exact = signal("exact", after, X, y, a, level, forward)
        mean = signal("mean_field", after, X, y, a, level, forward)
        np.testing.assert_allclose(mean, exact, atol=1e-12)


def test_the_local_signal_is_the_gate():
    after, _, X, y, a, forward = coupled(activation="relu")
    fields = states_of(after, X).fields[1]
    np.testing.assert_allclose(
        signal("local", after, X, y, a, 1, forward), y * (fields > 0) / np.sqrt(50)
    )


@pytest.mark.parametrize("kind", SIGNALS)
def test_new_columns_have_the_amplitudes_that_were_asked_for(kind):
    # Use one boundary: a lower boundary would change the features after the column was scaled.
    settings = replace(SETTINGS, signal=kind, amplitude=0.4, n_replaced=(0, 2))
    after, layers, X, *_ = coupled(settings=settings)
    features = states_of(after, X).features
    for level, kind_of, factor in ((1, Column.READ, 1.0), (2, Column.WRITTEN, np.sqrt(30))):
        layer = after[level]
        sizes = np.sqrt(np.mean((features[level] @ layer.columns) ** 2, axis=0))
        tau = sizes[layer.kinds <= Column.FORWARD].mean()
        np.testing.assert_allclose(sizes[layer.kinds == kind_of], 0.4 * factor * tau, rtol=1e-9)
        np.testing.assert_array_equal(np.bincount(layer.kinds)[1:], [4, *[0] * (kind_of - 2), 2])
    rows = after[2].lift[after[2].kinds == Column.WRITTEN]
    np.testing.assert_allclose(rows @ rows.T, np.eye(2), atol=1e-9)
    np.testing.assert_array_equal(after[0].columns, layers[0].columns)


def test_a_pass_changes_both_sides_of_every_boundary_and_no_number_of_columns():
    after, layers, *_ = coupled()
    for level, (layer, before) in enumerate(zip(after, layers, strict=True)):
        assert layer.columns.shape == before.columns.shape
        assert np.count_nonzero(layer.kinds == Column.READ) == (2 if level < 2 else 0)
        assert np.count_nonzero(layer.kinds == Column.WRITTEN) == (2 if level > 0 else 0)
        assert np.count_nonzero(layer.kinds == Column.FIRST_MOMENT) == 1


def test_amplitudes_do_not_inflate_from_pass_to_pass():
    # If written columns entered tau, each pass would multiply their amplitude.
    settings = replace(SETTINGS, amplitude=1.0)
    sizes = []
    for passes in (1, 4):
        after, _, X, _, _, _ = coupled(passes=passes, settings=settings)
        features = states_of(after, X).features[1]
        written = after[1].kinds == Column.WRITTEN
        newest = written & (after[1].born == passes)
        forward = np.sqrt(np.mean((features @ after[1].columns[:, ~written]) ** 2))
        sizes.append(np.sqrt(np.mean((features @ after[1].columns[:, newest]) ** 2)) / forward)
    assert sizes[1] < 1.5 * sizes[0]


def test_read_directions_and_written_columns_are_the_ones_of_the_formula():
    layers, X, y, a = network()
    states = states_of(layers, X)
    forward = ForwardGain.of(layers, states)
    only_top = replace(SETTINGS, n_replaced=(0, 2))
    after = coupled_pass(layers, X, y, a, forward, only_top, 1)
    gamma = backward_signal("exact", layers, states, y, a, 2, forward)
    write, _, read = np.linalg.svd(gamma.T @ states.features[1] / 200)
    columns = after[1].columns[:, after[1].kinds == Column.READ]
    overlap = np.linalg.svd(read[:2] @ (columns / np.linalg.norm(columns, axis=0)))[1]
    np.testing.assert_allclose(overlap, 1.0, atol=1e-9)
    features = after[1].activate(after[1].preactivation(states.features[1]))
    expected = features.T @ (gamma @ write[:, :2])
    written = after[2].columns[:, after[2].kinds == Column.WRITTEN]
    cosines = np.sum(expected * written, axis=0) / (
        np.linalg.norm(expected, axis=0) * np.linalg.norm(written, axis=0)
    )
    # The sign of a singular pair is arbitrary, but common to column and row.
    np.testing.assert_allclose(np.abs(cosines), 1.0, atol=1e-9)
    rows = after[2].lift[after[2].kinds == Column.WRITTEN]
    np.testing.assert_allclose(np.sum(rows * write[:, :2].T, axis=1), cosines, atol=1e-9)
    np.testing.assert_array_equal(after[0].columns, layers[0].columns)


def test_the_weakest_eigenvectors_make_room_first():
    after, layers, X, y, _, _ = coupled()
    strengths = np.abs(
        [v @ (X.T @ (y * X)) @ v for v in layers[0].columns[:, layers[0].kinds == 1].T]
    )
    kept = after[0].columns[:, after[0].kinds == Column.FORWARD]
    forward = layers[0].columns[:, layers[0].kinds == Column.FORWARD]
    expected = forward[:, np.sort(np.argsort(-strengths)[:4])]
    np.testing.assert_allclose(kept, expected)


def test_importance_of_a_linear_layer_is_its_first_moment():
    # sigma'(h) = 1 and E h = 0: no part of the gradient is quadratic.
    X = random_stream(4).standard_normal((300, 5))
    X -= X.mean(axis=0)
    y = random_stream(5).standard_normal((300, 2))
    V = np.linalg.qr(random_stream(6).standard_normal((5, 3)))[0] * [1.0, 5.0, 0.1]
    lift = random_stream(7).standard_normal((3, 20))
    layer = CoupledLayer(V, lift, np.ones(3, dtype=int), np.zeros(3, dtype=int), 1.0, "identity")
    found = column_importance(layer, X, layer.preactivation(X), y, "gradient-importance")
    unit = V / np.linalg.norm(V, axis=0)
    np.testing.assert_allclose(found, np.linalg.norm(y.T @ X @ unit / 300, axis=0), rtol=1e-9)


def test_importance_of_a_square_layer_is_its_gradient():
    """The gradient (1/n) sum y sigma'(h_i) v.z / |v| where sigma' is linear (lofi 34)."""
    stream = random_stream(8)
    X = stream.standard_normal((300, 5))
    X -= X.mean(axis=0)
    y = stream.standard_normal((300, 2))
    v = np.array([[1.0], [-2.0], [0.5], [0.0], [3.0]])
    lift = np.where(stream.standard_normal((1, 20)) > 0, 1.0, -1.0)
    # E h_i² = 1, so that sigma'(h) = 2 h is its own linear part.
    layer = CoupledLayer(v, lift, np.ones(1, int), np.zeros(1, int), (X @ v).std(), "square")
    fields = layer.preactivation(X)
    found = column_importance(layer, X, fields, y, "gradient-importance")
    gradient = np.einsum("no,ni,n->oi", y, 2 * fields, X @ v[:, 0] / np.linalg.norm(v)) / 300
    np.testing.assert_allclose(found, np.sqrt(np.sum(gradient**2) / 20), rtol=1e-9)


@pytest.mark.parametrize("drop", ["rayleigh", "gradient-importance"])
def test_importance_does_not_depend_on_how_column_and_row_share_a_factor(drop):
    layers, X, y, _ = network(activation="relu")
    layer = layers[0]
    factors = np.linspace(0.5, 3, layer.columns.shape[1])
    other = replace(layer, columns=layer.columns * factors, lift=layer.lift / factors[:, None])
    fields = layer.preactivation(X)
    np.testing.assert_allclose(other.preactivation(X), fields, atol=1e-10)
    np.testing.assert_allclose(
        column_importance(other, X, fields, y, drop), column_importance(layer, X, fields, y, drop)
    )


def test_preactivations_have_variance_one():
    layers, X, _, _ = network(n=500, widths=(4000, 4000, 4000))
    for fields in states_of(layers, X).fields:
        # Standard error over 4000 neurons that share 7 coordinates: at most sqrt(2 / 4000)
        assert np.mean(fields**2) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 4000))


def test_the_variance_is_one_again_after_a_pass_over_all_boundaries():
    # For written columns with unit rows the sum over neurons is exact; the contribution of Gaussian rows
    # fluctuates as above.
    after, _, X, *_ = coupled(n=500, widths=(2000, 2000, 2000))
    for fields in states_of(after, X).fields:
        assert np.mean(fields**2) == pytest.approx(1.0, abs=6 * np.sqrt(2 / 2000))


@pytest.mark.parametrize("damping", [1e-9, 0.3, 1.0])
def test_damping_mixes_weights(damping):
    settings = replace(SETTINGS, n_replaced=(0, 2), damping=damping)
    after, layers, *_ = coupled(settings=settings)
    full, *_ = coupled(settings=replace(settings, damping=1.0))
    expected = (1 - damping) * layers[1].weights() + damping * full[1].weights()
    np.testing.assert_allclose(after[1].weights(), expected, atol=1e-9)
    parts = after[1].weights("random") + after[1].weights("written")
    np.testing.assert_allclose(after[1].weights(), parts, atol=1e-12)
    backwards = random_stream(8).standard_normal((4, 50))
    np.testing.assert_allclose(
        after[1].pull_back(backwards), backwards @ after[1].weights().T, atol=1e-12
    )


def test_number_of_replaced_columns():
    layers, *_ = network()
    assert replaced_columns(layers, 0.0) == (0, 0)
    assert replaced_columns(layers, 0.01) == (1, 1)
    assert replaced_columns(layers, 0.5) == (3, 3)
