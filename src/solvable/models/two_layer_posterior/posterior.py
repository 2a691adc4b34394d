r"""Predicted learning curve of a two-layer network with a posterior, at finite d, N and P."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from solvable.arrays import random_stream
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.effective_ridge import (
    Background,
    DataSet,
    Layer,
    background_of,
    bin_places,
    field_problem,
)
from solvable.models.two_layer_posterior.large_deviation import readout_scale


@dataclass(frozen=True)
class Posterior:
    """Mean properties of a posterior ensemble of two-layer networks."""

    alignment: float  # mean overlap of the network with the target, over networks and data sets
    error: float  # standard error of the alignment, from the finite number of data sets drawn
    outliers: float  # mean number of neurons with |u| above 3 / sqrt(d)
    outlier_overlap: float  # mean |u| of the outliers
    # Mean squared norm of the irrelevant weights, of outliers and of all other neurons, over neurons and
    # then over data sets; up to 0.04 too low, more at 5 neurons per dimension and fewer.
    outlier_rest: float
    bulk_rest: float
    overlap_grid: np.ndarray  # values of |u| at which `density` is given
    overlap_law: np.ndarray  # mean number of neurons per unit of |u|
    modes: np.ndarray  # mean Hermite coefficients of degrees 0 to 11 in the target's coordinate
    risk: float  # mean squared error on new inputs of one network of the ensemble
    ridge: float  # effective ridge kappa_eff
    onset: float  # number of samples at which learning starts in the wide limit
    caveat: str | None  # reason why the numbers may be wrong by more than their errors, if any


def posterior(
    *,
    dimension: int,
    width: int,
    samples: int,
    kappa: float,
    degree: int = 3,
    activation: str = "erf",
    readout: str = "standard",
    readout_variance: float = 1.0,
    draws: int = 24,
) -> Posterior:
    """Predict a two-layer network with a posterior after P samples of a Hermite target."""
    # A = N < E[a(w) c(w)] >, outliers N Pr[|u| > 3 / sqrt(d)], averaged over drawn data sets
    # (two-layer-posterior 13). The readouts are integrated out, which leaves an integral over the fields
    # of the data (two-layer-posterior 10). Functions of x_1 are treated on each drawn data set, because
    # few samples carry most of the target; the number of specialised neurons fluctuates to all orders.
    # All other modes enter through the effective ridge (two-layer-posterior 12). Alignments with He3
    # agree with Langevin ensembles within 10 %. With He5 they are a fifth too low; near width d, where
    # less than one neuron specialises on average, up to a half too low.
    scale = readout_variance / readout_scale(readout, width)
    layer, background, law = _prepared(
        dimension, width, samples, kappa, degree, activation, scale / width
    )
    sums, controls = [], []
    typical = DataSet.typical(degree, samples)
    # A few sets with large labels carry the mean error of few samples.
    draws = max(draws, min(96, 4_000 // samples))
    shape = layer.functions.T @ (law * layer.target_overlap)
    for draw in range(draws):
        # The same inputs come first at all numbers of samples, so that a curve over them is smooth.
        rng = random_stream(0, "posterior", dimension, width, draw)
        data = DataSet.drawn(degree, samples, rng)
        sums.append(_ensemble(layer, data, background))
        # control variates of known mean: overlap of the data with a line and with a specialised neuron
        weight = (data.counts * data.target - typical.counts * typical.target) / samples
        controls.append([weight @ bin_places()[0], weight @ shape])
    table = np.array(sums)
    # Columns 2 and 3 are sums of |u| and r over outliers, column 4 of r over other neurons. The observer
    # of trained networks divides by the number of neurons within each data set too.
    table[:, 2:4] /= table[:, 1:2]
    table[:, 4] /= width - table[:, 1]
    means, errors = _controlled(table, np.array(controls))
    out = means[1]
    modes, cells = means[7:19], means[19:]
    grid = np.unique(np.abs(layer.neurons[0]))
    widths = np.append(
        grid[1] / 2, np.full(grid.size - 1, grid[1])
    )  # the grid cell at u = 0 has half the width
    # Error of the mean network in functions of x_1, on each data set. The variance of one network about
    # the mean network is ridge - kappa.   (two-layer-posterior 14)
    left = -table[:, 7:19]
    left[:, degree] += 1
    missed = np.sum(left**2, axis=1) + table[:, 5]
    error = float(_controlled(missed[:, None], np.array(controls))[0][0])
    risk = background.inflation * error + background.ridge - kappa
    return Posterior(
        alignment=float(means[0]),
        error=float(errors[0]),
        outliers=float(out),
        outlier_overlap=float(means[2]),
        outlier_rest=float(means[3]),
        bulk_rest=float(means[4]),
        overlap_grid=grid,
        overlap_law=np.maximum(cells, 0.0) / widths,
        modes=modes,
        risk=risk,
        ridge=background.ridge,
        onset=_onset(activation, degree, dimension, width, kappa, scale),
        caveat=_caveat(layer, background, law, float(table[:, 6].mean())),
    )


def alignment_given(
    inputs: np.ndarray,
    *,
    dimension: int,
    width: int,
    kappa: float,
    degree: int = 3,
    activation: str = "erf",
    readout: str = "standard",
) -> float:
    """Predict the alignment on given samples, from their inputs along the target's direction."""
    # one term of the mean over data sets in (two-layer-posterior 13)
    scale = 1 / readout_scale(readout, width) / width
    layer, background, _ = _prepared(
        dimension, width, inputs.size, kappa, degree, activation, scale
    )
    return float(_ensemble(layer, DataSet.of(degree, inputs), background)[0])


@lru_cache(maxsize=8)
def _prepared(
    dimension: int,
    width: int,
    samples: int,
    kappa: float,
    degree: int,
    activation: str,
    scale: float,
) -> tuple[Layer, Background, np.ndarray]:
    """Solve for the background on a grid of neurons that covers their distribution."""
    reach = 3 + 6 / sqrt(dimension)
    while True:
        layer = Layer(dimension, width, samples, kappa, degree, activation, scale, reach)
        background, law = background_of(layer)
        u = layer.neurons[0]
        if law[np.abs(u) > 0.97 * np.abs(u).max()].sum() < 1e-7 or reach > 40:
            return layer, background, law
        reach *= 1.5


def _ensemble(layer: Layer, data: DataSet, background: Background) -> np.ndarray:
    """Sums over the neurons on a data set: alignment, outliers with u and r, modes, density of u."""
    problem = field_problem(layer, data, background)
    u, r, _ = layer.neurons
    law, readout, error = problem.law(layer.width)
    if not error < 0.1:
        # An exact identity is violated, so that one loop across the direction of large fluctuations
        # is not enough. The saddle point alone is then more accurate.
        t, law = problem.saddle(layer.width)
        readout = law * problem.variance * (problem.features @ t)
    # the cell that contains the threshold counts with the fraction above the threshold
    out = np.clip(0.5 + (np.abs(u) - 3 / sqrt(layer.dimension)) / layer.step, 0, 1)
    sums = [law @ out, (law * np.abs(u)) @ out, (law * r) @ out, (law * r) @ (1 - out)]
    # mean square of specialised neurons in other modes
    strength = readout**2 / np.where(law > 1e-12, law, np.inf)
    sums += [strength @ background.unfitted, float(not error < 0.1) / layer.width]
    return layer.width * np.concatenate(
        [
            [readout @ layer.target_overlap],
            sums,
            readout @ layer.modes,
            np.bincount(np.unique(np.abs(u), return_inverse=True)[1], law),
        ]
    )


def _controlled(table: np.ndarray, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute means and standard errors of columns, after regression on controls of mean zero."""
    draws = table.shape[0]
    if draws < 8:
        return table.mean(0), table.std(0, ddof=1) / sqrt(draws)
    design = np.column_stack([np.ones(draws), controls])
    fit, *_ = np.linalg.lstsq(design, table, rcond=None)
    left = table - design @ fit
    cover = np.linalg.inv(design.T @ design)[0, 0]
    return fit[0], np.sqrt((left**2).sum(0) / (draws - design.shape[1]) * cover)


def _onset(
    activation: str, degree: int, dimension: int, width: int, kappa: float, scale: float
) -> float:
    neuron = specialisation(activation, degree)
    # specialised: kappa R sqrt(chi N d) / sigma_a   (two-layer-posterior 6); lazy: kappa / eigenvalue
    lazy = kappa * dimension**degree / (scale * neuron.gaussian)
    if neuron.kind == "diffuse":
        return lazy
    return float(min(kappa * neuron.R * sqrt(width * dimension / scale), lazy))


def _caveat(layer: Layer, background: Background, law: np.ndarray, failed: float) -> str | None:
    # types of neurons that no network has do not matter
    if layer.width * law[layer.scale * background.price <= -0.7].sum() > 0.01:
        return (
            "the error of the network is much larger than kappa, so that neurons fit single samples: "
            "take a larger kappa or width."
        )
    if failed > 0.5:
        return (
            "one or two specialised neurons carry the target, and the theory neglects their "
            "fluctuations: take a larger width."
        )
    return None
