"""Fits by chunks, processes, a cluster and from a checkpoint equal the fit in memory."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter
from solvable.fitting.described_arrays import read_described, write_described
from solvable.fitting.ridge import ReadoutMoments
from solvable.learners import (
    Block,
    NeuralLoFiClassifier,
    NeuralLoFiRegressor,
    NeuralLoFiTransformer,
)
from solvable.networks.stream_sums import FilterSums, Survey, classes_from_arrays, classes_to_arrays
from solvable.networks.streaming import CHECKPOINT_FORMAT
from solvable.operators import LabelMoments

BLOCKS = [
    Block(6, 30, first_moment=True, whitening="std"),
    Block("auto", 25, activation="tanh"),
    Block(None, 20),
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = 3.0 + rng.standard_normal((900, 8)) * np.arange(1, 9)
    index = (X[:, 0] - 3) * (X[:, 1] - 3) / 2 + (X[:, 2] - 3) / 3
    X.setflags(write=False)
    return X, index


def labels_of(index, kind):
    if kind == "real":
        return index
    if kind == "two":
        return np.where(index > 0, "up", "down")
    return np.digitize(index, [-1.0, 1.0])


def estimator(kind, **changes):
    cls = NeuralLoFiRegressor if kind == "real" else NeuralLoFiClassifier
    return cls(BLOCKS, random_state=1, **changes)


def outputs(model, X):
    return model.predict(X) if kind_is_real(model) else model.decision_function(X)


def kind_is_real(model):
    return isinstance(model, NeuralLoFiRegressor)


@pytest.mark.parametrize("kind", ["real", "two", "three"])
@pytest.mark.parametrize("scaling", ["columns", "global", "none"])
def test_stream_is_the_fit_in_memory(table, kind, scaling):
    X, index = table
    y = labels_of(index, kind)
    whole = estimator(kind, scaling=scaling).fit(X, y)
    stream = estimator(kind, scaling=scaling).fit_stream(X, y, chunk_rows=97)
    np.testing.assert_allclose(outputs(stream, X), outputs(whole, X), atol=1e-10)
    assert stream.filters_[1].n_significant == whole.filters_[1].n_significant
    # Nulls use single precision and another order of sums. With samples in memory, permutations can
    # extend the test of a class.
    found, expected = (model.filters_[1].null_ratios for model in (stream, whole))
    known = np.isfinite(found)
    assert known[:, 0].all()
    np.testing.assert_allclose(found[known], expected[:, : found.shape[1]][known], rtol=1e-5)
    if kind != "real":
        np.testing.assert_array_equal(stream.classes_, whole.classes_)
        np.testing.assert_array_equal(stream.predict(X), whole.predict(X))


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.integers(1, 899), max_size=6))
def test_partial_fit_does_not_depend_on_the_cuts(table, cuts):
    X, index = table
    whole = estimator("real").fit(X, index)
    parts = estimator("real")
    bounds = [0, *sorted(set(cuts)), len(X)]
    stages = []
    while not stages or stages[-1] != "done":
        for low, high in pairwise(bounds):
            parts.partial_fit(X[low:high], index[low:high])
        stages.append(parts.advance())
    # A third lift follows the second without a filter: its scale needs an additional pass.
    assert stages == ["filter", "filter", "scale", "readout", "done"]
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-10)


def test_workers_change_nothing(table):
    X, index = table
    y = labels_of(index, "three")
    alone = estimator("three").fit_stream(X, y, chunk_rows=20)
    together = estimator("three").fit_stream(X, y, chunk_rows=20, workers=2)
    np.testing.assert_allclose(
        together.decision_function(X), alone.decision_function(X), atol=1e-10
    )


def test_dask_workers_change_nothing(table):
    from dask.distributed import Client, LocalCluster
    from joblib import parallel_config

    X, index = table
    alone = estimator("real").fit_stream(X, index, chunk_rows=50)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        parallel_config("dask", client=client),
    ):
        there = estimator("real").fit_stream(X, index, chunk_rows=50, workers=2)
    np.testing.assert_allclose(there.predict(X), alone.predict(X), atol=1e-10)


def test_memory_mapped_file_is_read_as_an_array(table, tmp_path):
    X, index = table
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = estimator("real").fit_stream(str(tmp_path / "X.npy"), index)
    whole = estimator("real").fit(X.astype(np.float32), index)
    # Rounding of float32 products depends on the chunks.
    np.testing.assert_allclose(mapped.predict(X), whole.predict(X), atol=1e-4)


def test_transformer_takes_streams(table):
    X, index = table
    blocks = [Block(None, 40), Block(5, None)]
    whole = NeuralLoFiTransformer(blocks, random_state=0).fit(X, index)
    stream = NeuralLoFiTransformer(blocks, random_state=0).fit_stream(X, index, chunk_rows=111)
    np.testing.assert_allclose(stream.transform(X), whole.transform(X), atol=1e-10)


def test_images_take_streams():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 48))
    y = (X[:, 5] * X[:, 6] > 0).astype(int)
    blocks = [
        Block(None, 12, patch=3),
        Block(4, 10, first_moment=True, patch=3, pooling=2),
        Block(3, 15),
    ]
    model = NeuralLoFiClassifier(blocks, image_shape=(6, 8, 1), scaling="global", random_state=2)
    whole = model.fit(X, y).decision_function(X)
    stream = model.fit_stream(X, y, chunk_rows=17).decision_function(X)
    np.testing.assert_allclose(stream, whole, atol=1e-10)


SCRIPT = """
import sys, time
import numpy as np
from solvable.learners import Block, NeuralLoFiRegressor

class Slow:
    def __init__(self, X, y):
        self.X, self.y, self.n_samples, self.n_columns = X, y, *X.shape
    def chunks(self, rows, start=0):
        for low in range(start, self.n_samples, rows):
            part = slice(low, min(low + rows, self.n_samples))
            print("read", low, flush=True)
            time.sleep({pause})
            yield part, self.X[part], self.y[part]

rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 6))
y = X[:, 0] * X[:, 1] + X[:, 2]
model = NeuralLoFiRegressor([Block(4, 20), Block("auto", 15)], random_state=0)
model.fit_stream(Slow(X, y), chunk_rows=100, checkpoint={path!r}, checkpoint_seconds=0.0)
np.save({out!r}, model.predict(X))
"""


def test_killed_fit_goes_on_from_its_checkpoint(tmp_path):
    checkpoint, out = tmp_path / "fit.checkpoint", tmp_path / "out.npy"

    def script(pause):
        return SCRIPT.format(pause=pause, path=str(checkpoint), out=str(out))

    # Reference: the fit without interruption
    X = np.random.default_rng(0).standard_normal((2000, 6))
    plain = NeuralLoFiRegressor([Block(4, 20), Block("auto", 15)], random_state=0)
    expected = plain.fit_stream(X, X[:, 0] * X[:, 1] + X[:, 2], chunk_rows=100).predict(X)
    process = subprocess.Popen(
        [sys.executable, "-c", script(0.02)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    seen = 0
    # Kill the process in the middle of the second pass; each pass, and the digest, reads 20 chunks.
    for line in process.stdout:
        seen += line.startswith("read")
        if seen == 52:
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    process.stdout.close()
    assert checkpoint.exists()
    _, content = read_described(checkpoint, CHECKPOINT_FORMAT, "fit_stream")
    assert content["stage"] == "filter"
    assert 0 < content["row"] < 2000
    again = subprocess.run(
        [sys.executable, "-c", script(0)], check=True, capture_output=True, text=True
    )
    # The digest, one read of the first rows for the kind of labels, then the rest from the stored row
    reads = [int(line.split()[1]) for line in again.stdout.splitlines()]
    assert content["row"] in reads[20:45]
    assert len(reads) < seen + 40 + 22
    np.testing.assert_allclose(np.load(out), expected, atol=1e-10)
    assert not checkpoint.exists()


def test_checkpoint_of_another_fit_is_refused(table, tmp_path):
    X, index = table
    path = tmp_path / "fit.checkpoint"
    write_described(
        path, {"a": np.zeros(1)}, {"format": CHECKPOINT_FORMAT, "identity": {"n_samples": 3}}
    )
    with pytest.raises(InvalidData, match="checkpoint of another fit"):
        estimator("real").fit_stream(X, index, checkpoint=path)
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(InvalidData, match="or is truncated"):
        estimator("real").fit_stream(X, index, checkpoint=path)


@pytest.mark.parametrize("changed", ["samples", "labels"])
def test_checkpoint_of_other_samples_of_the_same_shape_is_refused(table, tmp_path, changed):
    X, index = table
    path = tmp_path / "fit.checkpoint"

    class Cut(Exception):
        pass

    def cut(stage, done, rows):
        if stage == "filter" and done > rows / 2:
            raise Cut

    settings = {"chunk_rows": 50, "checkpoint": path, "checkpoint_seconds": 0.0}
    with pytest.raises(Cut):
        estimator("real").fit_stream(X, index, progress=cut, **settings)
    other, labels = X.copy(), index.copy()
    if changed == "samples":
        other[-1, 0] = np.nextafter(other[-1, 0], 9)
    else:
        labels[-1] += 1e-3
    with pytest.raises(InvalidData, match="checkpoint of another fit"):
        estimator("real").fit_stream(other, labels, **settings)
    # The fit continues with other chunks.
    estimator("real").fit_stream(X, index, **(settings | {"chunk_rows": 70}))
    assert not path.exists()


def test_sums_survive_storage_and_merge_like_one():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 4)) + 1e6, np.array(["a", "bb"] * 25)
    whole = Survey(4).add(X, y)
    parts = Survey(4).add(X[:13], y[:13]).merge(Survey(4).add(X[13:], y[13:]))
    stored = Survey.from_arrays(parts.to_arrays())
    # A naive sum of squares loses all digits at a mean of a million.
    np.testing.assert_allclose(stored.variance, X.var(axis=0), rtol=1e-9)
    np.testing.assert_allclose(stored.mean, whole.mean, rtol=1e-15)
    np.testing.assert_array_equal(stored.classes, ["a", "bb"])
    np.testing.assert_array_equal(stored.counts, [25, 25])
    codes = np.arange(50) % 2
    sums = FilterSums(LabelMoments(4, 2).add(X, codes), [LabelMoments(4, 2).add(X, codes[::-1])])
    again = FilterSums.from_arrays(sums.to_arrays())
    np.testing.assert_array_equal(again.nulls[0].second(1), sums.nulls[0].second(1))
    readout = ReadoutMoments(4, 1).add(X, codes[:, None])
    np.testing.assert_array_equal(
        ReadoutMoments.from_arrays(readout.to_arrays()).gram, readout.gram
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, y: m.fit_stream(X), "labels are missing"),
        (lambda m, X, y: m.fit_stream(X, y[:5]), "one label per row"),
        (lambda m, X, y: m.fit_stream(X, y, chunk_rows=0), "chunk_rows is 0"),
        (lambda m, X, y: m.fit_stream(X[:1], y[:1]), "at least 2"),
        (lambda m, X, y: m.fit_stream(X[:0], y[:0]), "no rows"),
        (lambda m, X, y: m.fit_stream(np.where(X > 20, np.nan, X), y), "NaN or infinite"),
        (lambda m, X, y: m.fit_stream(X, np.where(y > 2, np.nan, y)), "NaN or infinite"),
        (lambda m, X, y: m.fit_stream(X, np.ones_like(y)), "constant"),
        (lambda m, X, y: m.advance(), "nothing to advance"),
    ],
)
def test_bad_streams_are_refused(table, call, message):
    X, index = table
    with pytest.raises((InvalidData, InvalidParameter), match=message):
        call(estimator("real"), X, index)


def test_infinite_width_has_no_stream(table):
    X, index = table
    with pytest.raises(InvalidParameter, match="finite widths"):
        NeuralLoFiRegressor([Block()]).fit_stream(X, index)


def test_labels_that_change_between_passes_are_refused(table):
    X, index = table
    model = estimator("two")
    model.partial_fit(X, labels_of(index, "two"))
    model.advance()
    with pytest.raises(InvalidData, match="did not occur in the first pass"):
        model.partial_fit(X, np.full(len(X), "sideways"))


def test_announced_class_without_samples_is_refused(table):
    X, index = table
    model = estimator("three")
    model.partial_fit(X, labels_of(index, "three"), classes=[0, 1, 2, 3])
    with pytest.raises(InvalidData, match="class 3 has no sample"):
        model.advance()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_samples():
    # 110,000 rows of 50 columns take 44 MB more than 10,000; a chunk and the sums take a few MB.
    script = """
import resource, numpy as np
from solvable.arrays import GeneratedSource
from solvable.learners import Block, NeuralLoFiRegressor
source = GeneratedSource(lambda n, rng: rng.standard_normal((n, 50)), {n}, 50, seed=0)
y = np.random.default_rng(0).standard_normal({n})
NeuralLoFiRegressor([Block(3, 20)], random_state=0).fit_stream(source, y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", script.format(n=n)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for n in (10_000, 120_000)
    ]
    # Only the labels grow, in float64 and as read: 0.9 MB each.
    assert peaks[1] - peaks[0] < 20_000


def test_progress_is_reported_with_its_time(table):
    X, index = table
    told = []
    start = time.monotonic()
    estimator("real").fit_stream(
        X, index, chunk_rows=300, progress=lambda stage, done, total: told.append((stage, done))
    )
    assert time.monotonic() - start < 60
    assert told[:3] == [("survey", 300), ("survey", 600), ("survey", 900)]
    assert [stage for stage, done in told if done == 900] == [
        "survey",
        "filter",
        "filter",
        "scale",
        "readout",
    ]


@pytest.mark.parametrize("classes", [np.array(["no", "yes"]), np.array([0, 3]), np.array([0.5])])
def test_labels_survive_as_arrays(classes):
    again = classes_from_arrays(classes_to_arrays(classes))
    assert again.dtype == classes.dtype
    np.testing.assert_array_equal(again, classes)
