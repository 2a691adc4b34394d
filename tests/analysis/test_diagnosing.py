"""Diagnosis of matrices and files: phases of planted spectra, no false power law, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable.analysis.diagnosing import diagnose_file, diagnose_matrix
from solvable.spectra.phase_likelihood import COLLAPSED


def spiked(rng, shape, strengths, noise=1.0):
    p, q = shape
    left = np.linalg.qr(rng.standard_normal((p, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((q, len(strengths))))[0]
    return noise * rng.standard_normal(shape) / q**0.5 + (left * strengths) @ right.T


@pytest.mark.parametrize("shape", [(80, 80), (80, 200)])
def test_pure_noise_is_never_a_power_law(shape):
    rng = np.random.default_rng(0)
    found = [diagnose_matrix(rng.standard_normal(shape)) for _ in range(20)]
    assert all(one.phase != "heavy-tailed" for one in found)
    # Outliers at 1 %, a bulk refuted at 2 %: of 20 at most 4 with probability 0.9997.
    assert sum(one.phase != "random-like" for one in found) <= 4
    assert all(one.tail is None for one in found if one.phase == "random-like")


def test_planted_features_are_counted():
    found = diagnose_matrix(spiked(np.random.default_rng(1), (100, 300), [4.0, 3.0, 2.0]))
    assert found.phase == "bulk+spikes"
    assert found.bulk.n_outliers == 3
    intervals = found.bulk.spikes.intervals(confidence=0.999)
    for (low, high), strength in zip(intervals, [4.0, 3.0, 2.0], strict=True):
        assert low <= strength <= high


def test_power_law_without_noise_is_heavy_tailed_with_its_exponent():
    strengths = np.arange(1, 201) ** -0.8
    found = diagnose_matrix(spiked(np.random.default_rng(2), (200, 250), strengths, noise=0.0))
    assert found.phase == "heavy-tailed"
    assert found.tail.interval[0] <= 1 + 1 / 1.6 <= found.tail.interval[1]


def test_product_of_thin_matrices_is_a_collapse_of_the_rank():
    rng = np.random.default_rng(3)
    thin = rng.standard_normal((100, 5)) @ rng.standard_normal((5, 150))
    found = diagnose_matrix(thin.astype(np.float16), precision=2.0**-10)
    assert found.phase == "rank-collapse"
    assert found.zeros == 95 >= COLLAPSED * 100


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
def test_storage_type_does_not_change_the_diagnosis(dtype):
    W = 1000 * spiked(np.random.default_rng(4), (60, 120), [4.0])
    whole, stored = diagnose_matrix(W), diagnose_matrix(W.astype(dtype))
    assert (stored.phase, stored.bulk.n_outliers) == (whole.phase, whole.bulk.n_outliers)
    assert stored.bulk.noise == pytest.approx(whole.bulk.noise, rel=0.01)


def test_transposed_and_scaled_matrix_has_the_same_diagnosis():
    W = spiked(np.random.default_rng(5), (60, 90), [3.0])
    one, other = diagnose_matrix(W), diagnose_matrix(1e-200 * W.T)
    assert (one.phase, one.bulk.n_outliers) == (other.phase, other.bulk.n_outliers)
    assert other.bulk.noise == pytest.approx(1e-200 * one.bulk.noise, rel=1e-4)


BAD = {
    "empty": (np.zeros((0, 5)), "empty"),
    "one_row": (np.ones((1, 90)), "1 singular values"),
    "short": (np.random.default_rng(0).standard_normal((10, 90)), "at least 30"),
    "zero": (np.zeros((40, 50)), "zero"),
    "constant": (np.full((40, 50), 3.0), "rank one"),
    "not_finite": (np.full((40, 50), np.nan), "not finite"),
    "infinite": (np.where(np.eye(40) > 0, np.inf, 1.0), "40 of 1600"),
    "vector": (np.ones(50), "no spectrum"),
    "scalar": (np.array(2.0), "no spectrum"),
    "complex": (np.ones((40, 40), dtype=complex), "real numbers"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_fitted_says_why(kind):
    values, words = BAD[kind]
    found = diagnose_matrix(values)
    assert not found.fitted
    assert words in found.reason


def test_a_file_with_bad_arrays_has_a_row_for_each(tmp_path):
    arrays = {name: values for name, (values, _) in BAD.items()}
    arrays["fine"] = np.random.default_rng(6).standard_normal((50, 60)).astype(np.float32)
    arrays["kernel"] = np.random.default_rng(7).standard_normal((40, 8, 3, 3)).astype(np.float16)
    np.savez(tmp_path / "w.npz", **arrays)
    rows = {one.name: one for one in diagnose_file(tmp_path / "w.npz")}
    assert rows.keys() == arrays.keys()
    assert {name for name, one in rows.items() if one.fitted} == {"fine", "kernel"}
    assert any("joined" in note for note in rows["kernel"].notes)
    arrays.pop("complex")
    save_file(arrays, tmp_path / "w.safetensors")
    again = {one.name: one for one in diagnose_file(tmp_path / "w.safetensors")}
    assert {name: one.phase for name, one in again.items()} == {
        name: rows[name].phase for name in again
    }


def test_rank_one_that_is_not_constant_is_a_collapse():
    found = diagnose_matrix(np.outer(np.arange(1.0, 41), np.arange(1.0, 51)))
    assert (found.phase, found.zeros) == ("rank-collapse", 39)
