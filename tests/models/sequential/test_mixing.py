"""Mixing of neighbouring features against random matrices, simulated moments and limits."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.system import system
from solvable.moment_spectrum.neighbour_mixing import neighbour_mixing


def test_mixing_of_simulated_neighbours() -> None:
    D, p, ratio, repeats = 120, 4, 400, 10
    rng = np.random.default_rng(4)
    n = ratio * D
    weights = np.arange(1.0, p + 1) ** -0.8
    weights /= np.linalg.norm(weights)
    mixed = np.zeros(p - 1)
    for _ in range(repeats):
        F = rng.standard_normal((n, D), dtype=np.float32)
        h2 = F[:, :p].astype(float) ** 2
        y = (h2 - 1) @ weights / np.sqrt(2)
        matrix = (F.T * y.astype(np.float32)) @ F / n
        vectors = np.linalg.eigh(matrix)[1][:, ::-1]
        # Both directions of a pair estimate the same second moment.
        square = vectors[:p, :p] ** 2
        mixed += (np.diag(square, 1) + np.diag(square, -1)) / 2 / repeats
    draws = rng.standard_normal((400_000, p)) ** 2
    T = (draws - 1) @ weights / np.sqrt(2)
    products = np.array([np.mean(T**2 * draws[:, i] * draws[:, i + 1]) for i in range(p - 1)])
    predicted = neighbour_mixing(heights=np.sqrt(2) * weights, products=products, samples=n)
    # A squared Gaussian over 10 repeats has a relative standard error of sqrt(2 / 10) = 0.45.
    np.testing.assert_allclose(np.log(mixed / predicted), 0, atol=np.log(1 + 3 * 0.45))
    assert abs(np.log(mixed / predicted).mean()) < 3 * 0.45 / np.sqrt(p - 1)


def test_mixing_at_several_sizes_falls_as_one_over_n() -> None:
    sizes = np.array([1e5, 1e6])
    found = neighbour_mixing(heights=np.array([0.9, 0.4, -0.3]), products=np.ones(2), samples=sizes)
    assert found.shape == (2, 2)
    np.testing.assert_allclose(found[0], 10 * found[1], rtol=1e-3)
    np.testing.assert_allclose(found[1], [1 / (1e6 * 0.25), 1 / (1e6 * 0.49)], rtol=1e-3)


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.2, 0.5])
def test_two_levels_are_a_spiked_random_matrix(gap):
    """Two spikes on a semicircle with gaps from zero to above the noise."""
    size, scale, repeats = 160, 0.5, 300
    heights = np.array([1.4 + gap, 1.4])
    stream = random_stream("two levels", round(100 * gap))
    mixed, overlap = np.zeros(repeats), 0.0
    for k in range(repeats):
        noise = stream.standard_normal((size, size)) * scale / np.sqrt(2 * size)
        matrix = noise + noise.T
        matrix[[0, 1], [0, 1]] += heights
        square = np.linalg.eigh(matrix)[1][:2, :-3:-1] ** 2
        if np.trace(square) < np.trace(square[:, ::-1]):
            square = square[:, ::-1]
        mixed[k] = (square[0, 1] + square[1, 0]) / 2
        overlap += square.sum(axis=1) / repeats
    products = np.full(1, scale**2)
    found = neighbour_mixing(
        heights=heights, products=products, samples=size, squared_overlap=overlap
    )
    error = mixed.std() / np.sqrt(repeats)
    assert found[0] == pytest.approx(mixed.mean(), abs=3 * error + 0.003)


def test_mixing_never_exceeds_that_of_equal_features():
    gaps = np.geomspace(1e-6, 10, 40)
    found = [
        neighbour_mixing(heights=np.array([1 + gap, 1]), products=np.ones(1), samples=2_000.0)[0]
        for gap in gaps
    ]
    assert np.all(np.diff(found) < 0)
    assert found[0] == pytest.approx(0.5 - 1 / np.pi, abs=1e-4)
    assert found[-1] == pytest.approx(1 / (2_000 * 10**2), rel=1e-3)


def test_no_mixing_is_predicted_for_three_equal_or_for_lost_features():
    products, n = np.ones(2), 10_000.0
    close = neighbour_mixing(heights=np.array([0.5, 0.495, 0.49]), products=products, samples=n)
    assert np.isnan(close).all()
    # A third feature on the other side of the spectrum does not matter.
    apart = neighbour_mixing(heights=np.array([0.5, 0.495, -0.49]), products=products, samples=n)
    assert 0.1 < apart[0] < 0.182
    assert apart[1] < 2e-4
    lost = neighbour_mixing(
        heights=np.array([0.5, 0.3, 0.02]),
        products=products,
        samples=n,
        squared_overlap=np.array([0.9, 0.7, 0.0]),
    )
    assert np.isfinite(lost).tolist() == [True, False]


@pytest.mark.parametrize(
    ("decay", "samples"), [(0.06, 4_000), (0.2, 1_500), (0.5, 600)], ids=["equal", "close", "apart"]
)
def test_the_system_is_predicted_where_neighbours_are_close(decay, samples):
    parameters = SequentialParameters(
        inputs="gaussian", degree=1, dimension=45, features=2, decay=decay, signs="positive",
        samples=samples, label_map="clip", correction="none", test_samples=100,
    )  # fmt: skip
    (expected,) = system.predict(parameters)["neighbour_mixing"]
    records = [system.measure(parameters, random_stream("mixing", k)) for k in range(60)]
    values = np.array([record["neighbour_mixing"][0] for record in records])
    error = values.std(ddof=1) / np.sqrt(values.size)
    assert values.mean() == pytest.approx(expected, abs=2.6 * error + 0.1 * expected)


def test_bad_mixing_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="shape"):
        neighbour_mixing(heights=np.ones(3), products=np.ones(3), samples=10)
    with pytest.raises(InvalidParameter, match="above 0"):
        neighbour_mixing(heights=np.array([1.0, 0.5]), products=np.ones(1), samples=0)


@pytest.mark.slow
def test_directions_that_are_not_orthogonal_share_eigenvectors() -> None:
    setting = {
        "dimension": 20,
        "features": 3,
        "decay": 0.8,
        "inputs": "gaussian",
        "signs": "positive",
        "samples": 128 * 210,
        "test_samples": 50,
    }
    parameters = SequentialParameters(first_layer="random", **setting)
    runs = [system.measure(parameters, random_stream("random layer", k)) for k in range(32)]
    prediction = system.predict(parameters)
    by_noise = system.predict(SequentialParameters(**setting))
    for name in ("loss_inside_span", "neighbour_mixing"):
        values = np.array([run[name] for run in runs], dtype=float)
        error = values.std(axis=0, ddof=1) / np.sqrt(len(runs))
        assert (np.abs(values.mean(axis=0) - prediction[name]) < 3 * error + 0.01).all()
        # The mixing by noise alone is several times smaller.
        assert values[:, -1].mean() > by_noise[name][-1] + 3 * error[-1]
