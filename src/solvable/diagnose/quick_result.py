"""Numbers of one matrix that ``solvable diagnose --quick`` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class QuickRow:
    """Numbers of one matrix, for sorting and plotting.

    Parameters
    ----------
    name : str
        Name of the array.
    shape : tuple of int
        Its shape.
    dtype : str
        Type of the stored entries.
    norm, largest, stable_rank : float or None
        Frobenius norm, largest singular value, and squared ratio of the two.
    edge : float or None
        Upper edge of a bulk of noise; None if no bulk fits (p-value below 0.02).
    beyond : int or None
        Number of singular values above the noise, without the comparison with random signs.
    exponent : float or None
        Exponent of a power law for the largest squared singular values, if no bulk fits. It is not
        tested.
    n_tail : int
        Number of values to which the exponent was fitted.
    reason : str
        Reason why numbers are missing.
    layout : str
        Layout by which a fused projection was split.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    norm: float | None = None
    largest: float | None = None
    stable_rank: float | None = None
    edge: float | None = None
    beyond: int | None = None
    exponent: float | None = None
    n_tail: int = 0
    reason: str = ""
    layout: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, for JSON."""
        return asdict(self) | {"shape": list(self.shape)}
