"""Blocks of rows by the place of the samples, and what products copy between device and host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import ArraySource, GeneratedSource
from solvable.fitting.rows import RowSubset
from solvable.operators.blocks import on_accelerator, rows_per_block


@dataclass(frozen=True)
class _Device:
    type: str


@dataclass(frozen=True)
class _Array:
    """What the block size looks at."""

    device: _Device
    ndim: int = 2
    shape: tuple[int, int] = (4, 2)
    dtype: str = "float32"


def test_blocks_fill_the_cache_of_the_host_and_a_share_of_a_device() -> None:
    """An array, a source and a view of one are placed alike; memory per row sets the rows."""
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
