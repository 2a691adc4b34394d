import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.quadratic.network.spectral_phase import (
    MANY,
    MERGING,
    WINDOW,
    SpectralPhase,
    outlier_edge,
    spectral_phase,
)
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.spectra.edges import tracy_widom_quantile
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import truncated_moments
from solvable.spectra.product_measure import marchenko_pastur


def power_law_strengths(dimension, exponent=1.0):
    strengths = np.arange(1, dimension + 1.0) ** -exponent
    return strengths * np.sqrt(dimension / np.sum(strengths**2))


def network(samples, penalty, dimension=400):
    strengths = power_law_strengths(dimension)
    state = solve_quadratic(
        strengths, sample_ratio=samples / dimension, label_noise=0.5, regularisation=penalty
    )
    return spectral_phase(
        effective_noise=state.effective_noise, threshold=state.threshold, strengths=strengths
    )


@pytest.mark.parametrize(
    ("samples", "penalty", "expected"),
    [
        (0.3, 0.0025, "random-like"),
        (1.2, 0.0025, "bleeding-out"),
        (10.0, 0.0025, "bulk+spikes"),
        (4e3, 0.0025, "bulk-decay"),
        (16e3, 40.0, "heavy-tailed"),
        (40.0, 20.0, "rank-collapse"),
    ],
)
def test_power_laws_visit_all_six_phases(samples, penalty, expected):
    assert network(samples, penalty).phase == expected


def test_samples_alone_lead_from_noise_to_a_heavy_tail():
    found = [network(n, 0.005, dimension=150).phase for n in (0.3, 1.2, 4.0, 1e3, 1e5)]
    assert found == [
        SpectralPhase.RANDOM,
        SpectralPhase.BLEEDING,
        SpectralPhase.SPIKES,
        SpectralPhase.DECAY,
        SpectralPhase.HEAVY,
    ]


@pytest.mark.parametrize(
    ("ratio", "expected", "structured"),
    [(0.02, "random-like", False), (0.1, "bleeding-out", True), (50.0, "bulk+spikes", True)],
)
def test_bounded_targets_make_a_second_bulk_and_no_tail(ratio, expected, structured):
    state = solve_quadratic(
        marchenko_pastur(0.2), sample_ratio=ratio, label_noise=0.5, regularisation=0.02
    )
    weights = np.random.default_rng(0).standard_normal((400, 80))
    strengths = np.clip(np.linalg.eigvalsh(weights @ weights.T / np.sqrt(80 * 400)), 0, None)
    found = spectral_phase(
        effective_noise=state.effective_noise, threshold=state.threshold, strengths=strengths
    )
    assert found.phase == expected
    assert found.structured == structured


def test_window_of_bleeding_out_is_where_the_edge_hides_the_outlier():
    assert pytest.approx(np.sqrt(tracy_widom_quantile(0.99)), abs=0.01) == WINDOW
    rng = np.random.default_rng(1)
    dimension, hidden = 200, []
    for sign in (1, 3):
        strength = 1 + sign * WINDOW * dimension ** (-1 / 3)
        spike = np.zeros((dimension, dimension))
        spike[0, 0] = strength
        overlaps = []
        for _ in range(8):
            noise = rng.standard_normal((dimension, dimension))
            _, vectors = np.linalg.eigh(spike + (noise + noise.T) / np.sqrt(2 * dimension))
            overlaps.append(vectors[0, -1] ** 2)
        hidden.append((np.mean(overlaps), 1 - strength**-2))
        found = spectral_phase(
            effective_noise=1.0, threshold=0.0, strengths=[strength / 1.001], dimension=dimension
        )
        assert found.phase == ("bleeding-out" if sign == 1 else "bulk+spikes")
    # Above the window the overlap of an isolated spike holds, with a scatter of about 0.05 per draw.
    assert hidden[1][0] == pytest.approx(hidden[1][1], abs=0.1)


def test_merging_gap_is_that_of_the_spectral_law():
    # The gap grows as the root of the weight of a feature: 1 / d in the code, 1 / 2 here.
    for factor, parts in ((0.98, 1), (1.02, 2)):
        law = SpectralLaw([0.0, factor * MERGING * np.sqrt(0.5)], noise=1.0)
        assert len(law.edges) == parts


def test_numbers_behind_the_decision():
    found = spectral_phase(
        effective_noise=2.0, threshold=1.0, strengths=[10.0, 5.0, 3.0, 1.0], dimension=1000
    )
    assert found.cut == pytest.approx(0.25)
    assert found.separation == pytest.approx(4 * 10)
    assert (found.above_noise, found.kept) == (3, 3)
    assert found.gap == pytest.approx(1.0 / (MERGING / np.sqrt(1000)))
    assert found.phase == SpectralPhase.SPIKES


def test_margin_vanishes_at_a_boundary_and_the_phase_changes_there():
    strengths = power_law_strengths(400)
    below, above = (
        spectral_phase(effective_noise=1.0, threshold=2 * step, strengths=strengths)
        for step in (0.9999, 1.0001)
    )
    assert below.phase == SpectralPhase.DECAY
    assert above.phase == SpectralPhase.HEAVY
    assert below.margin == pytest.approx(1e-4, rel=1e-2)
    few = spectral_phase(effective_noise=1.0, threshold=5.0, strengths=strengths[: MANY - 1])
    assert few.phase == SpectralPhase.COLLAPSE


@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e9])
def test_units_do_not_matter(factor):
    strengths = power_law_strengths(300)
    decisions = [
        spectral_phase(effective_noise=0.8 * unit, threshold=0.3 * unit, strengths=strengths * unit)
        for unit in (1.0, factor)
    ]
    assert decisions[0].phase == decisions[1].phase
    assert decisions[0].margin == pytest.approx(decisions[1].margin, rel=1e-9)


def test_values_out_of_range_are_refused():
    for strengths in ([], [1.0, -1.0], [np.nan]):
        with pytest.raises(InvalidData):
            spectral_phase(effective_noise=1.0, threshold=0.0, strengths=strengths)
    with pytest.raises(InvalidParameter, match="threshold is -1"):
        spectral_phase(effective_noise=1.0, threshold=-1.0, strengths=[1.0, 0.0])
    with pytest.raises(InvalidParameter, match="dimension is 2"):
        spectral_phase(effective_noise=1.0, threshold=1.0, strengths=[1.0] * 3, dimension=2)


@pytest.mark.parametrize(("samples", "penalty"), [(40.0, 0.01), (400.0, 0.5)])
def test_directions_out_of_the_noise_are_counted_by_the_law(samples, penalty):
    # (quadratic 12): eigenvalues of drawn target plus noise, shifted by b, above the edge.
    d, rng = 200, np.random.default_rng(4)
    strengths = power_law_strengths(d)
    state = solve_quadratic(
        strengths, sample_ratio=samples / d, label_noise=0.5, regularisation=penalty
    )
    edge = outlier_edge(state.effective_noise, state.threshold, d)
    counts = []
    for _ in range(8):
        Z = rng.standard_normal((d, d))
        noisy = np.diag(strengths) + state.effective_noise * (Z + Z.T) / np.sqrt(2 * d)
        counts.append(np.sum(np.linalg.eigvalsh(noisy) - state.threshold > edge))
    expected = d * truncated_moments(state.law, edge + state.threshold).mass[0]
    assert np.mean(counts) == pytest.approx(expected, abs=1)
