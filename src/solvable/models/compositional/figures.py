"""Figures of compositional targets: recovery in all dimensions, other figures in the largest one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from solvable.frame.conditions import above
from solvable.frame.curves import Axis, Curve, predict_each
from solvable.frame.panels import Panel, PanelFunction, grouped
from solvable.frame.traces import Trace
from solvable.models.compositional.claims import crossing, later_names
from solvable.models.compositional.parameters import AXIS
from solvable.models.compositional.predict import predict_first_layer
from solvable.plots.figure import Figure


def dimension(curve: Curve) -> int:
    """Number d of input coordinates."""
    return int(curve.setting.dimension)


def at_the_largest(panel: Panel) -> PanelFunction:
    """Return a panel function that, of curves differing only in dimension, draws the largest one."""

    def draw(curves: Sequence[Curve]) -> list[Figure]:
        figures = []
        for group in grouped(curves, ("dimension",)):
            curve = max(group.curves, key=dimension)
            at = f", d = {dimension(curve)}" + (f" ({group.words})" if group.words else "")
            figures += [
                replace(figure, name=figure.name + group.suffix, title=figure.title + at)
                for figure in panel([curve])
            ]
        return figures

    draw.__name__ = panel.name
    return draw


RECOVERY = Panel(
    "recovery",
    "The first representation is recovered",
    "subspace overlap",
    [Trace("subspace_overlap")],
    "Subspace overlap: squared overlap of the learned with the true first representation, averaged over "
    "features. Rotating the features does not change it. Vertical lines: predicted crossing of 0.5.",
    markers={"crossing_samples": ""},
    overlay=("dimension", "first_layer"),
    y_range=(-0.02, 1.02),
)


def recovery(curves: Sequence[Curve]) -> list[Figure]:
    """Draw overlaps in all dimensions, with predictions by the theory of the first step."""
    # Predictions for later layers are slow and not needed for this figure.
    along = predict_each(predict_first_layer, AXIS)
    return RECOVERY(
        [
            # A curve with places of its own has all predictions already, and one of three layers shares
            # its predictions with the other figures.
            curve
            if curve.places is not None or curve.setting.layers == 3
            else replace(curve, predict=along)
            for curve in sorted(curves, key=dimension)
        ]
    )


SCALING = Panel(
    "scaling",
    "Recovery costs far fewer samples than a kernel needs",
    "samples n",
    [
        Trace("crossing_samples", "half of the representation", reduce=crossing),
        Trace(
            "kernel_threshold_samples", "kernel learns the top degree", measured=False, dashed=True,
        ),
    ],
    "Solid: number of samples at which half of the first representation is recovered, of order "
    "d^(q + epsilon). Dashed: number of samples at which a rotation-invariant kernel can learn the "
    "highest degree of the label.",
    along=Axis("dimension", "dimension d", resolution=3),
    y_scale="log",
)  # fmt: skip

FEATURES = Panel(
    "features",
    "Rotated features appear one after another",
    "squared overlap with the true rotated feature",
    [Trace("squared_overlap", "feature")],
    "Rotated features: features in the eigenbasis of the layers above, largest eigenvalue first. "
    "Vertical lines: predicted thresholds.",
    markers={"threshold_samples": ""},
    y_range=(-0.02, 1.02),
)

FLOOR = "polynomial_kernel_normalised_mse"

ERROR = Panel(
    "error",
    "The error falls as features are recovered",
    "mean squared error / variance of the label",
    [
        Trace("normalised_mse", "three layers"),
        Trace(FLOOR, "polynomial kernel", theory=None),
        Trace("rbf_kernel_normalised_mse", "RBF kernel", theory=None),
        Trace("random_features_normalised_mse", "random features", theory=None),
        Trace("two_layer_normalised_mse", "two layers"),
        Trace(FLOOR, "least error of any kernel", measured=False, dashed=True, colour=1),
    ],
    "Two layers: the same learner without the first representation, a quadratic form of the inputs. "
    "A kernel or random features learn the label's component of degree 2 and, per sample, at most one "
    "of the D_4 directions of degree 4.",
    y_scale="log",
)

TRUE = "last_layer_eigenvalues_of_target"

LAST_LAYER = Panel(
    "last-layer",
    "The last layer is fitted on the recovered features",
    "eigenvalue of the last layer",
    [
        Trace("last_layer_eigenvalues", "eigenvalue"),
        Trace(TRUE, "true", measured=False, dashed=True),
    ],
    "Eigenvalues of the fitted last quadratic layer, in descending order. Each is an eigenvalue of B "
    "(dashed) times the squared overlap of its feature.",
    when={"layers": 3, "learner": "spectral"},
)


def after_later(setting: Any) -> int:
    """First colour that the features of the later representations do not have."""
    return 1 + sum(setting.widths[1:])


CEILING = "inner_overlap_ceiling"

LAYERS = Panel(
    "layers",
    "Layer by layer",
    "squared overlap",
    [
        Trace("subspace_overlap", "first representation"),
        Trace("inner_squared_overlap", names=later_names, colour=1),
        Trace(
            "first_step_inner_overlap", "second, from the first step", mean=True, colour=after_later
        ),
        Trace(
            CEILING, "upper bound for the second", measured=False, dashed=True, mean=True, colour=1
        ),
    ],
    "Dashed: largest overlap of the second representation that the learned first representation allows. "
    "At these widths, terms of order 1/width in the population matrix of the second step reduce the "
    "overlap. The solid line includes these terms.",
    when={"layers": above(3)},
    y_range=(-0.02, 1.02),
)

PANELS = (
    recovery,
    SCALING,
    *(at_the_largest(panel) for panel in (FEATURES, ERROR, LAST_LAYER, LAYERS)),
)
