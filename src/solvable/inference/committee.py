r"""Gaussian means over the units of two committees, for each activation.

Units are Gaussian with covariance C, students first. :math:`\delta=\sum_ia_ig(u_i)` is the error of the
student, with its second layer in a, and minus that of the teacher.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Protocol

import numpy as np

from solvable.errors import InvalidParameter
from solvable.hermite import gauss_legendre, gaussian_quadrature, panel_nodes
from solvable.links import make_link

Function = Callable[[np.ndarray], np.ndarray]

LARGEST_GRID = 5
"""Largest number of units together for which quadrature is used."""


class Activation(Protocol):
    """Means over Gaussian units; K is the number of students."""

    def error(self, C: np.ndarray, a: np.ndarray) -> float:
        """Half the mean square of delta."""

    def pull(self, C: np.ndarray, a: np.ndarray, K: int) -> np.ndarray:
        """E[g'(u_k) u_j delta] for student k and unit j, of shape (K, N)."""

    def spread(self, C: np.ndarray, a: np.ndarray, K: int, noise: float) -> np.ndarray:
        """E[g'(u_k) g'(u_l) (delta² + noise)] for two students, of shape (K, K)."""

    def outer(self, C: np.ndarray, a: np.ndarray, K: int) -> np.ndarray:
        """E[g(u_k) delta] of each student."""


class _Pairs(ABC):
    """Activations for which the means of two, three and four units are known."""

    @abstractmethod
    def pairs(self, C: np.ndarray) -> np.ndarray:
        """I_2(i, j) = E[g(u_i) g(u_j)]."""

    def error(self, C: np.ndarray, a: np.ndarray) -> float:
        """Half the mean square of delta."""
        return float(a @ self.pairs(C) @ a) / 2

    def outer(self, C: np.ndarray, a: np.ndarray, K: int) -> np.ndarray:
        """E[g(u_k) delta] of each student."""
        return np.asarray(self.pairs(C)[:K] @ a)


class Erf(_Pairs):
    """g(u) = erf(u / sqrt 2), by the integrals of Saad and Solla (online-learning 3)."""

    def pairs(self, C: np.ndarray) -> np.ndarray:
        """I_2 = (2 / pi) arcsin of the correlation of units with an added variance of 1."""
        c = np.sqrt(1 + np.diag(C))
        return np.asarray(2 / np.pi * np.arcsin(np.clip(C / np.outer(c, c), -1, 1)))

    def pull(self, C: np.ndarray, a: np.ndarray, K: int) -> np.ndarray:
        """Sum over i of a_i I_3(k, j, i)."""
        one = 1 + np.diag(C)
        head = C[:K]
        room = one[:K, None] * one - head**2
        share = a / np.sqrt(room)  # (K, N): index i
        # (C_ji (1 + C_kk) - C_kj C_ki) / (1 + C_kk), summed over i
        return np.asarray(
            2 / np.pi * (share @ C - head * np.sum(share * head, axis=1)[:, None] / one[:K, None])
        )

    def spread(self, C: np.ndarray, a: np.ndarray, K: int, noise: float) -> np.ndarray:
        """Sum over i, j of a_i a_j I_4(k, l, i, j), and the noise times E[g' g']."""
        one = 1 + np.diag(C)
        first, second = one[:K, None], one[None, :K]
        kl = C[:K, :K]
        L4 = first * second - kl**2
        # covariances of i given k and l, each with an added variance of 1
        ki, li = C[:K, None, :], C[None, :K, :]
        solved_k = (second[..., None] * ki - kl[..., None] * li) / L4[..., None]
        solved_l = (first[..., None] * li - kl[..., None] * ki) / L4[..., None]
        rest = (
            C
            - solved_k[..., :, None] * ki[..., None, :]
            - solved_l[..., :, None] * li[..., None, :]
        )
        size = np.sqrt(1 + np.diagonal(rest, axis1=-2, axis2=-1))
        angle = np.arcsin(np.clip(rest / size[..., :, None] / size[..., None, :], -1, 1))
        total = 4 / np.pi**2 / np.sqrt(L4) * (angle @ a @ a)
        return np.asarray(total + noise * 2 / np.pi / np.sqrt(L4))


class Quadratic(_Pairs):
    """g(u) = u², by Wick's theorem (online-learning 4)."""

    def pairs(self, C: np.ndarray) -> np.ndarray:
        """I_2 = C_ii C_jj + 2 C_ij²."""
        return np.asarray(np.outer(np.diag(C), np.diag(C)) + 2 * C**2)

    def pull(self, C: np.ndarray, a: np.ndarray, K: int) -> np.ndarray:
        """2 E[u_k u_j delta]."""
        return np.asarray(2 * C * (a @ np.diag(C)) + 4 * (C * a) @ C)[:K]

    def spread(self, C: np.ndarray, a: np.ndarray, K: int, noise: float) -> np.ndarray:
        """4 E[u_k u_l (delta² + noise)]."""
        CDC, mean = (C * a) @ C, float(a @ np.diag(C))
        square = float(a @ C**2 @ a)
        total = C * (mean**2 + 2 * square + noise) + 4 * mean * CDC + 8 * (CDC * a) @ C
        return np.asarray(4 * total[:K, :K])


class Linear(_Pairs):
    """g(u) = u."""

    def pairs(self, C: np.ndarray) -> np.ndarray:
        """I_2 = C."""
        return C

    def pull(self, C: np.ndarray, a: np.ndarray, K: int) -> np.ndarray:
        """E[u_j delta], for every student."""
        return np.tile(C @ a, (K, 1))

    def spread(self, C: np.ndarray, a: np.ndarray, K: int, noise: float) -> np.ndarray:
        """E[delta²] + noise."""
        return np.full((K, K), float(a @ C @ a) + noise)


def _correlation(C: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.maximum(np.diagonal(C, axis1=-2, axis2=-1), 1e-300))
    return np.clip(C / size[..., :, None] / size[..., None, :], -1.0, 1.0)


def _both_positive(r: np.ndarray) -> np.ndarray:
    """Probability that two units of this correlation are positive."""
    return 0.25 + np.arcsin(np.clip(r, -1, 1)) / (2 * np.pi)


class Relu(_Pairs):
    """g(u) = max(u, 0), by orthant probabilities (online-learning 5)."""

    def pairs(self, C: np.ndarray) -> np.ndarray:
        """I_2 = sqrt(det) / (2 pi) + C_ij theta, with the probability theta that both are positive."""
        return _root_of_minors(C) / (2 * np.pi) + C * _both_positive(_correlation(C))

    def pull(self, C: np.ndarray, a: np.ndarray, K: int) -> np.ndarray:
        """Sum over i of a_i I_3(k, j, i)."""
        roots, theta = _root_of_minors(C)[:K], _both_positive(_correlation(C))[:K]
        head = C[:K] / (2 * np.pi * np.diag(C)[:K, None])
        return np.asarray(head * (roots @ a)[:, None] + (theta * a) @ C)

    def spread(self, C: np.ndarray, a: np.ndarray, K: int, noise: float) -> np.ndarray:
        """Sum over i, j of a_i a_j I_4(k, l, i, j), and the noise times E[g' g']."""
        total = noise * _both_positive(_correlation(C))[:K, :K]
        for units, students, place in _quadruples(K, len(C)):
            blocks = C[units[:, :, None], units[:, None, :]]
            both = a[units[:, 0]] * a[units[:, place]]
            np.add.at(total, tuple(students.T), both * _orthant_mean(blocks, place))
        return np.asarray(total)


def _root_of_minors(C: np.ndarray) -> np.ndarray:
    """Square roots of the determinants of all pairs of units."""
    power = np.diag(C)
    return np.sqrt(np.maximum(np.outer(power, power) - C**2, 0.0))


@lru_cache(maxsize=16)
def _quadruples(K: int, N: int) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Groups of (k, l, i, j) by number of distinct units, and i = j.

    Returns for each group the distinct units, with i and j first, the students (k, l), and j's place.
    """
    groups: dict[tuple[int, int], list[tuple[list[int], tuple[int, int]]]] = {}
    for k, other, i, j in product(range(K), range(K), range(N), range(N)):
        units = list(dict.fromkeys((i, j, k, other)))
        groups.setdefault((len(units), int(i != j)), []).append((units, (k, other)))
    return [
        (np.array([units for units, _ in rows]), np.array([kl for _, kl in rows]), place)
        for (_, place), rows in groups.items()
    ]


def _orthant_mean(C: np.ndarray, j: int) -> np.ndarray:
    """E[u_0 u_j 1(all u > 0)] for covariances (T, s, s)."""
    size = C.shape[-1]
    total = C[:, 0, j] * _orthant(_correlation(C))
    # Stein's lemma twice: a step at 0 becomes the density there times a mean given u_q = 0
    for q in range(size):
        if q == j:
            continue
        given = C - C[:, :, q, None] * C[:, None, q, :] / C[:, q, q][:, None, None]
        inner = np.zeros(len(C))
        for r in range(size):
            if r != q:
                power = np.maximum(given[:, r, r], 1e-14 * C[:, r, r])
                left = [place for place in range(size) if place not in (q, r)]
                again = given - given[:, :, r, None] * given[:, None, r, :] / power[:, None, None]
                rest = _correlation(again[:, left][:, :, left])
                inner += given[:, j, r] / np.sqrt(2 * np.pi * power) * _orthant(rest)
        total = total + C[:, 0, q] / np.sqrt(2 * np.pi * C[:, q, q]) * inner
    return np.asarray(total)


def _orthant(r: np.ndarray) -> np.ndarray:
    """Probability that 0 to 4 units with correlations (T, s, s) are all positive."""
    size = r.shape[-1]
    if size < 2:
        return np.full(len(r), 0.5**size)
    pairs = [(a, b) for a in range(size) for b in range(a)]
    if size < 4:
        return 0.5**size + sum(np.arcsin(r[:, a, b]) for a, b in pairs) / (2**size * np.pi / 2)
    # Plackett: derivative by a factor t on all correlations; t = sin(angle) removes the singularity of
    # a correlation of 1
    unit, weights = gauss_legendre(24)
    angle = (unit + 1) * np.pi / 4
    t = np.sin(angle)[:, None]
    total = np.full(len(r), 1 / 16)
    for a, b in pairs:
        c, d = (place for place in range(4) if place not in (a, b))
        ab = t * r[:, a, b]
        room = np.maximum(1 - ab**2, 1e-14)
        ca, cb, da, db, cd = (t * r[:, x, y] for x, y in ((c, a), (c, b), (d, a), (d, b), (c, d)))
        top = cd - (ca * da + cb * db - ab * (ca * db + cb * da)) / room
        left = 1 - (ca**2 + cb**2 - 2 * ab * ca * cb) / room
        right = 1 - (da**2 + db**2 - 2 * ab * da * db) / room
        partial = top / np.sqrt(np.maximum(left * right, 1e-28))
        slope = r[:, a, b] / (2 * np.pi * np.sqrt(room)) * _both_positive(partial)
        total += (weights * np.pi / 4 * np.cos(angle)) @ slope
    return np.asarray(total)


LARGEST_SLOPE_ERROR = 0.01
"""Largest relative error of the mean squared slope of a unit on the grid."""


class Smooth:
    """Any smooth activation by a grid closed under signs and exchanges of units (online-learning 6)."""

    def __init__(self, function: Function, derivative: Function) -> None:
        self.function, self.derivative = function, derivative
        self._last: tuple[bytes, tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None

    def _values(self, C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Units, their activations, and probabilities at the nodes, kept for the next call."""
        if self._last is None or self._last[0] != C.tobytes():
            self._last = C.tobytes(), self._computed(C)
        return self._last[1]

    def _computed(self, C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # The symmetric root keeps the symmetries of the grid, so that quadrature errors do not start an
        # escape from a plateau.
        x, chance = _grid(len(C))
        level, vectors = np.linalg.eigh(C)
        u = x @ (vectors * np.sqrt(np.maximum(level, 0.0))) @ vectors.T
        return u, self.function(u), chance

    def check(self, C: np.ndarray) -> None:
        """Refuse an activation whose slopes the grid does not resolve at this covariance."""
        u, _, chance = self._values(C)
        x, weights = panel_nodes(np.linspace(-9, 9, 400), 8)
        weights = weights * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
        for unit, variance in zip(u.T, np.diag(C), strict=True):
            exact = float(weights @ self.derivative(np.sqrt(variance) * x) ** 2)
            off = abs(float(chance @ self.derivative(unit) ** 2) - exact) / exact
            if off > LARGEST_SLOPE_ERROR:
                raise InvalidParameter(
                    f"the grid of {len(u)} nodes misses the mean squared slope of the activation by "
                    f"{100 * off:.2g} %; allowed: up to {100 * LARGEST_SLOPE_ERROR:g} %. Take a function "
                    "that is less steep, or smaller weights."
                )

    def error(self, C: np.ndarray, a: np.ndarray) -> float:
        """Half the mean square of delta."""
        _, g, chance = self._values(C)
        return float(chance @ (g @ a) ** 2) / 2

    def pull(self, C: np.ndarray, a: np.ndarray, K: int) -> np.ndarray:
        """E[g'(u_k) u_j delta]."""
        u, g, chance = self._values(C)
        return np.asarray((self.derivative(u[:, :K]) * (chance * (g @ a))[:, None]).T @ u)

    def spread(self, C: np.ndarray, a: np.ndarray, K: int, noise: float) -> np.ndarray:
        """E[g'(u_k) g'(u_l) (delta² + noise)]."""
        u, g, chance = self._values(C)
        slopes = self.derivative(u[:, :K])
        return np.asarray((slopes * (chance * ((g @ a) ** 2 + noise))[:, None]).T @ slopes)

    def outer(self, C: np.ndarray, a: np.ndarray, K: int) -> np.ndarray:
        """E[g(u_k) delta]."""
        _, g, chance = self._values(C)
        return np.asarray(g[:, :K].T @ (chance * (g @ a)))


@lru_cache(maxsize=4)
def _grid(units: int) -> tuple[np.ndarray, np.ndarray]:
    """Tensor grid of 16 Gauss-Hermite nodes per unit, without weights below 1e-10."""
    nodes, weights = gaussian_quadrature(16)
    points, chance = np.zeros((1, 0)), np.ones(1)
    for _ in range(units):
        points = np.column_stack([np.repeat(points, 16, axis=0), np.tile(nodes, len(points))])
        chance = np.outer(chance, weights).ravel()
        # a weight never grows by further factors
        points, chance = points[chance > 1e-10], chance[chance > 1e-10]
    return points, chance / chance.sum()


CLOSED: dict[str, type[Erf | Relu | Quadratic | Linear]] = {
    "erf": Erf, "relu": Relu, "quadratic": Quadratic, "linear": Linear
}  # fmt: skip


def activation_of(name: str, units: int) -> Activation:
    """Means of an activation by name or formula, for this number of units together."""
    if name in CLOSED:
        return CLOSED[name]()
    link = make_link(name, standardised=False)
    if link.breakpoints:
        raise InvalidParameter(
            f"the activation {name!r} has kinks at {list(link.breakpoints)}, at which quadrature errors "
            f"start an escape; allowed: {', '.join(CLOSED)}, or a smooth formula."
        )
    if units > LARGEST_GRID:
        raise InvalidParameter(
            f"the activation {name!r} has {units} units together; allowed: at most {LARGEST_GRID} by "
            f"quadrature, or one of {', '.join(CLOSED)}."
        )
    step = 2e-3

    def derivative(u: np.ndarray) -> np.ndarray:
        near, far = link(u + step) - link(u - step), link(u + 2 * step) - link(u - 2 * step)
        return np.asarray((8 * near - far) / (12 * step))

    return Smooth(link, derivative)
