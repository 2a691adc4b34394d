"""What compositional targets claim: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.estimates import Estimate, grouped_but
from solvable.frame.points import Point
from solvable.models.compositional.parameters import AXIS

PAPER = "arXiv:2602.10867"

KERNELS = ("polynomial", "rbf")


def asymptotic(cell: Cell, least: float = -np.inf) -> bool:
    """Whether the law of the first step is tested here, and what it expects above a value."""
    setting = cell.setting
    # For n/D of order d the noise is below terms of relative order 1/d of the population matrix.
    within = setting.degree != 2 or setting.ratio <= 4 * setting.dimension
    return bool(setting.ratio >= 15 and within and cell.expected > least)


def three(cell: Cell) -> bool:
    """The same of a target of three layers."""
    return asymptotic(cell) and cell.setting.layers == 3


def four(cell: Cell) -> bool:
    """The same of a target of four layers."""
    return asymptotic(cell) and cell.setting.layers == 4


def all_found(cell: Cell) -> bool:
    """The same where half of each feature is found: below, neighbours of like weight share one."""
    return three(cell) and bool((cell.point.predicted("squared_overlap") > 0.5).all())


def eigenvalues(point: Point) -> np.ndarray:
    """Eigenvalues of the fitted last layer, in units of the norm of the predicted ones."""
    norm = np.linalg.norm(point.predicted("last_layer_eigenvalues"))
    return np.asarray(point.values("last_layer_eigenvalues") / norm)


def predicted_eigenvalues(point: Point) -> np.ndarray:
    """The predicted ones in the same units."""
    predicted = point.predicted("last_layer_eigenvalues")
    return np.asarray(predicted / np.linalg.norm(predicted))


def kernel_errors(point: Point) -> np.ndarray:
    """Errors of the kernels, (replicates, 2); NaN where not fitted."""
    return np.stack([point.values(f"{name}_kernel_normalised_mse") for name in KERNELS], axis=1)


def kernel_misses(point: Point) -> np.ndarray:
    """Shares of the label beyond degree 2 that the kernels miss, (replicates, 2)."""
    return kernel_errors(point) / (1 - float(point.predicted("degree_two_share")))


def crossing(points: Sequence[Point]) -> float:
    """Sample size at which the subspace overlap passes one half along a curve; NaN if nowhere."""
    samples = np.array([point.parameters["samples"] for point in points], dtype=float)
    values = np.array([float(point.mean("subspace_overlap")) for point in points])
    above = np.flatnonzero(values >= 0.5)
    if above.size == 0 or above[0] == 0:
        return float("nan")
    k = int(above[0])
    if samples[k] > 2.2 * samples[k - 1]:  # too far apart to interpolate within the tolerance
        return float("nan")
    part = (0.5 - values[k - 1]) / (values[k] - values[k - 1])
    return float(samples[k - 1] * (samples[k] / samples[k - 1]) ** part)


ALONG = (AXIS.parameter, *AXIS.ignore)
"""Parameters in which the points of one curve differ."""


def crossing_place(points: Sequence[Point]) -> tuple[float, float] | None:
    """Logarithm of the measured over the predicted sample size of half the overlap."""
    curve = sorted(points, key=AXIS.coordinate)
    ratio = crossing(curve) / float(curve[0].predicted("crossing_samples"))
    return (float(np.log(ratio)), 0.0) if np.isfinite(ratio) else None


def recovery_scaling(points: Sequence[Point]) -> tuple[float, float] | None:
    """Slopes of the measured and the predicted crossing in d, over a factor of two at least."""
    curves = [sorted(group, key=AXIS.coordinate) for group in grouped_but(points, ALONG)]
    rows = np.array(
        [
            (c[0].setting.dimension, crossing(c), float(c[0].predicted("crossing_samples")))
            for c in curves
        ]
    )
    rows = rows[np.isfinite(rows).all(axis=1)]
    if len(rows) < 3 or rows[:, 0].max() < 2 * rows[:, 0].min():
        return None
    d, *sizes = np.log(rows).T
    measured, expected = (float(np.polyfit(d, size, 1)[0]) for size in sizes)
    return measured, expected


# fmt: off
CLAIMS = (
    Agreement(
        "overlap-of-each-rotated-feature",
        "The squared overlap of every recovered rotated feature is on the curve of its eigenvalue.",
        "squared_overlap", "derived: the spike law in the eigenbasis of the effective matrix",
        within=0.06, because="Corrections of relative order (D/n)^(1/2) and 1/d.",
        where=lambda cell: asymptotic(cell, 0.5), entry="rotated feature", scatter=overlap_scatter,
        missing="no point has n/D >= 15 and a rotated feature of predicted squared overlap above 0.5; "
        "raise samples",
    ),
    Agreement(
        "subspace-overlap",
        "The overlap of the whole first representation, recovered or not, is on its curve.",
        "subspace_overlap", "derived", within=0.04, because="Features at their threshold.",
        scatter=overlap_scatter,
        where=asymptotic, missing="no point has n/D >= 15; raise samples",
    ),
    Agreement(
        "last-layer-eigenvalues",
        "The eigenvalues of the fitted last layer are those of B, each shrunk by its overlap.",
        eigenvalues, "derived", within=0.05, because="5 % of the norm for the noise of the fit.",
        expected=predicted_eigenvalues, where=all_found, entry="eigenvalue", power=0.15,
        missing="no point has three layers, n/D >= 15 and predicted overlaps above 0.5 of all features; "
        "raise samples or set layers=3",
    ),
    Agreement(
        "error-level", "The normalised error of three layers is the predicted one.",
        "normalised_mse", "derived", within=0.1, because="10 % for heavy tails of the label.",
        relative=True, where=three, power=0.15,
        missing="no point has three layers and n/D >= 15; raise samples or set layers=3",
    ),
    Estimate(
        "recovery-crossing", "Half of the representation is found at the predicted number of samples.",
        "derived", estimate=crossing_place, apart=ALONG, within=0.2,
        because="0.2 in the logarithm: interpolation between sizes a factor of two apart.", power=0.2,
        missing="in no curve does the subspace overlap pass one half between two sample sizes a factor "
        "of two apart; add samples around crossing_samples from `solvable theory`",
    ),
    Estimate(
        "recovery-scaling",
        "The number of samples that recovery takes grows with d as predicted: d^(q+epsilon), less "
        "finite-size corrections.",
        f"{PAPER}: n ~ d^(q+epsilon)",
        estimate=recovery_scaling, apart=("dimension", *ALONG), within=0.3,
        because="0.3: rounding of d^epsilon to whole features, over a factor of two in d.", power=0.2,
        missing="fewer than three dimensions, over a factor of two, have a crossing; set dimension to "
        "several values, or run with --preset scaling",
    ),
    Agreement(
        "kernel-sees-nothing",
        "Where the layered learner has an error below 0.8, a kernel misses at least nine tenths of all "
        "that is not of degree 2 in the input.",
        kernel_misses, PAPER, within=0.05, kind="at least", expected=0.9, power=0.5,
        because="A one-sided statement; 0.05 for one sample of the label.",
        entry=lambda setting: KERNELS,
        where=lambda cell: cell.setting.dimension >= 40
        and float(cell.point.mean("normalised_mse")) <= 0.8,
        missing="no point has dimension >= 40, a kernel baseline (kernel_samples >= samples) and a "
        "layered error below 0.8",
    ),
    Agreement(
        "kernel-floor", "No kernel beats n of the D_2 directions of degree 2 and n of D_4 of degree 4.",
        kernel_errors, "derived", within=0.02, because="The part of degree 2 is a Monte-Carlo estimate.",
        expected="polynomial_kernel_normalised_mse", kind="at least", entry=lambda setting: KERNELS,
        # Nothing can fall below a bound of the size of the tolerance.
        where=lambda cell: cell.expected > 0.1, power=0.3,
        missing="no point has a kernel baseline and less than the samples that all of degree 4 takes; "
        "set kernel_samples",
    ),
    Agreement(
        "second-representation", "The second representation is found as far as the first one lets it be.",
        "inner_squared_overlap", "derived", within=0.1, because="Tilt of what the first step lost.",
        where=four, entry="feature", scatter=overlap_scatter, power=0.2,
        missing="no point has four layers and n/D >= 15; run with --preset four-layers",
    ),
    Agreement(
        "error-of-four-layers", "The normalised error of four layers is the predicted one.",
        "normalised_mse", "derived", within=0.1, because="10 % for heavy tails of the label.",
        relative=True, where=four, power=0.2,
        missing="no point has four layers and n/D >= 15; run with --preset four-layers",
    ),
)
