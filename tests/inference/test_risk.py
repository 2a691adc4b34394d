"""Equations of the empirical risk: closed forms, limits, two routes, and what is refused."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter, NotConverged
from solvable.inference import (
    Density,
    Discrete,
    GaussBernoulli,
    Gaussian,
    GaussianMixture,
    InputCovariance,
    Loss,
    Output,
    Penalty,
    Prior,
    Rademacher,
    RandomFeatures,
    empirical_risk,
)
from solvable.inference.fixed_point import fixed_point

SIGN = Output("sign")
SQUARE = Loss("square")
OWN_SQUARE = Loss(prox=lambda y, u, V: (u + V * y) / (1 + V), value=lambda y, z: (y - z) ** 2 / 2)


def numbers(risk, *names):
    names = names or ("training_loss", "error", "overlap", "norm", "response", "replicon")
    return np.array([getattr(risk, name) for name in names])


@pytest.mark.parametrize(
    ("alpha", "strength", "noise"), [(1.5, 0.5, 0.5), (0.4, 0.01, 0.1), (9, 2, 0)]
)
def test_ridge_regression_is_the_closed_form(alpha, strength, noise):
    # Dobriban and Wager (2018)
    b = strength + alpha - 1
    V = (-b + np.sqrt(b**2 + 4 * strength)) / (2 * strength)
    share = alpha * V**2 / (1 + V) ** 2
    error = ((strength * V) ** 2 + noise * share) / (1 - share)
    output = Output("linear", noise=noise)
    risk = empirical_risk(SQUARE, Penalty("l2", strength), output, Gaussian(), alpha)
    np.testing.assert_allclose([risk.response, risk.error], [V, error], rtol=1e-10)
    assert risk.label_error == pytest.approx(error + noise)
    assert risk.replicon == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_the_best_ridge_is_the_bayes_estimate_of_a_gaussian_signal(alpha):
    from solvable.inference import state_evolution

    output, prior = Output("linear", noise=0.3), Gaussian(2.0)
    best = empirical_risk(SQUARE, Penalty("l2", 0.3 / 2.0), output, prior, alpha)
    law = state_evolution(prior, output, sample_ratio=[alpha])
    assert best.error == pytest.approx(law.error[0], rel=1e-6)
    assert best.overlap == pytest.approx(law.overlap[0], rel=1e-6)


@pytest.mark.parametrize("output", [Output("linear", noise=0.4), Output("relu"), SIGN], ids=str)
def test_iteration_and_closed_form_agree_for_the_square_loss(output):
    pair = [
        empirical_risk(loss, Penalty("l2", 0.3), output, Gaussian(), [0.7, 2])
        for loss in (SQUARE, OWN_SQUARE)
    ]
    np.testing.assert_allclose(*map(numbers, pair), rtol=2e-5)


def test_the_huber_loss_of_a_linear_teacher_has_closed_averages():
    # residuals r = y - omega are Gaussian: V^ = alpha P(|r| < t) / (1 + V), t = delta (1 + V)
    from scipy.special import erf

    alpha, delta, strength, noise = 2.0, 0.5, 0.3, 0.5
    risk = empirical_risk(
        Loss("huber", delta),
        Penalty("l2", strength),
        Output("linear", noise=noise),
        Gaussian(),
        alpha,
    )
    V, sd = float(risk.response), np.sqrt(float(risk.error) + noise)
    inside = erf(delta * (1 + V) / sd / np.sqrt(2))
    # kinks lie inside cells of the quadrature over index, label and prediction
    np.testing.assert_allclose(V, 1 / (strength + alpha * inside / (1 + V)), rtol=2e-5)
    assert risk.replicon == pytest.approx(alpha * V**2 * inside / (1 + V) ** 2, rel=1e-3)


@pytest.mark.parametrize(
    "output", [SIGN, Output("sign", flips=0.1), Output("logistic", slope=2.0)], ids=str
)
@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_a_named_loss_and_its_functions_agree(name, output):
    from scipy.special import expit

    def logistic(y, u, V):
        low, high = y * u, y * u + V
        for _ in range(60):
            middle = (low + high) / 2
            right = middle - y * u - V * expit(-middle) > 0
            low, high = np.where(right, low, middle), np.where(right, middle, high)
        return y * low

    functions = {"logistic": logistic, "hinge": lambda y, u, V: y * np.clip(1.0, y * u, y * u + V)}
    named, own = (
        empirical_risk(loss, Penalty("l2", 0.7), output, Gaussian(2.0), 1.5)
        for loss in (Loss(name), Loss(prox=functions[name]))
    )
    tolerance = {"logistic": 1e-6, "hinge": 2e-4}[name]  # a prox of one's own has unknown kinks
    names = ("error", "label_error", "overlap", "norm", "response")
    np.testing.assert_allclose(numbers(named, *names), numbers(own, *names), rtol=tolerance)
    assert np.isnan(own.training_loss)


def test_separable_and_rotated_penalties_agree_without_l1():
    output = Output("sign", flips=0.1)
    ridge = empirical_risk(Loss("logistic"), Penalty("l2", 0.4), output, Rademacher(0.3), 2.0)
    net = empirical_risk(
        Loss("logistic"), Penalty("elastic net", 1e-9, 0.4), output, Rademacher(0.3), 2.0
    )
    np.testing.assert_allclose(numbers(ridge), numbers(net), rtol=1e-5)


def test_priors_as_mixture_density_and_atoms_agree_with_an_l1_penalty():
    output, penalty = Output("linear", noise=0.1), Penalty("l1", 0.3)
    density = Density(lambda w: np.exp(-((w - 1) ** 2) / 2), (-8, 10))
    pair = [
        empirical_risk(SQUARE, penalty, output, prior, 0.8)
        for prior in (Gaussian(1.0, 1.0), density)
    ]
    np.testing.assert_allclose(*map(numbers, pair), rtol=1e-5)
    w, chance = np.polynomial.hermite_e.hermegauss(101)
    atoms = Discrete(w + 1, chance / chance.sum())
    again = empirical_risk(SQUARE, penalty, output, atoms, 0.8)
    np.testing.assert_allclose(numbers(again), numbers(pair[0]), rtol=1e-5)


def test_the_stability_of_the_lasso_is_its_active_share():
    # replicon = active share / alpha, and V = active share / V^
    output = Output("linear", noise=0.05)
    risk = empirical_risk(SQUARE, Penalty("l1", 0.1), output, GaussBernoulli(0.2), 0.7)
    V = float(risk.response)
    active = V * 0.7 / (1 + V)
    assert risk.replicon == pytest.approx(active / 0.7, rel=1e-6)


def test_weak_penalties_converge_at_every_ratio():
    ratios = [0.3, 0.9, 1.0, 2.0, 5.0]
    for loss in (Loss("logistic"), Loss("hinge"), SQUARE):
        risk = empirical_risk(loss, Penalty("l2", 1e-4), SIGN, Gaussian(), ratios)
        assert (risk.replicon < 1).all()
    lasso = empirical_risk(
        SQUARE, Penalty("l1", 1e-6), Output("linear", noise=0.01), GaussBernoulli(0.1), ratios
    )
    assert (lasso.replicon < 1).all()
    assert (
        np.diff(
            empirical_risk(Loss("hinge"), Penalty("l2", 1e-4), SIGN, Gaussian(), ratios).error
        ).max()
        < 0
    )


def test_the_weakest_hinge_and_logistic_penalties_have_the_direction_of_the_largest_margin():
    margin = empirical_risk(Loss("hinge"), Penalty("l2", 1e-4), SIGN, Gaussian(), 2.0)
    assert margin.error == pytest.approx(0.18848, abs=1e-5)
    gaps = [
        empirical_risk(Loss("logistic"), Penalty("l2", 10.0**-k), SIGN, Gaussian(), 2.0).error
        - margin.error
        for k in (2, 4, 6)
    ]
    assert np.all(np.diff(np.abs(gaps)) < 0)


def test_the_unpenalised_logistic_estimate_of_sur_and_candes():
    # Sur and Candès (2019): n / p = 5, signal variance 5: bias factor 1.4994, sigma 4.7436
    prior = Gaussian(5.0)
    risk = empirical_risk(Loss("logistic"), Penalty("l2", 0.0), Output("logistic"), prior, 5.0)
    m = np.sqrt(risk.overlap * risk.variance * 5.0)
    assert m / 5.0 == pytest.approx(1.4994, abs=2e-4)
    assert np.sqrt((risk.variance - m**2 / 5.0) * 5.0) == pytest.approx(4.7436, abs=5e-4)


def test_strong_penalties_on_a_mixture_reach_the_bayes_error():
    for alpha in (1.0, 3.0):
        mixture = GaussianMixture(0.5)
        risk = empirical_risk(SQUARE, Penalty("l2", 1e5), mixture, sample_ratio=alpha)
        assert risk.error == pytest.approx(mixture.bayes_error(alpha), rel=1e-4)
        near = empirical_risk(Loss("hinge"), Penalty("l2", 0.5), mixture, sample_ratio=alpha)
        assert near.error > mixture.bayes_error(alpha)


def test_classes_of_unequal_size():
    mixture, penalty = GaussianMixture(0.5, 0.8), Penalty("l2", 1.0)
    known = 2.0 / 2.5  # q_b at two samples per dimension
    cuts = [mixture.error(known, np.sqrt(0.5 * known), b) for b in np.linspace(-1, 2, 3_001)]
    assert mixture.bayes_error(2.0) == pytest.approx(min(cuts), rel=1e-6)
    with_it, without = (
        empirical_risk(Loss("logistic"), penalty, mixture, sample_ratio=2.0, intercept=fit)
        for fit in (True, False)
    )
    # the penalty shrinks the weights, not the intercept, which then decides alone for most inputs
    assert mixture.bayes_error(2.0) < without.error < with_it.error < 0.2
    assert with_it.intercept > 0.1
    assert without.intercept == 0
    equal = empirical_risk(
        Loss("hinge"), penalty, GaussianMixture(0.5), sample_ratio=2.0, intercept=True
    )
    assert equal.intercept == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(InvalidParameter, match="with a GaussianMixture"):
        empirical_risk(SQUARE, penalty, SIGN, intercept=True)


def test_a_flat_covariance_and_linear_features_are_independent_inputs():
    output, penalty, prior = Output("sign", flips=0.05), Penalty("l2", 0.5), Gaussian(0.7)
    plain = empirical_risk(Loss("logistic"), penalty, output, prior, 2.0)
    flat = InputCovariance([1.0, 1.0], [0.2, 0.8], [1.0, 1.0])
    np.testing.assert_allclose(
        numbers(empirical_risk(Loss("logistic"), penalty, output, prior, 2.0, inputs=flat)),
        numbers(plain),
    )
    # many linear features are the inputs: weights per input have the penalty strength * d / p
    linear = empirical_risk(
        SQUARE, Penalty("l2", 0.5), output, prior, 2.0, inputs=RandomFeatures("identity", 4e3)
    )
    ridge = empirical_risk(SQUARE, Penalty("l2", 0.5), output, prior, 2.0)
    assert linear.error == pytest.approx(float(ridge.error), rel=2e-3)


def test_powers_of_a_covariance_move_the_signal():
    given = {"variances": [2.0, 0.5], "shares": [1, 3]}
    strong, weak = (
        empirical_risk(
            SQUARE,
            Penalty("l2", 1.0),
            SIGN,
            Gaussian(),
            1.0,
            inputs=InputCovariance(powers=p, **given),
        )
        for p in ([1.0, 0.0], [0.0, 1.0])
    )
    assert strong.error < weak.error


def test_double_descent_has_its_peak_where_parameters_equal_samples():
    ratios = np.array([1.0, 2.5, 3.0, 3.5, 9.0])
    errors = [
        empirical_risk(
            SQUARE, Penalty("l2", 1e-5), Output("linear", noise=0.1), sample_ratio=3.0,
            inputs=RandomFeatures("relu", ratio),
        ).error
        for ratio in ratios
    ]  # fmt: skip
    assert np.argmax(errors) == 2


def test_even_labels_teach_no_direction():
    risk = empirical_risk(Loss("huber"), Penalty("l2", 0.5), Output("abs"), Gaussian(), [0.5, 2])
    np.testing.assert_allclose(risk.overlap, 0, atol=1e-12)
    door = empirical_risk(SQUARE, Penalty("l2", 0.5), Output("door", width=0.6745), Gaussian(), 1.0)
    assert door.error == pytest.approx(0.5)


@pytest.mark.parametrize(
    "loss", [Loss("logistic"), Loss("hinge"), SQUARE], ids=lambda loss: loss.name
)
def test_errors_count_wrong_signs(loss):
    # with flips the observed error is eps + (1 - 2 eps) times the error against clean labels
    risk = empirical_risk(loss, Penalty("l2", 0.5), Output("sign", flips=0.1), Gaussian(), 2.0)
    assert risk.label_error == pytest.approx(0.1 + 0.8 * risk.error, abs=1e-6)
    assert risk.error == pytest.approx(np.arccos(np.sqrt(risk.overlap)) / np.pi)


def test_scalars_and_arrays_keep_their_shape():
    risk = empirical_risk(SQUARE, Penalty("l2", 1.0), SIGN, Gaussian(), [[1.0, 2.0], [3.0, 4.0]])
    assert risk.error.shape == risk.replicon.shape == (2, 2)
    one = empirical_risk(SQUARE, Penalty("l2", 1.0), SIGN, Gaussian(), 2.0)
    assert np.ndim(one.error) == 0
    assert one.error == pytest.approx(risk.error[0, 1])


class OwnPrior(Prior):
    def draw(self, size, rng):
        return rng.choice([-1.0, 1.0], size)

    def denoise(self, b, precision):
        return np.tanh(b), 1 - np.tanh(b) ** 2


LOGISTIC, L2 = Loss("logistic"), Penalty("l2", 1.0)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((SQUARE, L2, SIGN, Gaussian(), -1.0), {}, "sample_ratio is -1.0; allowed"),
        ((SQUARE, L2, SIGN, Gaussian(), [1.0, 0.0]), {}, "allowed: finite numbers above 0"),
        ((SQUARE, L2, SIGN, Gaussian(), np.nan), {}, "sample_ratio is nan"),
        ((LOGISTIC, L2, Output("linear"), Gaussian(), 1.0), {}, "needs labels -1 and 1"),
        ((LOGISTIC, Penalty("l2", 0), Output("logistic"), Gaussian(), 2.0), {}, "allowed: above 2.2782"),
        ((LOGISTIC, Penalty("l2", 0), SIGN, Gaussian(), 9.0), {}, "allowed: a penalty above 0"),
        ((SQUARE, Penalty("l1", 0), Output("linear"), Gaussian(), 0.5), {}, "allowed: above 1"),
        ((LOGISTIC, Penalty("l2", 0), GaussianMixture(1.0)), {}, "Gaussian mixture; allowed"),
        ((SQUARE, Penalty("l1", 50), Output("linear"), Gaussian(), 1.0), {}, "weights are 0"),
        ((SQUARE, Penalty("l1", 1), SIGN, OwnPrior(), 1.0), {}, "OwnPrior with an l1 penalty"),
        (
            (SQUARE, Penalty("l1", 1), SIGN, Gaussian(), 1.0),
            {"inputs": InputCovariance([1.0, 2.0])},
            "allowed: inputs with an output and an l2 penalty",
        ),
    ],
)  # fmt: skip
def test_what_is_not_covered_is_refused_in_one_line(arguments, options, message):
    with pytest.raises(InvalidParameter, match=message) as error:
        empirical_risk(*arguments, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InputCovariance([1.0, -1.0]), "variances is"),
        (lambda: InputCovariance([1.0, 2.0], [1.0]), r"shares is \[1.0\]; allowed: 2"),
        (lambda: InputCovariance([1.0, 0.0], None, [0.0, 1.0]), "no direction"),
        (lambda: RandomFeatures("relu", 0.0), "ratio is 0.0"),
        (lambda: RandomFeatures("abs", 1.0), "no linear part"),
        (lambda: GaussianMixture(0.0), "variance is 0.0"),
        (lambda: GaussianMixture(1.0, 1.0), "share is 1.0"),
    ],
)
def test_bad_inputs_are_refused(make, message):
    with pytest.raises(InvalidParameter, match=message):
        make()


def test_a_map_without_fixed_point_raises():
    with pytest.raises(NotConverged, match=r"residual is .* after 500 steps") as error:
        fixed_point(
            lambda x: np.where(x >= 0, -1.0, 1.0), np.zeros(3), within=1e-9, what="It", remedy=""
        )
    assert error.value.diagnostics["residual"] > 0.1
