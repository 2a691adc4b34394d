"""The two scalars of a quadratic network: published curve, limits, invariances, bad input."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.models.quadratic.network.theory import quadratic_curve, solve_quadratic, state_at
from solvable.spectra.measures import power_law
from solvable.spectra.product_measure import marchenko_pastur

PAPER = {"label_noise": 0.5, "regularisation": 0.02}


def test_parametric_and_solved_agree():
    here = solve_quadratic(marchenko_pastur(0.2), sample_ratio=0.4, **PAPER)
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
    # Half of the semicircle is above 0: R = delta² / 2 and A = 1/4  (quadratic 22).
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
    there = quadratic_curve(spectrum, sample_ratios=ratios, **PAPER)
    back = quadratic_curve(spectrum, sample_ratios=ratios[::-1], **PAPER)[::-1]
    for one, other in zip(there, back, strict=True):
        assert one.matrix_error == pytest.approx(other.matrix_error, rel=1e-10)
        assert one.threshold == pytest.approx(other.threshold, rel=1e-10)


def test_bad_input_is_named():
    good = {"sample_ratio": 0.5, **PAPER}
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
    with pytest.raises(InvalidParameter, match="threshold"):
        state_at(np.ones(2), effective_noise=1.0, threshold=-0.1, label_noise=0.5)


def test_spectrum_of_matrices():
    spectrum = power_law(dimension=60, exponent=1.0)
    state = solve_quadratic(spectrum, sample_ratio=2000 / 3600, **PAPER)
    rng = np.random.default_rng(4)
    draws, d = 400, 60
    z = rng.standard_normal((draws, d, d))
    z = (z + z.transpose(0, 2, 1)) / np.sqrt(2 * d)
    matrices = np.diag(spectrum.nodes) + state.effective_noise * z
    learned = np.maximum(np.linalg.eigvalsh(matrices) - state.threshold, 0)
    error = learned[:, ::-1].std(axis=0)[:3] / np.sqrt(draws)
    mean = learned[:, ::-1].mean(axis=0)[:3]
    found = state.leading_eigenvalues(3, dimension=d)
    # Four standard errors, and a bias of the order of the square of the level spacing.
    assert (np.abs(mean - found) < 4 * error + 2 * state.effective_noise**2 / d).all()
    assert np.mean(learned > 0) == pytest.approx(state.rank_fraction, abs=2 / d)
    assert learned.mean() == pytest.approx(state.trace, abs=0.01)
    inside = np.mean((learned > 0.3) & (learned < 1.0))
    x = np.linspace(0.3, 1.0, 201)
    assert np.trapezoid(state.law.density(x + state.threshold), x) == pytest.approx(
        inside, abs=1 / d
    )


def test_more_eigenvalues_than_dimensions_are_refused():
    state = solve_quadratic(marchenko_pastur(0.2), sample_ratio=0.4, **PAPER)
    with pytest.raises(InvalidParameter, match="count"):
        state.leading_eigenvalues(7, dimension=6)


def test_two_scalars_of_no_network():
    # A noise with too small a threshold would need a negative penalty.
    with pytest.raises(InvalidParameter, match="larger threshold"):
        state_at(marchenko_pastur(1.0), effective_noise=3.0, threshold=1e-3, label_noise=0.1)


def test_shapes_of_a_curve():
    with pytest.raises(InvalidParameter, match="sample_ratios"):
        quadratic_curve(np.ones(2), sample_ratios=0.5, **PAPER)
    with pytest.raises(InvalidParameter, match="regularisation has shape"):
        quadratic_curve(np.ones(2), sample_ratios=[0.5, 1.0], label_noise=0.5, regularisation=[0.1])
    one, other = quadratic_curve(
        np.ones(2), sample_ratios=[0.5, 0.5], label_noise=0.5, regularisation=[0.1, 1.0]
    )
    assert other.trace < one.trace
    assert other.train_error > one.train_error
