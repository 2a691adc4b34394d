r"""State evolution and message passing for a few directions at once, with a matrix of overlaps.

.. math:: R=\alpha E[gg^\top],\qquad Q=E[f(R,b)f(R,b)^\top],\quad b=Rw+R^{1/2}\xi .
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, permutations, product

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.inference.fixed_point import fixed_point
from solvable.inference.multi_index import MultiIndexOutput, grid_for, largest_overlap
from solvable.inference.priors import Mixture, Prior
from solvable.spectra.roots import bracketed_root

MOST_PARTS = 64
"""Largest number of components of the prior of all entries of one coordinate."""

PLAIN = 200
"""Largest number of plain steps, which stay on the branch of the start, before extrapolation."""

SMALL = 1e-3
"""Overlap of a start at which nothing is known; without it symmetric estimates stay symmetric."""


class ProductPrior:
    """Independent entries of K signals with one mixture each, in units of the root of its mean square."""

    def __init__(self, prior: Prior, directions: int) -> None:
        if not isinstance(prior, Mixture) or prior.shares.size**directions > MOST_PARTS:
            raise InvalidParameter(
                f"the prior is {prior!r} for {directions} directions; allowed: Gaussian, Rademacher, "
                f"Discrete or GaussBernoulli, with at most {MOST_PARTS} combinations of components."
            )
        self.K, self.rho = directions, prior.second_moment
        parts = np.array(list(product(range(prior.shares.size), repeat=directions)))
        self.logs = np.log(prior.shares)[parts].sum(axis=1)
        self.means = prior.means[parts] / np.sqrt(self.rho)
        self.variances = prior.variances[parts] / self.rho
        components = sorted(zip(prior.means, prior.variances, prior.shares, strict=True))
        mirrored = sorted(zip(-prior.means, prior.variances, prior.shares, strict=True))
        self.even = np.allclose(components, mirrored)
        self.gaussian = prior.shares.size == 1 and self.even
        # overlaps at the prior, and second moments: means correlate the indices
        mean = 0.0 if self.even else prior.mean
        self.known = np.full((directions, directions), mean**2 / self.rho)
        self.second = self.known + (1 - self.known[0, 0]) * np.eye(directions)
        self.start = np.full(directions, prior.mean / np.sqrt(self.rho))

    def denoise(self, b: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Posterior means (n, K), covariances (n, K, K) and log evidences of rows of b (inference 11)."""
        logs, centres, spreads = [], [], []
        for log, mean, variance in zip(self.logs, self.means, self.variances, strict=True):
            # C = (1 + S R)^-1 S, with posterior mean m + C (b - R m)
            inside = np.eye(self.K) + variance[:, None] * R
            C = np.linalg.solve(inside, np.diag(variance))
            rest = b - R @ mean
            centres.append(mean + rest @ C.T)
            spreads.append(C)
            form = np.einsum("na,ab,nb->n", rest, C, rest) / 2
            logs.append(
                log
                - np.linalg.slogdet(inside)[1] / 2
                + b @ mean
                - float(mean @ R @ mean) / 2
                + form
            )
        weights, centre = np.array(logs), np.array(centres)
        top = weights.max(axis=0)
        share = np.exp(weights - top)
        total = share.sum(axis=0)
        share /= total
        estimate = np.einsum("cn,cna->na", share, centre)
        away = centre - estimate
        covariance = np.einsum("cn,cna,cnb->nab", share, away, away)
        covariance += np.einsum("cn,cab->nab", share, np.array(spreads))
        return estimate, covariance, top + np.log(total)

    def overlap(self, R: np.ndarray) -> tuple[np.ndarray, float]:
        """Overlap Q = E[f f^T] at precision R, and the information of b about an entry."""
        if self.gaussian:
            inside = np.eye(self.K) + R
            return np.linalg.solve(inside, R), float(np.linalg.slogdet(inside)[1]) / 2
        x, chance = normal_grid(self.K, {2: 49, 3: 25}[self.K])
        Q, information = np.zeros((self.K, self.K)), 0.0
        for log, mean, variance in zip(self.logs, self.means, self.variances, strict=True):
            level, vectors = np.linalg.eigh(R + R @ np.diag(variance) @ R)
            b = R @ mean + x @ (vectors * np.sqrt(np.maximum(level, 0))).T
            estimate, _, evidence = self.denoise(b, R)
            weight = np.exp(log) * chance
            Q += (estimate * weight[:, None]).T @ estimate
            # E log p(b|w) / p(b) = E[b.w - w R w / 2] - E log evidence, and E[b.w] = E[w R w]
            second = np.diag(variance) + np.outer(mean, mean)
            information += np.exp(log) * float(np.sum(R * second)) / 2 - float(weight @ evidence)
        return Q, information


@lru_cache(maxsize=4)
def normal_grid(K: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoid rule of K normal variables, which converges geometrically."""
    axis = np.linspace(-6, 6, nodes)
    x = np.stack(np.meshgrid(*[axis] * K, indexing="ij"), axis=-1).reshape(-1, K)
    chance = np.exp(-np.sum(x**2, axis=1) / 2)
    kept = chance > 1e-9
    return x[kept], chance[kept] / chance[kept].sum()


@dataclass(frozen=True)
class Point:
    """Fixed point at one sample ratio, in units of the prior's mean square."""

    Q: np.ndarray  # overlaps (K, K)
    R: np.ndarray  # precision (K, K)
    free_entropy: float
    gain: float  # factor by which one step multiplies the least stable perturbation, below 1


class Evolution:
    """State evolution of one prior and output."""

    def __init__(self, prior: Prior, output: MultiIndexOutput) -> None:
        self.prior, self.output = ProductPrior(prior, output.directions), output
        self.K, self.rho = output.directions, self.prior.rho
        self.rows = np.tril_indices(self.K)
        self.least = np.array([1 / 2**k for k in range(self.K)]) * SMALL  # breaks all symmetries

    @cached_property
    def symmetries(self) -> list[np.ndarray]:
        """Exchanges and signs of the directions that leave prior and labels as they are, as matrices."""
        z = np.sqrt(self.rho) * np.random.default_rng(1).standard_normal((2_000, self.K))
        clean = self.output.clean(z)
        each = (
            np.eye(self.K)[list(order)] * np.array(signs)
            for order in permutations(range(self.K))
            for signs in product((1, -1) if self.prior.even else (1,), repeat=self.K)
        )
        return [matrix for matrix in each if np.allclose(self.output.clean(z @ matrix), clean)]

    @cached_property
    def rotations(self) -> bool:
        """Return True if any rotation of the directions leaves prior and labels as they are."""
        z = np.sqrt(self.rho) * np.random.default_rng(1).standard_normal((2_000, self.K))
        turned = z @ np.linalg.qr(np.random.default_rng(2).standard_normal((self.K, self.K)))[0]
        same = np.isclose(self.output.clean(turned), self.output.clean(z))
        return self.prior.gaussian and bool(same.all())

    @cached_property
    def invariant(self) -> np.ndarray:
        """Projection on what all symmetries leave as it is, such as the mean of the units."""
        return np.asarray(np.mean(self.symmetries, axis=0))

    def step(self, Q: np.ndarray, ratio: float) -> np.ndarray:
        """One step of state evolution."""
        return self.prior.overlap(ratio * self.information(Q)[0])[0]

    def information(self, Q: np.ndarray) -> tuple[np.ndarray, float]:
        """Information of a label and its entropy at overlaps Q."""
        V = self.prior.second - Q
        smallest = float(np.linalg.eigvalsh(V)[0])
        return grid_for(self.output, self.rho, smallest).information(Q, V)

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Overlaps at the prior, with a small asymmetry, and the largest that the grid resolves."""
        largest = largest_overlap(self.output, self.rho)
        truth = self.prior.second - (1 - largest) * np.eye(self.K)
        return self.prior.known + np.diag(self.least), truth - np.diag(self.least)

    def solve(self, Q: np.ndarray, ratio: float, symmetric: bool = False) -> Point:
        """Stable fixed point that is reached from overlaps, or the one that breaks no symmetry."""
        M = self.invariant if symmetric else np.eye(self.K)

        def keep(Q: np.ndarray) -> np.ndarray:
            return np.asarray(M @ Q @ M)

        for _ in range(6):
            Q = self._settle(keep(Q), ratio, keep)
            gain, direction = self._gain(Q, ratio)
            if gain < 1 + 1e-4 or symmetric:
                R = ratio * self.information(Q)[0]
                return Point(Q, R, self._free_entropy(Q, R, ratio), gain)
            Q = self._inside(Q + 0.02 * direction * np.sign(direction[0, 0] or 1.0))
        raise NotConverged(
            f"state evolution at sample_ratio {ratio:g} left six unstable fixed points; the last gain is "
            f"{gain:.4g}; allowed: below 1. Take another sample ratio.",
            {"gain": gain},
        )

    def _settle(
        self, Q: np.ndarray, ratio: float, keep: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        def mapped(x: np.ndarray) -> np.ndarray:
            return keep(self.step(self._inside(self._matrix(x)), ratio))[self.rows]

        x = Q[self.rows]
        for _ in range(PLAIN):
            image = mapped(x)
            moved, x = float(np.abs(image - x).max()), image
            if moved < 1e-4:
                break
        found, _ = fixed_point(
            mapped,
            x,
            within=1e-8,
            what=f"state evolution at sample_ratio {ratio:g}",
            remedy="Take a sample ratio that is further from a threshold.",
        )
        return self._inside(self._matrix(found))

    def _matrix(self, x: np.ndarray) -> np.ndarray:
        Q = np.zeros((self.K, self.K))
        Q[self.rows] = x
        return Q + np.tril(Q, -1).T

    def _inside(self, Q: np.ndarray) -> np.ndarray:
        """Nearest matrix without negative eigenvalues."""
        level, vectors = np.linalg.eigh(Q)
        return np.asarray((vectors * np.maximum(level, 0)) @ vectors.T)

    def _gain(self, Q: np.ndarray, ratio: float) -> tuple[float, np.ndarray]:
        """Largest eigenvalue of the map's derivative, and its perturbation."""
        slope, start = 1e-5, self.step(Q, ratio)
        # perturbations of non-negative eigenvalues, as overlaps have none below 0
        units = [np.eye(self.K)[a] + np.eye(self.K)[b] for a, b in zip(*self.rows, strict=True)]
        basis = [np.outer(unit, unit) for unit in units]
        images = [(self.step(Q + slope * unit, ratio) - start) / slope for unit in basis]
        columns = np.array([unit[self.rows] for unit in basis]).T
        derivative = np.array([image[self.rows] for image in images]).T @ np.linalg.inv(columns)
        values, directions = np.linalg.eig(derivative)
        worst = int(np.argmax(values.real))
        direction = self._matrix(directions[:, worst].real)
        return float(values[worst].real), direction / np.abs(direction).max()

    def _free_entropy(self, Q: np.ndarray, R: np.ndarray, ratio: float) -> float:
        # -I_w(R) - alpha H + tr(R V) / 2   (inference 11)
        entropy = self.information(Q)[1]
        information = self.prior.overlap(R)[1]
        shown = float(np.sum(R * (self.prior.second - Q))) / 2
        return shown - information - ratio * entropy

    def points(self, ratios: np.ndarray, start: str) -> list[Point]:
        """Fixed points at all ratios, each from the overlaps of the one before."""
        low, high = self.ends()
        found: dict[int, Point] = {}
        for place, order, Q in (("prior", 1, low), ("truth", -1, high)):
            if start not in (place, "best"):
                continue
            for k in np.argsort(ratios)[::order]:
                point = self.solve(self._inside(Q), float(ratios[k]))
                Q = point.Q + order * np.diag(self.least)
                if k not in found or point.free_entropy > found[k].free_entropy + 1e-9:
                    found[int(k)] = point
        return [found[k] for k in range(ratios.size)]

    def weak_recovery(self) -> float:
        """Sample ratio above which some direction is found; 0 if the first moments show one."""
        if self.prior.known.any():
            return 0.0
        first, second = grid_for(self.output, self.rho, 1.0).moments()
        if np.abs(first).max() > 1e-6:
            return 0.0
        # R = alpha sum_y G_y Q G_y: the largest eigenvalue of this map (inference 12)
        units = [self._matrix(row) for row in np.eye(self.rows[0].size)]
        images = [sum(G @ unit @ G for G in second)[self.rows] for unit in units]
        gain = float(np.linalg.eigvals(np.array(images).T).real.max())
        return 1 / gain if gain > 1e-9 else np.inf

    def specialisation(self) -> float | None:
        """Sample ratio at which the fixed point that breaks no symmetry becomes unstable."""
        if np.allclose(self.invariant, np.eye(self.K)) or self.weak_recovery():
            return None
        place = self.ends()[0]

        def excess(logarithm: float) -> float:
            return self.solve(place, float(np.exp(logarithm)), symmetric=True).gain - 1

        grid = np.log(np.geomspace(0.25, 64, 17))
        before = excess(grid[0])
        for left, right in pairwise(grid):
            try:
                after = excess(right)
            except NotConverged:  # the overlaps are above those that the grid resolves
                return None
            if before < 0 <= after:
                ends = before, after
                return float(np.exp(bracketed_root(excess, left, right, ends=ends, relative=1e-7)))
            before = after
        return None


@lru_cache(maxsize=16)
def evolution_of(prior: Prior, output: MultiIndexOutput) -> Evolution:
    """State evolution of a model, cached."""
    return Evolution(prior, output)
