"""Find rows that are equal in every column."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from solvable.data.columns import row_blocks
from solvable.data.table import Table


def first_equal_rows(tables: Sequence[Table], *columns: np.ndarray) -> np.ndarray:
    """Return, for each row, the first row equal to it in all columns; missing values are equal."""
    matrices = [table.numeric for table in tables]
    matrices += [column[:, None] for column in columns]
    texts = [column for table in tables for column in table.texts.values()]
    if texts:
        matrices.append(np.column_stack([_codes(column) for column in texts]))
    widest = max(matrices, key=lambda matrix: matrix.shape[1])
    seen: dict[bytes, int] = {}
    first = np.empty(len(widest), dtype=np.int64)
    for rows in row_blocks(widest):
        block = np.hstack([_bytes(matrix[rows]) for matrix in matrices])
        for i, row in enumerate(block, rows.start):
            # Digests save memory: a dictionary of the rows themselves would be a copy of the table.
            first[i] = seen.setdefault(blake2b(row, digest_size=16).digest(), i)
    return first


def _codes(column: np.ndarray) -> np.ndarray:
    """Return an integer code of each text in a column; None has a code of its own."""
    number: dict[str | None, int] = {}
    codes = (number.setdefault(text, len(number)) for text in column.tolist())
    return np.fromiter(codes, dtype=np.int32, count=len(column))


def _bytes(block: np.ndarray) -> np.ndarray:
    """Return the bytes of each row; equal numbers have identical bytes."""
    if block.dtype.kind == "f":
        block = block + block.dtype.type(0.0)  # turns -0.0 into 0.0
        block[np.isnan(block)] = np.nan  # gives all NaN the same bits
    block = np.ascontiguousarray(block)
    return block.view(np.uint8).reshape(len(block), block.dtype.itemsize * block.shape[1])
