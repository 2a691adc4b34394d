"""Claims that compare networks, on accuracies that follow a law and on accuracies that do not."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.frame.points import Point
from solvable.models.hierarchy.grammar.claims import NETWORK_CLAIMS, log_strings, reach
from solvable.models.hierarchy.grammar.parameters import RandomHierarchyParameters
from solvable.models.hierarchy.grammar.system import PRESETS

CLAIM = {claim.name: claim for claim in NETWORK_CLAIMS}


def point(needed, **setting):
    """Point whose error falls to half of that of chance at a number of strings, in eight replicates."""
    parameters = RandomHierarchyParameters(**setting)
    left = 1 / (1 + (parameters.n_samples / needed(parameters)) ** 2)
    accuracy = 1 - left * reach(parameters)
    metrics = [{"test_accuracy": accuracy + 1e-3 * (-1) ** k} for k in range(8)]
    return Point(parameters.model_dump(), metrics, {"p_star": parameters.threshold}, parameters)


def grid(needed, preset):
    names, values = zip(*PRESETS[preset].grid.items(), strict=True)
    places = np.stack(np.meshgrid(*map(np.arange, map(len, values)), indexing="ij"), -1)
    rows = places.reshape(-1, len(names))
    return [
        point(needed, **{n: v[k] for n, v, k in zip(names, values, row, strict=True)})
        for row in rows
    ]


@pytest.mark.parametrize(("base", "status"), [(2.0, "holds"), (1.0, "fails"), (3.0, "fails")])
def test_factor_of_shared_weights(base, status):
    def needed(setting):
        factor = base ** (setting.depth - 1) if setting.estimator == "fully-connected" else 1
        return setting.threshold * factor

    assert CLAIM["factor-of-shared-weights"].verdict(grid(needed, "networks")).status == status


@pytest.mark.parametrize(("power", "status"), [(1.0, "holds"), (0.6, "fails")])
def test_shallow_networks_need_a_share_of_all_strings(power, status):
    def needed(setting):
        return 60 * np.exp(power * (log_strings(setting) - np.log(512)))

    verdict = CLAIM["shallow-networks-need-all-strings"].verdict(grid(needed, "shallow"))
    assert verdict.status == status


@pytest.mark.parametrize(("without", "status"), [(1e9, "holds"), (1.0, "fails")])
def test_learning_needs_correlations(without, status):
    rows = [
        point(
            lambda s: s.threshold if s.ensemble == "first" else without * s.threshold,
            ensemble=ensemble, vocabulary=6, rules=6, sample_ratio=6.0, estimator="cnn",
        )
        for ensemble in ("first", "latin")
    ]  # fmt: skip
    assert CLAIM["learning-needs-correlations"].verdict(rows).status == status


def test_number_of_strings():
    setting = RandomHierarchyParameters(vocabulary=4, rules=3, depth=3)
    assert np.exp(log_strings(setting)) == pytest.approx(4 * 3**7)
