"""Sums of equal directions: exact thresholds, their leading order, and the threshold of any method."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from solvable.links import make_link
from solvable.models.multi_index.equal_directions import (
    EqualDirections,
    information_ratio,
    information_threshold,
    known_sum_ratio,
    pair_exponent,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("he2", (0.991, 0.998, 1.0)),
        ("abs", (0.960, 0.990, 0.999)),
        ("cosmix", (0.931, 0.982, 0.997)),
    ],
)
def test_exact_thresholds_over_their_leading_order(name, expected):
    # Leading order beta! (1 + Delta)^beta / c_beta² p^beta   (multi-index 17)
    models = [EqualDirections(make_link(name), p, 0.1) for p in (4, 16, 128)]
    found = [model.weak_recovery_ratio / model.leading_ratio for model in models]
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("name", "exponent"), [("tanh", 2), ("relu", 1), ("sign", 2), ("sin", 2)])
def test_links_with_a_linear_part_approach_their_own_leading_order(name, exponent):
    link = make_link(name)
    assert pair_exponent(link) == exponent
    gaps = []
    for p in (10, 20, 40):
        model = EqualDirections(link, p, 0.4)
        gaps.append(abs(model.weak_recovery_ratio / model.leading_ratio - 1))
    # The next terms are of order 1/p: doubling p halves the difference.
    assert gaps[2] < 0.05
    assert 0.35 < gaps[2] / gaps[1] < 0.7


def test_moments_orthogonal_to_the_sum_agree_with_draws():
    model = EqualDirections(make_link("tanh"), 3, 0.2)
    rng = np.random.default_rng(5)
    z = rng.standard_normal((400_000, 3))
    y = model.channel.sample(z, rng)
    moments = model.channel.moments
    T = np.minimum(y**2, 4.0)
    weighted = moments.probabilities * np.minimum(moments.labels**2, 4.0)
    whole, single = z.sum(axis=1) / np.sqrt(3), (z[:, 0] - z[:, 1]) / np.sqrt(2)
    for latent, second in ((whole, model.sum_moment), (single, model.single_moment)):
        values = T * (latent**2 - 1)
        error = values.std() / np.sqrt(y.size)
        assert values.mean() == pytest.approx(weighted @ second, abs=4.5 * error)
    law = model.law(np.tanh(moments.labels))
    assert law.second_moments.shape[1] == 3


def test_the_committee_of_signs():
    # For y = sign(sum_k sign(z_k)) the reduction of (multi-index 20) gives 7.680; the literature has
    # 7.65.
    z = np.linspace(-9, 9, 4001)
    chance = np.exp(-(z**2) / 2)
    chance /= chance.sum()

    def entropy(share):
        share = np.minimum(share, 1 - 1e-14)
        P = ndtr(np.sqrt(share / (1 - share))[:, None] * z)
        return -2 * np.where(P > 0, P * np.log(np.maximum(P, 1e-300)), 0.0) @ chance

    linear = 2 / np.pi

    def gain(q):
        # kappa(q) = (2 / pi) arcsin q; its linear part is known with the sum.
        share = linear + linear * np.arcsin(q) - linear * q
        return 2 * (entropy(np.full(1, linear)) - entropy(share))

    assert information_threshold(gain) == pytest.approx(7.680, abs=2e-3)


@pytest.mark.parametrize(("name", "noise"), [("cosmix", 0.1), ("he4", 1.0), ("tanh", 0.3)])
def test_at_the_information_threshold_the_potential_touches_zero(name, noise):
    # At the threshold the potential is 0 at one q and positive elsewhere.
    link, p = make_link(name), 50
    ratio = information_ratio(link, p, noise) / p
    linear = link.hermite(1)[1] ** 2
    q = np.linspace(0.001, 0.9999, 40_000)
    v = noise + link.correlation(1.0) - link.correlation(q) - linear * (1 - q)
    before = noise + link.correlation(1.0) - linear
    potential = ratio * np.log(v / before) - q - np.log1p(-q)
    assert potential.min() == pytest.approx(0, abs=1e-4)


def test_a_label_of_the_sum_alone_has_no_threshold():
    model = EqualDirections(make_link("identity"), 4, 0.1)
    assert np.isinf(model.weak_recovery_ratio)
    assert np.isinf(model.leading_ratio)


@pytest.mark.parametrize("name", ["tanh", "relu", "abs"])
def test_two_directions_given_their_sum_agree_with_direct_integrals(name):
    # With z = (s +- v) / sqrt 2, E[v² - 1 | y, s] is an integral over v at each s.
    link, noise = make_link(name), 0.4
    v = np.linspace(-8, 8, 801)
    weight = np.exp(-(v**2) / 2)
    y = np.linspace(-14, 18, 600)
    s = np.linspace(-6, 6, 121)
    total = np.exp(-(s**2) / 2)
    power = 0.0
    for place, chance in zip(s, total / total.sum(), strict=True):
        clean = (link((place + v) / np.sqrt(2)) + link((place - v) / np.sqrt(2))) / np.sqrt(2)
        joint = weight * np.exp(-((y[:, None] - clean) ** 2) / (2 * noise))
        density = joint.sum(axis=1)
        moment = joint @ (v**2 - 1) / np.maximum(density, 1e-300)
        power += chance * np.sum(density * moment**2) / np.sum(density)
    assert known_sum_ratio(link, 2, noise) == pytest.approx(1 / power, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "directions"),
    [("relu", 4), ("tanh", 12), pytest.param("he3", 5, marks=pytest.mark.slow)],
)
def test_an_estimate_of_overlap_zero_leaves_the_moments_of_the_label(name, directions):
    # An estimate of overlap 0 is independent noise: the threshold is that of second moments alone.
    model = EqualDirections(make_link(name), directions, 0.3)
    found = known_sum_ratio(model.link, directions, 0.3, 0.0)
    assert found == pytest.approx(model.weak_recovery_ratio, rel=2e-3)
    known = known_sum_ratio(model.link, directions, 0.3)
    assert known < model.first_order_ratio < found


@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid", "sign"])
def test_many_directions_given_their_sum_have_a_leading_order(name):
    # With r = sigma - mu_1 z and v = noise + Var r   (multi-index 19): v p / c_1² if c_1 is not 0, else
    # p² / (E[r² (z² - 1)]² / (2 v²) + E[r He_3]² / v)
    link, p, noise = make_link(name), 100, 0.7
    z, chance = link.nodes()
    linear = link.hermite(1)[1]
    r = link(z) - linear * z
    v = noise + 1 - linear**2
    c = chance @ (r * (z**2 - 1))
    leading = v * p / c**2
    if abs(c) < 1e-8:
        square, cubic = chance @ (r**2 * (z**2 - 1)), chance @ (r * (z**3 - 3 * z))
        leading = p**2 / (square**2 / (2 * v**2) + cubic**2 / v)
    assert known_sum_ratio(link, p, noise) == pytest.approx(leading, rel=0.01)
    model = EqualDirections(link, p, noise)
    # At the threshold the sum has an overlap slightly below 1.
    assert 1 < model.first_order_ratio / known_sum_ratio(link, p, noise) < 1.03
    assert model.first_order_ratio < model.leading_ratio
    assert model.information_ratio <= model.first_order_ratio
