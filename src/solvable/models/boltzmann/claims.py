"""Claims of the Boltzmann machine, each with the reason for its tolerance."""

from __future__ import annotations

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import above, at_least, between
from solvable.frame.estimates import Contrast
from solvable.frame.points import Point


def on_its_way(cell: Cell) -> bool:
    """Return True after a fixed number of steps, for a spike at least half above the threshold."""
    setting = cell.setting
    strength = setting.strength if cell.entry is None else setting.strengths[cell.entry]
    return bool(setting.steps and strength > 1.5 * cell.predicted("threshold_spike"))


ON_ITS_WAY = {"steps above 0 and a spike 1.5 times above its threshold": on_its_way}


def differs(cell: Cell) -> bool:
    """Return True if the predicted overlaps of machine and principal components differ."""
    return abs(cell.expected) > 0.006


def at_the_edge(point: Point) -> np.ndarray:
    """Overlap of one unit with its spike, with a sign, after 8 or more steps of message passing."""
    # The weight decay must be near the edge of the noise spectrum: the units stay small, and do not
    # vanish.
    setting = point.setting
    edge = (1 + setting.sample_ratio**-0.5) ** 2 - 1
    chosen = setting.steps >= 8 and setting.algorithm == "amp"
    chosen &= setting.hidden_units == len(setting.strengths) == 1
    if not (chosen and abs(setting.weight_decay / edge - 1) < 0.05):
        return np.full(point.replicates, np.nan)
    return np.asarray(point.values("overlap_matrix")[:, 0])


def lead(point: Point) -> np.ndarray | None:
    """Overlap of the machine minus the overlap of the principal components of the same samples."""
    if point.setting.steps:
        return None
    return np.asarray(point.values("overlap") - point.values("pca_overlap"))


def predicted_lead(point: Point) -> np.ndarray:
    """Predicted overlap of the machine minus the predicted overlap of the principal components."""
    return np.asarray(point.predicted("overlap") - point.predicted("pca_overlap"))


def predicted_overlap(point: Point) -> float:
    """Predicted overlap of the first unit with the first spike, with a sign; NaN at rest."""
    return float(point.predicted("overlap_matrix")[0]) if point.setting.steps else np.nan


def scatter(cell: Cell) -> float:
    """Scatter of an overlap q, proportional to (1 - q²) / q^(1/2)."""
    overlap = min(max(cell.measured, 0.1), 0.999)
    return float((1 - overlap**2) / np.sqrt(overlap))


# fmt: off
CLAIMS = (
    Agreement(
        "overlap",
        "The overlap of the weights with each learned spike equals the prediction.",
        "overlap", "derivations/boltzmann (6), (10)", within=0.02, scatter=scatter, entry="spike",
        where={"steps": 0, "expected": above(0.2)},
        because="Terms of order 1/d, and the sampling error of the finite-size factor, a mean over drawn "
        "samples.",
        missing="raise sample_ratio or spike",
    ),
    Agreement(
        "norm",
        "The norm of the weights equals the prediction.",
        "norm", "derivations/boltzmann (6)", within=0.04, relative=True,
        because="Terms of order 1/d, which the prediction leaves out.",
        where={"steps": 0, "expected": above(0.2)},
        missing="raise sample_ratio or spike",
    ),
    Agreement(
        "stability",
        "The replicon of the fitted machine equals the prediction.",
        "replicon", "derivations/boltzmann (7)", within=0.15, relative=True, power=0.3,
        because="A few samples near the decision boundary dominate the replicon, which is a mean square.",
        where={"steps": 0, "expected": between(0.01, 0.6)},
        missing="raise sample_ratio",
    ),
    Agreement(
        "principal-components",
        "The overlap of the leading principal components equals the prediction.",
        "pca_overlap", "baik2005phase, Theorem 1.1; derivations/boltzmann (8), (10)", within=0.03,
        scatter=scatter, where={"expected": above(0.2)}, entry="spike",
        because="Sampling error of the prediction, a mean over 24 to 400 drawn samples.",
        missing="raise sample_ratio or spike",
    ),
    Agreement(
        "lead-over-principal-components",
        "The overlap of the machine minus that of principal components, on the same samples, equals the "
        "prediction.",
        lead, "derivations/boltzmann (6), (8), (10)", expected=predicted_lead, within=0.004, power=0.9,
        entry="spike",
        scatter=lambda cell: 1.0,
        because="Terms of order 1/d, which the prediction leaves out.",
        where={"a predicted difference of more than 0.006": differs, "overlap": above(0.2)},
        missing="lower spike",
    ),
    Agreement(
        "overlap-on-the-way",
        "The overlap after a number of steps of gradient ascent or of message passing equals the "
        "prediction of mean-field theory or of state evolution.",
        "overlap", "derivations/boltzmann (14), (15), (16)", within=0.03, scatter=scatter,
        where={**ON_ITS_WAY, "expected": above(0.2)},
        entry="spike",
        because="Terms of order d^(-1/2), and the sampling error of 16,000 simulated mean-field paths.",
        missing="run with --preset dynamics",
    ),
    Agreement(
        "norm-on-the-way",
        "The norm after a number of steps of gradient ascent or of message passing equals the "
        "prediction of mean-field theory or of state evolution.",
        "norm", "derivations/boltzmann (14), (15), (16)", within=0.06, relative=True,
        where={**ON_ITS_WAY, "expected": above(0.05), "samples": at_least(100)},
        because="Terms of order d^(-1/2) and n^(-1/2), and the sampling error of 16,000 simulated "
        "mean-field paths.",
        missing="run with --preset dynamics",
    ),
    Contrast(
        "weak-recovery",
        "Message passing with small weights finds the spike above the threshold of principal components, "
        "and loses its starting overlap below.",
        "derivations/boltzmann (8), (16)", metric=at_the_edge, expected=predicted_overlap,
        across="threshold_spike", along="strength", below=(0.0, 0.85), above=(1.15, np.inf), within=0.06,
        # the tolerance alone is a tenth of the expected difference
        because="The transition has a width of about d^(-1/3) in the spike.", power=0.2,
        missing="needed: message passing with one unit, one spike, at least 8 steps and weight_decay "
        "near (1 + (n/d)^(-1/2))² - 1, for spikes on both sides of the threshold; run with --preset "
        "threshold",
    ),
    Agreement(
        "partition-function",
        "The limit of log Z minus its exact value for binary visible units is the predicted term of "
        "order 1/d.",
        "partition_gap", "derivations/boltzmann (1), (17)", within=0.1, relative=True, power=0.25,
        where={"dimension": at_least(200)},
        because="Terms of the next order in 1/d, and the deviation of the norm from its limit.",
        missing="raise sample_ratio or spike",
    ),
)
