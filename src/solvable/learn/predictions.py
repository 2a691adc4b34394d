"""Predictions as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

import numpy as np


def csv_text(columns: Mapping[str, np.ndarray]) -> str:
    """Write columns of equal length as CSV.

    Parameters
    ----------
    columns : mapping of str to ndarray
        By name.

    Returns
    -------
    str
        A header line, then one line per row; missing numbers are empty.

    Examples
    --------
    >>> print(csv_text({"row": np.array([1, 2]), "x": np.array([0.5, np.nan])}), end="")
    row,x
    1,0.5
    2,
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(one.tolist() for one in columns.values()), strict=True):
        writer.writerow([_cell(value) for value in row])
    return stream.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.10g}"
    return "" if value is None else value
