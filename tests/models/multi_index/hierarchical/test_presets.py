"""Every preset once at a tiny size, with each of its links, label maps and readouts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import studies

from solvable.models.multi_index.hierarchical.system import PRESETS, system

pytestmark = pytest.mark.usefixtures("few")

TINY = {"dimension": 24, "test_samples": 50}
CHOICES = ("link", "label_map", "readout", "deflation", "message_passing")


def settings(name: str) -> list[dict[str, object]]:
    """Settings of a preset at a tiny size: all of its choices, at one ratio and at most 4 features."""
    grid = PRESETS[name].grid
    shared = {key: values[0] for key, values in grid.items() if key not in CHOICES}
    shared |= TINY | {"features": min(4, *grid.get("features", (4,)))}
    shared["sample_ratio"] = grid["sample_ratio"][len(grid["sample_ratio"]) // 2]
    chosen = {key: grid[key] for key in CHOICES if key in grid}
    return [shared | dict(zip(chosen, values, strict=True)) for values in product(*chosen.values())]


EXTRA = [
    # T odd and a link that is odd: E[T G] = 0, and the farthest eigenvalue is at a random end
    TINY | {"features": 4, "link": "tanh", "sample_ratio": 8.0, "readout": readout, "label_map": kind}
    for readout in ("none", "monomials")
    for kind in ("tanh", "identity", "optimal")
]  # fmt: skip


LONG = ("links", "universality", "bayes", "noise-sensitivity")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in PRESETS]
)
def test_every_choice_of_a_preset_is_measured_and_judged(name):
    check(settings(name))


def test_links_without_a_second_moment_are_measured_and_judged():
    check(EXTRA)


def check(chosen: list[dict[str, object]]) -> None:
    points = [studies.point_of(system, setting, seeds=2) for setting in chosen]
    for point in points:
        overlap = point.values("squared_overlap")
        assert np.isfinite(overlap).all()
        assert (overlap <= 1 + 1e-9).all()
    for verdict in system.verdicts(points):
        assert verdict.status != "error", (verdict.claim, verdict.reason)
    for row in system.power(points):
        assert row.chance != "error", row
