"""Means over random draws, interpolated between fixed sample sizes."""

import numpy as np
import pytest

from solvable.frame import registry
from solvable.moment_spectrum.spike_law import SpikeLaw
from solvable.spectra.sample_lattice import lattice_sizes
from solvable.spectra.sampled_spikes import draw_spikes
from solvable.spectra.structured_spikes import compress_sample


def second_differences(curve):
    """Median second difference of each column, as a share of the column's range."""
    return np.median(np.abs(np.diff(curve, 2, axis=0)), axis=0) / np.ptp(curve, axis=0)


@pytest.mark.parametrize("per_octave", [2, 4])
@pytest.mark.parametrize("samples", [3.0, 600.0, 2.0**11, 1e6])
def test_weights_add_up_and_lines_in_the_logarithm_are_exact(samples, per_octave):
    sizes = lattice_sizes(samples, per_octave=per_octave)
    weights = np.array([size.weight for size in sizes])
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1)
    assert weights @ [size.index for size in sizes] == pytest.approx(per_octave * np.log2(samples))


def test_cubics_in_the_logarithm_are_exact_if_curved():
    """Without `curved` the weights add h² f'' / 6 to a function f of log n, with steps h."""
    at = np.array([600.0, 7_000.0, 14_875.0])
    for power in (1, 2, 3):
        found = []
        for samples in at:
            sizes = lattice_sizes(samples, curved=True)
            places = np.array([size.index for size in sizes]) / 4
            found.append(np.array([size.weight for size in sizes]) @ places**power)
        np.testing.assert_allclose(found, np.log2(at) ** power)


def test_weights_are_smooth_where_the_sizes_change():
    place = np.linspace(39, 41, 201)
    weights = np.zeros((place.size, 60))
    for row, at in zip(weights, place, strict=True):
        for size in lattice_sizes(2.0 ** (at / 4)):
            row[size.index] = size.weight
    assert np.abs(np.diff(weights, 3, axis=0)).max() < 1e-5


def test_sizes_are_not_below_the_fewest_samples():
    assert min(size.samples for size in lattice_sizes(20.0, fewest=20)) == 20


def test_means_over_drawn_matrices_are_smooth():
    rng = np.random.default_rng(4)
    h = rng.standard_normal((20_000, 2))
    T = np.clip((h**2 - 1) @ np.full(2, 0.5), -1.5, 1.5)
    law = SpikeLaw(
        heights=T @ (h**2 - 1) / T.size,
        sample=compress_sample(T, (T**2)[:, None] * h**2),
        background=None,
        n_features=26,
    )
    curve = []
    for n in 200 * np.geomspace(0.8, 1.25, 12):
        at = law.spikes(n)
        curve.append(law.drawn(n, 28, at).squared_overlap)
        # Overlaps differ from those of matrices that are drawn at this size by the scatter of the draws.
        if len(curve) in (1, 6):
            direct = draw_spikes(**law._at(n), draws=100, stream=999)
            np.testing.assert_allclose(curve[-1], direct.squared_overlap, atol=0.08)
    # Without draws at fixed sizes the second differences are 0.1 to 0.2 of the range.
    assert second_differences(np.array(curve)).max() < 0.03


# Without common draws the second differences are 0.07 and 0.5 of the range.
@pytest.mark.parametrize(
    ("system", "setting", "name", "limit"),
    [
        ("hierarchical-multi-index", {"dimension": 60, "features": 3}, "risk", 0.02),
        ("neural-lofi-images", {"samples": 200}, "residual_dimensions", 0.15),
        pytest.param(
            "sequential-recovery",
            {"dimension": 12, "features": 3, "correction": "none", "samples": 2_000},
            "squared_overlap",
            0.04,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "sequential-recovery",
            {"dimension": 10, "features": 3, "samples": 900},
            "mean_squared_overlap",
            0.02,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_predicted_curves_are_smooth(system, setting, name, limit):
    found = registry.load(system)
    start = found.parameters(**setting)
    place = float(getattr(start, found.axis.parameter)) * np.geomspace(0.8, 1.25, 12)
    curve = [dict(found.along(start, np.array([x]))[0])[name] for x in place]
    assert second_differences(np.array([np.atleast_1d(row) for row in curve])).max() < limit
