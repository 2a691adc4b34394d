"""Options of a learning run. The command line imports this module, so this module imports little."""

from __future__ import annotations

import math
from dataclasses import dataclass

from solvable.errors import InvalidParameter

LEAST_ROWS = 20  # smallest number of rows with which an error on unseen rows is estimated


@dataclass(frozen=True)
class Request:
    """Options of `solvable learn` other than the options for reading the data.

    Parameters
    ----------
    folds : int
        Number of folds of the data; each fold is predicted from the other folds.
    layers : int
        Number of filters, each above a random layer.
    rows : int
        Largest number of rows to learn from; a larger table is reduced to random rows.
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
