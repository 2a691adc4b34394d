"""What is asked of a learning run; light, as the command line is built from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from solvable.errors import InvalidParameter

LEAST_ROWS = 20  # rows below which nothing can be said of unseen rows


@dataclass(frozen=True)
class Request:
    """What is asked; the options of `solvable learn` that are not about reading the data.

    Parameters
    ----------
    folds : int
        Parts of the data; each is predicted from the others.
    layers : int
        Filters, each with a layer below it.
    rows : int
        Most rows to learn from; of more, a random part is taken.
    seed : int
        Another seed deals other folds and draws other random layers.

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
