"""Posterior of two or three directions given labels: a grid around the cavity of each label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.message_passing.outputs import GaussianOutput, Posterior


@dataclass
class SpacePosterior:
    """Posterior given labels (n,) of two or three directions.

    Without noise the label must have finitely many values, such as a sign: the likelihood is 1 on
    the part of space that has the label.
    """

    output: GaussianOutput
    labels: np.ndarray

    def __post_init__(self) -> None:
        if not self.output.noise and np.unique(self.labels).size > 64:
            raise InvalidParameter(
                "noise is 0 and labels have more than 64 values: on the lines of equal label the "
                "channel is singular. Allowed: noise above 0, or labels of a few values."
            )

    @cached_property
    def _steepness(self) -> np.ndarray:
        """Slope of the link along each axis that one point in fifty exceeds."""
        rng = random_stream("space posterior")
        z = rng.standard_normal((2_000, self.output.n_directions))
        rises = [
            np.abs(self.output.function(z + step) - self.output.function(z - step)) / 2e-4
            for step in 1e-4 * np.eye(self.output.n_directions)
        ]
        return np.quantile(rises, 0.98, axis=1)

    def _panels(self, variance: np.ndarray) -> int:
        """Panels of 8 nodes along each axis: four widths of the cavity or the likelihood each."""
        fewest, most = (4, 40) if self.output.n_directions == 2 else (3, 8)
        if not self.output.noise:
            return fewest
        widths = np.sqrt(self.output.noise) / np.maximum(self._steepness, 1e-12)
        count = float(np.max(13 * np.sqrt(np.diag(variance)) / (4 * widths)))
        if count > 1.2 * most:
            raise InvalidParameter(
                f"noise {self.output.noise:.3g} is so far below the variation of the link that each "
                f"axis takes {count:.0f} panels; allowed: up to {most} for "
                f"{self.output.n_directions} directions. Raise the noise."
            )
        return int(np.clip(np.ceil(count), fewest, most))

    def __call__(self, omega: np.ndarray, variance: np.ndarray) -> Posterior:
        """Moments of z ~ N(omega, variance) given the labels."""
        n, p = omega.shape
        panels = self._panels(variance)
        size = 8 * (panels + len(self.output.breakpoints))
        rows = max(1, 2_000_000 // size**p)
        parts = [
            self._block(omega[k : k + rows], variance, self.labels[k : k + rows], panels)
            for k in range(0, n, rows)
        ]
        return Posterior(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _block(
        self, omega: np.ndarray, V: np.ndarray, labels: np.ndarray, panels: int
    ) -> Posterior:
        p = omega.shape[1]
        axes = [self._axis(omega[:, k], float(np.sqrt(V[k, k])), panels) for k in range(p)]
        grids = np.meshgrid(*[np.arange(axis[0].shape[1]) for axis in axes], indexing="ij")
        index = [grid.ravel() for grid in grids]
        z = np.stack([axes[k][0][:, index[k]] for k in range(p)], axis=-1)
        with np.errstate(divide="ignore"):
            logs = sum(np.log(axes[k][1][:, index[k]]) for k in range(p)) + self._fit(z, labels)
        moved = z - omega[:, None, :]
        # N(z; omega, V)
        logs = logs - np.einsum("nij,jk,nik->ni", moved, np.linalg.inv(V), moved) / 2
        top = logs.max(axis=1, keepdims=True)
        if not np.isfinite(top).all():
            raise InvalidParameter(
                "a label has no place in the grid of its posterior: noise is too small for the "
                "change of the link across a cavity. Raise the noise, or damp the iteration."
            )
        share = np.exp(logs - top)
        total = share.sum(axis=1)
        first = np.einsum("ni,nij->nj", share, moved) / total[:, None]
        second = np.einsum("ni,nij,nik->njk", share, moved, moved) / total[:, None, None]
        log_determinant = np.linalg.slogdet(2 * np.pi * V)[1]
        return Posterior(
            omega + first,
            second - first[:, :, None] * first[:, None, :],
            top[:, 0] + np.log(total) - log_determinant / 2,
        )

    def _fit(self, z: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Logs of P(y | z)."""
        clean = np.asarray(self.output.function(z), dtype=np.float64)
        if self.output.noise:
            scale = 2 * self.output.noise
            return -((labels[:, None] - clean) ** 2) / scale - np.log(np.pi * scale) / 2
        with np.errstate(divide="ignore"):
            return np.log((clean == labels[:, None]).astype(float))

    def _axis(
        self, centre: np.ndarray, deviation: float, panels: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nodes (n, m) and weights around each centre, panels split at breakpoints."""
        reach = 6.5 * deviation
        edges = centre[:, None] + np.linspace(-reach, reach, panels + 1)
        if self.output.breakpoints:
            points = np.broadcast_to(
                self.output.breakpoints, (len(centre), len(self.output.breakpoints))
            )
            inside = np.clip(points, edges[:, :1], edges[:, -1:])
            edges = np.sort(np.concatenate([edges, inside], axis=1), axis=1)
        unit, share = np.polynomial.legendre.leggauss(8)
        half = np.diff(edges, axis=1)[..., None] / 2
        nodes = edges[:, :-1, None] + half * (unit + 1)
        return nodes.reshape(len(centre), -1), (half * share).reshape(len(centre), -1)
