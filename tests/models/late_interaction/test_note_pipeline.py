"""Acceptance checks 8 and 9: the pipelines on a synthetic teacher, with paired differences over seeds.

d = 30, 4 and 8 tokens, 6 directions of strengths k^(-1/2), 8 candidates, W of 16 rows; 300 fresh queries
with 60 documents each.
"""

from __future__ import annotations

import numpy as np
import pytest

from solvable.models.late_interaction.measure import score_readings
from solvable.models.late_interaction.phases import Phase, pipeline_phases, train_phases
from solvable.models.late_interaction.teacher import LateInteractionTeacher


def trained(seed: int, first: int, second: int, third: int) -> dict[str, float]:
    """Return the nDCG of all pipelines, trained on the same data."""
    teacher = LateInteractionTeacher(seed=seed)
    sizes = {"queries": first, "supervised_queries": second, "distillation_queries": third}
    students = {
        name: train_phases(
            teacher, pipeline_phases(name, **sizes), rng=np.random.default_rng((seed, 1))
        )
        for name in ("dense", "a", "b", "c")
    }
    readings = {
        name: (found[-1].factor, "dense" if name == "dense" else "multi-vector")
        for name, found in students.items()
    }
    readings["dense first phase with maxsim"] = students["dense"][1].factor, "multi-vector"
    readings["maxsim first phase"] = students["c"][1].factor, "multi-vector"
    readings["ceiling"] = teacher.factor, "dense"
    if first == 4_000:
        alone = Phase("distillation", "multi-vector", first, 5, 16, 5e-3, 0.5)
        last = train_phases(teacher, [alone], rng=np.random.default_rng((seed, 1)))[-1]
        readings["distillation alone"] = last.factor, "multi-vector"
        readings["dense with maxsim"] = students["dense"][-1].factor, "multi-vector"
    return score_readings(teacher, readings, np.random.default_rng((seed, 2)))


def table(seeds: int, *sizes: int) -> dict[str, np.ndarray]:
    """Return the nDCG of each student, one number for each seed."""
    rows = [trained(seed, *sizes) for seed in range(seeds)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.slow
def test_check_8_order_of_pipelines():
    found = table(6, 4_000, 800, 200)
    mean = {name: values.mean() for name, values in found.items()}
    print({name: round(float(value), 3) for name, value in mean.items()})
    assert mean["dense"] <= 0.30
    assert (found["dense"] <= found["ceiling"] + 0.03).all()
    assert 0.77 <= mean["a"] <= 0.85
    assert 0.88 <= mean["b"] <= 0.93
    assert 0.86 <= mean["c"] <= 0.93
    assert (found["a"] < found["b"]).all()
    # The kernel of the dense pipeline holds more than its pooled scores use.
    assert mean["dense with maxsim"] > 2 * mean["dense"]
    assert 0.5 <= mean["a"] - mean["dense"] <= 0.65
    assert mean["distillation alone"] >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("first", [1_000, 4_000])
def test_check_9_short_first_phases_gain_nothing_by_maxsim(first: int):
    found = table(8, first, 800, 200)
    gain = found["maxsim first phase"] - found["dense first phase with maxsim"]
    print(first, gain.mean(), gain.std(ddof=1) / np.sqrt(8))
    assert gain.mean() < 0.03


@pytest.mark.slow
def test_check_9_long_first_phases_gain_by_maxsim():
    found = table(8, 16_000, 200, 50)
    gain = found["maxsim first phase"] - found["dense first phase with maxsim"]
    a, b, c = (found[name] for name in "abc")
    print({name: round(float(values.mean()), 3) for name, values in found.items()})
    assert gain.mean() > 0.06
    assert a.mean() < b.mean() < c.mean()
    assert 0.005 <= (c - b).mean() <= 0.045
    assert 0.02 <= (c - a).mean() <= 0.10
