"""Options of a learning run; the command line imports this module, so it imports little."""

from __future__ import annotations

import math
from dataclasses import dataclass

from solvable.errors import InvalidParameter

LEAST_ROWS = 20  # smallest number of rows from which an error on unseen rows is estimated


@dataclass(frozen=True)
class Request:
    """Options of `solvable learn` other than those of reading the data.

    Parameters
    ----------
    folds : int
        Parts of the data; each is predicted from the others.
    layers : int
        Filters, each with a random layer below it.
    rows : int
        Largest number of rows to learn from; a random part of a larger table is used.
    seed : int
        Seed of the folds and of the random layers.

    Raises
    ------
    InvalidParameter
        If a value is out of range.

    Examples
    --------
    >>> Request(folds=1)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: folds is 1; allowed: whole numbers from 2 to 20.
    """

    folds: int = 5
    layers: int = 1
    rows: int = 20_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least, most in (
            ("folds", 2, 20),
            ("layers", 1, 5),
            ("rows", LEAST_ROWS, None),
            ("seed", 0, None),
        ):
            value = getattr(self, name)
            if not least <= value <= (most or math.inf):
                allowed = f"from {least}" + (f" to {most}" if most else "")
                raise InvalidParameter(f"{name} is {value}; allowed: whole numbers {allowed}.")
