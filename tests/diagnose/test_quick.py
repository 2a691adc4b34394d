"""Quick numbers of matrices: equal to those of the decomposition and of the whole diagnosis."""

from __future__ import annotations

import time

import numpy as np
import pytest

from solvable.diagnose import diagnose_matrix, quick_rows


def planted(shape, strengths, seed=0):
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((n, len(strengths))))[0] for n in shape)
    return rng.standard_normal(shape) / max(shape) ** 0.5 + (left * strengths) @ right.T


def test_numbers_agree_with_the_whole_diagnosis():
    weights = {
        "wide": planted((60, 150), [4.0, 3.0]),
        "tall": planted((150, 60), [4.0, 3.0]),
        "tiny": 1e-30 * planted((60, 150), [4.0]),
        "small": planted((3, 60), [4.0]),
        "filters": planted((40, 90), [3.0]).reshape(40, 10, 3, 3),
        "bias": np.ones(5),
        "ids": np.arange(12).reshape(3, 4),
    }
    rows = {row.name: row for row in quick_rows(weights)}
    assert set(rows) == set(weights) - {"bias", "ids"}
    for name, row in rows.items():
        whole = diagnose_matrix(weights[name])
        np.testing.assert_allclose(row.norm, whole.norm, rtol=1e-4)
        np.testing.assert_allclose(row.largest, whole.largest, rtol=1e-4)
        np.testing.assert_allclose(row.stable_rank, whole.stable_rank, rtol=1e-4)
        if name == "small":
            assert row.edge is None
            assert "an edge needs at least 30" in row.reason
        else:
            np.testing.assert_allclose(row.edge, whole.edges[1], rtol=1e-3)
            assert row.beyond == len(whole.features)


def test_a_heavy_tail_has_its_exponent_and_no_edge():
    rng = np.random.default_rng(1)
    values = (1 - rng.random(200)) ** (-1 / 1.5)
    left, right = (np.linalg.qr(rng.standard_normal((n, 200)))[0] for n in (200, 300))
    (row,) = quick_rows({"w": (left * values**0.5) @ right.T})
    assert row.edge is None
    assert row.exponent == pytest.approx(2.5, abs=0.5)
    assert row.n_tail >= 50


def test_low_rank_nan_zero_and_empty_matrices_have_a_reason():
    rng = np.random.default_rng(2)
    rows = list(
        quick_rows(
            {
                "low": rng.standard_normal((40, 3)) @ rng.standard_normal((3, 60)),
                "nan": np.full((40, 50), np.nan),
                "zero": np.zeros((40, 50)),
                "empty": np.zeros((0, 50)),
                "line": np.ones((1, 50)),
            }
        )
    )
    assert all(row.reason for row in rows)
    assert [row.norm is None for row in rows] == [False, True, False, True, False]
    assert rows[0].largest == pytest.approx(float(rows[0].norm), rel=0.9)


def test_square_noise_has_an_edge_although_its_smallest_values_are_lost_in_rounding():
    weights = np.random.default_rng(4).standard_normal((600, 600))
    # Four values are far below the rounding of single precision.
    left, values, right = np.linalg.svd(weights)
    values[-4:] *= 1e-6
    (row,) = quick_rows({"w": (left * values) @ right})
    assert row.edge == pytest.approx(2 * 600**0.5, rel=0.01)
    assert row.beyond == 0


def test_workers_change_nothing():
    weights = {f"w{k}": planted((40, 60), [3.0], k) for k in range(4)}
    assert list(quick_rows(weights)) == list(quick_rows(weights, workers=2))


def test_no_slower_than_the_eigenvalues_in_double_precision():
    weights = np.random.default_rng(3).standard_normal((700, 1400)).astype(np.float32)
    list(quick_rows({"w": weights}))  # simulates the noise of this shape once
    times = []
    for run in (
        lambda: np.linalg.eigvalsh(weights.astype(float) @ weights.T.astype(float)),
        lambda: list(quick_rows({"w": weights})),
    ):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    # The aim is three times at most; about a third was measured.
    assert times[1] < 3 * times[0]
