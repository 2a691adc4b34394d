"""Predictions for the cascade: errors and accepted labels by level, and required samples."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import Metrics, listed
from solvable.models.hierarchy.labels.parameters import LabelParameters
from solvable.models.hierarchy.labels.target import target_of
from solvable.models.hierarchy.labels.theory import CascadeBlock, label_cascade, required_samples

DEVIATION = 4.0
"""Standard errors of an out-of-fold error within which the acceptance of a label is uncertain."""


def predict(parameters: LabelParameters) -> Metrics:
    """Predict errors and numbers of accepted labels by level (hierarchy 29, 31, 32)."""
    shape = (parameters.depth, parameters.labels)
    last, *others = (_last_blocks(parameters, x) for x in (0.0, -DEVIATION, DEVIATION))

    def by_level(name: str) -> tuple[list[float | None], list[float | None]]:
        means = [getattr(s[-1], name).reshape(shape).mean(axis=1) for s in (last, *others)]
        return listed(means[0]), listed(np.ptp(means, axis=0))

    (error, error_range), (held_out, _) = by_level("error"), by_level("out_of_fold_error")
    accepted, accepted_range = by_level("accepted")
    one, other = (s[0].accepted for s in others)
    required = _required(parameters.model_copy(update={"samples": 20}))  # samples have no effect
    return {
        "error": error,
        "out_of_fold_error": held_out,
        "accepted": accepted,
        "last_error": error[-1],
        "error_range": error_range,
        "accepted_range": accepted_range,
        # labels whose acceptance changes the features of the last block
        "uncertain_labels": int(np.sum(one != other)) if parameters.blocks > 1 else 0,
        "required_samples": list(required),
        "last_required": required[-1],
        "functions": last[-1].functions,
    }


@lru_cache(maxsize=4096)
def _last_blocks(parameters: LabelParameters, deviation: float) -> list[CascadeBlock]:
    """Return the last two blocks, or the only one."""
    blocks = label_cascade(
        target_of(parameters),
        samples=parameters.samples,
        blocks=parameters.blocks,
        folds=parameters.folds,
        threshold=parameters.threshold,
        ridge=parameters.ridge,
        deviation=deviation,
    )
    return blocks[-2:]


@lru_cache(maxsize=256)
def _required(parameters: LabelParameters) -> tuple[float | None, ...]:
    """Return the required samples of each level."""
    return required_samples(
        target_of(parameters),
        blocks=parameters.blocks,
        folds=parameters.folds,
        threshold=parameters.threshold,
        ridge=parameters.ridge,
    )


def chance(parameters: LabelParameters, prediction: Metrics) -> Metrics:
    """Metrics of a cascade that guesses and accepts no label."""
    half, none = (listed([rate] * parameters.depth) for rate in (0.5, 0.0))
    return {"error": half, "out_of_fold_error": half, "accepted": none, "last_error": 0.5}
