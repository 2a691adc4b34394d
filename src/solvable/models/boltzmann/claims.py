"""Claims of the Boltzmann machine, each with the reason for its tolerance."""

from __future__ import annotations

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.points import Point


def at_rest(cell: Cell) -> bool:
    """Return True for a converged machine with a predicted overlap above 0.2."""
    return cell.setting.steps == 0 and cell.expected > 0.2


def on_its_way(cell: Cell) -> bool:
    """Return True if training stops after a fixed number of steps."""
    return bool(cell.setting.steps > 0)


def lead(point: Point) -> np.ndarray | None:
    """Overlap of the machine minus the overlap of the principal components of the same samples."""
    if point.setting.steps:
        return None
    return np.asarray(point.values("overlap") - point.values("pca_overlap"))


def predicted_lead(point: Point) -> np.ndarray:
    """Predicted overlap of the machine minus the predicted overlap of the principal components."""
    return np.asarray(point.predicted("overlap") - point.predicted("pca_overlap"))


def scatter(cell: Cell) -> float:
    """Scatter of an overlap q, proportional to (1 - q²) / q^(1/2)."""
    overlap = min(max(cell.measured, 0.1), 0.999)
    return float((1 - overlap**2) / np.sqrt(overlap))


# fmt: off
CLAIMS = (
    Agreement(
        "overlap",
        "The overlap of the weights with each learned spike equals the prediction.",
        "overlap", "derivations/boltzmann (6), (10)", within=0.02, scatter=scatter, where=at_rest,
        entry="spike",
        because="Terms of order 1/d, and the sampling error of the finite-size factor, a mean over drawn "
        "samples.",
        missing="no point has a stable prediction with overlap above 0.2; raise sample_ratio or spike",
    ),
    Agreement(
        "norm",
        "The norm of the weights equals the prediction.",
        "norm", "derivations/boltzmann (6)", within=0.04, relative=True,
        because="Terms of order 1/d, which the prediction leaves out.",
        where=lambda cell: cell.setting.steps == 0 and cell.expected > 0.2,
        missing="no point has a stable prediction with norm above 0.2; raise sample_ratio or spike",
    ),
    Agreement(
        "stability",
        "The replicon of the fitted machine equals the prediction.",
        "replicon", "derivations/boltzmann (7)", within=0.15, relative=True, power=0.3,
        because="A few samples near the decision boundary dominate the replicon, which is a mean square.",
        where=lambda cell: cell.setting.steps == 0 and 0.01 < cell.expected < 0.6,
        missing="no point has a predicted replicon between 0.01 and 0.6; raise sample_ratio",
    ),
    Agreement(
        "principal-components",
        "The overlap of the leading principal components equals the prediction.",
        "pca_overlap", "baik2005phase, Theorem 1.1; derivations/boltzmann (8), (10)", within=0.03,
        scatter=scatter, where=lambda cell: cell.expected > 0.2, entry="spike",
        because="Sampling error of the prediction, a mean over 24 to 400 drawn samples.",
        missing="no spike is above the threshold of principal components; raise sample_ratio or spike",
    ),
    Agreement(
        "lead-over-principal-components",
        "The overlap of the machine minus that of principal components, on the same samples, equals the "
        "prediction.",
        lead, "derivations/boltzmann (6), (8), (10)", expected=predicted_lead, within=0.004, power=0.9,
        entry="spike",
        scatter=lambda cell: 1.0,
        because="Terms of order 1/d, which the prediction leaves out.",
        where=lambda cell: abs(cell.expected) > 0.006 and cell.predicted("overlap") > 0.2,
        missing="no stable point has a predicted difference of overlaps above 0.006; lower spike",
    ),
    Agreement(
        "overlap-on-the-way",
        "The overlap after a number of steps of gradient ascent equals dynamical mean-field theory.",
        "overlap", "derivations/boltzmann (14), (15)", within=0.03, scatter=scatter, where=on_its_way,
        entry="spike",
        because="Terms of order d^(-1/2), and the sampling error of 16,000 simulated mean-field paths.",
        missing="no point has steps above 0; run with --preset dynamics",
    ),
    Agreement(
        "norm-on-the-way",
        "The norm after a number of steps of gradient ascent equals dynamical mean-field theory.",
        "norm", "derivations/boltzmann (14), (15)", within=0.04, relative=True, where=on_its_way,
        because="Terms of order d^(-1/2), and the sampling error of 16,000 simulated mean-field paths.",
        missing="no point has steps above 0; run with --preset dynamics",
    ),
)
