"""Priors: closed forms, draws, large precisions, a prior of one's own, bad input."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.inference import (
    Density,
    Discrete,
    GaussBernoulli,
    Gaussian,
    Prior,
    Rademacher,
    state_evolution,
)
from solvable.inference.outputs import Output

PRIORS = [
    Gaussian(0.7, mean=0.3),
    Rademacher(0.3),
    GaussBernoulli(0.2),
    GaussBernoulli(0.3, mean=1.0, variance=0.25),
    Discrete([-1, 0, 2], [0.2, 0.5, 0.3]),
    Density(lambda w: np.exp(-np.abs(w)), (-30, 30), breakpoints=[0]),
    Density(np.ones_like, (-1, 2)),
]


class Coin(Prior):
    def draw(self, size, rng):
        return rng.choice([-1.0, 1.0], size)

    def denoise(self, b, precision):
        return np.tanh(b), 1 - np.tanh(b) ** 2


@pytest.mark.parametrize("precision", [0.3, 4.0, 10.0])
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_errors_agree_with_draws(prior, precision):
    rng = np.random.default_rng(3)
    w = prior.draw(20_000, rng)
    b = precision * w + np.sqrt(precision) * rng.standard_normal(w.size)
    estimate, variance = prior.denoise(b, precision)
    for seen in ((w - estimate) ** 2, variance):
        error = 4 * seen.std() / np.sqrt(w.size) + 1e-12
        assert prior.error(precision) == pytest.approx(seen.mean(), abs=error)
    assert abs((w - estimate).mean()) < 4 * (w - estimate).std() / np.sqrt(w.size)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_moments_agree_with_draws(prior):
    w = prior.draw(100_000, np.random.default_rng(4))
    assert prior.mean == pytest.approx(w.mean(), abs=4 * w.std() / np.sqrt(w.size))
    assert prior.second_moment == pytest.approx(
        (w**2).mean(), abs=4 * (w**2).std() / np.sqrt(w.size) + 1e-12
    )
    assert prior.error(0.0) == pytest.approx(prior.variance)


def test_a_density_is_a_gaussian():
    density = Density(lambda w: np.exp(-(w**2) / 2), (-9.5, 9.5))
    for precision in (1e-3, 1.0, 30.0, 1e4, 1e7):
        assert density.error(precision) == pytest.approx(1 / (1 + precision), rel=1e-7)


def test_a_density_with_a_kink_agrees_with_a_plain_sum():
    laplace, w = PRIORS[5], np.linspace(-30, 30, 30_001)
    for precision in (0.1, 1.0, 5.0):
        r = np.linspace(-45, 45, 601)
        chance = np.exp(-np.abs(w) - (r[:, None] - w) ** 2 * precision / 2)
        total = chance.sum(axis=1)
        known = total > 0
        mean, square = (chance[known] @ w**k / total[known] for k in (1, 2))
        exact = total[known] @ (square - mean**2) / total.sum()
        assert laplace.error(precision) == pytest.approx(exact, rel=1e-6)


def test_error_times_precision_tends_to_the_continuous_part():
    # D = 0.1; quadrature nodes of a fixed rule miss the switch of the posterior here
    prior = GaussBernoulli(0.1)
    assert prior.error(1_000.0) == pytest.approx(1.32978e-4, rel=1e-5)
    assert [prior.dimension, Rademacher().dimension, PRIORS[-1].dimension] == pytest.approx(
        [0.1, 0, 1]
    )
    assert 1e9 * prior.error(1e9) == pytest.approx(0.1, rel=0.01)


def test_a_prior_of_ones_own_is_integrated_from_its_denoiser():
    for precision in (0.01, 1.0, 20.0):
        exact = Rademacher(0.5).error(precision)
        assert Coin().error(precision) == pytest.approx(exact, rel=1e-5)
    law = state_evolution(Coin(), Output("sign"), [0.6, 1.1])
    assert law.error == pytest.approx([0.65229, 0.38590], abs=1e-5)


def test_a_wrong_denoiser_is_refused():
    class Wrong(Coin):
        def denoise(self, b, precision):
            return np.tanh(2 * b), 1 - np.tanh(2 * b) ** 2

    with pytest.raises(InvalidParameter, match="of the prior on its own draws average"):
        state_evolution(Wrong(), Output("sign"), 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rademacher(0.0), "above 0"),
        (lambda: Gaussian(0.0), "above 0"),
        (lambda: Discrete([2, 2], [0.5, 0.5]), "variance 0; allowed: above 0"),
        (lambda: Discrete([0, 1], [0.5, 0.4]), "with sum 0.9; allowed: numbers"),
        (lambda: Discrete([0, 1, 2], [0.5, 0.5]), "allowed: as many of each"),
        (lambda: GaussBernoulli(1.5), "the probabilities are"),
        (lambda: GaussBernoulli(float("nan")), "density"),
        (lambda: Density(lambda w: np.full(w.shape, np.nan), (0, 1)), "the density is NaN"),
        (lambda: Density(np.ones_like, (1, 0)), "two finite ends"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message):
    with pytest.raises(InvalidParameter, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("law", ["rademacher", "uniform", "laplace"])
def test_a_denoiser_of_another_law_with_the_same_variance_is_refused(law):
    class Wrong(Prior):
        def draw(self, size, rng):
            if law == "rademacher":
                return rng.choice([-1.0, 1.0], size)
            if law == "uniform":
                return rng.uniform(-np.sqrt(3), np.sqrt(3), size)
            return rng.laplace(size=size) / np.sqrt(2)

        def denoise(self, b, precision):
            return b / (1 + precision), np.full_like(b, 1 / (1 + precision))

    with pytest.raises(InvalidParameter, match="on its own draws"):
        state_evolution(Wrong(), Output("sign"), 1.5)
