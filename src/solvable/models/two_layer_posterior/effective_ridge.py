"""Effective ridge of a layer on its data set, and the cost of the modes of one neuron."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt

import numpy as np

from solvable.errors import NotConverged
from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.models.two_layer_posterior.overlap import hermite_modes, neuron_overlap, profile
from solvable.models.two_layer_posterior.saddle import FieldProblem, reduced
from solvable.models.two_layer_posterior.sectors import Sector, sectors

BINS = 61
"""Number of bins of x_1, each 0.15 wide, from -4.5 to 4.5; the outer bins hold the tails."""


@dataclass(frozen=True)
class Background:
    """Mean effect of all neurons on a single neuron: effective ridge, and cost of modes besides x_1."""

    # E_test = inflation F + ridge - kappa, F the error in functions of x_1   (two-layer-posterior 14)
    ridge: float  # effective ridge kappa_eff
    price: np.ndarray  # increase of a readout's inverse variance by the neuron's other modes
    inflation: float  # factor by which fitted noise raises the error of the mean network
    unfitted: np.ndarray  # power of a neuron's other modes that the network does not cancel


@dataclass(frozen=True)
class Layer:
    """Neurons on a grid of (u, r), their prior, and their functions of x_1 on bins."""

    dimension: int
    width: int
    samples: int
    kappa: float
    degree: int
    activation: str
    scale: float
    reach: float

    @property
    def step(self) -> float:
        """Spacing of the grid in u, small against the bins of x_1 and the width of the prior."""
        return min(0.075, 0.4 / sqrt(self.dimension))

    @cached_property
    def neurons(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Components u >= 0, squared norms r and log prior of the cells (u and -u are equivalent)."""
        d = self.dimension
        u = np.arange(0.0, self.reach, self.step)
        along = -d / 2 * u**2
        along[0] -= log(2)
        low, high = -max(4.0, 14 / (d - 1)), log(1 + 25 / d + sqrt(40 / d))
        log_r = np.linspace(low, high, max(24, round((high - low) / (0.6 * sqrt(2 / d)))))
        weight = along[:, None] + (d - 1) / 2 * log_r - d / 2 * np.exp(log_r)
        u, r = (part.ravel() for part in np.meshgrid(u, np.exp(log_r), indexing="ij"))
        weight = weight.ravel()
        weight -= weight.max()
        return u, r, weight - log(np.exp(weight).sum())

    @cached_property
    def parts(self) -> tuple[list[Sector], np.ndarray]:
        """Sectors of the neurons, and the power of each neuron outside them."""
        u, r, _ = self.neurons
        return sectors(self.activation, self.dimension, u, r)

    @cached_property
    def functions(self) -> np.ndarray:
        """Mean of each neuron over the inputs other than x_1, on the bins of x_1."""
        u, r, _ = self.neurons
        x = bin_places()[0]
        if self.activation == "erf":
            from scipy.special import erf

            return np.asarray(erf(np.outer(u / np.sqrt(1 + 2 * r), x)))
        link = profile(self.activation).link
        nodes, weights = gaussian_quadrature(40)
        functions = np.zeros((u.size, x.size))
        for node, weight in zip(nodes, weights, strict=True):
            functions += weight * link(np.outer(u, x) + node * np.sqrt(r)[:, None])
        return functions

    @cached_property
    def mixing(self) -> np.ndarray:
        """Variance of each neuron over the inputs other than x_1, on the bins of x_1."""
        u, r, _ = self.neurons
        link = profile(self.activation).link
        nodes, weights = gaussian_quadrature(16)
        variances = np.zeros_like(self.functions)
        along = np.outer(u, bin_places()[0])
        for node, weight in zip(nodes, weights, strict=True):
            variances += weight * (link(along + node * np.sqrt(r)[:, None]) - self.functions) ** 2
        return variances

    @cached_property
    def modes(self) -> np.ndarray:
        """Overlaps of each neuron with the Hermite polynomials of degree 0 to 11."""
        u, r, _ = self.neurons
        return hermite_modes(self.activation, range(12), u, r).T

    @cached_property
    def target_overlap(self) -> np.ndarray:
        """Overlap of each neuron with the target."""
        u, r, _ = self.neurons
        return neuron_overlap(self.activation, self.degree).value(u, r)

    def dressed(self, background: Background) -> tuple[np.ndarray, np.ndarray]:
        """Compute the log weight and the readout variance of each cell, at the cost of its modes."""
        # 1/s² = N chi / sigma_a² + price   (two-layer-posterior 12)
        gain = 1 + self.scale * background.price
        return self.neurons[2] - np.log(gain) / 2, self.scale / gain


def bin_places() -> tuple[np.ndarray, np.ndarray]:
    """Return the centre of mass of each bin of x_1, and its probability."""
    nodes, weights = gaussian_quadrature(24, tuple(np.linspace(-4.5, 4.5, BINS + 1)))
    place = bin_index(nodes)
    mass = np.bincount(place, weights, minlength=BINS)
    return np.bincount(place, weights * nodes, minlength=BINS) / mass, mass


def bin_index(x: np.ndarray) -> np.ndarray:
    """Return the index of the bin of each point."""
    return np.clip(((x + 4.5) / 9 * BINS).astype(int), 0, BINS - 1)


@dataclass(frozen=True)
class DataSet:
    """Samples summarised on the bins of x_1: counts, and mean targets."""

    counts: np.ndarray
    target: np.ndarray

    @classmethod
    def typical(cls, degree: int, samples: int) -> DataSet:
        """Return the expected count and mean target of each bin."""
        nodes, weights = gaussian_quadrature(24, tuple(np.linspace(-4.5, 4.5, BINS + 1)))
        place, mass = bin_index(nodes), bin_places()[1]
        values = weights * hermite_polynomials(nodes, degree)[degree]
        return cls(samples * mass, np.bincount(place, values, minlength=BINS) / mass)

    @classmethod
    def drawn(cls, degree: int, samples: int, rng: np.random.Generator) -> DataSet:
        """Draw inputs, and return the count and mean target of each bin."""
        return cls.of(degree, rng.standard_normal(samples))

    @classmethod
    def of(cls, degree: int, x: np.ndarray) -> DataSet:
        """Return the count and mean target of each bin for given inputs."""
        place = bin_index(x)
        counts = np.bincount(place, minlength=BINS).astype(float)
        values = np.bincount(place, hermite_polynomials(x, degree)[degree], minlength=BINS)
        return cls(counts, values / np.maximum(counts, 1))


def field_problem(layer: Layer, data: DataSet, background: Background) -> FieldProblem:
    """Build the field problem of a layer on a data set, in a reduced basis of functions."""
    invariant = layer.parts[0][0]
    # functions of |x_perp|² are added; for them the data set is taken as typical
    radial = [k for k, (_, power) in enumerate(invariant.labels) if power]
    features = np.concatenate(
        [
            layer.functions * np.sqrt(data.counts),
            invariant.modes[:, radial] * sqrt(layer.samples),
        ],
        axis=1,
    )
    target = np.append(np.sqrt(data.counts) * data.target, np.zeros(len(radial)))
    # specialised neurons are rare under the prior; a uniform floor of the weight keeps them in the basis
    weights = np.exp(layer.neurons[2]) + 0.1 / layer.neurons[2].size
    basis = reduced(features, target, weights, 12)
    log_weight, variance = layer.dressed(background)
    return FieldProblem(features @ basis, basis.T @ target, log_weight, variance, background.ridge)


def background_of(layer: Layer) -> tuple[Background, np.ndarray]:
    """Solve for the effective ridge, the costs of the neurons' modes, and a neuron's distribution."""
    # Modes of momentum l see a random Gram matrix of N neurons in D_l directions, with the resolvent
    #   R_l^-1 = (kappa_eff/P) I + (N/D_l) <s² c_l c_l^T>,   1/s² = 1/g + sum_l c_l^T R_l c_l,
    #   kappa_eff = kappa + (kappa_eff/P) df, df the number of fitted modes   (two-layer-posterior 12).
    # The price of a neuron is c_l^T R_l c_l per sector. By fitting noise it saves
    #   v = gamma/P E[e(x_1)² sum_l |(R_l c_l)(x_1)|²], with e the error of the mean network, and with
    # (R_l c_l)(x_1) the part of the neuron that is not fitted   (two-layer-posterior 12).
    others, rest = layer.parts[0][1:], layer.parts[1]
    samples, width = layer.samples, layer.width
    data = DataSet.typical(layer.degree, samples)
    ridge, inflation = 1.1 * layer.kappa, 1.0
    along = [_square(part, part.modes) for part in others]
    radial = layer.parts[0][0]
    flat = np.array([power == 0 for _, power in radial.labels])
    mixed = layer.mixing - _square(radial, np.where(flat, 0.0, radial.modes))
    residual = np.zeros(BINS)
    law, t = np.exp(layer.neurons[2]), None
    resolvents = [_resolvent(part, law * layer.scale, ridge, layer) for part in others]
    for _ in range(300):
        price, unfitted = rest * samples / ridge, rest
        left = mixed * (samples / ridge) ** 2
        for part, functions, seen in zip(others, along, resolvents, strict=True):
            resolved = part.modes @ seen
            price = price + (resolved * part.modes).sum(1)
            unfitted = unfitted + (ridge / samples) ** 2 * (resolved**2).sum(1)
            left = left + _square(part, resolved) - (samples / ridge) ** 2 * functions
        price = price - inflation / samples * np.maximum(left, 0.0) @ residual
        price = np.maximum(price, -0.9 / layer.scale)
        background = Background(ridge, price, inflation, unfitted)
        problem = field_problem(layer, data, background)
        t, law = problem.saddle(width, t)
        weight = law * problem.variance
        fresh = [_resolvent(part, weight, ridge, layer) for part in others]
        lefts = [np.eye(seen.shape[0]) - ridge / samples * seen for seen in fresh]
        counts = [part.multiplicity for part in others]
        seen = width * (problem.features.T * weight) @ problem.features
        own = np.eye(t.size) - ridge * np.linalg.inv(ridge * np.eye(t.size) + seen)
        fitted = width * float(weight @ rest) * samples / ridge + float(np.trace(own))
        fitted += sum(c * float(np.trace(left)) for c, left in zip(counts, lefts, strict=True))
        kept = sum(c * float((left * left.T).sum()) for c, left in zip(counts, lefts, strict=True))
        inflation = 1 / max(1 - kept / samples, 0.2)
        output = width * layer.functions.T @ (weight * (problem.features @ t))
        residual = residual / 2 + _residual(layer, data, output) / 2
        fresh_ridge = layer.kappa + ridge * fitted / samples
        change = abs(fresh_ridge / ridge - 1)
        for old, new in zip(resolvents, fresh, strict=True):
            change = max(change, float(np.abs(new - old).max() / np.abs(new).max()))
        resolvents = [0.4 * old + 0.6 * new for old, new in zip(resolvents, fresh, strict=True)]
        ridge = 0.4 * ridge + 0.6 * fresh_ridge
        if change < 1e-5:
            return background, law
    raise NotConverged(
        f"the effective ridge did not converge in 300 rounds at d = {layer.dimension}, N = {width}, "
        f"P = {samples}, kappa = {layer.kappa:g}: last change {change:.1e}. Take a larger kappa.",
        {"change": change, "ridge": ridge},
    )


def _residual(layer: Layer, data: DataSet, output: np.ndarray) -> np.ndarray:
    """Squared error of the mean network on each bin of x_1, times the bin's share of the samples."""
    chance = bin_places()[1]
    beyond = np.minimum(np.cumsum(chance), np.cumsum(chance[::-1])[::-1])
    return np.asarray(chance * -np.expm1(-2 * layer.samples * beyond) * (data.target - output) ** 2)


def _square(part: Sector, modes: np.ndarray) -> np.ndarray:
    """Mean square of functions in a sector, given by their amplitudes, on the bins of x_1."""
    degrees, powers = np.array(part.labels).T
    along = hermite_polynomials(bin_places()[0], int(degrees.max()))[degrees]
    squares = [(modes[:, powers == k] @ along[powers == k]) ** 2 for k in np.unique(powers)]
    return np.asarray(np.sum(squares, axis=0))


def _resolvent(part: Sector, weight: np.ndarray, ridge: float, layer: Layer) -> np.ndarray:
    gram = layer.width / part.multiplicity * (part.modes.T * weight) @ part.modes
    return np.asarray(np.linalg.inv(ridge / layer.samples * np.eye(part.modes.shape[1]) + gram))
