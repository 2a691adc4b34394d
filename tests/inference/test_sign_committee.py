"""Two sign units: information against draws, branches, the ratio of specialisation."""

import numpy as np
import pytest
from scipy.optimize import brentq

from solvable.errors import InvalidParameter
from solvable.inference import SignCommittee

COMMITTEE = SignCommittee()


@pytest.mark.parametrize(("q", "p"), [(0.5, 0.0), (0.7, 0.4), (0.3, 0.6)])
def test_information_agrees_with_draws(q, p):
    """E[g²] from posterior means of indices, by rejection in cells of the cavity means."""
    rng, n, m = np.random.default_rng(0), 250, 8_000
    omega = np.sqrt([q, p]) * rng.standard_normal((n, 2))  # along sum and difference
    z = rng.standard_normal((m, 2))
    seen = []
    for mean in omega:
        index = mean + np.sqrt([1 - q, 1 - p]) * z
        label = np.sign(index.sum(axis=1)) + np.sign(index[:, 0] - index[:, 1])
        total = np.zeros(2)
        for value in (-2, 0, 2):
            inside = label == value
            if inside.sum() > 1:
                g = (index[inside].mean(axis=0) - mean) / (1 - np.array([q, p]))
                # the mean of k draws has a variance that is subtracted
                noise = index[inside].var(axis=0) / inside.sum() / (1 - np.array([q, p])) ** 2
                total += inside.mean() * (g**2 - noise)
        seen.append(total)
    found = COMMITTEE.information(q, p)
    error = 4 * np.std(seen, axis=0) / np.sqrt(n)
    assert (np.abs(np.mean(seen, axis=0) - found) < error + 1e-3).all()


def test_overlaps_are_those_of_another_implementation():
    q = brentq(lambda q: COMMITTEE.unspecialised(q) - 1.5, 0.1, 0.99)
    assert q / 2 == pytest.approx(0.3072, abs=1e-4)
    for ratio, same, other in (
        (3.0, 0.65292, 0.16146),
        (4.0, 0.82445, 0.05762),  # Gauss-Hermite nodes give 0.8248
        (6.0, 0.93139, 0.01289),
    ):
        p = brentq(lambda p, a=ratio: COMMITTEE.specialised(p)[0] - a, 0.1, 0.95, xtol=4e-6)
        q = COMMITTEE.specialised(p)[1]
        assert ((q + p) / 2, (q - p) / 2) == pytest.approx((same, other), abs=2e-5)


def test_the_threshold_is_the_start_of_the_specialised_branch():
    assert COMMITTEE.specialisation == pytest.approx(2.0524, abs=1e-4)
    assert COMMITTEE.specialised(1e-4)[0] == pytest.approx(COMMITTEE.specialisation, rel=1e-3)


def test_the_sum_alone_shows_nothing_of_the_difference():
    assert COMMITTEE.information(0.6, 0.0)[1] == pytest.approx(0, abs=1e-12)


def test_bad_input_is_refused():
    with pytest.raises(InvalidParameter, match=r"allowed: from 0 to 0\.995"):
        COMMITTEE.information(1.0, 0.0)
    with pytest.raises(InvalidParameter, match=r"allowed: above 0, up to 0\.98"):
        COMMITTEE.specialised(0.0)
