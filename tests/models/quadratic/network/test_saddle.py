"""Saddle point: an independent search, convexity, derivatives and invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from solvable.errors import InvalidData
from solvable.models.quadratic.network.saddle import SaddleProblem
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.spectra.measures import as_measure, discrete, power_law
from solvable.spectra.product_measure import marchenko_pastur


@pytest.mark.parametrize(
    ("target", "setting"),
    [
        (np.array([0.0, 0.0, 0.0, 1.0, 3.0]), (0.2, 0.5, 0.02)),
        (power_law(dimension=20, exponent=1.0), (1.0, 0.5, 1.0)),
        (discrete(np.array([0.0, 2.0]), np.array([0.9, 0.1])), (0.3, 0.0, 0.1)),
    ],
)
def test_search_of_the_objective_finds_the_same_point(saddle_objective, target, setting):
    names = ("sample_ratio", "label_noise", "regularisation")
    problem = dict(zip(names, setting, strict=True))
    state = solve_quadratic(target, **problem)
    root = np.sqrt(state.train_error * state.sample_ratio)

    def lowest(log_root):
        found = minimize_scalar(
            lambda log_noise: saddle_objective(
                target,
                residual_norm=np.exp(log_root),
                effective_noise=np.exp(log_noise),
                **problem,
            ),
            bounds=np.log(state.effective_noise) + np.array([-1.3, 0.9]),
            method="bounded",
            options={"xatol": 1e-6},
        )
        return found.fun, found.x

    best = minimize_scalar(
        lambda log_root: -lowest(log_root)[0],
        bounds=np.log(root) + np.array([-0.8, 1.1]),
        method="bounded",
        options={"xatol": 1e-5},
    )
    value, log_noise = lowest(best.x)
    assert value == pytest.approx(state.objective, rel=1e-7)
    # Both optima are flat: places are accurate to the root of the precision of the value.
    assert log_noise == pytest.approx(np.log(state.effective_noise), abs=2e-4)
    assert best.x == pytest.approx(np.log(root), abs=2e-4)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.05, 3), st.floats(0, 2), st.floats(0, 3), st.floats(0.1, 2), st.floats(0.1, 2))
def test_convex_in_the_noise_and_concave_in_the_residual(
    saddle_objective, ratio, label_noise, penalty, root, noise
):
    def value(b, delta):
        return saddle_objective(
            np.array([0.0, 0.0, 1.0, 2.0]),
            residual_norm=b,
            effective_noise=delta,
            sample_ratio=ratio,
            label_noise=label_noise,
            regularisation=penalty,
        )

    middle, scale = value(root, noise), 1e-9 * (1 + ratio + label_noise / noise + 3 * root / noise)
    assert value(root, 0.7 * noise) + value(root, 1.3 * noise) >= 2 * middle - scale
    assert value(0.7 * root, noise) + value(1.3 * root, noise) <= 2 * middle + scale


def test_slopes_of_the_minimum():
    # At an optimum only explicit derivatives remain: 2 B delta, B / (2 delta) and the trace.
    setting = {"sample_ratio": 0.4, "label_noise": 0.3, "regularisation": 0.2}
    target = power_law(dimension=30, exponent=0.8)
    state = solve_quadratic(target, **setting)
    root = np.sqrt(state.train_error * state.sample_ratio)
    expected = {
        "sample_ratio": 2 * root * state.effective_noise,
        "label_noise": root / (2 * state.effective_noise),
        "regularisation": state.trace,
    }
    for name, slope in expected.items():
        up, down = (
            solve_quadratic(target, **{**setting, name: setting[name] + step}).objective
            for step in (1e-5, -1e-5)
        )
        assert (up - down) / 2e-5 == pytest.approx(slope, rel=1e-7)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0, 5), min_size=1, max_size=6),
    st.floats(0.02, 5),
    st.floats(0.01, 3),
    st.floats(1e-4, 5),
)
def test_any_problem_is_solved(values, ratio, label_noise, penalty):
    target = np.round(values, 3)
    state = solve_quadratic(
        target, sample_ratio=ratio, label_noise=label_noise, regularisation=penalty
    )
    energy = np.mean(target**2)
    assert abs(state.residual) < 1e-9 * (1 + energy)
    assert state.matrix_error >= 0
    assert state.test_error == pytest.approx(4 * ratio * state.effective_noise**2, rel=1e-8)
    kept = 1 - state.degrees_of_freedom / ratio
    assert state.train_error == pytest.approx(state.test_error * kept**2, rel=1e-6, abs=1e-9)
    assert 4 * state.threshold * kept * ratio == pytest.approx(penalty, rel=1e-6)
    # The error is at most that of S = 0.
    assert state.objective <= ratio * (2 * energy + label_noise) * (1 + 1e-9)


def test_units():
    # S -> c S and labels -> c labels: the noise variance scales with c², the penalty with c.
    for scale in (0.01, 300.0):
        plain = solve_quadratic(
            np.array([0.0, 1.0, 2.0]), sample_ratio=0.4, label_noise=0.5, regularisation=0.1
        )
        scaled = solve_quadratic(
            scale * np.array([0.0, 1.0, 2.0]),
            sample_ratio=0.4,
            label_noise=0.5 * scale**2,
            regularisation=0.1 * scale,
        )
        assert scaled.matrix_error == pytest.approx(scale**2 * plain.matrix_error, rel=1e-10)
        assert scaled.threshold == pytest.approx(scale * plain.threshold, rel=1e-10)
        assert scaled.rank_fraction == pytest.approx(plain.rank_fraction, rel=1e-10)


@pytest.mark.parametrize("guess", [1e-4, 0.1, 1.0, 1e3])
def test_any_guess_leads_to_the_same_point(guess):
    problem = SaddleProblem(marchenko_pastur(0.2), 0.27, 0.5, 1e-3)
    found = problem.solve(guess)
    alone = SaddleProblem(marchenko_pastur(0.2), 0.27, 0.5, 1e-3).solve()
    assert found.effective_noise == pytest.approx(alone.effective_noise, rel=1e-11)
    assert found.threshold == pytest.approx(alone.threshold, rel=1e-9)


def test_no_network_when_the_penalty_is_beyond_the_spectrum():
    target = marchenko_pastur(0.2)
    state = solve_quadratic(target, sample_ratio=0.3, label_noise=0.5, regularisation=50.0)
    assert state.matrix_error == pytest.approx(1.2, rel=1e-12)
    assert state.train_error == pytest.approx(2 * 1.2 + 0.5, rel=1e-12)
    assert state.rank_fraction == state.trace == state.degrees_of_freedom == 0
    assert state.threshold == pytest.approx(50 / (4 * 0.3))


def test_targets():
    assert as_measure(marchenko_pastur(0.3)) is not None
    # An eigenvalue that is negative by rounding counts as 0.
    as_measure(np.array([-1e-15, 1.0]))
    for bad in (np.array([-0.1, 1.0]), np.array([np.nan]), np.ones((2, 2))):
        with pytest.raises(InvalidData):
            as_measure(bad)
