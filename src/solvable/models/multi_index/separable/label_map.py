"""The estimator's label map on the grid of labels, for prediction and measurement."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidParameter
from solvable.models.multi_index.overlaps import mapped_labels, optimal_map
from solvable.models.multi_index.separable.parameters import SeparableParameters


def label_weights(parameters: SeparableParameters) -> np.ndarray:
    """Return the values of the label map at every label on the channel's grid."""
    model = parameters.model
    if parameters.label_map != "optimal":
        return mapped_labels(model.channel.moments, parameters.label_map)
    if not np.isfinite(model.weak_recovery_ratio):
        raise InvalidParameter(
            f"label_map is optimal, but second moments given the label of the link {parameters.link!r} "
            "do not depend on single directions, so there is no best map; allowed: label_map=tanh, "
            "square or identity."
        )
    return optimal_map(model.single_moment)
