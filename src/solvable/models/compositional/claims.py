"""Claims of compositional targets, each with its tolerance and the reason for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.conditions import above, at_least
from solvable.frame.estimates import Estimate, Lead, grouped_but
from solvable.frame.points import Point
from solvable.models.compositional.later_steps import LARGEST
from solvable.models.compositional.parameters import AXIS
from solvable.moment_spectrum.population_fit import LARGEST_DRAWN

REPRESENTATION = ("inner_squared_overlap", "first_step_inner_overlap")

RIVALS = ("polynomial_kernel", "rbf_kernel", "random_features")


def undrawn(setting: Any) -> bool:
    """Return True if the first step needs drawn operators, and its first layer has none."""
    # In few inputs the formula alone is too inaccurate for plain operators and for unmapped labels.
    rough = setting.correction == "none" or setting.label_map == "identity"
    few = setting.degree == 2 and setting.dimension <= LARGEST_DRAWN
    return rough and few and setting.first_layer in ("random", "random-features")


def asymptotic(cell: Cell) -> bool:
    """Return True if the theory of the first step holds at n/D."""
    setting = cell.setting
    if setting.learner != "spectral" or undrawn(setting):
        return False
    # If n/D is much larger than d, the noise is smaller than the terms of relative order 1/d in the
    # population matrix, and the theory of the first step does not hold.
    within = setting.degree != 2 or setting.ratio <= 4 * setting.dimension
    return bool(setting.ratio >= 15 and within)


LARGE = {"n/D of at least 15": asymptotic}
THREE = {**LARGE, "layers": 3}


def deep(cell: Cell) -> bool:
    """Return True for four or more layers at an n/D where the theory of later steps holds."""
    setting = cell.setting
    if setting.learner != "spectral" or setting.layers == 3 or setting.ratio < 15:
        return False
    # Drawn matrices include the population terms that limit the theory of the first step.
    return bool(setting.n_features_total <= LARGEST or asymptotic(cell))


DEEP = {"four or more layers at n/D of at least 15": deep}


def second(cell: Cell) -> bool:
    """Return True for a feature of the second representation."""
    return bool((cell.entry or 0) < cell.setting.widths[1])


def learned(cell: Cell) -> bool:
    """Return True if the layered learner has an error of at most 0.8."""
    return float(cell.point.mean("normalised_mse")) <= 0.8


def later_names(setting: Any) -> list[str]:
    """Name of each feature of the later representations."""
    widths = enumerate(setting.widths[1:], start=2)
    return [f"feature {j + 1} of representation {k}" for k, width in widths for j in range(width)]


def all_found(cell: Cell) -> bool:
    """Return True if the predicted squared overlaps of all features exceed 0.5."""
    return bool((cell.point.predicted("squared_overlap") > 0.5).all())


def eigenvalues(point: Point) -> np.ndarray:
    """Eigenvalues of the fitted last layer, divided by the norm of the predicted eigenvalues."""
    norm = np.linalg.norm(point.predicted("last_layer_eigenvalues"))
    return np.asarray(point.values("last_layer_eigenvalues") / norm)


def predicted_eigenvalues(point: Point) -> np.ndarray:
    """Predicted eigenvalues of the last layer, divided by their norm."""
    predicted = point.predicted("last_layer_eigenvalues")
    return np.asarray(predicted / np.linalg.norm(predicted))


def kernel_errors(point: Point) -> np.ndarray:
    """Errors of two kernels and of random features, shape (replicates, 3); NaN where not fitted."""
    names = [f"{name}_normalised_mse" for name in RIVALS]
    return np.stack([point.values(name) for name in names], axis=1)


def kernel_misses(point: Point) -> np.ndarray:
    """Kernel errors divided by the label variance above degree 2, shape (replicates, 3)."""
    return kernel_errors(point) / (1 - float(point.predicted("degree_two_share")))


def lead_of_depth(point: Point) -> np.ndarray:
    """Error of the quadratic network of two layers minus the error of the layered learner."""
    return np.asarray(point.values("two_layer_normalised_mse") - point.values("normalised_mse"))


def predicted_lead(point: Point) -> float:
    """Predicted error of two layers minus the predicted error of three; NaN where one is unknown."""
    names = ("two_layer_normalised_mse", "normalised_mse")
    two, three_layers = (point.prediction.get(name) for name in names)
    if not isinstance(two, float) or not isinstance(three_layers, float):
        return float("nan")
    return two - three_layers


def revealed(point: Point) -> np.ndarray | None:
    """Overlaps of the second representation after the second step minus those after the first."""
    first = point.values("first_step_inner_overlap")
    if first.ndim == 1:  # three layers
        return None
    return np.asarray(point.values("inner_squared_overlap")[:, : first.shape[1]] - first)


def predicted_revealed(point: Point) -> np.ndarray:
    """Predicted overlaps after the second step minus those after the first; NaN if not predicted."""
    if any(point.prediction.get(name) is None for name in REPRESENTATION):
        return np.array(np.nan)
    later, first = (point.predicted(name) for name in REPRESENTATION)
    return np.asarray(later[: len(first)] - first)


def crossing(points: Sequence[Point]) -> float:
    """Sample size at which the subspace overlap of a curve passes 0.5; NaN if there is none."""
    samples = np.array([point.parameters["samples"] for point in points], dtype=float)
    values = np.array([float(point.mean("subspace_overlap")) for point in points])
    above = np.flatnonzero(values >= 0.5)
    if above.size == 0 or above[0] == 0:
        return float("nan")
    k = int(above[0])
    if samples[k] > 2.2 * samples[k - 1]:  # the sizes are too far apart to interpolate
        return float("nan")
    part = (0.5 - values[k - 1]) / (values[k] - values[k - 1])
    return float(samples[k - 1] * (samples[k] / samples[k - 1]) ** part)


ALONG = (AXIS.parameter, *AXIS.ignore)
"""Names of the parameters in which the points of one curve may differ."""


def crossing_place(points: Sequence[Point]) -> tuple[float, float] | None:
    """Log of measured over predicted sample size at a subspace overlap of 0.5; expected value 0."""
    curve = sorted(points, key=AXIS.coordinate)
    ratio = crossing(curve) / float(curve[0].predicted("crossing_samples"))
    return (float(np.log(ratio)), 0.0) if np.isfinite(ratio) else None


def recovery_scaling(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted slope of log(sample size at the crossing) against log(d)."""
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
        "The squared overlap of every recovered rotated feature equals its prediction.",
        "squared_overlap", "derivations/compositional (3), (4); derivations/sequential (6)",
        within=0.06, because="0.06: the formula has corrections of relative order (D/n)^(1/2) and 1/d.",
        where={**LARGE, "expected": above(0.5)}, entry="rotated feature", scatter=overlap_scatter,
        missing="raise samples",
    ),
    Agreement(
        "subspace-overlap",
        "The overlap of the learned with the true subspace of the first representation equals its "
        "prediction.",
        "subspace_overlap", "derivations/compositional (6)", within=0.04,
        because="0.04: the prediction is less accurate for features near their threshold.",
        scatter=overlap_scatter, where=LARGE,
        missing="a random first layer of up to 44 inputs also needs correction=wick and label_map=tanh "
        "or clip; raise samples",
    ),
    Agreement(
        "last-layer-eigenvalues",
        "Each eigenvalue of the fitted last layer is an eigenvalue of the true last layer B times the "
        "squared overlap of its feature.",
        eigenvalues, "derivations/compositional (8)", within=0.05,
        because="5 % of the norm of the eigenvalues: the fit has noise.",
        expected=predicted_eigenvalues, entry="eigenvalue", power=0.15,
        where={**THREE, "predicted overlaps above 0.5 for all features": all_found},
        missing="raise samples or set layers=3",
    ),
    Agreement(
        "error-level", "The normalised error of a target of three layers equals its prediction.",
        "normalised_mse", "derivations/compositional (8)", within=0.1, relative=True,
        because="10 %: the labels have heavy tails.", where=THREE, power=0.15,
        missing="raise samples or set layers=3",
    ),
    Estimate(
        "recovery-crossing", "The subspace overlap passes 0.5 at the predicted number of samples.",
        "derivations/compositional (7)", estimate=crossing_place, apart=ALONG, within=0.2,
        where={"learner": "spectral"},
        because="0.2 in the logarithm: the crossing is interpolated between sample sizes up to a factor "
        "of two apart.", power=0.2,
        missing="no curve has two sample sizes, at most a factor of two apart, between which the "
        "subspace overlap passes 0.5; add samples around crossing_samples from `solvable theory`, "
        "or run with --preset scaling",
    ),
    Estimate(
        "recovery-scaling",
        "The number of samples at which the subspace overlap passes 0.5 is a power of d. The exponent "
        "equals its prediction at these dimensions (q + epsilon in the limit of large d).",
        "derivations/compositional (5)",
        estimate=recovery_scaling, apart=("dimension", *ALONG), within=0.3,
        where={"learner": "spectral"},
        because="0.3: d^epsilon is rounded to whole features, and d varies only by a small factor.",
        power=0.2,
        missing="fewer than three dimensions, or dimensions within a factor of two, have a crossing; set "
        "dimension to at least three values that span a factor of two, or run with --preset scaling",
    ),
    Agreement(
        "kernel-sees-nothing",
        "At sample sizes where the layered learner has an error below 0.8, kernels and random features "
        "on the same samples miss at least 90 % of the label's variance above degree 2 in the input.",
        kernel_misses, "derivations/compositional (17)", within=0.05, kind="at least",
        expected=0.9, power=0.5,
        because="0.05: the measured errors fluctuate with the draw of the test samples.",
        entry=lambda setting: RIVALS,
        where={"dimension": at_least(40), "an error of at most 0.8": learned},
        missing="set kernel_samples to at least samples",
    ),
    Agreement(
        "kernel-floor",
        "No kernel, nor a network of random features, has an error below the predicted bound, which "
        "counts how many directions of degree 2 and 4 can be learned from n samples.",
        kernel_errors, "derivations/compositional (16), (17)", within=0.02,
        because="0.02: the label's variance in degree 2 is a Monte Carlo estimate.",
        expected="polynomial_kernel_normalised_mse", kind="at least", entry=lambda setting: RIVALS,
        # A bound close to the tolerance cannot be violated.
        where={"expected": above(0.1)}, power=0.3, missing="set kernel_samples",
    ),
    Agreement(
        "error-of-two-layers",
        "The error of a quadratic network of two layers, which has no intermediate representation, "
        "equals the label's variance above degree 2 plus the noise of the fit.",
        "two_layer_normalised_mse", "derivations/compositional (18)", within=0.05, relative=True,
        because="5 %: the label's variance in degree 2 is a Monte Carlo estimate, and the labels have "
        "heavy tails.",
        where=THREE,
        missing="the readout must be the identity, with at least 4 fresh rows per quadratic form of the "
        "inputs; raise samples",
    ),
    Agreement(
        "three-layers-beat-two",
        "The error of the layered learner is below the error of two layers on the same samples by the "
        "predicted difference.",
        lead_of_depth, "derivations/compositional (8), (18)", within=0.08, expected=predicted_lead,
        because="0.08: the tolerances of both errors.", where=THREE,
        missing="the readout must be the identity, with at least 4 fresh rows per quadratic form of the "
        "inputs; raise samples", power=0.3,
    ),
    Agreement(
        "random-features-act-as-hermite",
        "A first layer of random ReLU features has the subspace overlap that is predicted for "
        "orthonormal directions in Hermite features.",
        "subspace_overlap", "derivations/compositional (6)", within=0.06,
        expected="hermite_subspace_overlap", power=0.2, scatter=overlap_scatter,
        because="0.06: ReLU features have parts of degree above 2, and few features span them.",
        where={"first_layer": "random-features", **LARGE},
        missing="run with --preset universality",
    ),
    Lead(
        "gaussian-features-act-as-hermite",
        "A first layer of Gaussian features has the subspace overlap of Hermite features, up to the "
        "predicted difference, which vanishes for large d.",
        "derivations/compositional (6)", metric="subspace_overlap", within=0.02,
        of={"first_layer": "gaussian"}, over={"first_layer": "orthonormal"},
        because="0.02: half the tolerance of an overlap, because the difference is a mean over points.",
        where={"ratio": at_least(15)}, power=0.4,
        missing="first_layer does not have both values at n/D >= 15; run with --preset universality",
    ),
    Agreement(
        "filter-finds-the-features",
        "The coordinates that the first filter of a Neural LoFi network keeps contain each feature of "
        "the first representation at least to the overlap predicted for the spectral step.",
        "squared_overlap", "derivations/compositional (3), (4)", within=0.08, kind="at least",
        because="0.08: the filter ranks by modulus, so that noise along the norm of x takes some places.",
        entry="rotated feature", scatter=overlap_scatter, power=0.3,
        where={"learner": "neural-lofi", "ratio": at_least(15),
               "expected": above(0.5)},
        missing="raise samples, or run with --preset neural-lofi",
    ),
    Agreement(
        "filter-lowers-the-degree",
        "After one filter of low degree a network learns the label's degree four as a quadratic "
        "function: its test error is at most half that of the best quadratic function of the inputs.",
        lambda point: point.values("normalised_mse") / point.values("two_layer_normalised_mse"),
        "derivations/compositional (18)", within=0.05, expected=0.5, kind="at most", power=0.4,
        because="0.05: the error differs between first layers.",
        where={"learner": "neural-lofi", "ratio": at_least(25)},
        missing="raise samples, or run with --preset neural-lofi",
    ),
    Agreement(
        "gradient-descent-finds-the-features",
        "Gradient descent on a two-layer ReLU network finds each feature of degree 1 at least to the "
        "overlap predicted for the spectral step on the same samples.",
        "squared_overlap", "derivations/compositional (3), (4)", within=0.05,
        because="0.05: the overlap of single features fluctuates.", kind="at least",
        entry="rotated feature", scatter=overlap_scatter, power=0.4,
        where={"learner": "gradient-descent", "expected": above(0.5)},
        missing="run with --preset gradient-descent",
    ),
    Agreement(
        "second-step-reveals",
        "The second step reveals what the first step is blind to: the overlap of each feature of the "
        "second representation with the second step, minus its overlap with the quadratic form of the "
        "first step, equals its prediction.",
        revealed, "derivations/compositional (12), (19)", within=0.1, expected=predicted_revealed,
        because="0.1: the directions that replace unrecovered features vary between draws.",
        where=DEEP, entry="feature", scatter=overlap_scatter, power=0.3,
        missing="run with --preset four-layers",
    ),
    Agreement(
        "second-representation",
        "The overlap of each feature of the second representation equals its prediction.",
        "inner_squared_overlap", "derivations/compositional (11), (12)", within=0.1,
        because="0.1: the directions that replace unrecovered features vary between draws.",
        where={**DEEP, "features of the second representation": second}, entry="feature",
        scatter=overlap_scatter, power=0.2, missing="run with --preset four-layers",
    ),
    Agreement(
        "later-representations",
        "The overlap of each feature of the third and later representations equals its prediction.",
        "inner_squared_overlap", "derivations/compositional (12)", within=0.1,
        because="0.1: the directions that replace unrecovered features vary between draws.",
        where={**DEEP, "features of later representations": lambda cell: not second(cell)},
        entry=later_names, scatter=overlap_scatter, power=0.5,
        missing="run with --preset five-layers",
    ),
    Agreement(
        "error-of-four-layers", "The normalised error of a target of four layers equals its prediction.",
        "normalised_mse", "derivations/compositional (12)", within=0.1, relative=True,
        because="10 %: the labels have heavy tails.", power=0.2,
        where={**DEEP, "layers": 4}, missing="run with --preset four-layers",
    ),
)
