"""Message passing: errors as predicted, exact recovery, even outputs, refusals, time."""

import numpy as np
import pytest

from solvable.errors import InvalidData, NotConverged
from solvable.inference import GaussBernoulli, Gaussian, Output, Rademacher, message_passing

D = 1_000


def instance(prior, output, ratio, seed, d=D):
    """Inputs, labels and a signal whose second moment is the prior's."""
    rng = np.random.default_rng(seed)
    w = prior.draw(d, rng)
    w *= np.sqrt(prior.second_moment / np.mean(w**2))
    X = rng.standard_normal((int(ratio * d), d)) / np.sqrt(d)
    return X, output.draw(X @ w, rng), w


@pytest.mark.parametrize(
    ("prior", "output", "ratio"),
    [
        (Rademacher(0.5), Output("sign"), 0.6),
        (Rademacher(0.5), Output("sign", flips=0.1), 1.5),
        (Rademacher(0.5), Output("logistic", slope=2), 2.0),
        (Gaussian(), Output("sign"), 2.0),
        (Gaussian(), Output("door", width=0.67448975), 3.0),
        (GaussBernoulli(0.3), Output("relu"), 0.5),
        (Gaussian(), Output("relu", noise=0.1), 1.0),
    ],
    ids=str,
)
def test_errors_are_those_of_state_evolution(prior, output, ratio):
    seen = []
    for seed in range(4):
        X, y, w = instance(prior, output, ratio, seed)
        fit = message_passing(X, y, prior, output)
        seen.append(fit.error_against(w))
        # the posterior variance is the error that the algorithm expects
        assert fit.trace[-1] == pytest.approx(fit.error, rel=0.25)
    spread = np.std(seen, ddof=1) / 2
    # a standard deviation of d^(-1/2) of the prior variance between data sets
    least = prior.second_moment / np.sqrt(D) / 2
    assert np.mean(seen) == pytest.approx(fit.error, abs=4 * max(spread, least / 2))


@pytest.mark.parametrize(
    ("prior", "output", "ratio"),
    [
        (Rademacher(0.5), Output("sign"), 2.0),
        (GaussBernoulli(0.3), Output("identity"), 0.6),
        (GaussBernoulli(0.2), Output("relu"), 0.9),
        (Gaussian(), Output("abs"), 1.5),
    ],
    ids=str,
)
def test_the_signal_is_recovered_exactly_above_the_threshold(prior, output, ratio):
    X, y, w = instance(prior, output, ratio, 1)
    fit = message_passing(X, y, prior, output)
    assert fit.error == 0
    assert fit.error_against(w) < 1e-6
    assert fit.sign_known == (output.function != "abs")


def test_float32_inputs_give_the_same_estimate():
    prior, output = Rademacher(0.5), Output("sign", flips=0.1)
    X, y, _ = instance(prior, output, 1.5, 0, 400)
    estimates = [message_passing(x, y, prior, output).estimate for x in (X, X.astype(np.float32))]
    assert estimates[0] == pytest.approx(estimates[1], abs=1e-3)


def test_an_iteration_that_does_not_settle_raises():
    prior, output = Rademacher(0.5), Output("sign")
    X, y, _ = instance(prior, output, 0.6, 0, 300)
    with pytest.raises(NotConverged, match="the last of 2 steps changed the estimate"):
        message_passing(X, y, prior, output, max_steps=2)


def test_labels_of_another_model_do_not_give_a_number():
    """Perceptron labels drawn at random contradict every estimate."""
    X, y, _ = instance(Rademacher(0.5), Output("sign"), 4.0, 0, 300)
    y = np.random.default_rng(1).choice([-1.0, 1.0], y.size)
    with pytest.raises(NotConverged):
        message_passing(X, y, Rademacher(0.5), Output("sign"), max_steps=60)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (np.sqrt(300) * X, y), "entries of variance 1/d"),
        (lambda X, y: (X, y[:-1]), r"allowed: \(n, d\) and \(n,\)"),
        (lambda X, y: (X, np.where(y > 0, np.nan, y)), "NaN or infinity"),
        (lambda X, y: (X, 2 * y), "this output cannot give"),
    ],
)
def test_bad_data_is_refused_in_one_line(change, message):
    X, y, _ = instance(Rademacher(0.5), Output("sign"), 1.0, 0, 300)
    with pytest.raises(InvalidData, match=message) as caught:
        message_passing(*change(X, y), Rademacher(0.5), Output("sign"))
    assert "\n" not in str(caught.value)
