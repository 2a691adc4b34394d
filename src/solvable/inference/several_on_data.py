r"""Approximate message passing on data for a few directions at once (inference 13).

.. math:: \omega=Xh-gV,\quad R=-\tfrac1d\sum_i\partial_\omega g_i,\quad b=hR+X^\top g,\quad h=f(R,b).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from solvable.errors import NotConverged
from solvable.inference.multi_index import MultiIndexOutput, grid_for
from solvable.inference.priors import Prior
from solvable.inference.several_directions import evolution_of, normal_grid
from solvable.inference.summary import Summarised

BLOCK = 2_000_000
"""Largest number of pairs of a label and a node at a time."""


ATTEMPTS = (0.0, 0.5, 0.5, 0.8)
"""Damping of each attempt, which has a random start of its own."""


@dataclass(frozen=True, repr=False)
class DirectionsFit(Summarised):
    """Estimate of several directions by message passing.

    Parameters
    ----------
    estimate : ndarray of shape (d, K)
        Posterior mean of each entry.
    variance : ndarray of shape (d, K)
        Posterior variance of each entry.
    error : float
        Mean squared error of an entry that state evolution predicts at this n and d.
    overlap : ndarray of shape (K, K)
        Predicted overlaps of estimates and signals, over the mean square of an entry.
    trace : ndarray of shape (steps,)
        Mean posterior variance after each step.
    damping : float
        Share of the previous step that was kept.
    change : float
        Relative change of the estimate in the last step.
    symmetries : list of ndarray
        Exchanges and signs of the directions that give the same labels.
    rotations : bool
        True if any rotation does so.

    Examples
    --------
    >>> import numpy as np
    >>> from solvable.inference import Gaussian, MultiIndexOutput, message_passing
    >>> rng, output = np.random.default_rng(0), MultiIndexOutput(lambda z: np.sign(z).sum(axis=-1))
    >>> W = rng.standard_normal((400, 2))
    >>> X = rng.standard_normal((1600, 400)) / 20
    >>> fit = message_passing(X, output.draw(X @ W, rng), Gaussian(), output)
    >>> bool(abs(fit.error_against(W) - fit.error) < 0.05)
    True
    """

    estimate: np.ndarray
    variance: np.ndarray
    error: float
    overlap: np.ndarray
    trace: np.ndarray
    damping: float
    change: float
    symmetries: list[np.ndarray] = field(repr=False)
    rotations: bool

    def error_against(self, signal: np.ndarray) -> float:
        """Mean squared error of an entry, for the best directions that give the same labels."""
        W, best = np.asarray(signal, dtype=np.float64), self.symmetries
        if self.rotations:  # the closest rotation (Procrustes)
            left, _, right = np.linalg.svd(self.estimate.T @ W)
            best = [left @ right]
        return min(float(np.mean((self.estimate @ M - W) ** 2)) for M in best)


def fit_directions(
    X: np.ndarray,
    y: np.ndarray,
    prior: Prior,
    output: MultiIndexOutput,
    max_steps: int,
    tolerance: float,
    seed: int,
) -> DirectionsFit:
    """Run message passing without damping, and with more from other starts if it does not settle."""
    evolution = evolution_of(prior, output)
    ratio = X.shape[0] / X.shape[1]
    point = evolution.solve(evolution.ends()[0], ratio)
    rho, root = evolution.rho, np.sqrt(evolution.rho)
    for attempt, damping in enumerate(ATTEMPTS):
        run = _Run(X, y, prior, output, damping, seed + attempt)
        if run.iterate(max_steps, tolerance):
            return DirectionsFit(
                run.h * root,
                run.variance * rho,
                rho * (1 - float(np.trace(point.Q)) / output.directions),
                point.Q,
                np.array(run.trace) * rho,
                damping,
                run.change,
                evolution.symmetries,
                evolution.rotations,
            )
    fault = f"the last of {max_steps} steps changed the estimate by {run.change:.2g} of its size"
    raise unsettled(ratio, fault, max_steps, {"trace": run.trace, "change": run.change})


def unsettled(ratio: float, fault: str, max_steps: int, last: dict[str, object]) -> NotConverged:
    """Error of message passing that settles with no damping."""
    return NotConverged(
        f"message passing at n / d = {ratio:.4g}: {fault}, also with damping 0.8. Use more samples, a "
        f"larger dimension, or max_steps above {max_steps}.",
        last,
    )


class _Run:
    """One attempt with a given damping, in units of the root of an entry's mean square."""

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        prior: Prior,
        output: MultiIndexOutput,
        damping: float,
        seed: int,
    ) -> None:
        evolution = evolution_of(prior, output)
        self.X, self.y, self.output, self.damping = X, y, output, damping
        self.prior, self.root, K = evolution.prior, np.sqrt(evolution.rho), output.directions
        # nothing breaks the symmetry between directions at the prior mean
        noise = np.random.default_rng(seed).standard_normal((X.shape[1], K))
        self.h = self.prior.start + 0.03 * noise
        self.covariance = np.eye(K) - np.diag(self.prior.start**2)
        self.variance = np.ones_like(self.h)
        self.g = np.zeros((X.shape[0], K))
        self.place = output.places(y, evolution.rho)
        self.trace: list[float] = []
        self.change = np.inf

    def iterate(self, max_steps: int, tolerance: float) -> bool:
        """Run until the estimate settles; return False if it does not."""
        for _ in range(max_steps):
            before = self.h
            self._step()
            if not np.isfinite(self.h).all():
                return False
            self.trace.append(float(self.variance.mean()))
            size = max(float(np.sqrt(np.mean(self.h**2))), 1e-3)
            self.change = float(np.sqrt(np.mean((self.h - before) ** 2))) / size
            if self.change <= tolerance:
                return True
        settled = abs(self.trace[-1] / np.mean(self.trace[-20:]) - 1) < 0.01
        return bool(settled and self.change < 0.02)

    def _step(self) -> None:
        keep = self.damping if self.trace else 0.0
        omega = self.X @ self.h - self.g @ self.covariance
        g, slope = self._scores(omega)
        self.g = keep * self.g + (1 - keep) * g
        raw = -slope / self.X.shape[1]
        level, vectors = np.linalg.eigh(raw)  # an eigenvalue is below 0 by chance
        R = (vectors * np.maximum(level, 1e-6)) @ vectors.T
        h, covariance, _ = self.prior.denoise(self.h @ raw + self.X.T @ self.g, R)
        self.h = keep * self.h + (1 - keep) * h
        self.covariance = keep * self.covariance + (1 - keep) * covariance.mean(axis=0)
        self.variance = np.diagonal(covariance, axis1=1, axis2=2)

    def _scores(self, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Messages of all labels, and the sum of their slopes."""
        if not self.output.noise:
            smallest = float(np.linalg.eigvalsh(self.covariance)[0])
            grid = grid_for(self.output, self.root**2, smallest)
            return grid.scores(self.place, omega, self.covariance)
        x, chance = normal_grid(self.output.directions, 31)
        level, vectors = np.linalg.eigh(self.covariance)
        root = (vectors * np.sqrt(np.maximum(level, 1e-12))) @ vectors.T
        inverse = np.linalg.inv(root)
        g, slope = np.zeros_like(omega), np.zeros_like(root)
        rows = max(BLOCK // len(x), 1)
        for start in range(0, len(omega), rows):
            part = slice(start, start + rows)
            clean = self.output.clean(self.root * (omega[part, None, :] + x @ root))
            share = self.output.density(self.y[part, None], clean) * chance
            total = share.sum(axis=1, keepdims=True)
            # a label that no node gives shows nothing
            share = np.divide(share, total, out=np.zeros_like(share), where=total > 1e-12)
            first = share @ x
            g[part] = first @ inverse
            second = np.einsum("m,ma,mb->ab", share.sum(axis=0), x, x) - first.T @ first
            slope += inverse @ (second - np.sum(total > 1e-12) * np.eye(len(root))) @ inverse
        return g, slope
