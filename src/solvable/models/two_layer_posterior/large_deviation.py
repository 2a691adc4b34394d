r"""Chernoff energy of an alignment of a two-layer network under its prior, by quadrature."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, log, sqrt
from typing import Literal

import numpy as np

from solvable.arrays import check_integer, check_positive
from solvable.errors import InvalidParameter, NotConverged, unknown_choice
from solvable.models.two_layer_posterior.overlap import (
    LARGEST_NORM,
    NeuronOverlap,
    Target,
    neuron_overlap,
    profile,
)
from solvable.spectra.roots import bracketed_root

Readout = Literal["standard", "mean-field"]

READOUTS = ("standard", "mean-field")
"""Scalings of the readout: variance sigma_a²/N, or sigma_a²/N²."""

EDGE_MASS = 1e-12
"""Largest probability of the tilted distribution allowed at the edge of a grid."""


@dataclass(frozen=True)
class NeuronGrid:
    """Quadrature over the prior of a neuron w ~ N(0, I/d), for u of at least 0."""

    u: np.ndarray  # components along the target, shape (n,)
    r: np.ndarray  # squared norms of the rest, shape (k,)
    log_weight: np.ndarray  # log probability of each cell, both signs of u; shape (n, k)


@lru_cache(maxsize=16)
def neuron_grid(dimension: int, reach: float, depth: float, reduced: bool = False) -> NeuronGrid:
    """Build the trapezoidal rule in u up to ``reach`` and in log r down to -``depth``."""
    d, step = dimension, 0.3
    u = np.arange(0.0, reach, step / sqrt(d))
    along = -d / 2 * u**2
    along[0] -= log(2)
    if reduced:
        r, rest = np.array([(d - 1) / d]), np.zeros(1)
    else:
        # upper end: the prior exp(-(d/2)(r - 1 - log r)) has fallen by 40 powers of e
        high = log(1 + 120 / d + sqrt(160 / d))
        log_r = np.arange(-depth, high, step * sqrt(2 / d))
        r = np.exp(log_r)
        # chi^2_(d-1)/d with dr = r dlog r
        rest = (d - 1) / 2 * log_r - d / 2 * r
    log_weight = along[:, None] + rest
    log_weight -= log_weight.max()
    log_weight -= log(np.exp(log_weight).sum())
    for part in (u, r, log_weight):
        part.setflags(write=False)
    return NeuronGrid(u, r, log_weight)


def readout_scale(readout: str, width: int) -> float:
    """Return chi: 1 for the standard readout, the width for mean-field."""
    if readout not in READOUTS:
        raise InvalidParameter(unknown_choice("readout", readout, READOUTS))
    return float(width) if readout == "mean-field" else 1.0


@dataclass(frozen=True)
class TiltedNeuron:
    """Distribution of one neuron under the prior times exp(beta c(w)²), on a grid."""

    overlap: NeuronOverlap
    dimension: int
    reduced: bool = False  # True if r is fixed at (d - 1) / d
    _grids: dict[str, tuple[NeuronGrid, np.ndarray]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def unbounded(self) -> bool:
        """Return True if the overlap is proportional to the norm of the neuron."""
        return profile(self.overlap.activation).homogeneous

    @property
    def grid(self) -> NeuronGrid:
        """Current grid of neurons."""
        return self._present()[0]

    def _present(self) -> tuple[NeuronGrid, np.ndarray]:
        if "present" not in self._grids:
            self._place(4.0 + 10.0 / sqrt(self.dimension), 3.0 + 80.0 / (self.dimension - 1))
        return self._grids["present"]

    def _place(self, reach: float, depth: float) -> None:
        cells = 8 * reach * depth * self.dimension
        if cells > 1e7 or (reach > 0.9 * LARGEST_NORM and not self.unbounded):
            self._grids.clear()
            raise NotConverged(
                f"the tilted law of a neuron reaches |u| = {reach:.3g} and log r = {-depth:.3g} at "
                f"d = {self.dimension}, a grid of {cells:.1g} cells; allowed: up to 1e7 cells. The "
                "alignment condenses on one neuron: take a smaller alignment, width or dimension, or "
                "use the constants of the wide limit (solvable.theory.specialisation).",
                {"reach": reach, "depth": depth},
            )
        grid = neuron_grid(self.dimension, reach, depth, self.reduced)
        squares = self.overlap.value(grid.u[:, None], grid.r) ** 2
        self._grids["present"] = (grid, squares)

    def moments(self, beta: float) -> tuple[float, float]:
        """Compute log E e^(beta c²) and the tilted mean of c², enlarging the grid as needed."""
        while True:
            grid, squares = self._present()
            tilted = grid.log_weight + beta * squares
            top = float(tilted.max())
            mass = np.exp(tilted - top)
            whole = float(mass.sum())
            far = float(mass[-1].sum()) / whole
            deep = 0.0 if self.reduced else float(mass[:, 0].sum()) / whole
            if max(far, deep) <= EDGE_MASS:
                small = float(beta * squares.max()) < 1e-3
                # near the prior the logarithm of a sum close to 1 would lose digits
                gain = np.expm1(beta * squares) if small else None
                log_z = (
                    float(np.log1p(np.sum(np.exp(grid.log_weight) * gain)))
                    if small
                    else top + log(whole)
                )
                return log_z, float((mass * squares).sum()) / whole
            reach, depth = float(grid.u[-1]), -log(grid.r[0]) if not self.reduced else 3.0
            self._place(
                reach * (1.6 if far > EDGE_MASS else 1.0),
                depth * (1.5 if deep > EDGE_MASS else 1.0),
            )

    def law(self, beta: float) -> np.ndarray:
        """Tilted probability of each cell."""
        grid, squares = self._present()
        tilted = grid.log_weight + beta * squares
        mass = np.exp(tilted - tilted.max())
        return np.asarray(mass / mass.sum())


@dataclass(frozen=True)
class LargeDeviation:
    """Energy of an alignment, and the neurons that carry it."""

    energy: float  # a lower bound on minus the logarithm of the prior probability
    t: float  # field t at which the alignment is typical
    # Number of neurons that carry the alignment: the mass of the tilted law beyond the valley between
    # its bulk and its outer peak, times the width; a participation number if there is no valley.
    neurons: float
    u: float  # mean |u| of the neurons that carry the alignment
    r: float  # mean squared norm of their irrelevant weights
    residual: (
        float  # error of the logarithm of the alignment at t; large if the alignment condenses
    )
    # True if one large neuron carries the alignment, as for ReLU: t is where the moment generating
    # function diverges, and u and r belong to the cheapest single neuron.
    condensed: bool


def large_deviation(
    *,
    dimension: int,
    width: int,
    degree: int = 3,
    activation: str = "erf",
    alignment: float = 1.0,
    readout_variance: float = 1.0,
    readout: str = "standard",
    reduced: bool = False,
    target: Target = "hermite",
) -> LargeDeviation:
    """Compute the Chernoff energy of an alignment under the prior of a two-layer network."""
    # E(alpha) = sup over t > 0 of t alpha - N log E_w exp(t² sigma_a² c(w)² / 2 N chi), w ~ N(0, I/d)
    # (two-layer-posterior 3; arXiv:2512.04165, Equation 25). With `reduced` r is fixed, as in the
    # paper's Equations 36 to 40; otherwise r fluctuates, which is exact. Below width d the cost of an
    # alignment is concave, and the Chernoff bound is loose.
    check_integer("dimension", dimension, 2)
    check_integer("width", width, 1)
    check_positive(alignment=alignment, readout_variance=readout_variance)
    scale = readout_variance / readout_scale(readout, width)
    neuron = TiltedNeuron(neuron_overlap(activation, degree, target), dimension, reduced)
    t, residual, condensed = field_of_alignment(neuron, width, scale, alignment)
    beta = t * t * scale / (2 * width)
    log_z = neuron.moments(beta)[0]
    law = neuron.law(beta)
    neurons, u, r = carriers(neuron, law, width)
    if condensed or (neuron.unbounded and neurons < 1):
        # The saddle point has less than one neuron; in a finite network one neuron carries the alignment.
        condensed, neurons = True, 1.0
        u, r = single_neuron(neuron.overlap, dimension, scale / width, alignment)
    return LargeDeviation(
        energy=t * alignment - width * log_z,
        t=t,
        neurons=neurons,
        u=u,
        r=r,
        residual=residual,
        condensed=condensed,
    )


def field_of_alignment(
    neuron: TiltedNeuron, width: int, scale: float, alignment: float
) -> tuple[float, float, bool]:
    """Find the field t of an alignment, the error of its logarithm, and whether it condenses."""
    # If c grows like u/R, E e^(beta c²) is finite only for t < R sqrt(N d chi) / sigma_a.
    far = 1e6
    steepest = abs(float(neuron.overlap.value(far, 1.0))) / far if neuron.unbounded else 0.0
    edge = sqrt(neuron.dimension * width / scale) / steepest if steepest else np.inf

    def excess(log_t: float) -> float:
        t = exp(log_t)
        if t >= edge:
            return 100.0
        try:
            mean = neuron.moments(t * t * scale / (2 * width))[1]
        except NotConverged:
            if not neuron.unbounded:
                raise
            return 100.0
        # alpha(t) = sigma_a² t <c²>_t / chi   (two-layer-posterior 4)
        return log(scale * t * mean) - log(alignment)

    low = high = 0.0
    while excess(low) > 0:
        low -= 2.0
    while excess(high) < 0:
        high += 0.7
    t = exp(bracketed_root(excess, max(low, high - 0.7), high, absolute=1e-14))
    residual = abs(excess(log(t)))
    if residual < 1e-8:
        return t, residual, False
    # The alignment lies on neurons beyond any grid. Every t gives a bound; the largest t is used.
    back = 1e-9
    while excess(log(t)) >= 100.0:
        t, back = t * (1 - back), 2 * back
    return t, abs(excess(log(t))), True


def single_neuron(
    overlap: NeuronOverlap, dimension: int, scale: float, alignment: float
) -> tuple[float, float]:
    """Find u and r of the one neuron that carries an alignment at the least cost."""
    u = np.geomspace(1e-2, 1e4, 2_000)[:, None]
    r = np.geomspace(1e-3, 2.0, 300)
    square = np.maximum(overlap.value(u, r) ** 2, 1e-300)
    # (d/2)(u² + r - 1 - log r) + alpha² N chi / (2 sigma_a² c²)   (two-layer-posterior 7)
    cost = dimension / 2 * (u**2 + r - 1 - np.log(r)) + alignment**2 / (2 * scale * square)
    row, column = np.unravel_index(np.argmin(cost), cost.shape)
    return float(u[row, 0]), float(r[column])


def carriers(neuron: TiltedNeuron, law: np.ndarray, width: int) -> tuple[float, float, float]:
    """Compute the number, mean size of u and mean r of the neurons that carry the alignment."""
    grid = neuron.grid
    density = law.sum(1)
    weight = law
    if (valley := outer_start(density, float(grid.u[1]))) is not None:
        weight = np.where(np.arange(grid.u.size)[:, None] >= valley, law, 0.0)
        neurons = width * float(weight.sum())
    else:
        squares = neuron.overlap.value(grid.u[:, None], grid.r) ** 2
        weight = law * squares
        # participation number <c²>² / <c⁴>
        neurons = width * float(weight.sum() ** 2 / (weight * squares).sum())
    weight = weight / weight.sum()
    return neurons, float(grid.u @ weight.sum(1)), float(weight.sum(0) @ grid.r)


def outer_start(density: np.ndarray, spacing: float) -> int | None:
    """Return the index of the minimum between bulk and outer peak of a distribution of |u|, or None."""
    rising = np.flatnonzero(np.diff(density[1:]) > 1e-14 * density.max())
    return int(rising[0]) + 1 if rising.size else None
