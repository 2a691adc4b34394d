"""Phases: planted spectra of every phase, one signal through the edge, and the drawn laws."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.diagnose import diagnose_matrix
from solvable.diagnose.noise import RectangularNoise, SymmetricNoise
from solvable.diagnose.phases import WholeBulk


def spiked(rng, shape, strengths, noise=1.0):
    p, q = shape
    left = np.linalg.qr(rng.standard_normal((p, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((q, len(strengths))))[0]
    return noise * rng.standard_normal(shape) / q**0.5 + (left * strengths) @ right.T


PLANTED = {
    "random-like": (np.array([0.4]), 1.0),
    "bulk+spikes": (np.array([4.0, 3.0, 2.0]), 1.0),
    "bulk-decay": (20 * np.arange(1, 301) ** -0.8, 1.0),
    "heavy-tailed": (np.arange(1, 301) ** -0.8, 0.0),
    "rank-collapse": (np.linspace(1, 3, 8), 0.0),
}


@pytest.mark.parametrize("phase", PLANTED)
def test_planted_spectra_are_found(phase):
    strengths, noise = PLANTED[phase]
    rng = np.random.default_rng(2)
    assert diagnose_matrix(spiked(rng, (300, 300), strengths, noise)).phase == phase


def test_one_signal_goes_through_bleeding_out_as_it_grows():
    rng, seen = np.random.default_rng(3), []
    for strength in (0.5, 1.45, 2.5):
        found = [diagnose_matrix(spiked(rng, (150, 150), [strength])).phase for _ in range(6)]
        seen.append(set(found))
    assert seen[0] == {"random-like"}
    assert "bleeding-out" in seen[1]
    assert seen[2] == {"bulk+spikes"}


def test_zeros_collapse_the_rank_from_nine_in_ten():
    rng = np.random.default_rng(4)
    values = rng.gamma(5.0, size=60)
    for size, phase in ((600, "rank-collapse"), (599, "bulk-decay")):
        left, right = (np.linalg.qr(rng.standard_normal((size, 60)))[0] for _ in range(2))
        found = diagnose_matrix((left * values) @ right.T)
        assert (found.phase, found.zeros) == (phase, size - 60)


def test_many_merging_signals_are_more_than_the_square_root():
    bulk = WholeBulk(SymmetricNoise(), 1.0, 0.0, 900)
    # K = gamma sqrt(d) / 2.83   (spectra 9).
    assert bulk.merging(1.0) == pytest.approx(30 / (2 * np.sqrt(2)), rel=0.01)


def test_a_gap_to_the_bulk_or_few_signals_are_spikes():
    bulk = WholeBulk(RectangularNoise(0.5), 1.0, 0.0, 400)
    near = (1 + bulk.separated) / 2
    assert bulk.phase(np.array([])) == "random-like"
    assert bulk.phase(np.array([near])) == "bleeding-out"
    assert bulk.phase(np.array([4.0, near])) == "bulk+spikes"
    many = np.linspace(4.0, near, 40)
    assert bulk.phase(many) == "bulk-decay"
    assert bulk.phase(many + 1) == "bulk+spikes"


def test_the_drawn_power_law_has_the_share_of_its_tail_as_its_mass():
    rng = np.random.default_rng(5)
    found = diagnose_matrix(spiked(rng, (200, 300), np.arange(1, 201) ** -0.8, 0.0))
    mass = np.trapezoid(found.law.density, found.law.x)
    # The curve ends at the largest value, beyond which a power law still has about one value.
    assert mass == pytest.approx(found.tail.n_tail / 200, abs=0.03)
    assert mass + found.law.atom == pytest.approx(1, abs=0.03)
