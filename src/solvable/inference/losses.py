r"""Convex losses with their proximal maps, and penalties, of an empirical risk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_real
from solvable.errors import InvalidParameter, unknown_choice

Prox = Callable[[np.ndarray, np.ndarray, float], np.ndarray]
"""Proximal operator of labels, predictions before the sample is seen, and step V."""

Value = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Loss of labels and predictions."""

CLASSIFIERS = ("logistic", "hinge")
"""Losses of labels -1 and 1."""


@dataclass(frozen=True)
class Loss:
    r"""A convex loss of a label and a prediction.

    .. math:: \ell(y,z),\qquad\mathrm{prox}_{V\ell(y,\cdot)}(\omega)
        =\arg\min_z\Big[\ell(y,z)+\frac{(z-\omega)^2}{2V}\Big].

    Parameters
    ----------
    name : {"square", "logistic", "hinge", "huber"}, optional
        :math:`\frac12(y-z)^2`, :math:`\log(1+e^{-yz})`, :math:`\max(0,1-yz)`, or the square loss that
        becomes linear where \|y - z\| exceeds the width. Omit it for a loss of your own.
    width : float, above 0
        Width of the Huber loss.
    prox : callable, optional
        Proximal operator ``prox(y, omega, V)`` of a loss of your own, for arrays y and omega of the same
        shape and a number V > 0.
    value : callable, optional
        Loss ``value(y, z)`` of your own, entry by entry. Without ``prox``, the proximal operator is
        computed by bisection of the slope. Without ``value``, the training loss is unknown.

    Raises
    ------
    InvalidParameter
        If the name is unknown, a function returns NaN, the loss is not convex, or ``prox`` does not
        minimise ``value``.

    Notes
    -----
    A function is the proximal operator of a convex loss if it increases, and at most as fast as its
    argument (Moreau 1965); this is tested at labels -1 and 1. Backed by
    ``tests/inference/test_losses.py``.

    Examples
    --------
    >>> Loss("hinge").prox(np.ones(3), np.array([-1.0, 0.5, 2.0]), 1.0)
    array([0., 1., 2.])
    >>> Loss(value=lambda y, z: np.abs(y - z)).prox(np.ones(1), np.zeros(1), 0.25).round(6)
    array([0.25])
    """

    name: str | None = None
    width: float = 1.0
    prox_function: Prox | None = None
    value_function: Value | None = None

    def __init__(
        self,
        name: str | Prox | None = None,
        width: float = 1.0,
        *,
        prox: Prox | None = None,
        value: Value | None = None,
    ) -> None:
        check_real("width", width, 0.0)
        if callable(name):
            name, prox = None, name
        name = name and str(name).lower()
        for key, entry in (
            ("name", name),
            ("width", float(width)),
            ("prox_function", prox),
            ("value_function", value),
        ):
            object.__setattr__(self, key, entry)
        if name is not None:
            if name not in ("square", "huber", *CLASSIFIERS):
                raise InvalidParameter(
                    unknown_choice("the loss", name, ("square", "huber", *CLASSIFIERS))
                )
            if prox is not None or value is not None:
                raise InvalidParameter(
                    f"the loss {name!r} was given with a function; allowed: a name, or functions alone."
                )
            if name == "huber" and not width > 0:
                raise InvalidParameter(f"width is {width}; allowed: above 0.")
        elif prox is None and value is None:
            raise InvalidParameter("the loss has no name; allowed: a name, prox or value.")
        else:
            self._check()

    @property
    def shown(self) -> str:
        """Name for messages."""
        return self.name or "of your own"

    def force(self, y: np.ndarray, omega: np.ndarray, V: float) -> np.ndarray:
        """Message (prox - omega) / V of samples with labels y."""
        # (empirical-risk 2)
        match self.name:
            case "square":
                return np.asarray((y - omega) / (1 + V))
            case "huber":
                return np.clip((y - omega) / (1 + V), -self.width, self.width)
            case "hinge":
                return np.asarray(y * np.clip((1 - y * omega) / V, 0.0, 1.0))
            case "logistic":
                return np.asarray(y * _logistic_force(y * omega, V))
        if self.prox_function is not None:
            with np.errstate(all="ignore"):
                end = np.asarray(self.prox_function(y, omega, V), dtype=np.float64)
            if end.shape != np.shape(omega) or not np.isfinite(end).all():
                raise InvalidParameter(
                    f"prox returned shape {end.shape} for {np.shape(omega)}, or NaN, at V = {V:.4g}; "
                    "allowed: a finite number for each entry."
                )
            return np.asarray((end - omega) / V)
        return (self._bisected(y, omega, V) - omega) / V

    def prox(self, y: np.ndarray, omega: np.ndarray, V: float) -> np.ndarray:
        """Proximal map of omega for labels y."""
        y, omega = np.broadcast_arrays(np.asarray(y, np.float64), np.asarray(omega, np.float64))
        return omega + V * self.force(y, omega, V)

    def values(self, y: np.ndarray, z: np.ndarray) -> np.ndarray | None:
        """Losses of predictions z; None for a proximal operator alone."""
        match self.name:
            case "square":
                return np.asarray((y - z) ** 2 / 2)
            case "huber":
                near = np.minimum(np.abs(y - z), self.width)
                return np.asarray(near * (np.abs(y - z) - near / 2))
            case "hinge":
                return np.maximum(1 - y * z, 0.0)
            case "logistic":
                return np.logaddexp(0.0, -y * z)
        if self.value_function is None:
            return None
        with np.errstate(all="ignore"):
            found = np.asarray(self.value_function(y, z), dtype=np.float64)
        if not np.isfinite(found).all():
            raise InvalidParameter("value returned NaN or infinity; allowed: finite numbers.")
        return found

    def kinks(self, y: float, V: float) -> tuple[float, ...]:
        """Points omega at which the slope of the message jumps."""
        if self.name == "hinge":
            return y * (1 - V), y
        if self.name == "huber":
            return y - self.width * (1 + V), y + self.width * (1 + V)
        return ()

    def _bisected(self, y: np.ndarray, omega: np.ndarray, V: float) -> np.ndarray:
        """Compute the proximal map as the root of l'(z) + (z - omega) / V."""
        step = 1e-5

        def slope(z: np.ndarray) -> np.ndarray:
            above, below = self.values(y, z + step), self.values(y, z - step)
            return np.asarray((np.asarray(above) - np.asarray(below)) / (2 * step))

        # the slope at the end lies between 0 and the slope at omega, because it increases
        far = omega - V * slope(omega)
        low, high = np.minimum(omega, far), np.maximum(omega, far)
        for _ in range(32):
            middle = (low + high) / 2
            right = slope(middle) + (middle - omega) / V > 0
            low, high = np.where(right, low, middle), np.where(right, middle, high)
        return np.asarray((low + high) / 2)

    def _check(self) -> None:
        """Raise unless the given functions are those of a convex loss."""
        grid = np.linspace(-6.0, 6.0, 241)
        for y in (np.full(grid.size, -1.0), np.ones(grid.size)):
            if self.value_function is not None:
                found = np.asarray(self.values(y, grid))
                if found.shape != grid.shape:
                    raise InvalidParameter(
                        f"value returned shape {found.shape} for {grid.shape}; allowed: the same."
                    )
                bend = np.diff(found, 2)
                if (bend < -1e-9 * (1 + np.abs(found).max())).any():
                    place = grid[1:-1][np.argmin(bend)]
                    raise InvalidParameter(
                        f"the loss is not convex at z = {place:.3g} for label {y[0]:g}; allowed: a "
                        "convex function of the prediction."
                    )
            for V in (0.1, 1.0, 10.0) if self.prox_function is not None else ():
                self._check_prox(y, grid, V)

    def _check_prox(self, y: np.ndarray, grid: np.ndarray, V: float) -> None:
        end = self.prox(y, grid, V)
        rise = np.diff(end) / np.diff(grid)
        if not ((rise > -1e-6) & (rise < 1 + 1e-6)).all():
            raise InvalidParameter(
                f"the loss is not convex: its proximal operator rises by {rise.min():.3g} to "
                f"{rise.max():.3g} times its argument at V = {V:g}; allowed: 0 to 1."
            )
        if self.value_function is not None:
            cost, left, right = (
                np.asarray(self.values(y, z)) + (z - grid) ** 2 / (2 * V)
                for z in (end, end - 1e-3, end + 1e-3)
            )
            if (cost > np.minimum(left, right) + 1e-7 * (1 + np.abs(cost))).any():
                raise InvalidParameter(
                    f"prox does not minimise value(y, z) + (z - omega)² / (2 V) at V = {V:g}; allowed: "
                    "a prox and a value of the same loss."
                )


def _logistic_force(u: np.ndarray, V: float) -> np.ndarray:
    """Message sigma(-p) of the logistic loss, where p = u + V sigma(-p)."""
    from scipy.special import expit

    # Newton's method from u alone cycles for V above about 20, so each step stays in a bracket.
    low, high = np.asarray(u, dtype=np.float64), u + V
    p = np.clip(0.0, low, high)
    for _ in range(100):
        s = expit(-p)
        excess = p - u - V * s
        low, high = np.where(excess < 0, p, low), np.where(excess < 0, high, p)
        ahead = p - excess / (1 + V * s * (1 - s))
        ahead = np.where((ahead >= low) & (ahead <= high), ahead, (low + high) / 2)
        moved, p = np.abs(ahead - p).max(initial=0.0), ahead
        if moved < 1e-14 * (1 + V):
            break
    return np.asarray(expit(-p))


PENALTIES = ("l2", "l1", "elastic net")
"""Names of penalties."""


@dataclass(frozen=True)
class Penalty:
    r"""Penalty on the weights that is added to the sum of the losses.

    .. math:: \text{l2: }\frac\lambda2|w|^2,\qquad\text{l1: }\lambda|w|_1,\qquad
        \text{elastic net: }\lambda_1|w|_1+\frac{\lambda_2}2|w|^2.

    Parameters
    ----------
    name : {"l2", "l1", "elastic net"}
        Kind of penalty.
    strength : float, at least 0
        :math:`\lambda`, or :math:`\lambda_1` of the elastic net.
    ridge : float, at least 0
        :math:`\lambda_2` of the elastic net.

    Raises
    ------
    InvalidParameter
        If the name is unknown or a strength is negative.

    Notes
    -----
    In scikit-learn, for n samples: ``Ridge(alpha=strength)``, ``Lasso(alpha=strength / n)``,
    ``LogisticRegression(C=1 / strength)`` and ``LinearSVC(C=1 / strength, loss="hinge")``, each without
    intercept; ``ElasticNet(alpha=(strength + ridge) / n, l1_ratio=strength / (strength + ridge))``.
    Backed by ``tests/inference/test_data.py``.

    Examples
    --------
    >>> Penalty("elastic net", 0.2, 0.1)
    Penalty(name='elastic net', strength=0.2, ridge=0.1)
    """

    name: str
    strength: float
    ridge: float = 0.0

    def __post_init__(self) -> None:
        name = str(self.name).lower().replace("_", " ").replace("-", " ")
        object.__setattr__(self, "name", name)
        if name not in PENALTIES:
            raise InvalidParameter(unknown_choice("the penalty", self.name, PENALTIES))
        check_real("strength", self.strength, 0.0)
        check_real("ridge", self.ridge, 0.0)
        if self.ridge and self.name != "elastic net":
            raise InvalidParameter(
                f"ridge is {self.ridge} for the penalty {self.name}; allowed: the elastic net alone."
            )

    @property
    def l1(self) -> float:
        """Strength of the sum of moduli."""
        return 0.0 if self.name == "l2" else float(self.strength)

    @property
    def l2(self) -> float:
        """Strength of half the sum of squares."""
        return float(self.strength if self.name == "l2" else self.ridge)
