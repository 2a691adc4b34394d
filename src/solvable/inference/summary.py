"""Results in a few lines: short numbers, and long arrays by their shape."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

MOST_ENTRIES = 8
"""Longest array that is written out."""


class Summarised:
    """Base class of results whose text has a line for each field."""

    def __repr__(self) -> str:
        """Name of the class, and its fields with four digits."""
        rows = [
            f"  {one.name}: {_text(getattr(self, one.name))}"
            for one in fields(self)  # type: ignore[arg-type]
            if one.repr
        ]
        return "\n".join([type(self).__name__, *rows])


def _text(value: Any) -> str:
    """Write a value: numbers with four digits, long arrays by shape and ends, mappings a line each."""
    if isinstance(value, bool | str) or value is None:
        return str(value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_text(entry)}" for name, entry in value.items()) or "none"
    if isinstance(value, tuple | list):
        if len(value) > MOST_ENTRIES:
            return f"{len(value)} entries, the last {_text(value[-1])}"
        return ", ".join(map(_text, value))
    if isinstance(value, int | float | np.number):
        return f"{value:.4g}" if not isinstance(value, int | np.integer) else str(value)
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return _text(value.item())
        if value.ndim == 1 and value.size <= MOST_ENTRIES:
            return ", ".join(_text(entry.item()) for entry in value)
        shape = " x ".join(map(str, value.shape))
        return f"array of shape {shape}, {_text(value.min().item())} to {_text(value.max().item())}"
    return " ".join(str(value).split())[:200]
