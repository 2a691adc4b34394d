"""Studies whose learners compute on a device: equal to NumPy up to rounding, refused where impossible."""

import numpy as np
import pytest

import solvable
from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.fitting.devices import computing_on, on_device

SETTINGS = {
    "hierarchical-multi-index": {
        "dimension": 40, "features": 2, "sample_ratio": 20, "learning_rate": 0.01,
    },
    "neural-lofi-images": {"samples": 100, "width": 100},
    "quadratic-network": {"dimension": 16, "samples": 200},
    "sequential-recovery": {"dimension": 12, "samples": 2_000},
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "quadratic-network" else pytest.mark.slow)
        for name in SETTINGS
    ],
)
def test_a_device_gives_the_numbers_of_numpy(name):
    pytest.importorskip("torch")
    host, found = (
        solvable.run(name, preset=None, seeds=1, workers=1, device=device, **SETTINGS[name])
        for device in (None, "cpu")
    )
    assert not found.failures
    ((one,), (other,)) = host.records, found.records
    assert " on cpu" in other["numpy"]
    assert "torch" not in one["numpy"]
    assert one["task"] == other["task"]
    for metric, value in one["metrics"].items():
        if metric in ("kkt_residual", "iterations"):
            continue  # depend on rounding
        left, right = (np.array(v, dtype=float) for v in (value, other["metrics"][metric]))
        # Samples of sequential-recovery are in single precision.
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6, err_msg=metric)


def test_systems_in_numpy_are_refused_with_those_that_are_not():
    with pytest.raises(InvalidParameter, match=r"computes in NumPy; allowed: .*quadratic-network"):
        solvable.run("matrix-sensing", device="cpu", seeds=1)


def test_a_device_that_is_absent_is_refused_before_any_task():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    with pytest.raises(InvalidParameter, match="device is 'cuda', which torch cannot use here"):
        solvable.run("quadratic-network", device="cuda", seeds=1)


def test_the_device_ends_with_its_block():
    torch = pytest.importorskip("torch")
    samples = random_stream(0).standard_normal((3, 2))
    assert on_device(samples) is samples
    with computing_on("cpu"):
        assert torch.is_tensor(on_device(samples))
        assert on_device("no array") == "no array"
    assert on_device(samples) is samples
