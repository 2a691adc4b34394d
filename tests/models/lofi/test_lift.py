"""Filters after an infinitely wide lift, against kernel matrices of simulated samples.

Equations 10 to 12 of docs/derivations/lofi.md.
"""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.lofi.lift import activation_energies, predict_lifted_filter
from solvable.operators.activations import dual_kernel
from solvable.spectra.label_emergence import balanced_emergence_ratio
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum

STRENGTH = 0.8573481658
LAW = LabelLaw.balanced(STRENGTH)


def test_energies_of_relu_are_known():
    constant, linear, tail = activation_energies("relu")
    assert constant == pytest.approx(1 / (2 * np.pi))
    assert linear == pytest.approx(1 / 4)
    assert tail == pytest.approx(1 / 4 - 1 / (2 * np.pi))


@pytest.mark.parametrize("name", ["tanh", "erf", "sigmoid", "gelu", "step"])
def test_energies_sum_to_the_second_moment(name):
    total = dual_kernel(name, np.ones((1, 1)), np.ones(1), np.ones(1))[0, 0]
    assert sum(activation_energies(name)) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("ratio", [1.0, 3.0, 20.0])
def test_a_linear_lift_is_the_filter_of_raw_inputs(ratio):
    found = predict_lifted_filter(LAW, ratio=ratio, activation="identity")
    raw = label_weighted_spectrum(LAW, ratio=ratio)
    # The kernel is X X^T / d: n times its eigenvalues are alpha times those of the filter of inputs.
    assert found.edge == pytest.approx(ratio * raw.upper.edge, rel=1e-5)
    assert found.squared_overlap == pytest.approx(raw.squared_overlap[0], abs=1e-5)
    assert found.emergence_ratio == pytest.approx(balanced_emergence_ratio(STRENGTH), rel=1e-6)
    if raw.recovered[0]:
        assert found.eigenvalue == pytest.approx(ratio * raw.eigenvalues[0], rel=1e-5)


def test_threshold_is_where_the_outlier_appears():
    threshold = predict_lifted_filter(LAW, ratio=1.0).emergence_ratio
    assert np.isnan(predict_lifted_filter(LAW, ratio=threshold * 0.999).eigenvalue)
    above = predict_lifted_filter(LAW, ratio=threshold * 1.001)
    assert above.eigenvalue == pytest.approx(above.edge, rel=1e-3)
    assert 0 < above.squared_overlap < 0.01


def test_the_tail_of_an_activation_delays_emergence():
    thresholds = [
        predict_lifted_filter(LAW, ratio=2.0, activation=name).emergence_ratio
        for name in ("identity", "tanh", "relu", "step")
    ]
    assert thresholds == sorted(thresholds)
    assert thresholds[-1] > 1.05 * thresholds[0]


def lifted(activation, ratio, d, seeds):
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((round(ratio * d), d))
        y = np.where(X[:, 0] ** 2 > 0.454936, 1.0, -1.0)
        inner = X @ X.T / np.mean(np.sum(X**2, axis=1))
        power = np.diag(inner).copy()
        values, vectors = np.linalg.eigh(dual_kernel(activation, inner, power, power))
        used = values > 1e-9 * values[-1]
        root = vectors[:, used] * np.sqrt(values[used])
        found, B = np.linalg.eigh(root.T @ (y[:, None] * root))
        linear = X.T @ (vectors[:, used] / np.sqrt(values[used]) @ B)
        overlap = linear[0] ** 2 / np.sum(linear**2, axis=0)
        best = int(np.argmax(overlap))
        rows.append([found[best], overlap[best], found[-1], np.sum(found > found[best])])
    return np.array(rows)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_outlier_and_overlap_of_simulated_kernels(activation):
    found = predict_lifted_filter(LAW, ratio=4.0, activation=activation)
    rows = lifted(activation, 4.0, 150, 6)
    error = rows.std(axis=0, ddof=1) / np.sqrt(6)
    # Tolerance for corrections of relative order 1/sqrt(d) from fluctuating norms
    assert rows[:, 0].mean() == pytest.approx(found.eigenvalue, abs=4 * error[0] + 0.03)
    assert rows[:, 1].mean() == pytest.approx(found.squared_overlap, abs=4 * error[1] + 0.02)


@pytest.mark.parametrize(
    ("activation", "ratio", "d"),
    [("erf", 0.6, 90), ("relu", 1.5, 70), ("step", 2.3, 60), ("tanh", 9.0, 40)],
)
def test_means_at_a_finite_dimension_from_far_below_to_far_above(activation, ratio, d):
    seeds = 40
    skipped = int(activation_energies(activation)[0] > 1e-9)
    rows = lifted_leaders(activation, ratio, d, seeds, skipped)
    error = rows.std(axis=0, ddof=1) / np.sqrt(seeds)
    found = predict_lifted_filter(LAW, ratio=ratio, activation=activation, dimension=d)
    # Tolerance 4 % and 0.04 for terms of order 1/d from fluctuating norms
    assert rows[:, 0].mean() == pytest.approx(
        found.eigenvalue, abs=3 * error[0] + 0.04 * found.edge
    )
    assert rows[:, 1].mean() == pytest.approx(
        found.next_eigenvalue, abs=3 * error[1] + 0.04 * found.edge
    )
    assert rows[:, 2].mean() == pytest.approx(found.squared_overlap, abs=3 * error[2] + 0.04)


def lifted_leaders(activation, ratio, d, seeds, skipped):
    """Two leading eigenvalues after that of the constant, and the overlap of the first."""
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 5])
        X = rng.standard_normal((round(ratio * d), d))
        y = np.where(X[:, 0] ** 2 > 0.454936, 1.0, -1.0)
        inner = X @ X.T / np.mean(np.sum(X**2, axis=1))
        power = np.diag(inner).copy()
        values, vectors = np.linalg.eigh(dual_kernel(activation, inner, power, power))
        used = values > 1e-9 * values[-1]
        root = vectors[:, used] * np.sqrt(values[used])
        found, B = np.linalg.eigh(root.T @ (y[:, None] * root))
        linear = X.T @ (vectors[:, used] / np.sqrt(values[used]) @ B[:, -1 - skipped])
        rows.append([found[-1 - skipped], found[-2 - skipped], linear[0] ** 2 / (linear @ linear)])
    return np.array(rows)


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_many_dimensions_give_the_limit(activation):
    sharp = predict_lifted_filter(LAW, ratio=3.0, activation=activation)
    large = predict_lifted_filter(LAW, ratio=3.0, activation=activation, dimension=10**7)
    assert large.eigenvalue == pytest.approx(sharp.eigenvalue, rel=1e-4)
    assert large.next_eigenvalue == pytest.approx(sharp.edge, rel=1e-4)
    assert large.squared_overlap == pytest.approx(sharp.squared_overlap, abs=1e-4)


def test_the_constant_of_an_activation_adds_an_outlier_of_no_relevance():
    rows = lifted("relu", 4.0, 100, 2)
    constant, linear, tail = activation_energies("relu")
    assert (rows[:, 3] == 1).all()
    # Wide tolerance: the pair is at +-c_0 sqrt(n (c_1² + c_*²)) only for n much larger than d.
    expected = np.sqrt(constant * 400 * (linear + tail))
    assert rows[:, 2].mean() == pytest.approx(expected, rel=0.3)


def test_unusable_arguments_are_refused():
    with pytest.raises(InvalidParameter, match="no linear part"):
        predict_lifted_filter(LAW, ratio=1.0, activation="cos")
    with pytest.raises(InvalidParameter, match="mean"):
        predict_lifted_filter(
            LabelLaw(np.array([-1.0, 1.0]), np.array([0.9, 0.1]), np.ones((2, 1))), ratio=1.0
        )
    with pytest.raises(InvalidParameter, match="ratio"):
        predict_lifted_filter(LAW, ratio=-1.0)
    assert np.isinf(predict_lifted_filter(LabelLaw.balanced(0.0), ratio=1.0).emergence_ratio)
