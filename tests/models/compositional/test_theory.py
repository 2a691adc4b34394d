"""Theory of compositional targets: rotation, first-layer law, exponents, kernels."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from solvable.arrays import random_stream
from solvable.errors import InvalidData
from solvable.models.compositional.first_layer import model_of
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.predict import predict_first_layer
from solvable.models.compositional.system import system
from solvable.models.compositional.target import CompositionalTarget
from solvable.models.compositional.theory import (
    crossing_samples,
    degree_two_share,
    recovery_exponent,
)
from solvable.models.compositional.upper_layers import (
    make_target,
    rotate_layer,
    rotated_basis,
    rotated_directions,
)
from solvable.operators import MomentOperator, apply_label_map, leading_eigenpairs

entries = arrays.arrays(
    np.float64, (4, 4), elements=st.floats(-10, 10, allow_nan=False, width=32)
).filter(lambda B: np.linalg.norm(B + B.T) > 1e-3)


@given(entries)
@settings(max_examples=50, deadline=None)
def test_a_rotated_layer_is_the_same_function(G):
    B = (G + G.T) / 2
    layer = rotate_layer(B)
    h = np.random.default_rng(0).standard_normal((5, 4))
    direct = np.einsum("ni,ij,nj->n", h, B, h) - np.trace(B)
    u = h @ layer.rotation
    rotated = layer.scale * (u**2 - 1) @ layer.weights
    np.testing.assert_allclose(rotated, direct, atol=1e-9 * (1 + np.abs(direct).max()))
    assert layer.weights @ layer.weights == pytest.approx(1)
    assert (np.diff(np.abs(layer.weights)) <= 1e-9).all()
    np.testing.assert_allclose(layer.rotation.T @ layer.rotation, np.eye(4), atol=1e-12)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.zeros((2, 2)), "zero or not symmetric"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "zero or not symmetric"),
        (np.ones(3), r"shape \(3,\)"),
        (np.full((2, 2), np.nan), "finite"),
    ],
)
def test_bad_layers_are_refused(matrix, words):
    with pytest.raises(InvalidData, match=words):
        rotate_layer(matrix)


def effective_matrix(target):
    """E[y (h h^T - I)] for Gaussian h, by Wick's theorem, for three and four layers (compositional 9)."""
    B, scale = target.matrix, np.linalg.norm(target.matrix)
    if not target.hidden_layers:
        return np.sqrt(2) * B / scale
    (N,) = target.hidden_layers
    products = np.einsum("iab,jbc->ijac", N, N)
    # Var(w^T B w) for w_j = (h^T N_j h - tr N_j) / sqrt(2)
    gram, crossed = (
        np.einsum("ijaa->ij", products),
        np.einsum("ijab,klba->ijkl", products, products),
    )
    squares = np.einsum("ij,ijab->ab", B, products)
    variance = 2 * np.sum((gram @ B @ gram) * B)
    variance += 4 * np.einsum("ij,kl,ikjl->", B, B, crossed) + 8 * np.sum(squares**2)
    return 4 * squares / np.sqrt(variance)


@pytest.mark.parametrize("features", [(5,), (4, 1), (5, 2), (6, 3)], ids=str)
@pytest.mark.parametrize("kind", ["dense", "diagonal"])
def test_the_rotated_basis_is_that_of_the_effective_matrix(features, kind):
    first, *inner = features
    parameters = CompositionalParameters(
        dimension=20, features=first, layers=2 + len(features), inner_features=(inner or [1])[0],
        second_layer=kind, decay=0.5, teacher=3, label_map="identity",
    )  # fmt: skip
    basis = rotated_basis(parameters)
    expected = effective_matrix(make_target(parameters, 0))
    # 400,000 draws with heavy tails: at most 0.02 of the norm.
    found = basis.rotation * basis.weights @ basis.rotation.T
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=0.02)
    assert basis.scale == pytest.approx(
        np.linalg.norm(expected if inner else make_target(parameters, 0).matrix), rel=0.02
    )


def test_four_layers_have_weaker_spikes_than_three():
    """Heights are p^(-1/2) for three layers and 1/p for four (compositional 5) (compositional 10)."""
    widths = np.array([32, 64, 128])
    three, four = [], []
    for p in widths:
        target = CompositionalTarget(dimension=40, features=(int(p), 3), seed=1)
        four.append(np.linalg.norm(effective_matrix(target), 2))
        # A semicircle of p eigenvalues of unit Frobenius norm: the edge is 2 / sqrt(p).
        dense = CompositionalTarget(dimension=20, features=int(p), seed=1)
        three.append(np.linalg.norm(effective_matrix(dense), 2))
    slopes = [np.polyfit(np.log(widths), np.log(values), 1)[0] for values in (three, four)]
    # A narrow second representation is not Gaussian, which raises the variance of the label.
    assert slopes[0] == pytest.approx(-0.5, abs=0.15)
    assert slopes[1] == pytest.approx(-1.0, abs=0.2)


SETTING = {"dimension": 30, "features": 3, "teacher": 6}


@cache
def law_of(correction="wick"):
    """Parameters and the law of the first step."""
    parameters = CompositionalParameters(**SETTING, correction=correction)
    return parameters, model_of(parameters).law


@pytest.mark.parametrize(
    ("correction", "ratio"),
    [
        ("wick", 16),
        ("wick", 64),
        *(pytest.param("none", ratio, marks=pytest.mark.slow) for ratio in (16, 64)),
    ],
)
def test_the_law_of_the_first_step_is_that_of_a_simulation(ratio, correction):
    parameters, law = law_of(correction)
    n = ratio * parameters.n_features_total
    overlaps = []
    for seed in range(3):
        target = make_target(parameters, 10 + seed)
        truth = rotated_directions(target, rotated_basis(parameters))
        X, y = target.sample(n, random_stream("fit", seed), dtype=np.float32)
        operator = MomentOperator(
            X, apply_label_map(y, "tanh"), target.feature_map, correction=correction
        )
        pairs = leading_eigenpairs(operator, 3, 3, rng=seed, tolerance=1e-3)
        overlaps.append(np.sum((truth.T @ pairs.vectors) ** 2, axis=1))
    predicted = law.spikes(n)
    resolved = predicted.squared_overlap > 0.5
    assert resolved.any()
    # Seeds scatter by 0.01 to 0.05; chance adds about 0.01.
    np.testing.assert_allclose(
        np.mean(overlaps, axis=0)[resolved], predicted.squared_overlap[resolved], atol=0.06
    )


def test_thresholds_and_crossings_are_consistent_with_the_law():
    _, law = law_of()
    for k, n in enumerate(law.thresholds):
        if np.isfinite(n):
            assert law.spikes(0.99 * n).sharp_squared_overlap[k] == 0
            assert law.spikes(1.01 * n).sharp_squared_overlap[k] > 0
    # The background adds noise, so no feature is outside below the closed-form threshold.
    assert (law.thresholds >= 0.9 * law.n_features * law.noise / law.heights**2).all()
    overlap = law.spikes(crossing_samples(law)).squared_overlap.mean()
    assert overlap == pytest.approx(0.5, abs=0.01)


def test_features_inside_the_population_bulk_have_no_crossing():
    _, law = law_of()
    assert crossing_samples(replace(law, heights=1e-3 * law.heights)) == np.inf


def test_exponents():
    assert recovery_exponent(degree=3, exponents=[0.25]) == pytest.approx(3.25)
    assert recovery_exponent(degree=2, exponents=[0.25, 0.1]) == pytest.approx(2.5)
    assert recovery_exponent(degree=1, exponents=[0.5, 0.25, 0.1]) == pytest.approx(2.25)


def test_each_further_layer_weakens_the_spikes():
    """With three representations of width p, n is of order D p² p (compositional 10)."""
    widths, norms = np.array([12, 24, 48]), []
    for p in widths.tolist():
        for seed in range(12):
            target = CompositionalTarget(dimension=20, features=(p, p, p), seed=seed)
            matrix = target.matrix / np.linalg.norm(target.matrix)
            for forms in reversed(target.hidden_layers):
                # Wick: the matrix M of the representation above becomes sum_jl M_jl N_j N_l
                matrix = np.einsum("jl,jab,lbc->ac", matrix, forms, forms, optimize=True)
            norms.append(np.linalg.norm(matrix, 2))
    heights = np.log(norms).reshape(3, 12).mean(axis=1)
    slope = np.polyfit(np.log(widths), heights, 1)[0]
    # Slopes of single targets scatter by 0.4: twice the error of twice the mean of twelve.
    assert -2 * slope == pytest.approx(recovery_exponent(degree=0, exponents=[1, 1, 1]), abs=0.45)


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_the_share_of_degree_two_is_that_of_a_known_mixture(share):
    draws, d = 200_000, 8
    x = random_stream("share").standard_normal((draws, d))
    low, high = (x[:, 0] ** 2 - 1) / np.sqrt(2), x[:, 0] * x[:, 1] * x[:, 2] * x[:, 3]
    y = np.sqrt(share) * low + np.sqrt(1 - share) * high
    moment = (x * y[:, None]).T @ x / draws - y.mean() * np.eye(d)
    found = degree_two_share(moment, draws=draws, label_variance=float(y.var()))
    # The error is sqrt(1 / draws) times a factor for the heavy tail of the quartic.
    assert found == pytest.approx(share, abs=0.02)


def test_the_dual_of_the_exact_share_is_the_targets_own_energy():
    from solvable.targets import HierarchicalTarget

    target = HierarchicalTarget(dimension=20, features=4, seed=2)
    X, y = target.sample(150_000, random_stream("energy"))
    moment = (X * y[:, None]).T @ X / len(X) - y.mean() * np.eye(20)
    found = degree_two_share(moment, draws=len(X), label_variance=float(y.var()))
    assert found == pytest.approx(target.degree_two_energy / target.index_variance, rel=0.08)


def test_a_weak_feature_of_few_inputs_competes_with_the_other_end_of_the_bulk():
    """Learners against drawn operators; the formula predicts 0.28 for this feature."""
    parameters = CompositionalParameters(
        dimension=20, features=3, teacher=6, samples=8_200, test_samples=100
    )
    records = [system.measure(parameters, random_stream("ends", k)) for k in range(20)]
    measured = np.array([record["squared_overlap"] for record in records])
    predicted = np.array(predict_first_layer(parameters)["squared_overlap"])
    errors = measured.std(axis=0, ddof=1) / np.sqrt(20)
    np.testing.assert_array_less(np.abs(measured.mean(axis=0) - predicted), 0.02 + 2.5 * errors)
    assert predicted[2] < 0.2


@pytest.mark.slow
def test_a_feature_at_the_shorter_end_of_the_bulk_is_ranked_behind_the_longer_one():
    """Learners against the prediction at a size where ranking matters."""
    values = {"dimension": 33, "epsilon": 0.5, "teacher": 6, "test_samples": 100}
    for ratio, found in ((30, False), (110, True)):
        parameters = CompositionalParameters(**values, samples=ratio * 561)
        predicted = np.array(system.predict(parameters)["squared_overlap"])
        records = [system.measure(parameters, random_stream("hidden", k)) for k in range(3)]
        measured = np.mean([record["squared_overlap"] for record in records], axis=0)
        assert (predicted[4] > 0.6) == found
        np.testing.assert_allclose(measured[4], predicted[4], atol=0.1)
