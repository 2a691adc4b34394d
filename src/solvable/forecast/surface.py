"""Fit a loss over two variables, such as parameters and tokens, with intervals by the bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter, NotConverged

FamilyName = Literal["sum", "joint"]

# Huber's threshold on the logarithm of the loss, of Hoffmann et al. 2022 (arXiv:2203.15556, Equation 4)
HUBER = 1e-3
FEWEST_CELLS, FEWEST_SIZES = 8, 3
LEAST = 1e-100
LEAST_EXPLAINED = 0.5  # share of the variance of the logarithms, below which there is no surface
MOST_CORRELATION = 0.95  # of the logarithms of the variables, above which they are one variable
FARTHEST = 30.0  # factor outside the measured range at which nothing is predicted


@dataclass(frozen=True, eq=False)
class Runs:
    """Losses of runs at sizes of two variables.

    Attributes
    ----------
    names : tuple of str
        Names of the two variables.
    sizes : ndarray, shape (n, 2)
        Sizes, above 0.
    losses : ndarray, shape (n,)
        Losses, above 0.
    notes : tuple of str
        Rows that were left out, with the reason.
    """

    names: tuple[str, str]
    sizes: np.ndarray
    losses: np.ndarray
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes, losses = np.asarray(self.sizes, dtype=float), np.asarray(self.losses, dtype=float)
        if sizes.ndim != 2 or sizes.shape[1] != 2 or losses.shape != sizes.shape[:1]:
            raise InvalidData(
                f"sizes have shape {sizes.shape} and losses {losses.shape}; allowed: (n, 2) and (n,)."
            )
        if not (np.isfinite(sizes).all() and np.isfinite(losses).all()):
            raise InvalidData("sizes or losses are not finite; allowed: finite numbers above 0.")
        for values in (sizes, losses):
            if values.size and not (values.min() > LEAST and values.max() < 1 / LEAST):
                raise InvalidData(
                    f"sizes or losses are {values.min():.3g} to {values.max():.3g}; allowed: above "
                    f"{LEAST:g} and below {1 / LEAST:g}."
                )
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "losses", losses)

    @property
    def refusal(self) -> str | None:
        """Reason for which the runs do not determine a surface; None if they do."""
        cells = np.unique(self.sizes, axis=0)
        for name, column in zip(self.names, self.sizes.T, strict=True):
            if len(np.unique(column)) < FEWEST_SIZES:
                return (
                    f"{name} has {len(np.unique(column))} different sizes; needed: at least "
                    f"{FEWEST_SIZES}."
                )
        if len(cells) < FEWEST_CELLS:
            return (
                f"there are {len(cells)} different pairs of sizes; needed: at least {FEWEST_CELLS}."
            )
        correlation = float(np.corrcoef(np.log(cells).T)[0, 1])
        if abs(correlation) > MOST_CORRELATION:
            return (
                f"{self.names[0]} and {self.names[1]} vary together (correlation {correlation:.2f} of "
                "their logarithms), so that their parts cannot be separated; needed: runs that vary one "
                "at a fixed other."
            )
        return None


@dataclass(frozen=True)
class Surface:
    r"""A fitted loss over two variables.

    .. math:: L=E+A\,x^{-\alpha}+B\,y^{-\beta}\qquad\text{or}\qquad
        L=E+\big(A\,x^{-\alpha/\beta}+B\,y^{-1}\big)^{\beta}

    Attributes
    ----------
    family : {"sum", "joint"}
        The sum (Hoffmann et al. 2022) or the joint form (Kaplan et al. 2020).
    floor, first, second : float
        E, A and B, from 0.
    alpha, beta : float
        Exponents, above 0.
    """

    family: FamilyName
    floor: float
    first: float
    second: float
    alpha: float
    beta: float

    def losses(self, sizes: np.ndarray) -> np.ndarray:
        """Fitted losses at sizes of shape (n, 2)."""
        x, y = np.asarray(sizes, dtype=float).T
        if self.family == "sum":
            return self.floor + self.first * x**-self.alpha + self.second * y**-self.beta
        inner = self.first * x ** (-self.alpha / self.beta) + self.second / y
        return np.asarray(self.floor + inner**self.beta)

    def best_split(self, product: float) -> tuple[float, float]:
        """Sizes of the least loss at a given product of the variables."""
        alpha, beta = self.alpha, self.beta
        if self.family == "sum":
            # x = G (xy)^(beta / (alpha + beta)),  G = (alpha A / (beta B))^(1 / (alpha + beta))
            ratio = alpha * self.first / (beta * self.second)
            x = ratio ** (1 / (alpha + beta)) * product ** (beta / (alpha + beta))
        else:
            # d/dx of A x^(-alpha / beta) + B x / product is 0
            power = alpha / beta
            x = (power * self.first * product / self.second) ** (1 / (power + 1))
        return float(x), float(product / x)


_STARTS = tuple((alpha, beta) for alpha in (0.2, 0.5, 1.0) for beta in (0.2, 0.5, 1.0))
_LARGEST = 300.0  # of a logarithm, so that products of exponentials are finite


def fit_surface(
    runs: Runs, family: FamilyName = "sum", *, start: Surface | None = None, rows: Any = None
) -> Surface:
    r"""Fit a surface by Huber's loss on the logarithm.

    .. math:: \min\sum_i\mathrm{Huber}_{10^{-3}}\big(\log L(x_i,y_i)-\log L_i\big)

    Parameters
    ----------
    runs : Runs
        Runs that span both variables.
    family : {"sum", "joint"}
        Form of the surface.
    start : Surface, optional
        Start of the search; nine starts without one.
    rows : ndarray of int, optional
        Rows that are fitted, with repetitions; default all.

    Returns
    -------
    Surface
        The fit with the least sum.

    Raises
    ------
    NotConverged
        If no start converges.

    Examples
    --------
    >>> x, y = (part.ravel() for part in np.meshgrid([10, 40, 160, 640], [100, 400, 1600, 6400]))
    >>> runs = Runs(("width", "rows"), np.column_stack([x, y]), 0.1 + 2 * x**-0.5 + 5 * y**-0.4)
    >>> found = fit_surface(runs)
    >>> round(found.alpha, 3), round(found.beta, 3)
    (0.5, 0.4)
    """
    from scipy.optimize import least_squares

    rows = slice(None) if rows is None else rows
    logs, target = np.log(runs.sizes[rows]), np.log(runs.losses[rows])
    middle = logs.mean(axis=0)
    centred = logs - middle

    def residuals(p: np.ndarray) -> np.ndarray:
        return _log_losses(p, centred, family)[0] - target

    def slopes(p: np.ndarray) -> np.ndarray:
        return _log_losses(p, centred, family)[1]

    def searched(p: np.ndarray, loss: str) -> Any:
        return least_squares(
            residuals, p, jac=slopes, loss=loss, f_scale=HUBER, max_nfev=400,
            bounds=([-60, -400, -400, 1e-3, 1e-3], [60, 400, 400, 8, 8]), x_scale=[1, 1, 1, 0.3, 0.3],
        )  # fmt: skip

    if start is not None:
        starts = [_parameters(start, middle)]
    else:
        # least squares from all starts, which is fast; Huber's loss from the two best ones
        third = float(np.median(target)) - np.log(3)
        tried = [
            searched(np.array([third, power * third, power * third, alpha, beta]), "linear")
            for alpha, beta in _STARTS
            for power in (1.0 if family == "sum" else 1 / beta,)
        ]
        starts = [row.x for row in sorted(tried, key=lambda row: row.cost)[:2]]
    found = [row for p in starts if np.isfinite((row := searched(p, "huber")).cost)]
    if not found:
        raise NotConverged(
            "no surface could be fitted; the losses may not fall with the variables."
        )
    return _surface(min(found, key=lambda row: row.cost).x, middle, family)


def _log_losses(
    p: np.ndarray, logs: np.ndarray, family: FamilyName
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of the loss, and its slopes in (log E, log A, log B, alpha, beta)."""
    e, a, b, alpha, beta = p
    x, y = logs.T
    floor = np.full(len(x), np.exp(e))
    if family == "sum":
        first, second = np.exp(a - alpha * x), np.exp(b - beta * y)
        whole = floor + first + second
        columns = [floor, first, second, -x * first, -y * second]
        return np.log(whole), np.stack(columns, axis=1) / whole[:, None]
    one = np.exp(np.clip(a - alpha / beta * x, -_LARGEST, _LARGEST))
    two = np.exp(np.clip(b - y, -_LARGEST, _LARGEST))
    inner = one + two
    part = np.exp(np.clip(beta * np.log(inner), -_LARGEST, _LARGEST))
    whole = floor + part
    # d part = beta part / inner d inner + part log(inner) d beta
    gain = beta * part / inner
    columns = [
        floor, gain * one, gain * two, -gain * one * x / beta,
        part * np.log(inner) + gain * one * x * alpha / beta**2,
    ]  # fmt: skip
    return np.log(whole), np.stack(columns, axis=1) / whole[:, None]


def _surface(p: np.ndarray, middle: np.ndarray, family: FamilyName) -> Surface:
    """Return to variables that are not divided by their geometric means."""
    e, a, b, alpha, beta = map(float, p)
    first = alpha * middle[0] if family == "sum" else alpha / beta * middle[0]
    second = beta * middle[1] if family == "sum" else middle[1]
    amplitudes = np.exp(np.clip([e, a + first, b + second], -_LARGEST, _LARGEST)).tolist()
    return Surface(family, amplitudes[0], amplitudes[1], amplitudes[2], alpha, beta)


def _parameters(surface: Surface, middle: np.ndarray) -> np.ndarray:
    """Inverse of :func:`_surface`, within the bounds of the search."""
    alpha, beta = surface.alpha, surface.beta
    joint = surface.family == "joint"
    shifts = (alpha / beta if joint else alpha) * middle[0], (1 if joint else beta) * middle[1]
    logs = np.log(np.maximum([surface.floor, surface.first, surface.second], 1e-300))
    p = [max(logs[0], -59), *np.clip(logs[1:] - shifts, -399, 399), alpha, beta]
    return np.clip(p, [-59, -399, -399, 2e-3, 2e-3], [59, 399, 399, 7.9, 7.9])


def drawn_surfaces(runs: Runs, best: Surface, resamples: int, seed: int) -> list[Surface]:
    """Fit resampled pairs of sizes, all runs of a pair together (the bootstrap over pairs)."""
    _, places = np.unique(runs.sizes, axis=0, return_inverse=True)
    members = [np.flatnonzero(places == cell) for cell in range(places.max() + 1)]
    stream = random_stream(seed, "surface bootstrap")
    found = []
    for _ in range(resamples):
        chosen = stream.integers(len(members), size=len(members))
        rows = np.concatenate([members[cell] for cell in chosen])
        if len(np.unique(chosen)) < 5:
            continue
        found.append(fit_surface(runs, best.family, start=best, rows=rows))
    return found


def held_out_rows(runs: Runs) -> np.ndarray:
    """Rows at the largest sizes of either variable, as far as the rest still determines a surface."""
    largest = runs.sizes.max(axis=0)
    held = (runs.sizes >= largest * (1 - 1e-9)).any(axis=1)
    rest = Runs(runs.names, runs.sizes[~held], runs.losses[~held]) if (~held).sum() > 4 else None
    if rest is None or rest.refusal is not None or held.sum() < len(held) / 10:
        # no grid: the fifth of the rows with the largest product
        order = np.argsort(np.log(runs.sizes).sum(axis=1), kind="stable")
        held = np.isin(np.arange(len(order)), order[-max(2, len(order) // 5) :])
    return np.asarray(held)


def check_sizes(runs: Runs, sizes: np.ndarray, what: str = "") -> None:
    """Refuse sizes far outside the measured ones; ``what`` describes them."""
    low, high = runs.sizes.min(axis=0) / FARTHEST, runs.sizes.max(axis=0) * FARTHEST
    for pair in np.atleast_2d(sizes):
        for name, size, least, most in zip(runs.names, pair, low, high, strict=True):
            if not least <= size <= most:
                raise InvalidParameter(
                    f"{what}{name} is {size:.3g}, more than {FARTHEST:g} times outside the measured "
                    f"range; allowed: {least:.3g} to {most:.3g}."
                )


def check_fit(runs: Runs, surface: Surface) -> None:
    """Refuse losses that do not fall as the surface does: rising, equal or random ones."""
    logs = np.log(runs.losses)
    variance = float(logs.var())
    explained = 1 - float(np.mean((logs - np.log(surface.losses(runs.sizes))) ** 2)) / max(
        variance, 1e-300
    )
    if variance < 1e-24 or explained < LEAST_EXPLAINED:
        share = 0.0 if variance < 1e-24 else max(explained, 0.0)
        raise InvalidData(
            f"the losses do not fall with {runs.names[0]} and {runs.names[1]}: a surface explains "
            f"{100 * share:.0f} % of their variance; needed: {100 * LEAST_EXPLAINED:.0f} %. Give "
            "errors or losses, not scores."
        )


def log_ratio_spread(runs: Runs, surface: Surface, rows: Sequence[int] | slice) -> float:
    """Standard deviation of the logarithm of measured over fitted losses, for five fitted parameters."""
    residual = np.log(runs.losses[rows] / surface.losses(runs.sizes[rows]))
    return float(np.sqrt((residual**2).sum() / max(len(residual) - 5, 1)))
