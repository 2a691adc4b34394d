"""Lower bounds on directions: their level in noise, planted directions, and outliers that hide them."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.diagnose import diagnose_matrix
from solvable.diagnose.chance_outliers import after_removal
from solvable.diagnose.directions import directions_of, directions_of_small
from solvable.diagnose.outliers import outlier_text, without_outliers
from solvable.diagnose.spectrum import few_frequencies, read_spectrum

SHAPE = (96, 192)


def planted(rng, strengths, shape=SHAPE):
    p, q = shape
    left, right = (np.linalg.qr(rng.standard_normal((side, len(strengths))))[0] for side in shape)
    return rng.standard_normal((p, q)) / q**0.5 + (left * strengths) @ right.T


def bound(matrix, seed=0):
    return directions_of(read_spectrum(np.asarray(matrix), 2.0**-52), seed)


NOISE = {
    "Gaussian": lambda rng: rng.standard_normal(SHAPE),
    "Student-t(3)": lambda rng: rng.standard_t(3, SHAPE),
    "rows of unequal variance": lambda rng: rng.standard_normal(SHAPE) * rng.gamma(1, size=(96, 1)),
    "4 bits": lambda rng: np.clip(np.round(2 * rng.standard_normal(SHAPE)), -8, 7),
    "8 bits": lambda rng: np.clip(np.round(32 * rng.standard_normal(SHAPE)), -128, 127),
}


@pytest.mark.parametrize("name", NOISE)
def test_noise_has_a_direction_in_five_percent_of_matrices(name):
    draws = 120
    false = sum(
        bound(NOISE[name](random_stream(k, "directions", name)), k) > 0 for k in range(draws)
    )
    # At 5 % the mean is 6 and the standard deviation 2.4: 14 has a probability of 0.002.
    assert false <= 13


def test_planted_directions_beyond_the_edge_are_counted_and_hardly_more():
    # This strength lies at 1.3 times the edge 1.707: x² = (1 + s²)(c + s²)/s².
    strength = 1.81
    assert ((1 + strength**2) * (0.5 + strength**2)) ** 0.5 / strength == pytest.approx(
        1.3 * (1 + 0.5**0.5), rel=0.01
    )
    counts = np.array(
        [
            bound(planted(random_stream(k, "planted"), np.linspace(strength, 8, 6)), k)
            for k in range(40)
        ]
    )
    assert np.minimum(counts, 6).mean() >= 0.9 * 6
    # One too many in 5 % of 40: 7 have a probability of 0.003.
    assert (counts > 6).sum() <= 6


@pytest.mark.parametrize("spoil", ["entry", "row", "column", "mean", "dead"])
def test_outliers_hide_no_direction_and_are_named(spoil):
    rng = random_stream(1, "spoilt")
    matrix = planted(rng, np.linspace(1.9, 6, 6), (128, 256))
    spoilt = matrix.copy()
    if spoil == "entry":
        spoilt[17, 5] = 30.0
    elif spoil == "row":
        spoilt[17] = 8 * rng.standard_normal(256)
    elif spoil == "column":
        spoilt[:, 9] = 8 * rng.standard_normal(128)
    elif spoil == "mean":
        spoilt += 0.3
    else:
        spoilt[20:60] = 0.0
    found = diagnose_matrix(spoilt)
    assert found.directions >= 6
    if spoil != "dead":
        assert len(found.features) == 6
        assert found.stable_rank < diagnose_matrix(matrix).stable_rank
        clean, _ = without_outliers(spoilt)
        assert np.linalg.norm(clean - matrix) < 0.2 * np.linalg.norm(matrix)
    texts = [outlier_text(part) for part in found.outliers]
    assert any(
        part in text
        for text in texts
        for part in (
            "1 outlier entry at [17, 5]",
            "1 outlier row at [17]",
            "1 outlier column at [9]",
            "a mean of 0.3",
            "40 dead rows (all zero)",
        )
    ), texts


def test_strong_features_are_not_taken_for_outliers():
    rows = [diagnose_matrix(planted(random_stream(k, "strong"), [30.0, 2.6])) for k in range(12)]
    assert [len(row.features) for row in rows] == [2] * 12
    # Each matrix has one direction too many with a probability of 5 %: of 12, four have 0.003.
    assert sum((row.directions, row.outliers) != (2, ()) for row in rows) <= 3


def test_small_matrices_have_a_bound_by_an_exact_rank_test():
    false = 0
    for k in range(100):
        rng = random_stream(k, "small")
        false += directions_of_small(rng.standard_t(2, (6, 40)), k) > 0
        spike = 12 * np.outer(np.ones(6) / 6**0.5, rng.standard_normal(40) / 40**0.5)
        assert directions_of_small(rng.standard_normal((6, 40)) / 3 + spike, k) >= 1
    # Exactly 5 % by exchangeability: 13 of a hundred have a probability of 0.001.
    assert false <= 12
    assert directions_of_small(np.zeros((5, 9)), 0) == 0
    assert diagnose_matrix(np.ones((3, 40))).directions in (None, 0, 1)


def test_noise_without_its_largest_directions_keeps_the_edge_of_the_rest():
    rng, shape, k = random_stream(3, "removal"), (200, 300), 40
    noise = rng.standard_normal(shape)
    left, right = (np.linalg.qr(rng.standard_normal((side, k)))[0] for side in shape)
    rest = noise - left @ (left.T @ noise)
    rest -= (rest @ right) @ right.T
    signs = rng.choice([-1.0, 1.0], shape)
    ratio = np.linalg.norm(rest, 2) / np.linalg.norm(rest * signs, 2)
    # The largest values fluctuate by about half a percent each.
    assert ratio == pytest.approx(after_removal(shape, k), rel=0.02)
    assert after_removal(shape, k) > 1.05


def test_the_count_is_that_of_the_transposed_and_of_the_rescaled_matrix():
    matrix = planted(random_stream(4, "scaled"), [4.0, 3.0])
    assert {bound(matrix), bound(matrix.T), bound(1e-12 * matrix)} == {2}


def bfloat16(array):
    """Round to eight bits of precision, as stored numbers are."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("stored", "precision"),
    [(np.float32, 2.0**-23), (np.float16, 2.0**-10), (bfloat16, 2.0**-7)],
)
@pytest.mark.parametrize("size", [0.45, 0.05])
def test_the_rank_of_an_update_is_found_in_each_stored_format(stored, precision, size):
    rng = random_stream(5, "update")
    left, right = (np.linalg.qr(rng.standard_normal((side, 8)))[0] for side in (256, 384))
    start = rng.standard_normal((256, 384)) / 384**0.5
    after = stored(start + size * left @ right.T)
    found = diagnose_matrix(after, initial=stored(start), precision=precision)
    assert found.initial.difference.directions == 8
    assert found.initial.text.startswith("the change: ")
    if stored is not bfloat16 or size > 0.1:
        # Rounding of bfloat16 holds a part of the norm of a small update.
        assert found.initial.rank == 8


def test_fourier_bases_and_position_tables_are_structured_and_noise_is_not():
    steps, width = np.arange(512)[:, None], np.arange(384)
    angles = steps / 10_000 ** (2 * (width // 2) / 384)
    positions = np.where(width % 2, np.cos(angles), np.sin(angles))
    fourier = np.fft.fft(np.eye(256))[:129]
    basis = np.concatenate([fourier.real, fourier.imag]) * np.hanning(256)
    for matrix in (positions, basis, basis[:, None, :], positions.T):
        row = diagnose_matrix(matrix.astype(np.float32), precision=2.0**-23)
        assert row.phase == "structured"
        assert row.reason.startswith("4 of ")
        assert row.directions is not None
        assert row.stable_rank > 1
    for name, draw in NOISE.items():
        assert not few_frequencies(draw(random_stream(1, name))), name
    learned = planted(random_stream(2, "learned"), np.linspace(2, 9, 12))
    assert not few_frequencies(learned)
    assert not few_frequencies(np.tile(learned[:, :64, None, None], (1, 1, 3, 3)))


@pytest.mark.parametrize("n", [64, 256])
def test_the_largest_frequencies_of_noise_hold_the_predicted_share(n):
    noise = random_stream(3, "frequencies").standard_normal((2_000, 2 * n))
    power = np.abs(np.fft.rfft(noise)[:, 1:-1]) ** 2
    shares = np.sort(power, axis=1)[:, -4:].sum(axis=1) / power.sum(axis=1)
    harmonic = np.cumsum(1 / np.arange(1, n))
    predicted = 4 / (n - 1) * (1 + harmonic[-1] - harmonic[3])
    assert abs(shares.mean() - predicted) < 4 * shares.std() / 2_000**0.5
