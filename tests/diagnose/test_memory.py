"""Jobs of a diagnosis: their order, their processes, and the memory that they hold together."""

from __future__ import annotations

import os
import time
import tracemalloc
from dataclasses import replace

import joblib
import numpy as np
import pytest
from joblib.externals.loky import reusable_executor
from scipy.fft import dctn

from solvable.data.weights.in_memory import weights_in_memory
from solvable.diagnose import diagnose_matrix
from solvable.diagnose.chance_outliers import CONTROLS, Signs, _largest, cosines
from solvable.diagnose.decomposition import gram, singular_values
from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.diagnose.jobs import (
    PROCESS,
    Job,
    KeptRows,
    _decoded,
    _encoded,
    bytes_of,
    each_finished,
    each_in_order,
    lanes_for,
    memory_limit,
    run_jobs,
)
from solvable.errors import InvalidData, InvalidParameter


def spiked(shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal(n) / n**0.5 for n in shape)
    noise = rng.standard_normal(shape) / max(shape) ** 0.5
    return (noise + 4 * np.outer(left, right)).astype(dtype)


def test_the_memory_of_jobs_that_run_together_is_bounded():
    def spell(number, pause):  # inside, because other processes cannot import this file
        started = time.monotonic()
        time.sleep(pause)
        return number, os.getpid(), started, time.monotonic()

    sizes = [3e9, 1e9, 1e9, 5e9, 1e9, 1e9]
    jobs = [Job(str(k), spell, (k, 0.1), 4.0, size) for k, size in enumerate(sizes)]
    limit = 4e9 + 4 * PROCESS
    ran = {job.key: result for job, result in each_finished(jobs, 3, limit)}
    assert ran.keys() == {job.key for job in jobs}
    assert all(process != os.getpid() for _, process, *_ in ran.values())
    # Memory is largest when a job starts.
    for _, _, started, _ in ran.values():
        together = [
            sizes[other] for other, _, begun, ended in ran.values() if begun <= started < ended
        ]
        # The job that is too large runs alone.
        assert sum(together) <= 4e9 or len(together) == 1
    assert [number for number, *_ in each_in_order(jobs, 3, limit)] == list(range(6))


def test_other_parallel_work_follows_a_diagnosis(monkeypatch):
    jobs = [Job(str(k), abs, (-k,), 8.0, 1e6) for k in range(2)]
    # Joblib takes executors from this one place, and fails on one without its folder manager.
    monkeypatch.setattr(reusable_executor, "_executor", None)
    monkeypatch.setattr(joblib.executor, "_executor_args", None)
    assert list(each_in_order(jobs, 2, 4e9)) == [0, 1]
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(abs)(-k) for k in range(2)) == [0, 1]


@pytest.mark.parametrize(("memory", "lanes"), [(0.1e9, 1), (2e9, 1), (4e9, 3), (100e9, 16)])
def test_fewer_processes_start_in_less_memory(memory, lanes):
    jobs = [Job(str(k), print, (k,), 10.0, 1e9) for k in range(50)]
    assert lanes_for(jobs, 16, memory) == lanes
    assert lanes_for(jobs[:2], 16, 1e12) == 2
    assert lanes_for([Job("a", print, (0,), 0.1, 1e6)] * 9, 16, 1e12) == 1


def test_the_limit_is_as_asked_and_else_four_gigabytes():
    assert memory_limit(None) <= 4e9
    assert memory_limit(64) == pytest.approx(64e9)
    for memory in (0.1, -1, float("nan"), "4"):
        with pytest.raises(InvalidParameter, match="--memory"):
            memory_limit(memory)


def test_a_diagnosis_holds_what_is_expected():
    shape = (1300, 520)
    weights = spiked(shape)
    (stored,) = weights_in_memory({"w": weights}).arrays
    diagnose_matrix(weights[:40, :50])
    tracemalloc.start()
    row = diagnose_matrix(weights, precision=2.0**-23)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(row.features) == 1
    # The weights were there before, and the constant for small arrays is large here.
    assert peak <= bytes_of(stored) - weights.nbytes
    assert peak <= 9.0 * weights.size + 8 * 520**2 + 12e6
    np.testing.assert_array_equal(weights, spiked(shape))


@pytest.mark.parametrize("scale", [1e-35, 1.0, 1e35])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_do_not_depend_on_type_and_scale(dtype, scale):
    weights = spiked((60, 150), dtype=np.float16)
    if dtype is np.float16 and scale != 1:  # outside its range
        return
    whole = diagnose_matrix(weights.astype(float))
    row = diagnose_matrix(weights.astype(dtype) * dtype(scale), precision=2.0**-23)
    assert row.phase == whole.phase == "bulk+spikes"
    np.testing.assert_allclose(row.values, whole.values * scale, rtol=1e-5)
    np.testing.assert_allclose(
        row.features[0].strength.value, whole.features[0].strength.value * scale, rtol=1e-5
    )


def test_blocks_give_the_product_and_low_rank_its_exact_zeros():
    matrix = spiked((520, 2600))
    wide = matrix.astype(float) / 2
    np.testing.assert_allclose(np.tril(gram(matrix, 2.0)), np.tril(wide @ wide.T), atol=1e-12)
    turned = gram(np.ascontiguousarray(matrix.T).T, 2.0)
    np.testing.assert_allclose(np.tril(turned), np.tril(wide @ wide.T), atol=1e-12)
    # From 2,000,000 entries on, the exact route takes one block of columns after the other.
    rng = np.random.default_rng(1)
    low = rng.standard_normal((520, 8)) @ rng.standard_normal((8, 4000))
    values, vectors = singular_values(low)
    exact = np.linalg.svd(low, full_matrices=False)
    np.testing.assert_allclose(values[::-1][:8], exact[1][:8], rtol=1e-12)
    assert values[:-8].max() < 1e-12 * values[-1]
    overlaps = np.abs((vectors(8) * exact[0][:, :8]).sum(axis=0))
    np.testing.assert_allclose(overlaps, 1, rtol=1e-9)


def test_stored_rows_are_the_rows(tmp_path):
    weights = spiked((60, 150))
    changed = diagnose_matrix(weights, initial=spiked((60, 150), 1))
    tail = (np.random.default_rng(2).random(200)) ** -0.6
    left, right = (
        np.linalg.qr(np.random.default_rng(3).standard_normal((n, 200)))[0] for n in (200, 300)
    )
    heavy = diagnose_matrix((left * tail) @ right.T)
    assert heavy.tail is not None
    noise = np.random.default_rng(4).standard_normal((60, 60))
    symmetric = diagnose_matrix(noise + noise.T)
    assert symmetric.bulk.symmetric
    for row in (changed, heavy, symmetric, diagnose_matrix(np.full((40, 50), np.nan))):
        again = _decoded(_encoded(row))
        assert isinstance(again, MatrixDiagnosis)
        assert again.to_dict() == row.to_dict()
        assert repr(again.to_dict()) == repr(row.to_dict())


def test_finished_jobs_are_not_run_again(tmp_path):
    calls = []

    def count(number):
        calls.append(number)
        return (float(number), np.arange(number))

    jobs = [Job(str(k), count, (k,), 1.0 + k, 1e3) for k in range(4)]
    kept = KeptRows(tmp_path / "kept", "weights")
    results: dict = {}
    run_jobs(jobs[:2], results, workers=1, memory=4e9, keeper=kept)
    with kept.path.open("ab") as stream:
        stream.write(b'{"identity": "cut')
    reports = []
    results = {}
    run_jobs(
        jobs,
        results,
        workers=1,
        memory=4e9,
        keeper=kept,
        progress=lambda *numbers: reports.append(numbers[:2]),
    )
    # The slowest first.
    assert calls == [1, 0, 3, 2]
    assert reports == [(2, 4), (3, 4), (4, 4)]
    assert set(KeptRows(kept.path, "weights").found()) == {"0", "1", "2", "3"}
    np.testing.assert_array_equal(results["3"][1], np.arange(3))
    # One changed digit is no result: the row is measured again.
    text = kept.path.read_bytes()
    assert text.count(b"3.0") == 1
    kept.path.write_bytes(text.replace(b"3.0", b"3.1"))
    assert set(KeptRows(kept.path, "weights").found()) == {"0", "1", "2"}
    kept.remove()
    kept.remove()
    assert not kept.path.exists()


@pytest.mark.parametrize("tall", [False, True])
def test_a_matrix_that_may_be_overwritten_is_not_copied(tall):
    # The second feature is below the first control until the first is removed, which takes two steps.
    shape = (2600, 800) if tall else (800, 2600)
    weights = spiked(shape) + 0.08 * spiked(shape, 1)
    kept = diagnose_matrix(weights, precision=2.0**-7)
    (stored,) = weights_in_memory({"w": weights}).arrays
    work = weights.copy()
    tracemalloc.start()
    row = diagnose_matrix(work, precision=2.0**-7, overwrite=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak + work.nbytes <= bytes_of(replace(stored, private=True))
    assert peak <= 8 * 800**2 + 12e6 < weights.nbytes + 8 * 800**2 + 4e6
    np.testing.assert_allclose(row.values, kept.values, rtol=1e-9)
    assert row.control == kept.control
    assert row.bulk.n_outliers == kept.bulk.n_outliers
    np.testing.assert_allclose(row.noise.value, kept.noise.value, rtol=1e-9)
    assert np.abs(work - weights).max() > 0  # used as workspace
    with pytest.raises(InvalidData, match="overwrite"):
        diagnose_matrix(work, initial=work, overwrite=True)


def test_controls_in_place_are_those_of_copies():
    rng = np.random.default_rng(0)
    for order in "CF":
        matrix = np.asarray(spiked((60, 150)) + 0.5 * spiked((60, 150), 1), order=order)
        left, values, _ = np.linalg.svd(matrix, full_matrices=False)
        work = matrix.copy(order="K")
        now = ()
        for axes, _ in CONTROLS:
            work, now = cosines(work, axes, now, overwrite=True), axes
            fresh = dctn(matrix, axes=axes, norm="ortho") if axes else matrix
            np.testing.assert_allclose(work, fresh, atol=1e-5)
            counts = [
                Signs(symmetric=False, level=0.01, axes=axes).beyond(
                    one, values[:4], lambda k, left=left: left[:, :k], np.random.default_rng(1)
                )
                for one in (work, np.array(fresh, dtype=np.float32, order="K"))
            ]
            assert counts[0] == counts[1]
            np.testing.assert_allclose(work, fresh, atol=1e-5)  # flips and steps are undone
        # Golub-Kahan steps with both products of a block of rows at once.
        single = np.asarray(rng.standard_normal((300, 9000)), dtype=np.float32, order=order)
        assert _largest(single, rng) == pytest.approx(np.linalg.norm(single, 2), rel=1e-3)
