"""What is tested of Boltzmann machines on spiked data."""

from __future__ import annotations

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.points import Point

EVOLUTION = "arXiv:2505.18046 (state evolution derived in the note, 6.2)"


def at_rest(cell: Cell) -> bool:
    """Overlaps of a machine fitted to the end that are not those of chance."""
    return cell.setting.steps == 0 and cell.expected > 0.2


def on_its_way(cell: Cell) -> bool:
    """Points after a given number of steps."""
    return bool(cell.setting.steps > 0)


def lead(point: Point) -> np.ndarray | None:
    """Overlap of the machine less that of principal components of the same samples."""
    if point.setting.steps:
        return None
    return np.asarray(point.values("overlap") - point.values("pca_overlap"))


def predicted_lead(point: Point) -> np.ndarray:
    """The same of the predictions."""
    return np.asarray(point.predicted("overlap") - point.predicted("pca_overlap"))


def scatter(cell: Cell) -> float:
    """What an overlap scatters by: (1 - q²) / q^(1/2), largest near the threshold."""
    overlap = min(max(cell.measured, 0.1), 0.999)
    return float((1 - overlap**2) / np.sqrt(overlap))


# fmt: off
CLAIMS = (
    Agreement(
        "overlap",
        "The maximum of the likelihood has the predicted overlap with each spike that it learns.",
        "overlap", EVOLUTION, within=0.02, scatter=scatter, where=at_rest, entry="spike",
        because="Terms of order 1/d, and the mean over drawn samples that rounds the transition.",
        missing="no stable machine is predicted to learn a spike; raise sample_ratio or spike",
    ),
    Agreement(
        "norm",
        "Its weights have the predicted norm.",
        "norm", EVOLUTION, within=0.04, relative=True,
        because="Terms of order 1/d.",
        where=lambda cell: cell.setting.steps == 0 and cell.expected > 0.2,
        missing="no stable machine is predicted to have weights; raise sample_ratio or spike",
    ),
    Agreement(
        "stability",
        "A small change of samples grows by the predicted factor in a step of message passing.",
        "replicon", "derived (note 6.2)", within=0.15, relative=True, power=0.3,
        because="It is the mean of a square of which few samples near the decision make the most.",
        where=lambda cell: cell.setting.steps == 0 and 0.01 < cell.expected < 0.6,
        missing="no machine is predicted to be stable and to have weights; raise sample_ratio",
    ),
    Agreement(
        "principal-components",
        "The leading principal components have the predicted overlap, near their threshold too.",
        "pca_overlap", "Baik, Ben Arous and Peche 2005; finite sizes derived", within=0.03,
        scatter=scatter, where=lambda cell: cell.expected > 0.2, entry="spike",
        because="The mean over 24 to 400 drawn samples.",
        missing="no spike is above the threshold of principal components; raise sample_ratio or spike",
    ),
    Agreement(
        "lead-over-principal-components",
        "On the same samples the machine finds more than principal components by what is predicted, or "
        "less.",
        lead, "derived (note 6.2)", expected=predicted_lead, within=0.004, power=0.9, entry="spike",
        scatter=lambda cell: 1.0,
        because="Terms of order 1/d.",
        where=lambda cell: abs(cell.expected) > 0.006 and cell.predicted("overlap") > 0.2,
        missing="no stable machine is predicted to lead by more than 0.006; lower spike",
    ),
    Agreement(
        "overlap-on-the-way",
        "After a number of steps gradient ascent has the overlap of dynamical mean field.",
        "overlap", "derived (note 6.4)", within=0.03, scatter=scatter, where=on_its_way, entry="spike",
        because="Terms of order d^(-1/2), and 16,000 paths of the mean field.",
        missing="no point has steps above 0; run with --preset dynamics",
    ),
    Agreement(
        "norm-on-the-way",
        "And its norm.",
        "norm", "derived (note 6.4)", within=0.04, relative=True, where=on_its_way,
        because="Terms of order d^(-1/2), and 16,000 paths of the mean field.",
        missing="no point has steps above 0; run with --preset dynamics",
    ),
)
