"""Signs of eigenvectors that do not depend on the linear algebra library."""

from __future__ import annotations

import numpy as np


def oriented(columns: np.ndarray) -> np.ndarray:
    """Columns up to their signs, so that the largest entry of each is positive.

    The signs of computed eigenvectors differ between machines.
    """
    largest = np.argmax(np.abs(columns), axis=0)
    flipped = columns[largest, np.arange(columns.shape[1])] < 0
    return np.where(flipped, -columns, columns)
