"""The second spectral step and the directions it starts from: whole learners, random matrices."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.compositional.learned_directions import (
    learned_directions,
    population_background,
)
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.system import system
from solvable.models.compositional.upper_layers import (
    draw_target,
    rotated_basis,
    rotated_directions,
)
from solvable.operators import HermiteFeatures, MomentOperator


def orthonormal(size, columns, key):
    return np.linalg.qr(random_stream("columns", key).standard_normal((size, columns)))[0]


def draw(truth, squared_overlap, **settings):
    p = truth.shape[1]
    given = {
        "signs": np.ones(p),
        "noise": np.full(p, 1e-4),
        "background": None,
        "draws": 3,
        "rng": random_stream("learned"),
    }
    return learned_directions(truth, squared_overlap=squared_overlap, **given | settings)


@pytest.mark.parametrize("background", [False, True])
def test_directions_have_unit_length_and_the_given_overlap(background):
    d, overlap = 14, np.array([0.95, 0.6, 0.0, 1.0])
    truth = orthonormal(d * (d + 1) // 2, 4, "overlap")
    heights = np.array([0.4, 0.3, 0.2, 0.1])
    apply = population_background(truth, heights, d) if background else None
    columns = draw(truth, overlap, background=apply)
    assert columns.shape == (3, 105, 4)
    np.testing.assert_allclose(np.linalg.norm(columns, axis=1), 1, atol=1e-9)
    inside = np.einsum("di,ndj->nij", truth, columns)
    np.testing.assert_allclose(
        inside, np.broadcast_to(np.diag(np.sqrt(overlap)), (3, 4, 4)), atol=1e-9
    )


def test_the_background_is_that_of_the_measured_operator():
    target = draw_target(
        CompositionalParameters(dimension=12, features=3, second_layer="diagonal", decay=0.6),
        random_stream("background"),
    )
    X, y = target.sample(400_000, random_stream("background rows"), dtype=np.float32)
    operator = MomentOperator(X, y, HermiteFeatures(2, 12), correction="wick").dense()
    truth = target.directions
    heights = np.diag(truth.T @ operator @ truth)
    predicted = population_background(truth, heights, 12)(np.eye(78))
    outside = np.eye(78) - truth @ truth.T
    predicted, measured = predicted @ outside, outside @ operator @ outside
    # The noise of 400,000 rows has D E[T^2] / n = 2e-4 per row against 8 / d^2 = 0.05.
    slope = np.sum(predicted * measured) / np.sum(predicted**2)
    assert slope == pytest.approx(1, abs=0.1)
    assert np.sum((measured - slope * predicted) ** 2) < 0.15 * np.sum(measured**2)


@pytest.mark.parametrize("height", [0.0, 1.6])
def test_directions_are_tilted_as_eigenvectors_of_a_random_matrix_are(height):
    """A spike, or none, on a few large eigenvalues and a semicircle: what its eigenvector holds."""
    size, top, scale = 400, np.array([1.5, 1.2, -1.5]), 0.5
    fixed = np.zeros(size)
    fixed[1:4] = top
    stream = random_stream("random matrix")
    truth = np.eye(size)[:, :1]

    def eigenvector():
        noise = stream.standard_normal((size, size)) * scale / np.sqrt(2 * size)
        matrix = np.diag(fixed) + height * truth @ truth.T + noise + noise.T
        # Without a spike the first is what the largest value of the background has become.
        return np.linalg.eigh(matrix)[1][:, -1] ** 2

    simulated = np.mean([eigenvector() for _ in range(12)], axis=0)
    columns = draw(
        truth,
        simulated[:1] if height else np.zeros(1),
        noise=np.full(1, scale**2 / size),
        background=lambda columns: fixed[:, None] * columns,
        draws=200,
    )
    predicted = np.mean(columns[:, :, 0] ** 2, axis=0)
    # A spike close above the background mixes with its largest value as both fluctuate.
    np.testing.assert_allclose(predicted[1:4], simulated[1:4], atol=0.08)


def test_products_of_features_hold_what_is_measured_of_them():
    target = draw_target(
        CompositionalParameters(dimension=10, layers=4, features=3, teacher=1),
        random_stream("products"),
    )
    truth = rotated_directions(target, rotated_basis(CompositionalParameters(features=3)))
    matrix = orthonormal(55, 55, "moment") * np.linspace(-1, 1, 55)
    matrix = matrix + matrix.T
    apply = population_background(truth, np.ones(3), 10, lambda columns: matrix @ columns)
    features = HermiteFeatures(2, 10)
    M = features.to_symmetric(truth)
    product = features.from_symmetric(M[:1] @ M[1:2] + M[1:2] @ M[:1])
    product -= truth @ (truth.T @ product)
    assert float((product.T @ apply(product)).item()) == pytest.approx(
        float((product.T @ matrix @ product).item()), rel=1e-6
    )


def test_the_learner_is_predicted_where_a_feature_is_lost():
    """Random directions in place of the lost one would give 0.5 and an error of 0.6."""
    parameters = CompositionalParameters(
        dimension=20, layers=4, features=3, teacher=1, samples=20_000
    )
    predicted = system.predict(parameters)
    assert predicted["squared_overlap"][2] < 0.1
    records = [system.measure(parameters, random_stream("whole", seed)) for seed in range(12)]
    for name, within in (("inner_squared_overlap", 0.1), ("normalised_mse", 0.1)):
        values = np.array([record[name] for record in records]).ravel()
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        expected = np.ravel(predicted[name])[0]
        # The prediction is a mean of 16 draws that scatter as much as those here.
        assert values.mean() == pytest.approx(expected, abs=within + 2 * error), name
