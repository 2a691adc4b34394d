"""Kernels of lazy layers, by sums over neurons, draws and expansions."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from solvable.hermite import hermite_polynomials
from solvable.operators.activations import dual_kernel
from solvable.scale.prefactors.lazy_kernels import lazy_alignment, mode_moments


@pytest.mark.parametrize(
    ("act", "degree", "d"), [("erf", 3, 50.0), ("tanh", 5, 30.0), ("relu", 2, 90.0)]
)
def test_one_lazy_layer_by_two_routes(act, degree, d):
    # (scale 16), against the second moment of the neurons' overlaps
    neurons = mode_moments(act, (degree,), d)[0, 0]
    assert lazy_alignment((act,), degree, d) == pytest.approx(neurons, rel=1e-7)


@pytest.mark.parametrize("act", ["erf", "relu"])
def test_two_lazy_layers_by_sampling_the_kernel(act):
    rng = np.random.default_rng(7)
    d, degree = 4, 3 if act == "erf" else 2
    found = []
    for _ in range(16):
        x, other = rng.normal(size=(2, 150_000, d))
        inner = (x * other).sum(1) / d
        left, right = (x * x).sum(1) / d, (other * other).sum(1) / d
        for _ in range(2):
            inner, left, right = (
                _pairs(act, *pair) for pair in ((inner, left, right), (left,) * 3, (right,) * 3)
            )
        targets = (
            hermite_polynomials(x, degree)[degree] * hermite_polynomials(other, degree)[degree]
        )
        # average over all coordinate directions
        found.append((targets.mean(1) * inner).mean())
    error = np.std(found) / sqrt(len(found))
    assert abs(np.mean(found) - lazy_alignment((act, act), degree, float(d))) < 4 * error


def _pairs(act, inner, left, right):
    """Compute the dual kernel pair by pair."""
    if act == "erf":
        return 2 / np.pi * np.arcsin(2 * inner / np.sqrt((1 + 2 * left) * (1 + 2 * right)))
    cosine = np.clip(inner / np.sqrt(left * right), -1, 1)
    angle = np.arccos(cosine)
    return np.sqrt(left * right) * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)


def test_large_dimensions_follow_the_expansion():
    near, far = (lazy_alignment(("erf", "erf"), 3, d) * d**3 for d in (2_900.0, 40_000.0))
    limit = lazy_alignment(("erf", "erf"), 3, 1e9) * 1e27
    assert (far - limit) / (near - limit) == pytest.approx(2_900 / 40_000, rel=0.01)


@pytest.mark.parametrize(
    ("share", "cost"), [(0.01, 28.571), (0.1, 8.0), (0.5, 1.905), (1.0, 0.976)]
)
def test_a_spike_lowers_the_cost_of_its_feature(share, cost):
    # (scale 5; arXiv:2512.04165, Claim i) by linear algebra: <Phi, K^-1, Phi> = R / (1 + c R)
    rng = np.random.default_rng(2)
    basis = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    rest = basis @ np.diag(np.geomspace(1e-3, 1, 30)) @ basis.T
    feature = rng.normal(size=30)
    feature *= sqrt(40 / (feature @ np.linalg.solve(rest, feature)))
    kernel = rest + share * np.outer(feature, feature)
    assert feature @ np.linalg.solve(kernel, feature) == pytest.approx(cost, rel=1e-3)


def test_dual_kernels_are_those_of_the_library():
    inner = np.array([[0.3]])
    ours = _pairs("relu", 0.3, 0.8, 1.4)
    assert dual_kernel("relu", inner, np.array([0.8]), np.array([1.4]))[0, 0] == pytest.approx(ours)


def test_a_lazy_layer_keeps_the_ratios_of_eigenvalues():
    # (scale 6): linear features of variance D / d and 1 / d keep the ratio D.
    first = [mode_moments("erf", (1,), 2_000.0, gain)[0, 0] for gain in (5.0, 1.0)]
    assert first[0] / first[1] == pytest.approx(5.0, rel=0.02)
