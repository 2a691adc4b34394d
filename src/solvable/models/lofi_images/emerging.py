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

SIGNIFICANT = 1.1
"""Null ratio above which a direction after the first counts as significant."""


def strength_over_noise(ratio: np.ndarray) -> np.ndarray:
    """Strength of a direction over the strength at which it emerges, from its null ratio."""
    # An eigenvalue r times the edge of its bulk has a spike rho times the threshold, with
    # r = (rho + 1 / rho) / 2   (lofi 34)
    r = np.maximum(ratio, 1.0)
    return np.asarray(r + np.sqrt(r**2 - 1))


def emergence_rows(ratios: np.ndarray, samples: int) -> np.ndarray:
    """Rows at which each direction has the null ratio 1.1, from its ratio at a number of rows."""
    # rho grows as sqrt(n), so n_k = n (rho(1.1) / rho_k)²   (lofi 34)
    return np.asarray(
        samples * (strength_over_noise(np.array(SIGNIFICANT)) / strength_over_noise(ratios)) ** 2
    )


@lru_cache(maxsize=16)
def _emergence(data: str, task: str, activation: str) -> tuple[np.ndarray, np.ndarray]:
    """Tested numbers of removed directions, and rows at which the next direction emerges."""
    X, digits = images(data)
    y = digits if task == "ten-class" else digits % 2
    n = min(1_500, ROWS[data] - 200)
    rows = random_stream(0, "images for emergence").permutation(len(X))[:n]
    blocks = [Block(None, math.inf, activation), Block("auto", None)]
    model = NeuralLoFiTransformer(blocks, scaling="none", random_state=0).fit(X[rows], y[rows])
    report = model.filters_[0]
    known = ~np.isnan(report.null_ratios).all(axis=0)
    ratios = np.nanmax(report.null_ratios[:, known], axis=0)
    # A direction cannot emerge before a stronger one.
    sizes = np.maximum.accumulate(emergence_rows(ratios, n))
    return report.null_counts[known].astype(float), sizes


def emerged_directions(data: str, task: str, activation: str, samples: int) -> float:
    """Predicted number of directions that emerge from this number of images."""
    counts, sizes = _emergence(data, task, activation)
    # On the grid of tested counts the number is interpolated in the logarithms.
    return float(np.exp(np.interp(np.log(samples), np.log(sizes), np.log(counts + 1))))
