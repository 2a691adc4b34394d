"""Number of directions that emerge from n images, forecast from the null ratios at more images."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.models.lofi_images.images import images
from solvable.models.lofi_images.parameters import ROWS
from solvable.networks.blocks import Block
from solvable.networks.lofi import NeuralLoFiTransformer

STANDS_OUT = 1.5
"""Null ratio above which a direction counts as emerged. Smaller ratios scatter between splits."""


def ratios_at(ratios: np.ndarray, samples: int, other: float) -> np.ndarray:
    """Null ratios of directions at another number of rows."""
    # An eigenvalue r times the edge of its bulk has a spike rho times the threshold, with
    # r = (rho + 1 / rho) / 2, and rho grows as sqrt(n)   (lofi 37)
    r = np.maximum(ratios, 1.0)
    rho = np.maximum((r + np.sqrt(r**2 - 1)) * np.sqrt(other / samples), 1.0)
    return np.asarray((rho + 1 / rho) / 2)


def emerged(counts: np.ndarray, ratios: np.ndarray) -> float:
    """Number of directions above `STANDS_OUT`, interpolated between tested counts in logarithms."""
    falling = np.minimum.accumulate(ratios)
    below = np.flatnonzero(falling < STANDS_OUT)
    if not below.size:
        return float(counts[-1] + 1)
    k = int(below[0])
    if k == 0:
        return float(falling[0] / STANDS_OUT) * 0.5
    share = (falling[k - 1] - STANDS_OUT) / (falling[k - 1] - falling[k])
    low, high = np.log(counts[k - 1 : k + 1] + 1.0)
    return float(np.exp(low + share * (high - low)))


@lru_cache(maxsize=16)
def _reference(data: str, task: str, activation: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Tested numbers of removed directions, null ratios, and rows of one fit to many images."""
    X, digits = images(data)
    y = digits if task == "ten-class" else digits % 2
    n = min(1_500, ROWS[data] - 200)
    rows = random_stream(0, "images for emergence").permutation(len(X))[:n]
    blocks = [Block(None, math.inf, activation), Block("auto", None)]
    model = NeuralLoFiTransformer(blocks, scaling="none", random_state=0).fit(X[rows], y[rows])
    report = model.filters_[0]
    known = ~np.isnan(report.null_ratios).all(axis=0)
    return report.null_counts[known], np.nanmax(report.null_ratios[:, known], axis=0), n


def forecast_emerged(data: str, task: str, activation: str, samples: float) -> float:
    """Forecast number of directions that emerge from this number of images."""
    counts, ratios, n = _reference(data, task, activation)
    return emerged(counts, ratios_at(ratios, n, samples))
