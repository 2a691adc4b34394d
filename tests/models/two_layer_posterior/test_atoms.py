"""Wide limit beyond the onset: reference values, a second solver, the onset, and limits."""

import numpy as np
import pytest

from solvable.models.two_layer_posterior.atoms import _active_set, wide_limit_alignment
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.predict import predict


def at_load(load, ratio=10, dimension=1_000, **more):
    """Alignment at P = load kappa sqrt(N d)."""
    width = ratio * dimension
    samples = load * np.sqrt(width * dimension)
    return wide_limit_alignment(
        dimension=dimension, width=width, samples=samples, kappa=1.0, **more
    )


@pytest.mark.parametrize(("load", "expected"), [(8, 0.0), (14, 0.174), (20, 0.294), (28, 0.391)])
def test_reference_alignments(load, expected):
    # (two-layer-posterior 15), solved by FISTA on a grid of 60 x 28 kinds; kappa_eff = 1.08 kappa, N =
    # 10 d
    assert at_load(load / 1.08) == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(
    ("activation", "degree"), [("erf", 3), ("tanh", 3), ("erf", 5), ("relu", 2)]
)
def test_the_onset_is_that_of_the_large_deviation(activation, degree):
    # (two-layer-posterior 6): at large N/d mixing costs nothing, and the onset is P = R kappa sqrt(N
    # d).
    constant = specialisation(activation, degree).R
    sizes = {"ratio": 10**8, "activation": activation, "degree": degree}
    # Below the onset only the lazy mode is left. The grid of neurons is accurate to 1 %.
    assert abs(at_load(0.99 * constant, **sizes)) < 1e-6
    assert at_load(1.03 * constant, **sizes) > 1e-3


def test_a_second_solver_agrees():
    # Coordinate descent on a random problem of the form (two-layer-posterior 15).
    rng = np.random.default_rng(4)
    shapes, price = rng.standard_normal((9, 30)), rng.uniform(0.5, 2.0, 30)
    target, load, lazy_price = rng.standard_normal(9), 3.0, np.array([0.7, 0.2])
    amplitude, lazy = _active_set(shapes, price, target, load, lazy_price)
    b, beta = np.zeros(30), np.zeros(2)
    for _ in range(400):
        left = target - shapes @ b
        left[:2] -= beta
        for k in range(2):
            left[k] += beta[k]
            beta[k] = load * left[k] / (load + lazy_price[k])
            left[k] -= beta[k]
        for j in range(30):
            left += shapes[:, j] * b[j]
            pull = load * shapes[:, j] @ left
            size = load * shapes[:, j] @ shapes[:, j]
            b[j] = np.sign(pull) * max(abs(pull) - price[j], 0) / size
            left -= shapes[:, j] * b[j]
    assert amplitude == pytest.approx(b, abs=1e-6)
    assert lazy == pytest.approx(beta, abs=1e-6)


def test_more_samples_align_more():
    assert (np.diff([at_load(load) for load in (9, 12, 18, 30, 60)]) > 0).all()


def test_mean_field_needs_more_samples():
    at = {"dimension": 50, "width": 500, "kappa": 1.0, "samples": 30_000.0}
    standard, field = (
        wide_limit_alignment(**at, readout=name) for name in ("standard", "mean-field")
    )
    assert standard > field


def test_the_prediction_of_a_system_tends_to_the_limit_with_the_dimension():
    gaps = []
    for dimension in (8, 24):
        found = predict(CurseParameters(dimension=dimension, width_ratio=10.0, steps=100))
        gaps.append(found["wide_limit_alignment"] - found["alignment"])
    assert gaps[0] == pytest.approx(0.088, abs=0.02)
    assert 0 < gaps[1] < 0.6 * gaps[0]
