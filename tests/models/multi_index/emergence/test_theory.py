"""Theory of emergence in gradient descent against independent solutions and simulation."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.hermite import gaussian_quadrature, hermite_coefficients
from solvable.models.multi_index.emergence.descent import population_descent
from solvable.models.multi_index.emergence.flow import population_flow
from solvable.models.multi_index.emergence.learner import Student, captured, draw_student, train
from solvable.models.multi_index.emergence.link import amplitudes, even_link, population_loss
from solvable.models.multi_index.emergence.noise import noise_delays, noise_ratios
from solvable.models.multi_index.emergence.parameters import EmergenceParameters
from solvable.models.multi_index.emergence.theory import (
    draw_overlaps,
    match_students,
    sgd_emergence,
    sgd_exponents,
)

LINKS = ("he4", "he6", "cosmix")


@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_standardised_even_and_has_no_second_coefficient(name):
    link = even_link(name)
    coefficients = hermite_coefficients(lambda z: link.evaluate(z)[0], 12, breakpoints=(0.0,))
    assert np.allclose(coefficients[:4], 0, atol=1e-9)
    assert np.allclose(coefficients[1::2], 0, atol=1e-9)
    known = np.array([*link.energies, *[0.0] * 7])[:7]
    np.testing.assert_allclose(coefficients[::2] ** 2, known, atol=1e-9)
    assert sum(link.energies) == pytest.approx(1)
    assert link.information_exponent == {"he4": 4, "he6": 6, "cosmix": 4}[name]


@pytest.mark.parametrize("name", LINKS)
def test_derivatives_are_those_of_the_values(name):
    link, z, h = even_link(name), np.linspace(-3, 3, 31), 1e-6
    difference = (link.evaluate(z + h)[0] - link.evaluate(z - h)[0]) / (2 * h)
    np.testing.assert_allclose(link.evaluate(z)[1], difference, atol=1e-7)
    y = np.linspace(0.1, 0.9, 9)
    # s K'(s) = 2 y dK/dy
    slope = (link.kernel(y + h) - link.kernel(y - h)) / (2 * h)
    np.testing.assert_allclose(link.pull(y), 2 * y * slope, rtol=1e-6)
    slope = (link.pull(y + h) - link.pull(y - h)) / (2 * h)
    np.testing.assert_allclose(link.pull_slope(y), slope, rtol=1e-6)


@pytest.mark.parametrize("name", LINKS)
def test_the_kernel_is_the_covariance_of_two_projections(name):
    link, s = even_link(name), 0.7
    z, w = gaussian_quadrature(60)
    u, v = np.meshgrid(z, z)
    second = link.evaluate(s * u + np.sqrt(1 - s * s) * v)[0]
    expected = np.einsum("i,j,ij,ij->", w, w, link.evaluate(u.copy())[0], second)
    assert link.kernel(np.array(s**2)) == pytest.approx(expected, abs=1e-8)


def closed_form(times, start, amplitude):
    """Squared overlap for h_4, from w + log w = w_0 + log w_0 - 8 a t with w = 1/y - 1."""
    from scipy.special import wrightomega

    w = 1 / start - 1
    return 1 / (1 + wrightomega(w + np.log(w) - 8 * amplitude * times).real)


def test_overlaps_of_the_fourth_polynomial_are_the_closed_form():
    a, starts = np.array([0.8, 0.5, 0.3]), np.array([[0.08, 0.02, 0.05]])
    course = sgd_emergence(a, starts, 60.0, initial_norm=0.01)
    for place, amplitude in enumerate(a):
        expected = closed_form(course.times, starts[0, place], amplitude)
        np.testing.assert_allclose(course.squared_overlap[:, place], expected, atol=0.004)


@pytest.mark.parametrize("name", LINKS)
def test_courses_solve_their_equations(name):
    from scipy.integrate import solve_ivp

    link, a = even_link(name), np.array([0.7, 0.4])
    starts, d, kappa, label = np.array([[0.3, 0.2]]), 30, 2e-4, 0.5

    def slope(_, state):
        y, n = state.reshape(2, 2)
        loss = 0.5 * np.sum(a * a - 2 * a * n * link.kernel(y) + n * n)
        noise = kappa * link.activity * (2 * loss + label)
        growth = 4 * (a * link.kernel(y) - n) + noise * (d - 1)
        return np.concatenate([2 * a * link.pull(y) * (1 - y) - noise * (d * y - 1), n * growth])

    course = sgd_emergence(
        a,
        starts,
        20.0,
        link=link,
        initial_norm=0.03,
        dimension=d,
        gradient_noise=kappa,
        label_noise=label,
    )
    begin = np.concatenate([starts[0], [0.03, 0.03]])
    solution = solve_ivp(slope, (0, 20), begin, t_eval=course.times, rtol=1e-8, atol=1e-10)
    y, n = solution.y.reshape(2, 2, -1)
    np.testing.assert_allclose(course.squared_overlap, y.T, atol=0.01)
    np.testing.assert_allclose(course.captured, (n * link.kernel(y)).T / a, atol=0.015)
    loss = 0.5 * (np.sum(a * a) + np.sum(n * n - 2 * a[:, None] * n * link.kernel(y), axis=0))
    np.testing.assert_allclose(course.loss, loss, atol=0.006)


def test_a_small_start_escapes_at_the_inverse_of_its_rate():
    a, starts = np.array([1.0, 0.5]), np.array([[1e-5, 1e-5]])
    course = sgd_emergence(a, starts, 1e6, initial_norm=0.1, step=0.005)
    np.testing.assert_allclose(course.escape_times[0], 1 / (8 * a * 1e-5), rtol=0.01)


def test_students_are_matched_as_by_going_through_all_pairs():
    rng = random_stream("matching")
    for width, features in ((12, 5), (3, 7), (6, 6)):
        a, link = amplitudes(features, 0.8), even_link("he6")
        overlaps = draw_overlaps(30, features, width, 3, rng)
        for draw, found in zip(overlaps, match_students(overlaps, a, link), strict=True):
            rates, expected = a * draw**2, np.zeros(features)
            for _ in range(min(width, features)):
                j, p = np.unravel_index(np.argmax(rates), rates.shape)
                expected[p] = draw[j, p]
                rates[j, :] = rates[:, p] = -1
            np.testing.assert_array_equal(found, expected)


def test_overlaps_of_starts_have_the_law_of_a_random_direction():
    from scipy.stats import beta, kstest

    overlaps = draw_overlaps(20, 6, 40, 50, random_stream("overlaps"))
    # s² of a uniform direction is Beta(1/2, (d - 1)/2)
    assert kstest(overlaps[:, :, 2].ravel(), beta(0.5, 9.5).cdf).pvalue > 0.01
    assert draw_overlaps(6, 6, 4, 2, random_stream("all")).sum(axis=2) == pytest.approx(1)


def slope_between(x, y, low, high):
    inside = (x > low) & (x < high)
    return np.polyfit(np.log(x[inside]), np.log(y[inside]), 1)[0]


def many_features(decay, features=20_000, start=0.02):
    """Loss of features with equal starts and norms n = a K, and the escape time of the first."""
    a = amplitudes(features, decay)
    first = 1 / (8 * a[0] * start)
    course = sgd_emergence(a, np.full((1, features), start), first * 1e3**decay, initial_norm=1e-8)
    return a, first, course.times, 0.5 * np.sum(a**2 * (1 - course.squared_overlap**2) ** 2, axis=1)


@pytest.mark.parametrize(
    ("decay", "expected", "within"), [(0.8, -0.75, 0.08), (1.0, -1.0, 0.03), (1.5, -4 / 3, 0.03)]
)
def test_the_loss_falls_in_time_with_its_exponent(decay, expected, within):
    # (1 - 2 beta) / beta   (multi-index 32; arXiv:2504.19983)
    _, first, times, loss = many_features(decay)
    slope = slope_between(times, loss, first * 10**decay, first * 1000**decay)
    assert slope == pytest.approx(expected, abs=within)
    assert sgd_exponents(decay).time == pytest.approx(expected)


@pytest.mark.parametrize("decay", [1.0, 1.4])
def test_exponents_in_width_compute_and_samples(decay):
    a, first, times, loss = many_features(decay, 6_000)
    exponents, ranks = sgd_exponents(decay), np.arange(1, a.size + 1)
    tail = 0.5 * np.cumsum((a**2)[::-1])[::-1]
    assert slope_between(ranks, tail, 10, 300) == pytest.approx(exponents.width, abs=0.04)
    # A network of width m learns the first m features. The best m is chosen at each compute m t.
    widths = np.unique(np.geomspace(3, 3000, 60).astype(int))
    total = np.geomspace(10 * first * 10**decay, 100 * first * 100**decay, 20)
    best = []
    for compute in total:
        affordable = np.interp(compute / widths, times, loss)
        best.append(np.min(np.maximum(affordable, tail[widths])))
    assert slope_between(total, np.array(best), 0, np.inf) == pytest.approx(
        exponents.compute, abs=0.05
    )
    # A learning rate equal to the amplitude a of the last feature wanted takes T / a samples.
    wanted = np.array([10, 20, 40, 80, 160])
    samples = first * a[0] / a[wanted] / a[wanted]
    assert slope_between(samples, tail[wanted], 0, np.inf) == pytest.approx(
        exponents.samples, abs=0.02
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0, 0.5], [[0.1]], 5.0), r"\(1, 1\)"),
        (([0.5, 1.0], [[0.1, 0.1]], 5.0), "descending"),
        (([1.0], [[1.5]], 5.0), "from 0 to 1"),
        (([1.0], [[0.5]], 0.0), "above 0"),
    ],
)
def test_bad_arguments_of_the_courses_are_refused(arguments, words):
    strengths, starts, horizon = arguments
    with pytest.raises(InvalidParameter, match=words):
        sgd_emergence(np.array(strengths), np.array(starts), horizon, initial_norm=0.1)
    with pytest.raises(InvalidParameter, match="he4"):
        sgd_emergence(np.ones(1), np.ones((1, 1)), 1.0, link="he2", initial_norm=0.1)


def test_a_decay_without_power_law_is_refused():
    with pytest.raises(InvalidParameter, match=r"above 0\.5"):
        sgd_exponents(0.5)


def loss_of(weights, link, a):
    norms = np.sum(weights**2, axis=1)
    mutual = (weights @ weights.T) ** 2 / np.outer(norms, norms)
    return population_loss(link, a, norms, weights[:, : a.size] ** 2 / norms[:, None], mutual)


def gradient_of(weights, link, a, h=1e-6):
    """Gradient of the population loss by finite differences."""
    gradient = np.zeros_like(weights)
    for index in np.ndindex(weights.shape):
        moved = np.zeros_like(weights)
        moved[index] = h
        difference = loss_of(weights + moved, link, a) - loss_of(weights - moved, link, a)
        gradient[index] = difference / (2 * h)
    return gradient


def large_students(dimension, width, seed=0):
    """Students of different norms that overlap with each other and with the features."""
    rng = random_stream("students", seed)
    weights = rng.standard_normal((width, dimension)) / np.sqrt(dimension)
    weights += 0.5 * np.eye(width, dimension)
    weights[1] += 0.5 * weights[0]
    return weights


@pytest.mark.parametrize("name", LINKS)
def test_the_population_loss_is_that_of_samples(name):
    link, a = even_link(name), amplitudes(3, 0.7)
    weights = large_students(5, 3)
    X = random_stream("inputs").standard_normal((400_000, 5))
    norms = np.linalg.norm(weights, axis=1)
    teacher = link.evaluate(X[:, :3])[0] @ a
    student = link.evaluate(X @ (weights / norms[:, None]).T)[0] @ norms**2
    squares = 0.5 * (teacher - student) ** 2
    error = squares.std() / np.sqrt(len(X))
    assert abs(squares.mean() - loss_of(weights, link, a)) < 4 * error


@pytest.mark.parametrize("name", LINKS)
def test_the_flow_goes_down_the_gradient(name):
    link, a, h = even_link(name), amplitudes(3, 0.7), 1e-5
    # The features span all dimensions, so the flow has no error from parts outside of them.
    weights = large_students(3, 3)
    weights *= 0.6 / np.linalg.norm(
        weights, axis=1, keepdims=True
    )  # the flow starts from equal norms
    cosines = weights / 0.6
    flow = population_flow(a, cosines[None], link, h, initial_norm=0.36)
    moved = flow.cosines[0] * np.sqrt(flow.norms[0])[:, None]
    assert flow.loss[-1] == pytest.approx(loss_of(moved, link, a))
    np.testing.assert_allclose(flow.captured[-1], captured(moved, link, a))
    np.testing.assert_allclose((moved - weights) / h, -gradient_of(weights, link, a), atol=2e-3)


@pytest.mark.parametrize("name", LINKS)
def test_steps_of_the_descent_are_those_of_the_weights(name):
    link, a, rate = even_link(name), amplitudes(3, 0.7), 0.03
    weights = large_students(3, 3)
    weights *= 0.6 / np.linalg.norm(weights, axis=1, keepdims=True)
    descent = population_descent(
        a, weights / 0.6, link, 40, learning_rate=rate, initial_norm=0.36, dimension=3
    )
    shares = [captured(weights, link, a)]
    for _ in range(40):
        weights = weights - rate * gradient_of(weights, link, a)
        shares.append(captured(weights, link, a))
    assert descent.loss == pytest.approx(loss_of(weights, link, a), abs=1e-6)
    later = [np.argmax(course >= 0.5) for course in np.transpose(shares)]
    for place, last in enumerate(later):
        if last > 0:
            assert rate * (last - 1) <= descent.escape_times[place] <= rate * last
    assert max(later) > 0


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize(("amplitude", "start"), [(0.8, 0.15), (0.3, 0.15), (0.8, 0.08)])
def test_finite_steps_delay_a_feature_as_its_course_says(name, amplitude, start):
    link, a, rate = even_link(name), np.array([amplitude]), 0.02
    descent = population_descent(
        a, np.array([[start**0.5]]), link, 1500, learning_rate=rate, initial_norm=0.02, dimension=2
    )
    times = [
        sgd_emergence(
            a,
            np.array([[start]]),
            30.0,
            link=link,
            initial_norm=0.02,
            learning_rate=eta,
            step=0.001,
        ).escape_times[0, 0]
        for eta in (0.0, rate)
    ]
    # The delay is 1.3 to 3.3 steps; terms of second order are below a tenth of it.
    assert 1.2 * rate < descent.escape_times[0] - times[0] < 3.5 * rate
    assert times[1] - times[0] == pytest.approx(descent.escape_times[0] - times[0], rel=0.1)


@pytest.mark.parametrize(("name", "share"), [("he4", 4 / 3), ("he6", 4.8)])
def test_noise_delays_a_feature_by_its_share_of_the_spread(name, share):
    # Integrate dy = c y^q dt + kappa dt + 2 sqrt(kappa y) dW, with and without the random term.
    link, start, spread, paths = even_link(name), 0.01, 0.002, 20_000
    rng, q = random_stream("noise", name), link.information_exponent // 2
    end = start ** (1 - q) / (q - 1)
    h, kappa = end / 1000, spread * start / end
    y, alone, time, lone = np.full(paths, start), start, np.full(paths, np.inf), np.inf
    for step in range(4000):
        shocks = rng.standard_normal(paths)
        y = np.clip(y + h * (y**q + kappa) + 2 * np.sqrt(kappa * y * h) * shocks, 0, 1)
        alone = min(alone + h * (alone**q + kappa), 1.0)
        lone = min(lone, step * h) if alone > 20 * start else lone
        time[np.isinf(time) & (y > 20 * start)] = step * h
    ratio = time / lone - 1
    assert np.isfinite(ratio).all()
    error = ratio.std() / np.sqrt(paths)
    assert ratio.mean() == pytest.approx(share * spread, abs=4 * error + 0.1 * share * spread)
    # The same from the general formula, at the amplitude with c = 1.
    amplitude = 1 / (4 * q * link.energies[q])
    delay = noise_delays(
        amplitude, np.array([start]), link, kappa=kappa, gradient_noise=0.0, dimension=2
    )
    assert delay[0] / end == pytest.approx(share * spread, rel=0.1)


@pytest.mark.parametrize(("name", "degree"), [("he4", 4), ("he6", 6)])
def test_labels_raise_the_noise_along_their_feature(name, degree):
    # E h_k(z)² z² = 2 k + 1, and a student orthogonal to the feature has no other correlation.
    assert noise_ratios(even_link(name), 0.0) == pytest.approx((2 * degree + 1, 1.0))
    link, y, rng = even_link("cosmix"), 0.3, random_stream("ratios")
    u, t = rng.standard_normal((2, 400_000))
    label = link.evaluate(np.sqrt(y) * u + np.sqrt(1 - y) * t)[0]
    squares = (label * link.evaluate(u.copy())[1]) ** 2 / link.activity
    for sample, expected in zip((squares * t**2, squares), noise_ratios(link, y), strict=True):
        assert abs(sample.mean() - expected) < 4 * sample.std() / np.sqrt(u.size)


def test_noise_delays_training_as_predicted():
    # With noise that is independent of the labels the delay would be 45 times smaller.
    start, rate, batch, runs = 0.1, 0.02, 200, 300
    parameters = EmergenceParameters(
        dimension=8, features=1, width=1, batch=batch, learning_rate=rate, time=6.0
    )
    link, cosines = even_link("he4"), np.array([[np.sqrt(start), *[0.0] * 6, np.sqrt(1 - start)]])
    noise = {"gradient_noise": rate / batch, "dimension": 8}
    alone = population_descent(
        np.ones(1), cosines[:, :1], link, 300, learning_rate=rate, initial_norm=0.02, **noise
    ).escape_times[0]
    weights = cosines * np.sqrt(0.02)
    students = [train(weights, parameters, random_stream("late", run)) for run in range(runs)]
    times = np.array([student.escape_times[0] for student in students if student is not None])
    times = times[np.isfinite(times)]
    assert times.size > 0.97 * runs
    (expected,) = noise_delays(
        1.0, np.array([start]), link, kappa=rate / batch * link.activity, **noise
    )
    error = times.std() / np.sqrt(times.size)
    # Terms of second order add to the delay; it is a sixth of the escape time here.
    assert times.mean() - alone == pytest.approx(expected, abs=3.5 * error + 0.15 * expected)
    assert expected == pytest.approx(0.38, abs=0.02)


@pytest.mark.parametrize("name", ["he4", "cosmix"])
def test_a_step_of_the_learner_is_the_gradient_on_average(name):
    parameters = EmergenceParameters(
        dimension=4, features=3, width=3, link=name, batch=10_000, learning_rate=0.01, time=0.01
    )
    start = large_students(4, 3)
    streams = [random_stream("step", draw) for draw in range(60)]
    moves = [(train(start, parameters, rng).weights - start) / 0.01 for rng in streams]
    error = np.std(moves, axis=0, ddof=1) / np.sqrt(len(moves))
    expected = -gradient_of(start, even_link(name), amplitudes(3, 1.0))
    assert (np.abs(np.mean(moves, axis=0) - expected) < 4 * error).all()


def test_noise_of_the_gradient_leaves_the_predicted_misalignment():
    # One aligned student of one feature with label noise: 1 - y = kappa d / (2 k a).
    d = 24
    parameters = EmergenceParameters(
        dimension=d, features=1, width=1, batch=400, learning_rate=0.01, time=4.0, noise=4.0
    )
    start = np.zeros((1, d))
    start[0, 0] = 1.0
    found = []
    for seed in range(12):
        student = train(start, parameters, random_stream("floor", seed))
        found.append(1 - float(student.squared_overlaps(1)[0, 0]))
    course = sgd_emergence(
        np.ones(1), np.array([[1.0]]), 4.0, initial_norm=1.0, dimension=d,
        gradient_noise=0.01 / 400, label_noise=4.0,
    )  # fmt: skip
    expected = 1 - course.squared_overlap[-1, 0]
    assert expected == pytest.approx(0.01 / 400 * 4 * 4 * d / 8, rel=0.05)
    assert np.mean(found) == pytest.approx(expected, abs=3.5 * np.std(found) / np.sqrt(11))


def test_a_student_scores_itself():
    a, link = amplitudes(2, 1.0), even_link("he4")
    perfect = Student(np.eye(2, 5) * np.sqrt(a)[:, None], np.zeros(2))
    assert perfect.loss(link, a) == pytest.approx(0)
    np.testing.assert_allclose(captured(perfect.weights, link, a), 1)
    parameters = EmergenceParameters(dimension=5, features=2, width=7, initial_norm=0.04)
    start = draw_student(parameters, random_stream("start"))
    np.testing.assert_allclose(np.linalg.norm(start, axis=1), 0.2)
