"""Equations of online learning: closed laws, published plateaus, simulations from their own start."""

import numpy as np
import pytest
from scipy.special import erf

from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.inference import Committee, online_sgd, symmetric_plateau


def steep():
    weights = np.random.default_rng(0).standard_normal((2, 40))
    units = [Committee("tanh(3*z)", part) for part in (weights, -weights[::-1])]
    return online_sgd(*units, 0.5, 80)


I = np.eye(2)  # noqa: E741
DRAWN = ([[0.0921, 0.0014], [0.0014, 0.0962]], [[-0.0073, 0.0087], [0.0046, -0.0299]])


def simulated(teacher, student, rate, times, seed, second_rate=0.0):
    """Errors of stochastic gradient descent at the given times, by the closed error of the overlaps."""
    d, rng = teacher.weights.shape[1], np.random.default_rng(seed)
    g, slope = {
        "erf": (lambda u: erf(u / np.sqrt(2)), lambda u: np.sqrt(2 / np.pi) * np.exp(-(u**2) / 2)),
        "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0) * 1.0),
        "quadratic": (lambda u: u**2, lambda u: 2 * u),
        "linear": (lambda u: u, np.ones_like),
    }[student.activation]
    w, v, errors = student.weights.copy(), student.second_layer.copy(), []
    for step in range(round(times[-1] * d) + 1):
        if step in {round(time * d) for time in times}:
            now = Committee(student.activation, w, v)
            errors.append(online_sgd(teacher, now, rate, [0]).error[0])
        x = rng.standard_normal(d)
        fields = w @ x / np.sqrt(d)
        y = g(teacher.weights @ x / np.sqrt(d)) @ teacher.second_layer
        y = y + np.sqrt(teacher.noise) * rng.standard_normal()
        delta = g(fields) @ v - y
        w -= rate / np.sqrt(d) * (v * slope(fields) * delta)[:, None] * x
        v -= second_rate / d * g(fields) * delta
    return np.array(errors)


def drawn(activation, d, seed, *, students=2, scale=0.3, **options):
    """Return teachers with orthonormal weights and small random students."""
    rng = np.random.default_rng(seed)
    rows = np.linalg.qr(rng.standard_normal((d, 2)))[0].T * np.sqrt(d)
    student = Committee(activation, scale * rng.standard_normal((students, d)))
    return Committee(activation, rows, **options), student


def test_a_linear_student_follows_the_exact_solution():
    # d error / dt = -2 eta error + eta² (error + noise / 2)
    teacher, student = Committee.pair("linear", [[0.0]], [[0.0]], [[1.0]], noise=0.2)
    eta = 0.7
    run = online_sgd(teacher, student, eta, 20)
    rate, floor = eta * (2 - eta), eta * 0.1 / (2 - eta)
    np.testing.assert_allclose(
        run.error, floor + (0.5 - floor) * np.exp(-rate * run.time), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("eta", "start", "times", "errors"),
    [
        (1.0, DRAWN, [5, 30, 70, 100], [0.02442, 0.01949, 0.00401, 0.00035]),
        (
            1.0,
            ([[0.5, 0], [0, 0.25]], [[1e-3, 0], [0, 0]]),
            [40, 100, 150],
            [0.020968, 0.020363, 0.004748],
        ),
    ],
)
def test_trajectories_of_an_independent_integration(eta, start, times, errors):
    teacher, student = Committee.pair("erf", *start, I)
    run = online_sgd(teacher, student, eta, 4 * np.array([0, *times]))
    np.testing.assert_allclose(run.error[1:], errors, atol=6e-6, rtol=1e-3)


def test_relu_trajectory_of_an_independent_integration():
    start = [[0.0992, -0.0013], [-0.0013, 0.0900]], [[0.0093, 0.0139], [0.0098, -0.0097]]
    run = online_sgd(*Committee.pair("relu", *start, I), 0.2, [0, 40, 160, 320])
    # the start was given to four decimals
    np.testing.assert_allclose(run.error, [0.51947, 0.12881, 0.07697, 0.03341], rtol=5e-3)


@pytest.mark.parametrize(
    ("activation", "rate", "options", "second"),
    [
        ("erf", 1.0, {}, 0.0),
        ("erf", 0.8, {"noise": 0.3}, 0.5),
        ("relu", 0.3, {"second_layer": [1.0, 0.5]}, 0.0),
        ("quadratic", 0.02, {}, 0.02),
        ("linear", 0.5, {"noise": 0.1}, 0.0),
    ],
)
def test_equations_agree_with_gradient_descent_from_its_own_start(
    activation, rate, options, second
):
    times = np.array([0.5, 1.0, 2.0, 4.0])
    ratios = []
    for seed in range(4):
        count = 2 if activation == "relu" else 3
        teacher, student = drawn(activation, 300, seed, students=count, **options)
        measured = simulated(teacher, student, rate, times, (seed, 1), second)
        law = online_sgd(teacher, student, rate, times * 300, second_layer_rate=second)
        ratios.append(measured / law.error)
    mean, error = np.mean(ratios, axis=0), np.std(ratios, axis=0, ddof=1) / 2
    # corrections of order 1 / d, in addition to the scatter of four runs
    assert (np.abs(mean - 1) < 4 * error + 0.03).all()
    assert error.max() < 0.1


def test_small_rates_follow_the_gradient_flow():
    teacher, student = Committee.pair("erf", *DRAWN, I)
    flow = online_sgd(teacher, student, 0.0, [0, 20, 80])
    gaps = [
        np.abs(
            online_sgd(teacher, student, eta, np.array([0, 20, 80]) / eta).error / flow.error - 1
        ).max()
        for eta in (0.1, 0.01)
    ]
    assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.3)
    assert gaps[1] < 0.01


@pytest.mark.parametrize("units", [2, 3, 4])
def test_plateau_of_gradient_flow_is_that_of_saad_and_solla(units):
    found = symmetric_plateau("erf", units)
    height = units / np.pi * (np.pi / 6 - units * np.arcsin(1 / (2 * units)))
    assert found.error == pytest.approx(height, rel=1e-8)
    assert found.norm == pytest.approx(1 / (2 * units - 1), rel=1e-6)
    assert found.overlap == pytest.approx(1 / np.sqrt(units * (2 * units - 1)), rel=1e-6)


def test_escape_from_the_plateau_takes_the_logarithm_of_the_asymmetry():
    plateau = symmetric_plateau("erf", 2, 1.0)
    escapes = []
    for asymmetry in (1e-3, 1e-6, 1e-9):
        teacher, student = Committee.pair("erf", np.diag([0.5, 0.25]), [[asymmetry, 0], [0, 0]], I)
        run = online_sgd(teacher, student, 1.0, 4 * 500)
        assert run.plateau[1] == pytest.approx(plateau.error, rel=0.005)
        escapes.append(run.escape)
    np.testing.assert_allclose(escapes, [138, 255, 372], atol=1.0)
    # the first is not small enough for exponential growth alone
    np.testing.assert_allclose(np.diff(escapes), np.log(1e3) / plateau.rate, rtol=0.01)
    assert escapes[2] - escapes[1] == pytest.approx(np.log(1e3) / plateau.rate, rel=1e-3)
    assert plateau.escape(10**6) - plateau.escape(10**3) == pytest.approx(
        np.log(1e3) / plateau.rate / 2
    )


def test_a_symmetric_start_stays_on_the_plateau():
    teacher, student = Committee.pair("erf", 0.2 * I, np.zeros((2, 2)), I)
    run = online_sgd(teacher, student, 1.0, 4 * 300)
    assert run.error[-1] == pytest.approx(symmetric_plateau("erf", 2, 1.0).error, rel=1e-4)
    assert run.escape is None


@pytest.mark.parametrize(("eta", "floor"), [(0.1, 1.92e-4), (0.5, 1.168e-3), (1.0, 3.191e-3)])
def test_label_noise_leaves_a_floor(eta, floor):
    teacher, student = Committee.pair("erf", 1.3 * I, I, I, noise=0.01)
    run = online_sgd(teacher, student, eta, [0, round(800 / eta)])
    assert run.error[-1] == pytest.approx(floor, rel=2e-3)
    assert run.escape is None


def test_quadrature_follows_the_closed_erf_through_the_escape():
    start = [[0.45, 0.2], [0.2, 0.45]], [[0.5, 0.3], [0.3, 0.5]]
    runs = [
        online_sgd(*Committee.pair(name, *start, I), 1.0, [0, 40, 120])
        for name in ("erf", "erf(z/sqrt(2))")
    ]
    assert runs[0].error[2] < 0.5 * runs[0].error[1]
    np.testing.assert_allclose(runs[0].error, runs[1].error, rtol=1e-3)


def test_the_flow_of_one_quadratic_unit_by_wicks_theorem():
    from scipy.integrate import solve_ivp

    teacher, student = Committee.pair("quadratic", [[0.01]], [[0.05]], [[1.0]])
    run = online_sgd(teacher, student, 0.0, [0, 1, 2, 3])

    def slope(_, state):
        Q, R = state
        # E[u u u²] - E[u u v²] and E[u v u²] - E[u v v²], with T = 1
        return -4 * (3 * Q**2 - Q - 2 * R**2), -2 * (3 * Q * R - 3 * R)

    found = solve_ivp(
        slope, (0, 1.5), [0.01, 0.05], t_eval=[0, 0.5, 1, 1.5], rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(run.Q[:, 0, 0], found.y[0], rtol=1e-6)
    np.testing.assert_allclose(run.R[:, 0, 0], found.y[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: Committee("erf", np.ones(3)), InvalidData, r"shape \(3,\)"),
        (lambda: Committee("erf", np.full((2, 3), np.nan)), InvalidData, "not finite"),
        (lambda: Committee("erf", np.ones((2, 3)), [1.0]), InvalidParameter, "allowed: 2 finite"),
        (lambda: Committee("erf", np.ones((2, 3)), noise=-1.0), InvalidParameter, "noise is -1"),
        (lambda: Committee.pair("erf", I, I, 0.5 * I), InvalidData, "smallest eigenvalue"),
        (lambda: Committee.pair("erf", I, np.ones((1, 2)), I), InvalidData, "shapes"),
        (lambda: run_of("erf", rate=-1.0), InvalidParameter, "learning_rate is -1"),
        (lambda: run_of("erf", steps=[3, 2]), InvalidParameter, "ascending"),
        (lambda: run_of("max(z, 0.1*z)"), InvalidParameter, "kinks"),
        (lambda: run_of("quadratic", rate=2.0), NotConverged, "diverges"),
        (lambda: symmetric_plateau("erf", 1), InvalidParameter, "units"),
        (lambda: symmetric_plateau("tanh", 2), InvalidParameter, "allowed: erf"),
        (lambda: steep(), InvalidParameter, "misses the mean squared slope"),
    ],
)
def test_what_is_not_covered_is_refused_in_one_line(act, error, message):
    with pytest.raises(error, match=message) as raised:
        act()
    assert "\n" not in str(raised.value)


def run_of(activation, rate=1.0, steps=400):
    return online_sgd(*Committee.pair(activation, 0.5 * I, 0.1 * I, I), rate, steps)


def test_committees_of_other_kinds_or_dimensions_do_not_match():
    one, two = Committee("erf", np.ones((1, 3))), Committee("relu", np.ones((1, 3)))
    with pytest.raises(InvalidParameter, match="allowed: the same"):
        online_sgd(one, two, 1.0, 10)
    with pytest.raises(InvalidData, match="columns; allowed: the same"):
        online_sgd(one, Committee("erf", np.ones((1, 4))), 1.0, 10)
