from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import DegenerateReadout, InvalidData, InvalidParameter
from solvable.models.compositional.target import CompositionalTarget
from solvable.targets import HierarchicalTarget

CASES = [
    {"dimension": 20, "features": 6},
    {"dimension": 20, "features": 5, "second_layer": "diagonal", "decay": 0.4, "readout": "tanh"},
    {"dimension": 10, "degree": 3, "features": 3},
    {"dimension": 20, "features": (8, 4)},
    {"dimension": 16, "features": (6, 5, 3), "second_layer": "diagonal", "decay": 1.0},
    {"dimension": 12, "features": 4, "first_layer": "random-features", "width": 200},
]


@pytest.mark.parametrize("case", CASES)
def test_labels_are_standardised_in_the_population(case):
    target = CompositionalTarget(**case)
    n = 50_000
    _, y = target.sample(n, 3)
    # The estimate of the target, from 100,000 draws, adds half of this variance.
    assert abs(y.mean()) < 4 * np.sqrt(1.5 / n)
    assert abs(y.var() - 1) < 4 * np.sqrt(1.5) * (y**2).std() / np.sqrt(n)


@pytest.mark.parametrize("case", CASES)
def test_first_representation_is_white_and_later_ones_are_centred(case):
    target = CompositionalTarget(**case)
    n = 40_000
    X, _ = target.sample(n, 0)
    h = target.latent(X, layer=1)
    products = h[:, :, None] * h[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert (abs(products.mean(axis=0) - np.eye(h.shape[1])) < 5 * error).all()
    if len(target.widths) > 1:
        second = target.latent(X, layer=2)
        assert second.shape == (n, target.widths[1])
        # The second layer is exactly centred because h^(1) is white.
        assert (abs(second.mean(axis=0)) < 5 * second.std(axis=0) / np.sqrt(n)).all()


def test_deeper_representations_approach_unit_variance_with_the_dimension():
    def excess(dimension):
        target = CompositionalTarget(dimension=dimension, features=(4, 2))
        return np.mean(target.latent(target.sample(60_000, 0)[0]).var(axis=0)) - 1

    # 1 + O(1/d): 0.6 at d = 10, standard error 0.03.
    assert excess(80) < excess(10) / 3


def test_index_is_the_written_formula():
    target = CompositionalTarget(dimension=8, features=(5, 3))
    X, y = target.sample(200, 0)
    first = target.feature_map.transform(X) @ target.directions
    (M,) = target.hidden_layers
    second = np.einsum("na,iab,nb->ni", first, M, first) - np.trace(M, axis1=1, axis2=2)
    second /= np.sqrt(2)
    np.testing.assert_allclose(target.latent(X, layer=1), first, atol=1e-10)
    np.testing.assert_allclose(target.latent(X), second, atol=1e-10)
    s = np.einsum("na,ab,nb->n", second, target.matrix, second) - np.trace(target.matrix)
    mean, scale = target.label_standardisation
    np.testing.assert_allclose(y, (s - mean) / scale, atol=1e-8)
    np.testing.assert_allclose(np.einsum("iab,jab->ij", M, M), np.eye(3), atol=1e-12)


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"first_layer": "random", "second_layer": "diagonal"},
        {"degree": 1, "first_layer": "random"},
    ],
    ids=["orthonormal", "random", "linear"],
)
def test_the_exact_standardisation_is_that_of_draws(setting):
    target = CompositionalTarget(dimension=12, features=4, seed=3, **setting)
    index = target._index_of(target.draw_latent(100_000, random_stream("standardisation")))
    mean, scale = target.label_standardisation
    deviations = (index - mean) ** 2
    assert index.mean() == pytest.approx(mean, abs=4 * index.std() / np.sqrt(100_000))
    error = deviations.std() / np.sqrt(100_000)
    assert deviations.mean() == pytest.approx(scale**2, abs=4 * error)
    assert error < 0.05 * scale**2


@pytest.mark.parametrize("p", [4, 16])
def test_dense_layer_has_the_norm_of_the_paper(p):
    target = CompositionalTarget(dimension=20, features=p, beta=3.0)
    B = target.matrix
    np.testing.assert_array_equal(B, B.T)
    assert np.linalg.norm(B) == pytest.approx(3.0 / np.sqrt(p))
    assert np.count_nonzero(B) == p * p


@pytest.mark.parametrize(
    ("decay", "first"), [(0.0, 2.0 / 9), (0.25, 9**-0.5), (0.5, 1.0), (0.75, 2.0), (1.5, 2.0)]
)
def test_diagonal_layer_has_the_scale_of_the_code(decay, first):
    target = CompositionalTarget(
        dimension=20, features=9, second_layer="diagonal", decay=decay, beta=2.0
    )
    diagonal = np.diag(target.matrix)
    np.testing.assert_allclose(abs(diagonal), first * np.arange(1, 10) ** -decay, rtol=1e-12)
    assert np.count_nonzero(target.matrix) == 9
    assert {-1, 1} == set(np.sign(diagonal))


def test_saturation_of_the_authors_setting_is_the_committed_number():
    # The code of arXiv:2602.10867 at d = 120, p = 11, decay 0.4 has sqrt(2) ||B||_F of about 1.7.
    target = CompositionalTarget(
        dimension=120, epsilon=0.5, second_layer="diagonal", decay=0.4, readout="tanh"
    )
    assert target.widths == (11,)
    assert np.sqrt(2) * np.linalg.norm(target.matrix) == pytest.approx(1.7, abs=0.05)


def test_diagonal_three_layer_target_is_a_hierarchical_one_up_to_scale():
    target = CompositionalTarget(dimension=15, features=4, second_layer="diagonal", decay=1.0)
    twin = HierarchicalTarget(dimension=15, features=4, decay=1.0)
    X, y = target.sample(500, 0)
    np.testing.assert_array_equal(target.directions, twin.directions)
    signs = np.sign(np.diag(target.matrix))
    index = (twin.latent(X) ** 2 - 1) @ (abs(twin.weights) * signs)
    assert np.corrcoef(index, y)[0, 1] == pytest.approx(1.0, abs=1e-10)


def test_widths_come_from_features_or_from_exponents():
    assert CompositionalTarget(dimension=100, features=7).widths == (7,)
    target = CompositionalTarget(dimension=100, epsilon=(0.75, 0.5))
    assert target.widths == (round(100**0.75), 10)
    assert target.layers == 4
    assert CompositionalTarget(dimension=100, epsilon=0.5).layers == 3


def test_random_features_share_most_of_their_variance_with_hermite_directions():
    target = CompositionalTarget(dimension=12, features=4, first_layer="random-features", width=400)
    X, _ = target.sample(40_000, 0)
    best = target.feature_map.project(X, target.directions)
    h = target.latent(X)
    share = np.sum(target.directions**2, axis=0)
    for i in range(4):
        # Regression of h on degree-2 Hermite features explains the squared norm of its direction.
        assert np.corrcoef(best[:, i], h[:, i])[0, 1] ** 2 == pytest.approx(share[i], abs=0.03)


@pytest.mark.parametrize("case", CASES)
def test_source_and_sample_do_not_depend_on_chunks_or_length(case):
    target = CompositionalTarget(**case)
    source, y = target.source(5_000, seed=1)
    X = np.concatenate([block for _, block in source.chunks(700)])
    np.testing.assert_allclose(target.label(target.index(X)), y, atol=1e-10)
    short, labels = target.sample(300, random_stream(1))
    longer, more = target.sample(4_500, random_stream(1))
    np.testing.assert_array_equal(short, longer[:300])
    np.testing.assert_allclose(labels, more[:300], atol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_a_saved_teacher_is_read_back_exactly(case, tmp_path, monkeypatch):
    target = CompositionalTarget(**case, seed=3)
    path = target.save(tmp_path / "teacher")
    monkeypatch.setattr("solvable.models.compositional.target.draw_directions", None)
    monkeypatch.setattr("solvable.models.compositional.target.random_stream", None)
    monkeypatch.setattr("solvable.teachers.random_features.random_stream", None)
    again = CompositionalTarget.load(path)
    assert again == target
    for mine, theirs in zip(target.sample(50, 1), again.sample(50, 1), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "exactly one"),
        ({"features": 3, "epsilon": 0.5}, "exactly one"),
        ({"features": ()}, "at least one width"),
        ({"features": 56}, "allowed: 1 to 55"),
        ({"features": (3, 7)}, "layer 2 has 7 features, more than the 6"),
        ({"features": (3, 0)}, "features of layer 2"),
        ({"epsilon": -0.5}, "epsilon is -0.5"),
        ({"epsilon": "half"}, "epsilon is 'half'"),
        ({"features": 3, "second_layer": "diag"}, "Did you mean 'diagonal'"),
        ({"features": 3, "first_layer": "random_features"}, "Did you mean 'random-features'"),
        ({"features": 3, "first_layer": "random-features", "degree": 3}, "allowed: 2"),
        ({"features": 30, "first_layer": "random-features", "width": 20}, "allowed: 1 to 20"),
        ({"features": 3, "beta": 0.0}, "beta is 0"),
        ({"features": 3, "decay": -1.0}, "decay"),
        ({"features": 3, "dimension": 1}, "dimension is 1"),
    ],
)
def test_bad_parameters_are_refused_on_construction(change, words):
    with pytest.raises(InvalidParameter, match=words):
        CompositionalTarget(**{"dimension": 10, **change})


def test_bad_requests_are_refused():
    target = CompositionalTarget(dimension=10, features=(4, 2))
    X, _ = target.sample(5, 0)
    with pytest.raises(InvalidParameter, match="layer is 3; allowed: an integer from 1 to 2"):
        target.latent(X, layer=3)
    with pytest.raises(InvalidData, match="allowed: 10, one per input"):
        target.latent(X[:, :4])
    with pytest.raises(DegenerateReadout):
        dataclasses.replace(target, readout=np.square)
