"""The label map of the estimator at the labels of the channel, for prediction and measurement."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidParameter
from solvable.models.multi_index.overlaps import mapped_labels, optimal_map
from solvable.models.multi_index.separable.parameters import SeparableParameters


def label_weights(parameters: SeparableParameters) -> np.ndarray:
    """The label map at every label of the channel's moments."""
    model = parameters.model
    if parameters.label_map != "optimal":
        return mapped_labels(model.channel.moments, parameters.label_map)
    if not np.isfinite(model.weak_recovery_ratio):
        raise InvalidParameter(
            f"second moments given the label of the link {parameters.link!r} tell nothing of single "
            "directions, and there is no best map; allowed: label_map=tanh, square or identity."
        )
    return optimal_map(model.single_moment)
