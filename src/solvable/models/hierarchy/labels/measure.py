"""One replicate: draw samples with all their labels, fit a cascade, count errors by level."""

from __future__ import annotations

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.hierarchy.labels.learner import LabelCascadeClassifier
from solvable.models.hierarchy.labels.parameters import LabelParameters
from solvable.models.hierarchy.labels.target import target_of

FRESH_INPUTS = 2000
"""Number of fresh inputs; the error of a level has a standard error of at most 0.011 / sqrt(labels)."""


def draw_teacher(parameters: LabelParameters, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the factors or votes of each label, which the parameters determine."""
    return {"pairs" if parameters.gate == "product" else "triples": target_of(parameters).parts}


def measure(parameters: LabelParameters, rng: np.random.Generator) -> Metrics:
    """Fit a cascade to samples of the hierarchy and test it on fresh inputs."""
    target = target_of(parameters)
    X, Y = target.sample(parameters.samples, rng)
    cascade = LabelCascadeClassifier(
        blocks=parameters.blocks,
        folds=parameters.folds,
        threshold=parameters.threshold,
        ridge=parameters.ridge,
        random_state=int(rng.integers(2**31)),
    ).fit(X, Y)
    fresh, labels = target.sample(FRESH_INPUTS, rng)
    shape = (parameters.depth, parameters.labels)
    wrong = np.mean(cascade.predict(fresh) != labels, axis=0)
    error, held_out, accepted = (
        np.reshape(values, shape).mean(axis=1).tolist()
        for values in (wrong, cascade.out_of_fold_error_, cascade.accepted_ > 0)
    )
    return {
        "error": error,
        "out_of_fold_error": held_out,
        "accepted": accepted,
        "last_error": error[-1],
    }
