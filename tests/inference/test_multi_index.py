"""Outputs of several indices: information, overlaps, thresholds against draws and published numbers."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.inference import (
    Density,
    Discrete,
    GaussBernoulli,
    Gaussian,
    MultiIndexOutput,
    Output,
    Rademacher,
    message_passing,
    state_evolution,
    thresholds,
)
from solvable.inference.multi_index import grid_for
from solvable.inference.several_directions import Evolution, ProductPrior


def signs(z):
    return np.sign(z).sum(axis=-1)


def largest(z):
    return z.argmax(axis=-1)


def product(z):
    return z[..., 0] * z[..., 1]


def parity(z):
    return np.sign(product(z))


COMMITTEE, LARGEST = MultiIndexOutput(signs), MultiIndexOutput(largest, 3)


def information(output, Q, rho=1.0):
    V = np.eye(output.directions) - Q
    return grid_for(output, rho, float(np.linalg.eigvalsh(V)[0])).information(Q, V)


@pytest.mark.parametrize(
    ("output", "Q"),
    [
        (COMMITTEE, np.array([[0.6, 0.2], [0.2, 0.4]])),
        (MultiIndexOutput(product, noise=0.3), np.array([[0.5, 0.1], [0.1, 0.3]])),
        (LARGEST, np.diag([0.3, 0.5, 0.2])),
    ],
    ids=["committee", "product with noise", "largest of three"],
)
def test_information_agrees_with_draws(output, Q):
    """E[g g^T] from posterior means of draws around 60 cavity means."""
    rng, n, m = np.random.default_rng(0), 60, 40_000
    K, V = len(Q), np.eye(len(Q)) - Q
    around = rng.standard_normal((m, K)) @ np.linalg.cholesky(V).T
    seen = []
    for omega in rng.standard_normal((n, K)) @ np.linalg.cholesky(Q).T:
        clean, total = output.clean(omega + around), np.zeros((K, K))
        for label in output.labels(1.0):
            share = output.density(label, clean)
            if share.sum() > 50 * share.max():
                shift = (around * share[:, None]).mean(axis=0) @ np.linalg.inv(V)
                total += output.weight * np.outer(shift, shift) / share.mean()
        seen.append(total)
    error = 4 * np.std(seen, axis=0) / np.sqrt(n)
    assert (np.abs(np.mean(seen, axis=0) - information(output, Q)[0]) < error + 5e-3).all()


@pytest.mark.parametrize("q", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("rho", [0.3, 1.0])
def test_one_direction_in_disguise(q, rho):
    """A label of the first index alone has the information of the one-index output."""
    sign = MultiIndexOutput(lambda z: np.sign(z[..., 0]))
    found = information(sign, np.diag([q, 0.2]), rho)[0] / rho
    assert found[0, 0] == pytest.approx(Output("sign").information((1 - q) * rho, rho), rel=2e-4)
    assert np.abs(found[1]).max() < 1e-10
    noisy = MultiIndexOutput(lambda z: z[..., 1], noise=0.5)
    found = information(noisy, np.diag([0.2, q]), rho)[0] / rho
    assert found[1, 1] == pytest.approx(1 / ((1 - q) * rho + 0.5), rel=1e-6)


def test_overlaps_of_a_committee_are_those_of_another_implementation():
    law = state_evolution(Gaussian(), COMMITTEE, [1.5, 2.5, 3.0, 4.0, 6.0])
    own, other = law.overlap[:, 0, 0], law.overlap[:, 0, 1]
    assert own == pytest.approx([0.3072, 0.5005, 0.65292, 0.82445, 0.93139], abs=1e-4)
    assert other == pytest.approx([0.3072, 0.2652, 0.16146, 0.05762, 0.01289], abs=1e-4)
    assert law.error == pytest.approx(1 - own, abs=1e-6)


def test_units_specialise_at_the_ratios_of_the_literature():
    assert thresholds(Gaussian(), COMMITTEE).specialisation == pytest.approx(2.0524, abs=2e-4)
    # arXiv:1806.05451: 1.59 for weights of +1 and -1
    assert thresholds(Rademacher(), COMMITTEE).specialisation == pytest.approx(1.59, abs=5e-3)


def test_weak_recovery_of_a_product_of_signs():
    found = thresholds(Gaussian(), MultiIndexOutput(parity))
    # E[z z^T - 1 | y] = (2 / pi) y off the diagonal
    assert found.weak_recovery == pytest.approx(np.pi**2 / 4, rel=1e-4)
    assert found.specialisation is None
    law = state_evolution(Gaussian(), MultiIndexOutput(parity), [2.3, 2.7])
    assert np.trace(law.overlap[0]) < 1e-6 < 0.05 < np.trace(law.overlap[1])
    assert thresholds(Gaussian(), COMMITTEE).weak_recovery == 0
    cubic = MultiIndexOutput(lambda z: np.sign(z.prod(axis=-1)), 3)
    assert thresholds(Gaussian(), cubic).weak_recovery is None


@pytest.mark.parametrize(
    ("prior", "ratio"), [(Rademacher(0.3), 0.8), (GaussBernoulli(0.4), 1.2), (Gaussian(2.0), 1.0)]
)
def test_separate_labels_are_separate_models(prior, ratio):
    """The pair of two signs shows each index as its own sign does."""
    pair = MultiIndexOutput(lambda z: 2 * np.sign(z[..., 0]) + np.sign(z[..., 1]))
    found = state_evolution(prior, pair, ratio)
    alone = state_evolution(prior, Output("sign"), ratio)
    assert found.error == pytest.approx(float(alone.error), rel=1e-3)
    # each model has half of the free entropy
    assert found.free_entropy == pytest.approx(2 * float(alone.free_entropy), rel=1e-3)


@pytest.mark.parametrize("prior", [Gaussian(), Rademacher()])
def test_the_free_entropy_falls_by_the_entropy_of_a_label(prior):
    h = 0.02
    law = state_evolution(prior, COMMITTEE, [1.0 - h, 1.0, 1.0 + h])
    slope = (law.free_entropy[2] - law.free_entropy[0]) / (2 * h)
    Q = law.overlap[1]
    assert slope == pytest.approx(-information(COMMITTEE, Q)[1], rel=1e-3)


def test_denoiser_is_that_of_enumeration():
    prior = Discrete([-1.0, 0.5, 2.0], [0.3, 0.5, 0.2])
    several, rng = ProductPrior(prior, 2), np.random.default_rng(2)
    R, b = np.array([[1.5, 0.4], [0.4, 0.8]]), rng.standard_normal((5, 2))
    values = several.means
    logs = several.logs + b @ values.T - np.einsum("ca,ab,cb->c", values, R, values) / 2
    share = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    estimate, covariance, evidence = several.denoise(b, R)
    assert estimate == pytest.approx(share @ values)
    second = np.einsum("nc,ca,cb->nab", share, values, values)
    assert covariance == pytest.approx(second - estimate[:, :, None] * estimate[:, None, :])
    assert evidence == pytest.approx(np.log(np.exp(logs).sum(axis=1)))
    # the overlap of a posterior mean is its correlation with the signal
    w = values[rng.choice(9, 200_000, p=np.exp(several.logs))]
    observed = w @ R + rng.standard_normal(w.shape) @ np.linalg.cholesky(R).T
    f = several.denoise(observed, R)[0]
    error = 5 * np.std(f[:, :, None] * w[:, None, :], axis=0) / np.sqrt(len(w))
    assert (np.abs(f.T @ w / len(w) - several.overlap(R)[0]) < error).all()


@pytest.mark.parametrize(
    ("output", "prior", "ratio", "d"),
    [
        (COMMITTEE, Gaussian(), 4.0, 600),
        (COMMITTEE, Rademacher(), 1.0, 600),
        (MultiIndexOutput(lambda z: (z**2).sum(axis=1) > 1.5), Gaussian(), 4.5, 600),
        pytest.param(
            MultiIndexOutput(product, noise=0.5), Gaussian(), 4.0, 300, marks=pytest.mark.slow
        ),
        pytest.param(LARGEST, Gaussian(), 3.0, 200, marks=pytest.mark.slow),
    ],
    ids=["committee", "committee of coins", "disc", "product with noise", "largest of three"],
)
def test_message_passing_reaches_the_predicted_error(output, prior, ratio, d):
    rng, seen = np.random.default_rng(7), []
    for seed in range(4):
        W = prior.draw((d, output.directions), rng)
        X = rng.standard_normal((int(ratio * d), d)) / np.sqrt(d)
        y = output.draw(X @ W, rng)
        fit = message_passing(X, y, prior, output, seed=seed, tolerance=1e-3)
        seen.append(fit.error_against(W))
    # between data sets errors differ by about d^-1/2
    assert np.mean(seen) == pytest.approx(fit.error, abs=3 / np.sqrt(4 * d))
    assert np.std(seen) < 3 / np.sqrt(d)


def test_a_prior_of_one_sign_breaks_the_symmetry_of_signs():
    output = MultiIndexOutput(parity)
    assert len(Evolution(Gaussian(), output).symmetries) == 4
    assert len(Evolution(Rademacher(0.8), output).symmetries) == 2
    assert thresholds(Rademacher(0.8), output).weak_recovery == 0
    # values that are symmetric up to rounding have mean 0
    even = Discrete([-0.3, 0.1, 0.3, -0.1], [0.1, 0.4, 0.1, 0.4])
    assert thresholds(even, output).weak_recovery == pytest.approx(np.pi**2 / 4, rel=1e-4)


def test_both_starts_and_the_best():
    output = MultiIndexOutput(parity)
    low, high, best = (
        state_evolution(Gaussian(), output, 3.0, start=start)
        for start in ("prior", "truth", "best")
    )
    assert low.error == pytest.approx(float(high.error), rel=1e-5)  # one stable point
    assert best.free_entropy >= max(low.free_entropy, high.free_entropy) - 1e-9


def test_bad_input_is_refused():
    with pytest.raises(InvalidParameter, match="directions"):
        MultiIndexOutput(signs, 4)
    with pytest.raises(InvalidParameter, match="formulas: Output"):
        MultiIndexOutput("sign")
    with pytest.raises(InvalidParameter, match="at most 24 without noise"):
        thresholds(Gaussian(), MultiIndexOutput(product))
    with pytest.raises(InvalidParameter, match="finite numbers of shape"):
        thresholds(Gaussian(), MultiIndexOutput(lambda z: z))
    with pytest.raises(InvalidParameter, match="NaN or infinity"):
        thresholds(Gaussian(), MultiIndexOutput(lambda z: np.full(len(z), np.nan)))
    with pytest.raises(InvalidParameter, match="everywhere"):
        thresholds(Gaussian(), MultiIndexOutput(lambda z: np.zeros(z.shape[:-1])))
    with pytest.raises(InvalidParameter, match="or at least"):
        thresholds(Gaussian(), MultiIndexOutput(product, noise=1e-6))
    laplace = Density(lambda w: np.exp(-abs(w)), (-30, 30), breakpoints=[0])
    with pytest.raises(InvalidParameter, match="combinations of components"):
        state_evolution(laplace, COMMITTEE, 1.0)
    with pytest.raises(NotConverged, match=r"above 0\.99"):
        state_evolution(Gaussian(), COMMITTEE, 60.0)
    X = np.random.default_rng(0).standard_normal((40, 20)) / np.sqrt(20)
    with pytest.raises(InvalidData, match="allowed: the values of the function"):
        message_passing(X, np.full(40, 0.5), Gaussian(), COMMITTEE)


def test_an_unstable_point_is_left():
    evolution = Evolution(Gaussian(), COMMITTEE)
    place = evolution.ends()[0]
    symmetric = evolution.solve(place, 3.0, symmetric=True)
    assert symmetric.gain > 1.2
    assert pytest.approx(np.full((2, 2), symmetric.Q[0, 0])) == symmetric.Q
    left = evolution.solve(symmetric.Q, 3.0)
    assert left.gain < 1
    assert left.free_entropy > symmetric.free_entropy


def test_messages_are_slopes_of_the_log_probability():
    rng = np.random.default_rng(3)
    V = np.array([[0.5, 0.1], [0.1, 0.3]])
    omega = rng.standard_normal((40, 2))
    grid = grid_for(COMMITTEE, 1.0, float(np.linalg.eigvalsh(V)[0]))
    place = np.full(40, 2)  # both positive
    g, slope = grid.scores(place, omega, V)
    deviation, r = np.sqrt(np.diag(V)), V[0, 1] / np.sqrt(V[0, 0] * V[1, 1])
    law = multivariate_normal(cov=[[1, r], [r, 1]])

    def logs(mean):
        return np.log(law.cdf(mean / deviation))

    h = 1e-3
    for k, move in enumerate(h * np.eye(2)):
        expected = (logs(omega + move) - logs(omega - move)) / (2 * h)
        assert g[:, k] == pytest.approx(expected, rel=1e-3, abs=1e-3)
        moved = [grid.scores(place, omega + sign * move, V)[0].sum(axis=0) for sign in (1, -1)]
        assert (moved[0] - moved[1]) / (2 * h) == pytest.approx(slope[:, k], rel=1e-3, abs=1e-2)
