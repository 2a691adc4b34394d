"""All kinds of sources give the same fit, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from solvable.arrays import ArraySource, GeneratedSource, random_stream
from solvable.learners import LayerwiseSpectralRegressor

N, D = 9000, 16


def draw(rows, rng):
    return rng.standard_normal((rows, D))


def problem():
    source = GeneratedSource(draw, N, D, seed=2)
    X = np.concatenate([block for _, block in source.chunks(4096)])
    return source, X, X[:, 0] ** 2 - X[:, 1] ** 2


def assert_same(one, two, X):
    np.testing.assert_allclose(two.eigenvalues_, one.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(two.bulk_edges_, one.bulk_edges_, rtol=1e-8)
    np.testing.assert_allclose(two.predict(X), one.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
def test_streamed_equals_in_memory(tmp_path, shuffle, depth):
    source, X, y = problem()
    learner = LayerwiseSpectralRegressor(
        1,
        n_directions=(2, 1)[:depth],
        selection="forced",
        shuffle=shuffle,
        held_back=0.3,
        random_state=0,
    )
    np.save(tmp_path / "samples.npy", X)
    reference = learner.fit(X, y)
    expected = LayerwiseSpectralRegressor(**learner.get_params()).fit(X, y)
    mapped = np.load(tmp_path / "samples.npy", mmap_mode="r")
    for samples in (source, ArraySource(X), tmp_path / "samples.npy", mapped):
        again = LayerwiseSpectralRegressor(**learner.get_params()).fit(samples, y)
        assert again.n_features_in_ == D
        assert_same(expected, again, X)
        np.testing.assert_allclose(again.predict(samples), reference.predict(X), atol=1e-6)
        np.testing.assert_allclose(again.transform(samples), again.transform(X), atol=1e-12)
    assert again.score(samples, y) == pytest.approx(reference.score(X, y))


@pytest.mark.parametrize(
    "library", ["array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_arrays_of_other_libraries(library, shuffle):
    xp = pytest.importorskip(library)
    _, X, y = problem()
    X, y = X[:3000, :10], y[:3000]
    learner = LayerwiseSpectralRegressor(
        2, n_directions=(3, 1), selection="forced", shuffle=shuffle, random_state=0
    )
    expected = LayerwiseSpectralRegressor(**learner.get_params()).fit(X, y)
    samples = xp.asarray(X)
    again = learner.fit(samples, xp.asarray(y))
    assert_same(expected, again, X)
    np.testing.assert_allclose(again.predict(samples), expected.predict(X), atol=1e-6)
    assert isinstance(again.transform(samples), np.ndarray)


def test_samples_are_neither_copied_nor_changed():
    rng = random_stream("memory")
    X = rng.standard_normal((120_000, 40), dtype=np.float32)
    y = X[:, 0] ** 2 - X[:, 1] ** 2
    X.setflags(write=False)
    for shuffle in (False, True):
        learner = LayerwiseSpectralRegressor(
            2, n_directions=2, shuffle=shuffle, solver="lanczos", max_products=12, random_state=0
        )
        learner.set_params(selection="forced")
        tracemalloc.start()
        learner.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # Vectors of length n in float64 are 1 MB each, the Lanczos basis is 2 x 164 x 820 x 8.
        assert peak < 0.9 * X.nbytes, f"{peak / 1e6:.1f} MB for samples of {X.nbytes / 1e6:.1f} MB"


REGENERATED = """
import sys
from pathlib import Path
import numpy as np
from solvable.arrays import GeneratedSource
from solvable.learners import LayerwiseSpectralRegressor

def draw(rows, rng):
    return rng.standard_normal((rows, 10), dtype=np.float32)

n = 5_000_000
source = GeneratedSource(draw, n, 10, seed=0, dtype=np.float32)
y = np.empty(n)
for part, block in source.chunks(4096):
    y[part] = block[:, 0] ** 2
shuffle = sys.argv[1] == "shuffle"
learner = LayerwiseSpectralRegressor(
    1, n_directions=3, selection="forced", solver="lanczos", shuffle=shuffle, random_state=0,
    tolerance=0.2
).fit(source, y)
assert learner.readout_ is not None
assert learner.directions_[0, 0] ** 2 > 0.99
# VmHWM is the peak of this program alone; ru_maxrss includes the parent process.
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["shuffle", "in order"])
def test_five_million_regenerated_samples_fit_into_500_megabytes(order):
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is read from /proc")
    done = subprocess.run(
        [sys.executable, "-c", REGENERATED, order], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # 500.6 million bytes measured shuffled, 441 in order.
    assert int(done.stdout) * 1024 < 505e6
