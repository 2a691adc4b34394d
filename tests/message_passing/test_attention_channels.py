"""Channels of attention: conditioned Gaussians, accepted draws, Bayes identity, two algorithms."""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

from solvable.errors import InvalidData, InvalidParameter
from solvable.message_passing.attention_channels import (
    TABLES,
    HardmaxAttention,
    SignOfIndex,
    SoftmaxAttention,
)
from solvable.message_passing.hardmax import (
    POINTS,
    Order,
    _orthant,
    _shifts,
    _uniform,
    hardmax_messages,
    pair_messages,
)
from solvable.operators.sensors import index_pairs, index_variances

Q = 1.7


def draws(channel, error, n, seed=0):
    """Draw cavity means, indices and labels."""
    rng = np.random.default_rng(seed)
    v = channel.variances
    omega = np.sqrt(v * (Q - error)) * rng.standard_normal((n, v.size))
    indices = omega + np.sqrt(v * error) * rng.standard_normal((n, v.size))
    return omega, indices, channel.sample(indices, rng)


CHANNELS = [
    SoftmaxAttention(2, 0.0),
    SoftmaxAttention(4, 0.6),
    HardmaxAttention(2, 0.3, Q),
    pytest.param(HardmaxAttention(3, 0.0, Q), marks=pytest.mark.slow),
    SignOfIndex(0.4, Q),
]


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
@pytest.mark.parametrize("error", [1.1, 0.3])
def test_information_is_that_of_messages_on_drawn_labels(channel, error):
    v = channel.variances
    omega, _, labels = draws(channel, error, 20_000)
    g, slope = channel.messages(labels)(omega, np.diag(v) * error)
    each = (v * g**2).sum(axis=1)
    stated = float(channel.information(np.array([error]))[0])
    assert stated == pytest.approx(each.mean(), abs=4 * each.std() / 20_000**0.5 + 0.006 * stated)
    assert -(v @ np.diag(slope)) / len(g) == pytest.approx(each.mean())


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_messages_are_posterior_means(channel):
    """E[(h - omega) f(label, omega)] = v E[g f] for f = g and for f of g and omega."""
    v, error = channel.variances, 0.7
    omega, indices, labels = draws(channel, error, 20_000, seed=3)
    g, _ = channel.messages(labels)(omega, np.diag(v) * error)
    for factor in (g, np.tanh(2 * omega) * np.roll(g, 1, axis=1), np.sign(g)):
        difference = ((indices - omega) - v * error * g) * factor
        assert (
            np.abs(difference.mean(axis=0)) < 4.5 * difference.std(axis=0) / len(g) ** 0.5
        ).all()


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_bayes_identity_of_slopes(channel):
    """-E[dg/domega] = E[g²], by finite differences of the messages at fixed labels."""
    v, error, step = channel.variances, 0.5, 1e-4
    n = 2_500 if channel.variances.size == 6 else 10_000
    omega, _, labels = draws(channel, error, n, seed=5)
    given, V = channel.messages(labels), np.diag(v) * error
    g = given(omega, V).values
    for k in range(v.size):
        move = step * np.eye(v.size)[k]
        slope = (given(omega + move, V).values - given(omega - move, V).values)[:, k] / (2 * step)
        excess = slope + g[:, k] ** 2
        assert abs(excess.mean()) < 4.5 * excess.std() / len(g) ** 0.5 + 2e-3 * abs(slope.mean())


@pytest.mark.parametrize("tokens", [2, 3, 5])
def test_softmax_messages_condition_the_joint_gaussian(tokens):
    """Messages from the joint covariance of indices and observed differences (attention 2)."""
    channel, rng, error = SoftmaxAttention(tokens, 0.8), np.random.default_rng(1), 0.6
    v = channel.variances
    omega = rng.standard_normal((3, v.size))
    z = omega + rng.standard_normal((3, v.size))
    g = channel.messages(channel.attention(z))(omega, np.diag(v) * error).values
    seen = np.eye(v.size)[1:] - np.eye(v.size)[0]
    noisy = seen @ np.diag(v * (error + 0.4)) @ seen.T
    gain = np.diag(v * error) @ seen.T @ np.linalg.inv(noisy)
    # messages have a common factor that is 1 if the assumed error is the true one   (sensing 7)
    expected = (z - omega) @ seen.T @ gain.T
    assert v * error * g / np.linalg.norm(v * g) == pytest.approx(
        error * expected / np.linalg.norm(expected)
    )
    # a covariance that is not diagonal
    root = rng.standard_normal((v.size, v.size))
    V = root @ root.T
    g = channel.messages(channel.attention(z))(omega, V).values
    inverse = np.linalg.inv(seen @ (V + np.diag(0.4 * v)) @ seen.T)
    expected = (z - omega) @ seen.T @ inverse @ seen
    assert g / np.linalg.norm(g) == pytest.approx(expected / np.linalg.norm(expected))


def test_softmax_rows_sum_to_one_and_forget_a_shift():
    channel, rng = SoftmaxAttention(3, 0.0), np.random.default_rng(2)
    h = 20 * rng.standard_normal((50, 6))
    attention = channel.sample(h, rng)
    assert attention.sum(axis=2) == pytest.approx(1.0)
    assert channel.attention(h + 5.0) == pytest.approx(attention)
    back = channel.indices(attention)
    assert back - back[:, :1] == pytest.approx(h - h[:, :1], abs=1e-6)


def test_both_routes_to_two_tokens():
    rng = np.random.default_rng(4)
    omega, spread = 2 * rng.standard_normal((400, 3)), np.array([1.3, 0.4, 0.9])
    z = omega + np.sqrt(spread) * rng.standard_normal((400, 3))
    matrix = np.stack([z[:, :2], z[:, 1:]], axis=1)
    orders = Order.groups(matrix.argmax(axis=2), 2)
    closed, sobol = (f(orders, omega, spread) for f in (pair_messages, hardmax_messages))
    assert np.abs(closed - sobol).max() < 0.6
    assert np.sqrt(np.mean((closed - sobol) ** 2)) < 0.04 * np.sqrt(np.mean(closed**2))


def test_hardmax_of_three_against_accepted_draws():
    rng = np.random.default_rng(6)
    v, omega = index_variances(3), np.array([[0.4, -0.2, 0.1, 0.3, 0.5, -0.6]])
    z = omega + np.sqrt(v) * rng.standard_normal((400_000, 6))
    matrix = np.empty((len(z), 3, 3))
    first, second = index_pairs(3)
    matrix[:, first, second] = matrix[:, second, first] = z
    labels = matrix.argmax(axis=2)
    for outcome in ((0, 1, 2), (1, 0, 2), (1, 2, 2), (2, 2, 0), (0, 0, 0)):
        taken = z[(labels == outcome).all(axis=1)]
        assert len(taken) > 2_000
        g = hardmax_messages(Order.groups(np.array([outcome]), 3), omega, v)[0]
        error = taken.std(axis=0) / len(taken) ** 0.5
        # rare outcomes have the largest error; the stated accuracy is 3 % of the size of all messages
        assert (np.abs(g - (taken.mean(axis=0) - omega[0]) / v) < 4 * error / v + 0.06).all(), (
            outcome
        )


def test_unlikely_outcomes_stay_finite():
    omega = np.array([[30.0, -30.0, 30.0], [-40.0, 0.0, -40.0]])
    orders = Order.groups(np.array([[1, 0], [0, 1]]), 2)
    g = pair_messages(orders, omega, np.ones(3))
    assert np.isfinite(g).all()
    assert g[0] @ [-1, 1, -1] > 0
    assert g[1] @ [1, -1, 1] > 0
    g = hardmax_messages(orders, omega, np.ones(3))
    assert np.isfinite(g).all()


def pair_information(share):
    """Mean of sum v g² for two tokens at the fraction s of unknown variance (attention 4)."""
    # cavity means of covariance (1 - s) / s (3, 1; 1, 3) on a grid that is fine near the boundaries
    spread = np.sqrt(3 * (1 - share) / share)
    reach, fine = 8.5 * spread, min(1.0, spread)
    t = np.linspace(-1, 1, 161) * np.arcsinh(reach / fine)
    x, step = fine * np.sinh(t), fine * np.cosh(t) * (t[1] - t[0])
    first, second = (grid.ravel() for grid in np.meshgrid(x, x, indexing="ij"))
    weights = np.multiply.outer(step, step).ravel() / (2 * np.pi * spread**2 * np.sqrt(8 / 9))
    quadratic = first**2 + second**2 - 2 / 3 * first * second
    weights *= np.exp(-quadratic / (2 * spread**2 * 8 / 9))
    places = np.column_stack([first, second]) / np.sqrt(3)
    inverse = np.array([[9.0, -3.0], [-3.0, 9.0]]) / 8
    total = 0.0
    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        probability, shift = _orthant(places, np.broadcast_to(signs, places.shape), 1 / 3)
        # g_u^T Sigma g_u in units of the unknown variance
        total += float(weights @ (probability * np.einsum("ni,ij,nj->n", shift, inverse, shift)))
    return total


def hardmax_information(tokens, share, samples=2**12):
    """Mean of sum v g² for any number of tokens, by Sobol points for means and labels."""
    v = index_variances(tokens)
    half = ndtri(np.clip(qmc.Sobol(2 * v.size, seed=1).random(samples), 1e-12, 1 - 1e-12))
    # z of variance v / s and its cavity mean (1 - s) z + sqrt(v (1 - s)) e
    z = np.sqrt(v / share) * half[:, : v.size]
    omega = (1 - share) * z + np.sqrt(v * (1 - share)) * half[:, v.size :]
    first, second = index_pairs(tokens)
    logits = np.empty((samples, tokens, tokens))
    logits[:, first, second] = logits[:, second, first] = z
    orders = Order.groups(logits.argmax(axis=2), tokens)
    total = 0.0
    for order in orders:
        # two independent sequences, so that errors of the posterior mean do not bias its square
        one, two = (
            _shifts(
                order,
                omega[order.rows] / np.sqrt(v),
                np.sqrt(v),
                _uniform(len(order.largest), POINTS, seed),
            )
            for seed in (2, 3)
        )
        total += float((one * two).sum())
    return total / samples


@pytest.mark.parametrize(("tokens", "within"), [(2, 1e-6), (3, 0.01)])
def test_stored_tables_are_those_of_the_integrals(tokens, within):
    for root in (0.35, 0.75):
        stored = np.polynomial.chebyshev.chebval(2 * root - 1, TABLES[tokens])
        if tokens == 2:
            found = pair_information(root**2)
        else:
            found = hardmax_information(tokens, root**2, 2**12)
        assert stored == pytest.approx(found / root, rel=within)


def test_limits_of_the_sign():
    """Information of the sign at s = 1, and its square-root law as s -> 0."""
    channel = SignOfIndex(0.0, Q)
    assert channel.information(np.array([Q]))[0] == pytest.approx(2 / np.pi / Q)
    near = channel.information(np.array([1e-6, 4e-6]))
    assert near[0] / near[1] == pytest.approx(2, rel=1e-2)
    assert SignOfIndex(1e9, Q).information(np.array([1.0]))[0] < 1e-8


def test_noise_counts_as_error_that_no_sample_lowers():
    for with_noise, without in (
        (SoftmaxAttention(3, 0.8), SoftmaxAttention(3, 0.0)),
        (HardmaxAttention(2, 0.8, Q), HardmaxAttention(2, 0.0, Q + 0.4)),
        (SignOfIndex(0.8, Q), SignOfIndex(0.0, Q + 0.4)),
    ):
        errors = np.array([0.05, 0.5, 1.2])
        assert with_noise.information(errors) == pytest.approx(without.information(errors + 0.4))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SoftmaxAttention(1, 0.0), "no information"),
        (lambda: HardmaxAttention(1, 0.0, Q), "no information"),
        (lambda: HardmaxAttention(4, 0.0, Q), "2 to 3"),
        (lambda: SoftmaxAttention(2, -1.0), "noise"),
        (lambda: SignOfIndex(np.inf, Q), "noise"),
    ],
)
def test_bad_channels(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()


def test_labels_that_no_channel_gives():
    with pytest.raises(InvalidData, match="weight"):
        SoftmaxAttention(2, 0.0).messages(np.eye(2)[None])
    with pytest.raises(InvalidData, match="cycle"):
        HardmaxAttention(3, 0.0, Q).messages(np.array([[1, 2, 0]]))
    with pytest.raises(InvalidData, match="positions"):
        HardmaxAttention(3, 0.0, Q).messages(np.array([[1, 3, 0]]))
