"""Langevin networks of arXiv:2512.04165, Section 1 and Figure 2, against independent simulations."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.two_layer_posterior.measure import measure
from solvable.models.two_layer_posterior.parameters import CurseParameters


def measured(networks, name, **values):
    """Measure metrics on fresh data sets."""
    setting = CurseParameters(**values)
    records = [measure(setting, random_stream(name, seed)) for seed in range(networks)]
    return {
        key: np.array([record[key] for record in records], dtype=float)
        for key in records[0]
        if isinstance(records[0][key], float)
    }


@pytest.mark.slow
def test_a_cubic_target_in_ten_dimensions():
    # Independent simulation with plain Langevin steps of 0.015 at d = 10, N = 100, kappa = 0.5, P =
    # 310: alignment 0.23 +- 0.03 (two-layer-posterior 13).
    samples_per_unit = 0.5 * np.sqrt(1_000)
    found = measured(6, "check 15", dimension=10, scaled_samples=310 / samples_per_unit)
    assert CurseParameters(dimension=10, scaled_samples=310 / samples_per_unit).samples == 310
    assert 0.15 <= found["alignment"].mean() <= 0.31
    assert abs(np.mean(found["alignment_planted"] - found["alignment_prior"])) < 0.03
    assert found["outliers"].mean() == pytest.approx(4.0, abs=1.0)
    assert found["outlier_rest"].mean() < 0.55
    assert found["bulk_rest"].mean() > 0.85
    # (two-layer-posterior 17): the posterior is sampled, and the step is small enough.
    assert found["virial"].mean() == pytest.approx(1, abs=0.02)
    assert found["step_error"].max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "networks", "growth"), [(5, 16, 2.2), (8, 10, 2.2), (14, 4, 4)]
)
def test_the_onset(dimension, networks, growth):
    # (two-layer-posterior 6): little alignment below the onset P = kappa R sqrt(N d), and growth above
    # it.
    few, many = (
        measured(networks, "check 16", dimension=dimension, scaled_samples=p)["alignment"].mean()
        for p in (8.0, 20.0)
    )
    assert many >= growth * few


@pytest.mark.slow
def test_half_the_step_gives_the_same_alignment():
    # (two-layer-posterior 16): averages of an independent plain Langevin simulation were 0.231 +- 0.027
    # at a step of 0.015, and 0.236 +- 0.029 at half the step.
    values = {"dimension": 10, "scaled_samples": 20.0, "start": "planted"}
    found = measured(6, "halved", **values)
    halved = measured(6, "halved", **values, step=0.5, steps=6_000)
    difference = halved["alignment"] - found["alignment"]  # on the same samples
    assert abs(difference.mean()) < 3 * difference.std(ddof=1) / np.sqrt(6) + 0.01
