"""Sizes of blocks of rows by device, and copies of products between device and host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from solvable.arrays import ArraySource, GeneratedSource
from solvable.fitting.row_subsets import RowSubset
from solvable.operators import HermiteFeatures, MomentOperator
from solvable.operators.blocks import on_accelerator, rows_per_block


@dataclass(frozen=True)
class _Device:
    type: str


@dataclass(frozen=True)
class _Array:
    """Stand-in for an array on an accelerator, with the attributes that set the block size."""

    device: _Device
    ndim: int = 2
    shape: tuple[int, int] = (4, 2)
    dtype: str = "float32"


def test_blocks_fill_the_cache_of_the_host_and_a_share_of_a_device() -> None:
    """An array, its source and a view have the same block size, set by the memory per row."""
    host, device = np.zeros((4, 2)), _Array(_Device("xpu"))
    generated = GeneratedSource(lambda rows, rng: np.zeros((rows, 2)), 10, 2, seed=0)
    for samples in (host, ArraySource(host), RowSubset(ArraySource(host), np.arange(2)), generated):
        assert not on_accelerator(samples)
        assert rows_per_block(samples, 2048, 4.0) == 2048
    for samples in (device, ArraySource(device), RowSubset(ArraySource(device), np.arange(2))):
        assert on_accelerator(samples)
        assert rows_per_block(samples, 2048, 1000.0) == 8_000_000_000 // 32 // 1000
        assert rows_per_block(samples, 2048, 2000.0) < rows_per_block(samples, 2048, 1000.0)
        assert rows_per_block(samples, 2048, 1e12) == 1


class Copies:
    """Count copies from torch to the host and back, with their sizes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, torch: Any) -> None:
        self.out: list[int] = []
        self.sent: list[int] = []
        for name in ("__array__", "numpy", "tolist", "cpu"):
            self._count(monkeypatch, torch.Tensor, name)
        for name in ("asarray", "tensor", "from_numpy", "as_tensor"):
            self._count_sent(monkeypatch, torch, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, holder: Any, name: str) -> None:
        original = getattr(holder, name)

        def counted(tensor: Any, *arguments: Any, **named: Any) -> Any:
            self.out.append(tensor.numel())
            return original(tensor, *arguments, **named)

        monkeypatch.setattr(holder, name, counted)

    def _count_sent(self, monkeypatch: pytest.MonkeyPatch, holder: Any, name: str) -> None:
        original = getattr(holder, name)

        def counted(array: Any, *arguments: Any, **named: Any) -> Any:
            if isinstance(array, np.ndarray):
                self.sent.append(array.size)
            return original(array, *arguments, **named)

        monkeypatch.setattr(holder, name, counted)

    def taken(self) -> tuple[list[int], list[int]]:
        """Return the sizes of copies so far, to and from the host, and reset them."""
        result = self.out, self.sent
        self.out, self.sent = [], []
        return result


@pytest.mark.torch
@pytest.mark.parametrize("correction", ["none", "wick"])
@pytest.mark.parametrize(("degree", "dimension"), [(1, 7), (2, 6), (3, 5)])
def test_nothing_leaves_a_device_while_blocks_are_read(
    monkeypatch: pytest.MonkeyPatch, degree: int, dimension: int, correction: Any
) -> None:
    """Copies do not grow with the number of blocks; a second product copies no array."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    X, T = torch.asarray(rng.standard_normal((240, dimension))), rng.standard_normal(240)
    features = HermiteFeatures(degree, dimension)
    U = torch.asarray(rng.standard_normal((features.n_features, 2)))
    copies = Copies(monkeypatch, torch)
    counts = []
    for rows in (240, 12):
        operator = MomentOperator(X, T, features, correction=correction, chunk_rows=rows)
        _ = operator.statistics
        operator.matmat(U)
        first = copies.taken()
        operator.matmat(U)
        again = copies.taken()
        assert again == ([], [])
        counts.append((len(first[0]), len(first[1])))
    assert counts[1][0] <= counts[0][0]
    assert counts[1][1] <= counts[0][1]


@pytest.mark.torch
@pytest.mark.parametrize("correction", ["none", "wick"])
@pytest.mark.parametrize(("degree", "dimension"), [(1, 6), (2, 9), (3, 4)])
def test_a_product_runs_where_there_is_nothing_to_read(
    degree: int, dimension: int, correction: Any
) -> None:
    """Tensors on the device "meta" hold no numbers: reading a number raises an error."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    X, T = torch.asarray(rng.standard_normal((50, dimension))), rng.standard_normal(50)
    features = HermiteFeatures(degree, dimension)
    here = MomentOperator(X, T, features, correction=correction)
    there = MomentOperator(X.to("meta"), T, features, correction=correction, chunk_rows=8)
    there.__dict__["lower_chaoses"] = here.lower_chaoses  # of moments, which leave once
    U = torch.empty(features.n_features, 3, dtype=torch.float64, device="meta")
    result = there._apply(U)
    assert (result.device.type, result.shape) == ("meta", U.shape)
    with pytest.raises(RuntimeError, match="meta tensors"):
        there.matmat(U)  # whether the result is finite is the one number read


@pytest.mark.torch
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_fit_on_a_device_copies_as_often_whatever_the_blocks(
    monkeypatch: pytest.MonkeyPatch, shuffle: bool
) -> None:
    """Each product copies vectors both ways, but never samples or row positions."""
    torch = pytest.importorskip("torch")
    from solvable.learners import LayerwiseSpectralRegressor

    rng = np.random.default_rng(4)
    host = rng.standard_normal((3000, 10))
    y = host[:, 0] * host[:, 1] + host[:, 2] * host[:, 3]
    X = torch.asarray(host)
    copies = Copies(monkeypatch, torch)
    learner = LayerwiseSpectralRegressor(
        2, n_directions=2, selection="forced", solver="lanczos", shuffle=shuffle, random_state=0
    )
    learner.fit(X, y)
    out, sent = copies.taken()
    # Arrays of size n are copied a few times (norms, latent features); a product copies D numbers.
    large = [size for size in out + sent if size > 200]
    assert len(large) < 20
    assert max(out + sent) <= 3000 * 2
    host_learner = LayerwiseSpectralRegressor(
        2, n_directions=2, selection="forced", solver="lanczos", shuffle=shuffle, random_state=0
    ).fit(host, y)
    np.testing.assert_allclose(learner.predict(X), host_learner.predict(host), atol=1e-8)
