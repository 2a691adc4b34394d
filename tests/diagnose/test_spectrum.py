"""The checked spectrum of a matrix: units, zeros, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.diagnose import diagnose_matrix
from solvable.diagnose.spectrum import in_unit, read_spectrum
from solvable.errors import InvalidData


def spiked(rng, shape, strengths, noise=1.0):
    p, q = shape
    left = np.linalg.qr(rng.standard_normal((p, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((q, len(strengths))))[0]
    return noise * rng.standard_normal(shape) / q**0.5 + (left * strengths) @ right.T


def test_lengths_follow_the_unit_and_shares_do_not():
    matrix = spiked(np.random.default_rng(3), (60, 80), [4.0])
    fit = read_spectrum(matrix, 2.0**-52).fit(0)
    wide = in_unit(fit, 3.0)
    assert (wide.noise, wide.cut, wide.edge) == (3 * fit.noise, 3 * fit.cut, 3 * fit.edge)
    np.testing.assert_allclose(wide.spikes.strengths, 3 * fit.spikes.strengths)
    np.testing.assert_array_equal(wide.spikes.short_overlap, fit.spikes.short_overlap)
    assert wide.p_value == fit.p_value


def test_a_few_zeros_to_rounding_are_an_atom_only_with_a_gap():
    rng = np.random.default_rng(5)
    thin = rng.standard_normal((60, 40)) @ rng.standard_normal((40, 70))
    assert read_spectrum(thin.astype(np.float32), 2.0**-23).zeros == 20
    square = rng.standard_normal((300, 300)).astype(np.float32)
    assert read_spectrum(square, 2.0**-7).zeros == 0
    with pytest.raises(InvalidData, match="above 20000"):
        read_spectrum(np.broadcast_to(np.float32(1.0), (20_001, 20_001)), 0.0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.eye(60), "orthogonal"),
        (np.diag(np.r_[np.arange(1.0, 11), np.zeros(50)]), "no bulk"),
    ],
)
def test_matrices_that_have_no_law_say_why(values, words):
    found = diagnose_matrix(values)
    assert not found.fitted
    assert words in found.reason


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_extreme_units_are_plain_data(scale):
    weights = np.random.default_rng(6).standard_normal((40, 50))
    found = diagnose_matrix(scale * weights, initial=2 * scale * weights)
    assert found.phase == "random-like"
    assert found.initial.relative_change == pytest.approx(0.5)
    assert found.noise.value == pytest.approx(scale * 50**0.5, rel=0.1)
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("scale", [1e-320, 1e-310, 1e-303, 1e303])
def test_entries_beyond_the_range_of_arithmetic_are_refused_without_a_warning(scale):
    noise = np.random.default_rng(7).uniform(0.1, 1, (40, 50))
    found = diagnose_matrix(scale * noise)  # A warning of NumPy is an error here.
    assert not found.fitted
    assert "out of range; allowed: 1e-301 to 1e+301" in found.reason
