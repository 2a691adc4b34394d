"""Expected time and memory of the diagnosis of one matrix, of a head, and the limit for all together."""

from __future__ import annotations

import math

from solvable.arrays import check_real
from solvable.data.weights.stored import StoredArray
from solvable.diagnose.roles import entries_read
from solvable.memory import available_bytes

BUFFERS = 30e6  # bytes of a job besides its arrays: a block of columns, the bootstraps

MEMORY = 4e9  # bytes that all processes together may hold, unless the user allows more


def memory_limit(gigabytes: float | None) -> float:
    """Return the limit in bytes: as asked, or 4 GB, but at most half of the free memory."""
    if gigabytes is not None:
        check_real("--memory", gigabytes, 0.5)
        return 1e9 * gigabytes
    # Half of the free memory is left to other programs.
    return min(MEMORY, available_bytes() / 2)


def cost_of(shape: tuple[int, ...], laws: bool = True) -> float:
    """Expected seconds of a matrix: its product with itself, the eigenvalues, and the bootstraps."""
    if len(shape) < 2 or 0 in shape:
        return 0.0
    size = math.prod(shape)
    short = min(shape[0], size // shape[0])
    return (1.0 if laws else 0.05) + 0.4 * short * (2 * short**2 + size) / 2000**3


def bytes_of(stored: StoredArray, copies: int = 1, *, controls: bool = True) -> float:
    """Return the largest number of bytes that the diagnosis of a matrix holds at once."""
    # ``copies``: matrices of this size that are needed together; 1 without initial weights.
    size = math.prod(stored.shape)
    short = min(stored.shape[0], size // max(stored.shape[0], 1)) if stored.shape else 0
    entry = 8 if stored.dtype.lower() in ("f64", "float64") else 4
    # Entries as stored, or a whole fused array, next to the array that is returned.
    whole = entries_read(stored)
    read = entry * size + (0.0 if stored.private and whole == size else 6.0 * whole)
    # The matrix, its copy under random signs in single precision, and the product with itself.
    single = entry == 4 and stored.private and copies == 1
    copy = 4.0 if controls and not single else 0.0
    return max(read, (entry * copies + copy) * size + 8.0 * short**2) + BUFFERS


def bytes_of_pair(query: StoredArray, key: StoredArray | None) -> float:
    """Return the largest number of bytes held while heads are cut out of their arrays."""
    sizes = [math.prod(stored.shape) for stored in (query, key) if stored is not None]
    return 4.0 * sum(sizes) + 2.0 * max(sizes) + BUFFERS


def cost_of_heads(count: int, width: int, inputs: int) -> float:
    """Expected seconds of heads: 240 products of factors under random signs for each."""
    return count * (0.05 + 1e-8 * width**2 * inputs)


def cost_of_adapter(first: StoredArray, second: StoredArray) -> float:
    """Expected seconds of a low-rank adapter, which is tested as one head of its rank."""
    sides = sum(math.prod(stored.shape) for stored in (first, second)) // first.shape[0]
    return cost_of_heads(1, first.shape[0], sides)
