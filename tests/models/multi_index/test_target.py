"""Multi-index targets: directions, labels, and sources that draw their samples again."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.multi_index.target import (
    MultiIndexTarget,
    power_law_amplitudes,
    power_law_channel,
)


def test_directions_are_orthonormal_and_labels_follow_them():
    channel = power_law_channel("relu", features=4, decay=1.0, noise=0.3)
    target = MultiIndexTarget(30, channel, seed=3)
    W = target.directions
    assert pytest.approx(np.eye(4), abs=1e-12) == W.T @ W
    X, y = target.sample(20_000, 5)
    residual = y - target.clean(X)
    assert residual.var() == pytest.approx(0.3, abs=5 * 0.3 * np.sqrt(2 / 20_000))
    assert target.clean(X).var() == pytest.approx(sum(k**-2.0 for k in range(1, 5)), rel=0.06)


def test_a_source_draws_the_same_samples_again():
    target = MultiIndexTarget(12, power_law_channel("he2", features=2, decay=1.0, noise=0.0))
    source, y = target.source(9_000, 4, np.float32)
    rows = np.concatenate([block for _, block in source.chunks(1_000)])
    assert y == pytest.approx(target.clean(rows.astype(np.float64)), abs=1e-4)


def test_slow_decays_are_normalised():
    assert np.sum(power_law_amplitudes(50, 0.3) ** 2) == pytest.approx(1)
    assert power_law_amplitudes(3, 1.0) == pytest.approx([1, 0.5, 1 / 3])


def test_more_features_than_dimensions_are_refused():
    channel = power_law_channel("he2", features=5, decay=1.0, noise=0.1)
    with pytest.raises(InvalidParameter, match="allowed"):
        MultiIndexTarget(4, channel)
