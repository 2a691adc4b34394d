"""Labels that mean nothing: the null that strengths are compared with."""

from __future__ import annotations

import numpy as np

from solvable.arrays import GENERATION_ROWS, random_stream
from solvable.networks.blocks import LabelCode


def relabelled(
    code: LabelCode, labels: np.ndarray, first_row: int, *, seed: int, replicate: int
) -> np.ndarray:
    r"""Labels drawn anew, independent of the samples.

    Classes are drawn with their own frequencies; a real label keeps its modulus and draws its sign,
    so that its tails stay. Draws depend on the position of the row alone, not on how the samples
    are cut into chunks.

    Parameters
    ----------
    code : LabelCode
        What the labels are.
    labels : ndarray of shape (m,)
        Encoded labels of consecutive rows.
    first_row : int
        Position of the first of them among all samples.
    seed, replicate : int
        Of the draw.

    Returns
    -------
    ndarray of shape (m,)
        Encoded labels.

    Examples
    --------
    >>> code = LabelCode(np.array([1, 1]))
    >>> whole = relabelled(code, np.zeros(10, dtype=int), 0, seed=0, replicate=0)
    >>> part = relabelled(code, np.zeros(4, dtype=int), 6, seed=0, replicate=0)
    >>> bool((whole[6:] == part).all())
    True
    """
    stop = first_row + len(labels)
    drawn = []
    for block in range(first_row // GENERATION_ROWS, -(-stop // GENERATION_ROWS)):
        start = block * GENERATION_ROWS
        uniform = random_stream(seed, "null", replicate, block).random(GENERATION_ROWS)
        drawn.append(uniform[max(first_row - start, 0) : stop - start])
    uniform = np.concatenate(drawn) if drawn else np.empty(0)
    if code.is_real:
        return np.where(uniform < 0.5, -labels, labels)
    cumulated = np.cumsum(code.counts / code.counts.sum())
    found = np.searchsorted(cumulated, uniform, side="right")
    return np.minimum(found, len(cumulated) - 1)
