"""Diagnosis of matrices and files: phases of planted spectra, no false power law, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable.diagnose import diagnose_file, diagnose_matrix
from solvable.diagnose.spectrum import COLLAPSED
from solvable.errors import InvalidData, InvalidParameter


def spiked(rng, shape, strengths, noise=1.0):
    p, q = shape
    left = np.linalg.qr(rng.standard_normal((p, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((q, len(strengths))))[0]
    return noise * rng.standard_normal(shape) / q**0.5 + (left * strengths) @ right.T


@pytest.mark.parametrize("shape", [(80, 80), (80, 200)])
def test_pure_noise_is_never_a_power_law(shape):
    rng = np.random.default_rng(0)
    found = [diagnose_matrix(rng.standard_normal(shape)) for _ in range(8)]
    assert all(one.phase != "heavy-tailed" for one in found)
    # Outliers at 1 %: of 8 at most 1 with probability 0.997.
    assert sum(one.phase != "random-like" for one in found) <= 1
    assert all(one.tail is None for one in found if one.phase == "random-like")


def test_planted_features_are_counted():
    found = diagnose_matrix(spiked(np.random.default_rng(1), (100, 300), [4.0, 3.0, 2.0]))
    assert found.phase == "bulk+spikes"
    assert found.bulk.n_outliers == 3
    intervals = found.bulk.spikes.intervals(confidence=0.999)
    for (low, high), strength in zip(intervals, [4.0, 3.0, 2.0], strict=True):
        assert low <= strength <= high


@pytest.mark.parametrize("side", [96, 200])
def test_ten_signals_on_noise_are_features_and_not_one_smooth_law(side):
    strengths = np.linspace(2.6, 1.6, 10)
    found = diagnose_matrix(spiked(np.random.default_rng(9), (side, side), strengths))
    assert found.phase in ("bulk+spikes", "bulk-decay")
    assert len(found.features) == 10
    # The noise of a square matrix of this size has an error of about one percent.
    assert found.noise.value == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("decay", [2.0, 4.0])
def test_steep_power_laws_have_a_likelihood(decay):
    strengths = np.arange(1, 101) ** -decay
    found = diagnose_matrix(spiked(np.random.default_rng(5), (100, 150), strengths, noise=0.0))
    assert found.phase == "heavy-tailed"


def test_values_that_decay_for_ever_are_a_collapse_in_the_end():
    rng = np.random.default_rng(6)
    strengths = np.concatenate([[1.6, 1.4, 1.2], np.exp(-rng.uniform(17, 24, 97))])
    found = diagnose_matrix(spiked(rng, (100, 100), strengths, noise=0.0), precision=2.0**-23)
    assert found.phase == "rank-collapse"
    assert found.zeros == 97
    assert any("single precision" in note for note in found.notes)


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
    "one_row": (np.ones((1, 90)), "1 singular value;"),
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


def test_symmetric_matrix_is_diagnosed_by_its_eigenvalues():
    rng, d = np.random.default_rng(8), 200
    Z = rng.standard_normal((d, d))
    M = (Z + Z.T) / np.sqrt(2 * d)
    M[[0, 1], [0, 1]] += [4.0, 3.0]
    x, V = np.linalg.eigh(M)
    S = (V * np.clip(x - 0.5, 0, None)) @ V.T
    found = diagnose_matrix(((S + S.T) / 2).astype(np.float32), precision=2.0**-23)
    assert (found.symmetric, found.phase, len(found.features)) == (True, "bulk+spikes", 2)
    assert found.noise.low < 1 < found.noise.high
    assert found.shrinkage.low < 0.5 < found.shrinkage.high
    assert found.features[0].strength.low < 4 < found.features[0].strength.high
    assert found.features[0].squared_overlap == pytest.approx(1 - 1 / 16, abs=0.02)
    assert found.features[0].observed == pytest.approx(x[-1] - 0.5, rel=1e-5)
    # Law and atom have the share of the values that are not outliers as their mass.
    mass = np.trapezoid(found.law.density, found.law.x) + found.law.atom
    assert mass == pytest.approx(1 - 2 / d, abs=1e-3)


def test_intervals_edges_and_the_law_belong_together():
    found = diagnose_matrix(spiked(np.random.default_rng(10), (150, 200), [4.0, 2.5]))
    assert found.noise.low < 1 < found.noise.high
    assert found.edges[1] < found.features[1].observed
    mass = np.trapezoid(found.law.density, found.law.x)
    assert mass == pytest.approx(1 - 2 / 150, abs=2e-3)


def test_without_a_bulk_the_exponent_is_that_of_the_tail():
    strengths = np.arange(1, 151) ** -0.8
    found = diagnose_matrix(spiked(np.random.default_rng(11), (150, 180), strengths, noise=0.0))
    assert found.phase == "heavy-tailed"
    assert found.tail.plausible
    assert found.exponent.spectrum.value == found.tail.exponent
    assert found.features == ()


def test_initial_weights_are_compared_and_their_absence_is_said(tmp_path):
    rng = np.random.default_rng(12)
    start = rng.standard_normal((80, 100)) / 10
    learned = start + spiked(rng, (80, 100), [6.0], noise=0.0)
    np.savez(tmp_path / "after.npz", one=learned, other=start, third=start)
    np.savez(tmp_path / "before.npz", one=start, third=start.T)
    rows = {
        row.name: row
        for row in diagnose_file(tmp_path / "after.npz", initial=tmp_path / "before.npz")
    }
    compared = rows["one"].initial
    assert compared.phase == "random-like"
    assert compared.difference.phase == "rank-collapse"
    assert compared.relative_change == pytest.approx(6 / np.linalg.norm(start))
    assert any("no array of this name" in note for note in rows["other"].notes)
    assert any("their shape" in note for note in rows["third"].notes)
    assert rows["other"].initial is None
    with pytest.raises(InvalidData, match="same shape"):
        diagnose_matrix(learned, initial=start.T)


def test_single_large_entries_are_no_features():
    rng = np.random.default_rng(13)
    sparse = rng.standard_normal((80, 100)) / 10
    # Each entry is below the edge of the noise, and all of one row or two rows are beyond it.
    sparse[rng.integers(0, 80, 40), rng.integers(0, 100, 40)] = 1.5
    found = diagnose_matrix(sparse)
    assert (found.phase, found.features, found.outliers) == ("random-like", (), ())
    assert found.control.tested > found.control.confirmed == 0
    assert "under random signs has values as large" in found.reason
    structured = diagnose_matrix(spiked(rng, (80, 100), [4.0]))
    assert (structured.control.tested, structured.control.confirmed) == (1, 1)


def test_bfloat16_noise_has_no_zeros():
    # The smallest singular values of a square matrix are below the rounding of its entries.
    W = np.random.default_rng(14).standard_normal((400, 400)).astype(np.float32)
    short = (W.view(np.uint32) >> 16 << 16).view(np.float32)
    found = diagnose_matrix(short, precision=2.0**-7)
    assert (found.phase, found.zeros) == ("random-like", 0)


@pytest.mark.slow
def test_result_does_not_depend_on_the_number_of_workers(tmp_path):
    rng = np.random.default_rng(15)
    np.savez(tmp_path / "w.npz", **{f"m{k}": rng.standard_normal((50, 60)) for k in range(4)})
    rows = [list(diagnose_file(tmp_path / "w.npz", workers=count)) for count in (1, 2)]
    assert json.dumps([one.to_dict() for one in rows[0]]) == json.dumps(
        [one.to_dict() for one in rows[1]]
    )
    with pytest.raises(InvalidParameter, match="workers"):
        next(diagnose_file(tmp_path / "w.npz", workers=0))


@pytest.mark.parametrize("kind", ["fitted", "refused"])
def test_rows_are_plain_data(kind):
    values = np.eye(40, 50) if kind == "refused" else np.random.default_rng(16).random((40, 50))
    found = diagnose_matrix(values - 0.5 * (kind == "fitted"))
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["shape"] == [40, 50]
    assert found.to_dict(arrays=False)["values"] is None
