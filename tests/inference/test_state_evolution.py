"""State evolution: closed forms, independent values, consistency of potential and error."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.inference import (
    Discrete,
    GaussBernoulli,
    Gaussian,
    Output,
    Rademacher,
    state_evolution,
)
from solvable.inference.curve import curve_of

HALF = 0.67448975  # a door of this width is hit with probability 1/2
SIGN, IDENTITY, RELU, ABS = (Output(name) for name in ("sign", "identity", "relu", "abs"))
FLIPS, PROBIT = Output("sign", flips=0.1), Output("probit", noise=0.2)
LOGISTIC, NARROW = Output("logistic", slope=2), Output("door", width=HALF * 0.3**0.5)
SLAB, COIN = GaussBernoulli(0.3, mean=1, variance=0.25), Discrete([0, 1], [0.5, 0.5])
TERNARY = Discrete([-1, 0, 1], [0.25, 0.5, 0.25])
# computed by a separate implementation with quadratures of its own, five digits
VALUES = [
    (Rademacher(0.5), SIGN, {0.3: 0.81933, 0.6: 0.65229, 0.9: 0.49223, 1.1: 0.38590, 1.4: 0.21030}),
    (Rademacher(0.3), SIGN, {0.3: 0.69137, 0.9: 0.40485, 1.1: 0.30813}),
    (Rademacher(0.1), SIGN, {0.3: 0.30158, 0.6: 0.22668, 0.9: 0.13949}),
    (Rademacher(0.5), FLIPS, {0.5: 0.81617, 1: 0.66060, 1.5: 0.52286, 2: 0.39601, 2.5: 0.27241}),
    (Rademacher(0.5), PROBIT, {0.5: 0.76027, 1: 0.55795, 1.5: 0.38698, 2: 0.24963, 3: 0.08790}),
    (Rademacher(0.5), LOGISTIC, {1: 0.69576, 2: 0.47853, 4: 0.21745}),
    (GaussBernoulli(0.3), LOGISTIC, {1: 0.24373, 2: 0.19428, 4: 0.13048}),
    (GaussBernoulli(0.1), SIGN, {0.5: 0.03239, 1: 0.00791, 2: 0.00136, 4: 0.00024}),
    (GaussBernoulli(0.3), SIGN, {0.5: 0.19442, 1: 0.10652, 2: 0.03411, 4: 0.00741}),
    (Gaussian(), SIGN, {0.5: 0.71967, 1: 0.51374, 2: 0.27170, 4: 0.09974}),
    (GaussBernoulli(0.3), FLIPS, {1: 0.17888, 2: 0.09888, 4: 0.03442}),
    (GaussBernoulli(0.3), IDENTITY, {0.18: 0.23651, 0.315: 0.16904}),
    (
        GaussBernoulli(0.3),
        Output("identity", noise=0.01),
        {0.2: 0.23139, 0.4: 0.13417, 0.6: 0.03933},
    ),
    (GaussBernoulli(0.3), RELU, {0.3: 0.21200, 0.6: 0.10037}),
    (GaussBernoulli(0.5), RELU, {0.3: 0.37558, 0.6: 0.24663, 0.9: 0.12511}),
    (Gaussian(), Output("relu", noise=0.1), {1: 0.52835, 2: 0.26670}),
    (GaussBernoulli(0.3), Output("relu", noise=0.1), {0.5: 0.23738, 1: 0.17556}),
    (GaussBernoulli(0.3), ABS, {0.55: 0.29265, 0.65: 0.25980}),
    (Gaussian(), ABS, {0.65: 0.91447, 0.7: 0.87588, 0.9: 0.66923, 1: 0.52374, 1.05: 0.43155}),
    (SLAB, ABS, {0.2: 0.26409, 0.4: 0.22916, 0.5: 0.20066, 0.6: 0.15001}),
    (COIN, Output("identity", noise=0.05), {0.2: 0.20899, 0.4: 0.16774, 0.6: 0.12399, 1: 0.02634}),
    (TERNARY, SIGN, {0.5: 0.35854, 1: 0.25176, 1.5: 0.17447, 2: 0.11310}),
    (Gaussian(), Output("door", width=HALF), {1.5: 0.87709, 2: 0.29461, 3: 0.07933, 5: 0.02875}),
    (Gaussian(), Output("door"), {1: 0.95098, 1.5: 0.51348, 2: 0.25764, 3: 0.11692}),
    (GaussBernoulli(0.3), NARROW, {1.5: 0.02693, 2: 0.01255, 3: 0.00488}),
]


@pytest.mark.parametrize(("prior", "output", "values"), VALUES, ids=str)
def test_errors_are_those_of_another_implementation(prior, output, values):
    law = state_evolution(prior, output, list(values))
    assert law.error == pytest.approx(list(values.values()), abs=6e-6)
    assert law.overlap == pytest.approx(1 - law.error / prior.second_moment)


@pytest.mark.parametrize(("prior", "output", "values"), VALUES, ids=str)
def test_the_slope_of_the_potential_is_the_entropy(prior, output, values):
    """At a fixed point the ratio derivative of the free entropy is -H(V)."""
    ratio, step = next(iter(values)), 1e-3
    low, high = state_evolution(prior, output, [ratio - step, ratio + step]).free_entropy
    curve = curve_of(prior, output)
    V = float(state_evolution(prior, output, ratio).error)
    entropy = float(curve.table.entropy_at(np.log(curve.rho / V)))
    assert (high - low) / (2 * step) == pytest.approx(-entropy, rel=1e-4, abs=1e-5)


def test_a_linear_model_has_a_closed_form():
    noise = 0.3
    ratios = np.array([0.2, 1.0, 5.0])
    # V = 1 / (1 + alpha / (V + noise))
    b = ratios + noise - 1
    exact = (-b + np.sqrt(b**2 + 4 * noise)) / 2
    law = state_evolution(Gaussian(), Output("identity", noise=noise), ratios)
    assert law.error == pytest.approx(exact, rel=1e-6)
    # free entropy per dimension: Gaussian evidence, log det of a Marchenko-Pastur matrix
    rng = np.random.default_rng(0)
    d = 1_000
    X = rng.standard_normal((d, d)) / np.sqrt(d)
    covariance = X @ X.T + noise * np.eye(d)
    direct = -(np.linalg.slogdet(2 * np.pi * covariance)[1] + d) / 2 / d
    assert float(law.free_entropy[1]) == pytest.approx(direct, rel=2e-3)


def test_three_starts_agree_where_there_is_one_fixed_point_and_are_ordered_elsewhere():
    prior = Rademacher(0.5)
    starts, ratios = ("prior", "truth", "best"), [0.6, 1.2, 1.3, 1.45]
    laws = [state_evolution(prior, SIGN, ratios, start=s) for s in starts]
    uninformed, informed, best = (law.error for law in laws)
    assert informed == pytest.approx(0, abs=1e-12)
    # information-theoretic threshold 1.24468
    assert best == pytest.approx([uninformed[0], uninformed[1], 0, 0])
    assert laws[2].free_entropy[2] > laws[0].free_entropy[2]
    one = [float(state_evolution(Gaussian(), SIGN, 2.0, start=s).error) for s in starts]
    assert one == pytest.approx([one[0]] * 3)


def test_scale_of_the_signal_and_of_the_labels_cancel():
    wide = Output("door", width=2 * HALF)
    law = state_evolution(Gaussian(4.0), wide, [1.5, 3.0])
    unit = state_evolution(Gaussian(), Output("door", width=HALF), [1.5, 3.0])
    assert law.error == pytest.approx(4 * unit.error, rel=1e-6)
    assert law.free_entropy == pytest.approx(unit.free_entropy, rel=1e-6)


def test_limits_of_the_sample_ratio():
    law = state_evolution(GaussBernoulli(0.3), SIGN, [1e-6, 1e3])
    assert law.error[0] == pytest.approx(0.3, rel=1e-5)
    assert 0 < law.error[1] < 1e-6
    # V = 1.926 / alpha² at large alpha
    assert float(state_evolution(Gaussian(), SIGN, 1e3).error) == pytest.approx(1.926e-6, rel=5e-3)
    perfect = state_evolution(GaussBernoulli(0.3), IDENTITY, 0.6)
    assert float(perfect.error) == 0
    assert np.isposinf(perfect.free_entropy)
    assert perfect.error.shape == ()


@pytest.mark.parametrize("ratio", [-1.0, 0.0, float("nan"), [0.5, -2.0]])
def test_a_ratio_that_is_not_above_zero_is_refused(ratio):
    with pytest.raises(InvalidParameter, match="allowed: numbers above 0"):
        state_evolution(Gaussian(), SIGN, ratio)


def test_other_bad_input_is_refused():
    with pytest.raises(InvalidParameter, match="start is 'middle'; allowed: prior, truth, best"):
        state_evolution(Gaussian(), SIGN, 1.0, start="middle")
    with pytest.raises(InvalidParameter, match="allowed: a Prior"):
        state_evolution("gaussian", SIGN, 1.0)
