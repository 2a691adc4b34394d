"""Acceptance tests of the filters of arXiv:2605.13612 on Gaussian inputs.

Equations in comments are those of docs/derivations/lofi.md.
"""

import math

import numpy as np
import pytest

from solvable.models.lofi.predict import with_other_vectors
from solvable.models.lofi.subspace_channel import SubspaceChannel
from solvable.models.lofi.target import GaussianChannel
from solvable.operators import HermiteFeatures, MomentOperator, leading_eigenpairs
from solvable.spectra.anisotropic import direction_profile
from solvable.spectra.label_emergence import balanced_emergence_ratio, emergence_ratio
from solvable.spectra.label_weighted import label_weighted_spectrum


def test_emergence_in_closed_form():
    # Equations 7 and 8, lofi
    law = GaussianChannel(400).law()
    assert emergence_ratio(law, dimension=400)[0] == pytest.approx(1.7100, abs=1e-3)
    assert law.weak_recovery_ratio[0] == pytest.approx(1.3605, abs=1e-3)
    assert balanced_emergence_ratio(law.strengths[0]) == pytest.approx(1.7100, abs=1e-3)


def spectra(ratio, seeds=8, dimension=400):
    rows = []
    for seed in range(seeds):
        target = GaussianChannel(dimension, seed=seed)
        X, y = target.sample(round(ratio * dimension), seed)
        operator = MomentOperator(X, y, HermiteFeatures(1, dimension))
        pairs = leading_eigenpairs(operator, 2, 1, rng=seed, route="dense")
        values = pairs.values + y.mean()
        rows.append([*values, (target.direction @ pairs.vectors[:, 0]) ** 2])
    return np.array(rows)


@pytest.mark.parametrize(
    ("ratio", "place", "place_tolerance", "overlap", "overlap_tolerance", "edge"),
    [(5.0, 1.135, 0.03, 0.648, 0.05, 0.969), (10.0, 0.986, 0.03, 0.840, 0.02, 0.661)],
)
def test_emergence_simulated(ratio, place, place_tolerance, overlap, overlap_tolerance, edge):
    # Equations 5 and 6, lofi. Tolerances: three standard errors of 8 seeds and the bias at d = 400.
    found = label_weighted_spectrum(GaussianChannel(400).law(), ratio=ratio)
    assert found.eigenvalues[0] == pytest.approx(place, abs=1e-3)
    assert found.squared_overlap[0] == pytest.approx(overlap, abs=1e-3)
    assert found.bulk_edges[1] == pytest.approx(edge, abs=1e-3)
    mean = spectra(ratio).mean(axis=0)
    assert mean[0] == pytest.approx(place, abs=place_tolerance)
    assert mean[3] == pytest.approx(overlap, abs=overlap_tolerance)
    # The second and the lowest eigenvalues are at the two edges.
    assert mean[1] == pytest.approx(edge, abs=0.04)
    assert mean[2] == pytest.approx(-edge, abs=0.04)


def test_nothing_emerges_below_the_threshold():
    # alpha = 1 is below alpha_c (equation 7, lofi).
    assert spectra(1.0)[:, 3].mean() < 0.1
    assert not label_weighted_spectrum(GaussianChannel(400).law(), ratio=1.0).recovered[0]


def by_modulus(X, y, k):
    operator = MomentOperator(X, y, HermiteFeatures(1, X.shape[1]))
    pairs = leading_eigenpairs(operator, k, k, rng=0, route="dense")
    values = pairs.values + y.mean()
    kept = np.argsort(-np.abs(values))[:k]
    return values[kept], pairs.vectors[:, kept]


def cosines(first, second):
    return np.linalg.svd(first.T @ second, compute_uv=False)


@pytest.mark.parametrize("factor", [-1.0, 3.0, -0.25])
def test_sign_and_scale_of_the_labels(factor):
    # Equation 1, lofi, for the filter and for the theory
    X, y = SubspaceChannel(40).sample(1_200, 0)
    values, vectors = by_modulus(X, y, 4)
    other, moved = by_modulus(X, factor * y, 4)
    np.testing.assert_allclose(np.sort(other), np.sort(factor * values), atol=1e-10)
    np.testing.assert_allclose(cosines(vectors, moved), 1, atol=1e-10)
    law = SubspaceChannel(40).law()
    found, mirrored = (
        label_weighted_spectrum(each, ratio=30.0, dimension=40) for each in (law, law.mirrored())
    )
    np.testing.assert_allclose(mirrored.eigenvalues, -found.eigenvalues, atol=1e-10)
    np.testing.assert_allclose(mirrored.squared_overlap, found.squared_overlap, atol=1e-10)


@pytest.mark.parametrize("factor", [-1.0, 4.0])
def test_sign_and_scale_of_the_labels_in_the_learner(factor):
    # Equation 1, lofi, for a lifted filter of the estimator, which standardises real labels
    from solvable.learners import Block, NeuralLoFiTransformer

    X, y = SubspaceChannel(30).sample(300, 0)
    blocks = [Block(width=200), Block(reduce=6, width=None)]
    labels = y + 0.1 * np.sin(X[:, 0])
    one, other = (
        NeuralLoFiTransformer(blocks, scaling="none", random_state=0).fit(X, each)
        for each in (labels, factor * labels)
    )
    sign = np.sign(factor)
    np.testing.assert_allclose(
        other.filters_[0].eigenvalues, sign * one.filters_[0].eigenvalues, atol=1e-10
    )
    first, second = (np.linalg.qr(each.transform(X))[0] for each in (one, other))
    np.testing.assert_allclose(cosines(first, second), 1, atol=1e-10)


def best(X, y, direction):
    values, vectors = np.linalg.eigh((X * y[:, None]).T @ X / len(X))
    squared = (direction @ vectors) ** 2
    k = int(np.argmax(squared))
    return squared[k], int(np.sum(np.abs(values) > abs(values[k])))


def test_residual_dimension():
    # Equation 19, lofi: twenty directions of variance 10 among 320, n = 3000, 6 seeds
    rows = []
    for seed in range(6):
        target = GaussianChannel(320, nuisance=20, nuisance_variance=10.0, seed=seed)
        X, y = target.sample(3_000, seed)
        raw = best(X, y, target.direction)
        deflated = best(X[:, 20:], y, target.direction[20:])
        rows.append([*raw, *deflated])
    raw_overlap, raw_rank, overlap, rank = np.array(rows).T
    assert raw_overlap.mean() < 0.5
    assert overlap.mean() > 0.75
    assert not rank.any()
    variances = np.concatenate([np.full(20, 10.0), np.ones(299)])
    law = GaussianChannel(320).law()
    hidden, alone = (
        direction_profile(law, variances=one, direction_variance=1.0, n_samples=3_000)
        for one in (variances, variances[20:])
    )
    error = raw_overlap.std(ddof=1) / np.sqrt(6)
    assert hidden.best_squared_overlap == pytest.approx(raw_overlap.mean(), abs=3 * error + 0.03)
    assert hidden.best_rank == pytest.approx(raw_rank.mean(), abs=3)
    assert alone.best_squared_overlap == pytest.approx(overlap.mean(), abs=0.02)


def subspace_run(seed, n=2_000, networks=True):
    from solvable.learners import Block, NeuralLoFiClassifier, network_blocks

    target = SubspaceChannel(60, seed=seed)
    X, y = target.sample(n, seed)
    _, V = by_modulus(X, y, 4)
    overlap = np.sum((target.directions.T @ V) ** 2) / 4
    X_test, y_test = target.sample(2_000, 10_000 + seed)
    errors = []
    for blocks in (
        [Block(reduce=4, width=math.inf)],
        *((network_blocks(1), network_blocks(3)) if networks else ()),
    ):
        model = NeuralLoFiClassifier(blocks, scaling="none", random_state=0).fit(X, y)
        errors.append(np.mean(model.predict(X_test) != y_test))
    return overlap, errors


def subspace_overlap(law, samples):
    spectrum = label_weighted_spectrum(law, ratio=samples / 60, dimension=60)
    return with_other_vectors(spectrum.squared_overlap, 60).mean()


def test_subspace_target_with_fewer_samples():
    # A third of the samples of the slow test below: prediction (equation 24, lofi) and a smaller gap
    found = [subspace_run(seed, 700) for seed in range(2)]
    law = SubspaceChannel(60).law()
    predicted = subspace_overlap(law, 700)
    overlaps, errors = np.array([one[0] for one in found]), np.array([one[1] for one in found])
    assert overlaps.mean() == pytest.approx(predicted, abs=0.12)
    assert errors[:, 0].mean() < errors[:, 1:].mean(axis=0).min() - 0.05


@pytest.mark.slow
def test_subspace_target():
    # Equations 23 to 26, lofi: d = 60, n = 2000, 3 seeds
    found = [subspace_run(seed) for seed in range(3)]
    overlaps, errors = np.array([one[0] for one in found]), np.array([one[1] for one in found])
    assert overlaps.mean() >= 0.83
    law = SubspaceChannel(60).law()
    predicted = subspace_overlap(law, 2_000)
    assert overlaps.mean() == pytest.approx(predicted, abs=0.04)
    assert errors[:, 0].mean() <= errors[:, 1:].mean(axis=0).min() - 0.10
