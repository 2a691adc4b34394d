"""The two scalars of a quadratic network: published curve, limits, invariances, bad input."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.spectra.measures import power_law
from solvable.spectra.product_measure import marchenko_pastur
from solvable.theory.quadratic import quadratic_curve, solve_quadratic, state_at

TALK = {"label_noise": 0.5, "regularisation": 0.02}


def test_parametric_and_solved_agree():
    here = solve_quadratic(marchenko_pastur(0.2), sample_ratio=0.4, **TALK)
    again = state_at(
        marchenko_pastur(0.2),
        effective_noise=here.effective_noise,
        threshold=here.threshold,
        label_noise=0.5,
    )
    assert again.sample_ratio == pytest.approx(0.4, rel=1e-10)
    assert again.regularisation == pytest.approx(0.02, rel=1e-8)
    assert again.train_error == pytest.approx(here.train_error, rel=1e-8)


def test_a_target_of_nothing_in_closed_form():
    # Half a semicircle above 0: R = delta^2 / 2 and A = 1/4.
    for ratio in (0.3, 0.5, 4.0):
        state = solve_quadratic(
            np.zeros(3), sample_ratio=ratio, label_noise=0.5, regularisation=0.0
        )
        assert state.matrix_error == pytest.approx(0.25 / (4 * ratio - 1), rel=1e-9)
        assert state.rank_fraction == pytest.approx(0.5, abs=1e-10)
        assert state.train_error == pytest.approx(
            state.test_error * (1 - 0.25 / ratio) ** 2, rel=1e-8
        )
    with pytest.raises(NotConverged, match="interpolation peak"):
        solve_quadratic(np.zeros(1), sample_ratio=0.25, label_noise=0.5, regularisation=0.0)


def test_curves_do_not_depend_on_their_order():
    ratios = np.array([0.1, 0.27, 0.9, 0.2])
    spectrum = power_law(dimension=40, exponent=1.0)
    there = quadratic_curve(spectrum, sample_ratios=ratios, **TALK)
    back = quadratic_curve(spectrum, sample_ratios=ratios[::-1], **TALK)[::-1]
    for one, other in zip(there, back, strict=True):
        assert one.matrix_error == pytest.approx(other.matrix_error, rel=1e-10)
        assert one.threshold == pytest.approx(other.threshold, rel=1e-10)


def test_bad_input_is_named():
    good = {"sample_ratio": 0.5, **TALK}
    for name, value in (
        ("sample_ratio", 0.0),
        ("sample_ratio", np.nan),
        ("label_noise", -1.0),
        ("regularisation", np.inf),
    ):
        with pytest.raises(InvalidParameter, match=name):
            solve_quadratic(np.ones(2), **{**good, name: value})
    with pytest.raises(InvalidData, match="eigenvalue"):
        solve_quadratic(np.array([1.0, -0.5]), **good)
    with pytest.raises(InvalidParameter, match="negative|at least 0"):
        state_at(np.ones(2), effective_noise=1.0, threshold=-0.1, label_noise=0.5)
