"""Fixed points of maps with a few unknowns, by Anderson extrapolation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.errors import NotConverged


class Anderson:
    """Extrapolation from the last three changes of a map and of its argument.

    A cautious one takes half steps, and follows long extrapolations in part: next to a threshold the
    fixed point is far away although steps are small.
    """

    def __init__(self, *, cautious: bool = False) -> None:
        self.cautious = cautious
        self.last: tuple[np.ndarray, np.ndarray] | None = None
        self.changes: list[tuple[np.ndarray, np.ndarray]] = []

    def next(self, x: np.ndarray, image: np.ndarray) -> np.ndarray:
        """Return the next point: a plain step, or the extrapolation if the last steps were small."""
        step, last = image - x, self.last
        plain = np.asarray(x + step / 2 if self.cautious else image)
        if np.abs(step).max() > 0.3:
            self.last, self.changes = None, []
            return plain
        self.last = x, step
        if last is not None:
            self.changes = [*self.changes, (x - last[0], step - last[1])][-3:]
        if not self.changes:
            return plain
        moved, change = np.array(self.changes).transpose(1, 2, 0)
        share = np.linalg.lstsq(change, step, rcond=1e-10)[0]
        ahead = step - (moved + change) @ share
        length = np.abs(ahead).max()
        if length > 0.5 and not self.cautious:
            return plain
        return np.asarray(x + ahead * min(1.0, 0.5 / length))


def fixed_point(
    step: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    within: float,
    what: str,
    remedy: str,
    history: Anderson | None = None,
    most: int = 500,
) -> tuple[np.ndarray, float]:
    """Return the fixed point and its residual, the largest change by one more step.

    The map is evaluated at the fixed point last. `what` and `remedy` complete the message of the
    `NotConverged` that is raised after `most` steps.
    """
    x, history, residual = start, history or Anderson(), np.inf
    for _ in range(most):
        image = step(x)
        residual = float(np.abs(image - x).max())
        if residual < within:
            return x, residual
        x = history.next(x, image)
    raise NotConverged(
        f"{what} did not converge: the residual is {residual:.2g} after {most} steps; allowed: below "
        f"{within:g}. {remedy}",
        {"residual": residual, "place": x.tolist()},
    )
