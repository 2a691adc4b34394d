"""Input spectra against known populations, and data without a measurable spectrum."""

import numpy as np
import pytest
from scipy.stats import t as student

from solvable.data import from_arrays, load
from solvable.errors import InvalidData
from solvable.hermite import hermite_polynomials
from solvable.scale.networks_of_data.input_spectrum import measure_inputs
from solvable.scale.networks_of_data.input_summary import InputSpectrum


def measured(
    variances, n, direction=None, degree=1, noise=0.5, seed=0
) -> tuple[InputSpectrum, float]:
    """Measure Gaussian inputs with a target along a direction; return also the true strength."""
    rng = np.random.default_rng(seed)
    d = len(variances)
    w = np.eye(d)[d // 3] if direction is None else direction
    X = rng.normal(size=(n, d)) * np.sqrt(variances) + 5
    z = (X - 5) @ w / np.sqrt(w**2 @ variances)
    y = hermite_polynomials(z, degree)[degree] + noise * rng.normal(size=n)
    true = w**2 @ variances / (w @ w) / variances.sum()
    return measure_inputs(from_arrays(X, y)), float(true)


def test_strength_of_a_direction_within_its_error():
    ranks = np.arange(1, 71.0)
    scores = []
    for seed in range(5):
        w = np.random.default_rng(100 + seed).normal(size=70)
        found, true = measured(ranks**-1.4, 2500, w, seed=seed)
        (feature,) = found.features
        scores.append(np.log(feature.strength / true) / feature.error)
        # The kernel value has one more power of the variances than the strength.
        aligned = (w**2 @ ranks**-2.8) / (w**2 @ ranks**-1.4) / np.sum(ranks**-1.4)
        assert feature.alignment == pytest.approx(aligned, rel=0.25)
    # Errors of five parts have four degrees of freedom.
    assert np.abs(scores).max() < student(4).ppf(1 - 0.001 / 10)
    assert np.abs(np.median(scores)) < 2


def test_white_inputs_have_the_default_exponent():
    found, true = measured(np.full(80, 3.0), 4000)
    assert true == 1 / 80
    assert found.linear_exponent() == -1
    assert found.effective_dimension == pytest.approx(80, rel=0.01)
    assert found.linear_exponent(6400) == pytest.approx(-0.5, abs=0.011)
    # With 120 columns, half of them constant, the direction has the share 1/60.
    X = np.random.default_rng(1).normal(size=(3000, 60))
    wide = np.hstack([X, np.ones((3000, 60))])
    again = measure_inputs(from_arrays(wide, X[:, 0]))
    assert again.n_columns == 60
    assert again.effective_dimension == pytest.approx(60, rel=0.02)
    assert again.strength(2) == pytest.approx(1 / 60, rel=0.1)


def test_effective_dimension_is_free_of_few_rows():
    variances = np.exp(-np.arange(200) / 30)
    true = variances.sum() ** 2 / np.sum(variances**2)
    found = [measured(variances, 250, seed=seed)[0].effective_dimension for seed in range(6)]
    error = np.std(found, ddof=1) / np.sqrt(6)
    assert abs(np.mean(found) - true) < 4 * error + 0.01 * true
    # The uncorrected estimate is a quarter too low   (scale 18).
    assert np.mean(found) > 1.15 / (1 / true + 1 / 250)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_degree_of_the_target(degree):
    found, _ = measured(np.array([4.0, 3, 2, 1, 1, 1, 1, 1]), 3000, degree=degree, noise=0.3)
    assert found.degree == degree
    assert found.degrees[degree - 1] == pytest.approx(1 / 1.09, abs=0.05)
    assert max((0, *found.degrees[: degree - 1])) < 0.05
    if degree > 1:
        # A linear fit has no direction; the strength of equal directions is used.
        assert found.strength(2) == pytest.approx(1 / found.effective_dimension)
        assert "no linear part" in " ".join(found.words())


def test_classes_have_directions_of_their_own():
    found = measure_inputs(load("digits"))
    assert [feature.label for feature in found.features] == [str(k) for k in range(10)]
    assert found.n_columns == 61
    assert 12 < found.effective_dimension < 15
    two = measure_inputs(load("digits:even-odd"))
    assert [feature.label for feature in two.features] == ["odd"]
    # Compare with the normal equations.
    data = load("digits:even-odd")
    X, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
    S = X.T @ X / len(X)
    aligned = np.sum((X.T @ y / len(X)) ** 2) / np.trace(S)
    linear = y @ X @ np.linalg.lstsq(X, y, rcond=None)[0] / len(X)
    assert two.features[0].alignment == pytest.approx(aligned / linear, rel=0.02)


def test_streams_and_arrays_agree_and_seeds_decide():
    data = load("wine")
    some, again = (measure_inputs(from_arrays(data.X, data.y)) for _ in range(2))
    assert some.to_dict() == again.to_dict()
    assert "standardised columns" in " ".join(measure_inputs(data).words())


def test_large_data_are_thinned(monkeypatch):
    from solvable.scale.networks_of_data import input_spectrum as measuring

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 40))
    stream = from_arrays(X, X[:, 0])
    monkeypatch.setattr(measuring, "WORK", 4000 * 40**2)
    found = measure_inputs(stream)
    assert 3600 < found.n_rows < 4400
    assert "were drawn" in " ".join(found.words())
    assert found.strength(2) == pytest.approx(1 / 40, rel=0.1)


@pytest.mark.parametrize(("change", "part"), [
    (lambda X, y: X.__setitem__((3, 2), np.nan), "missing or infinite"),
    (lambda X, y: X.__setitem__((3, 2), np.inf), "missing or infinite"),
    (lambda X, y: y.__setitem__(5, np.nan), "missing or infinite"),
    (lambda X, y: y.__setitem__(slice(None), 2.0), "does not vary"),
    (lambda X, y: X.__setitem__((slice(None), slice(1, None)), 7.0), "fewer than 2 columns"),
])  # fmt: skip
def test_bad_data_are_refused(change, part):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    change(X, y)
    with pytest.raises(InvalidData, match=part) as caught:
        measure_inputs(from_arrays(X, y))
    assert "\n" not in str(caught.value)


def test_few_rows_and_many_columns_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidData, match="at least 20"):
        measure_inputs(from_arrays(rng.normal(size=(10, 5)), rng.normal(size=10)))
    with pytest.raises(InvalidData, match="columns; allowed"):
        measure_inputs(from_arrays(np.zeros((30, 5000)), np.zeros(30)))
