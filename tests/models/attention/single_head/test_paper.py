"""Trained heads against state evolution and thresholds (arXiv:2509.24914)."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.attention.single_head.measure import measure
from solvable.models.attention.single_head.parameters import SingleHeadParameters
from solvable.models.attention.single_head.predict import predict
from solvable.spectra.thresholds import perfect_recovery_threshold


def mean_of(name, seeds, **setting):
    parameters = SingleHeadParameters(**setting)
    return np.mean(
        [measure(parameters, random_stream("paper", seed))[name] for seed in range(seeds)]
    )


@pytest.mark.slow
def test_errors_of_trained_heads_at_a_hundred_dimensions():
    """Test error, overlap and norm of state evolution within 4 % (attention 10, attention 12)."""
    parameters = SingleHeadParameters(
        dimension=100, sample_ratio=0.3, rank_ratio=1.0, regularisation=0.05, noise=1.0
    )
    records = [measure(parameters, random_stream("check 13", seed)) for seed in range(2)]
    means = {
        name: np.mean([r[name] for r in records]) for name in ("test_error", "overlap", "norm")
    }
    assert means["test_error"] == pytest.approx(0.171, rel=0.04)
    assert means["overlap"] == pytest.approx(1.012, rel=0.03)
    assert means["norm"] == pytest.approx(0.760, rel=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "fitted"), [(0.13, True), (0.17, False)])
def test_interpolation(ratio, fitted):
    """Training error below and above the interpolation threshold 0.1511 (attention 14)."""
    setting = {
        "dimension": 40, "sample_ratio": ratio, "noise": 0.2, "rank_ratio": 0.3, "regularisation": 1e-5,
    }  # fmt: skip
    parameters = SingleHeadParameters.model_construct(
        **(SingleHeadParameters().model_dump() | setting)
    )
    error = measure(parameters, random_stream("check 14", 0))["train_error"]
    assert error < 1e-5 if fitted else error > 1e-4
    prediction = predict(SingleHeadParameters(**(setting | {"regularisation": 0.02})))
    assert prediction["interpolation_ratio"] == pytest.approx(0.1511, abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "recovered"), [(0.11, False), (0.15, True)])
def test_recovery(ratio, recovered):
    """Matrix error below and above the recovery threshold 0.1278 (attention 15)."""
    setting = {
        "dimension": 50, "sample_ratio": ratio, "noise": 0.0, "rank_ratio": 0.2, "regularisation": 1e-4,
    }  # fmt: skip
    error = mean_of("matrix_error", 1, **setting)
    assert error < 0.005 if recovered else error > 0.03
    prediction = predict(SingleHeadParameters(**(setting | {"regularisation": 0.02})))
    assert prediction["recovery_ratio"] == pytest.approx(0.1278, abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rho", "penalty", "noise", "rank"), [(0.3, 0.02, 0.4, 0.510), (1.0, 0.05, 1.0, 0.537)]
)
def test_learned_rank(rho, penalty, noise, rank):
    """Rank of a trained head within 0.03 (attention 12)."""
    setting = {
        "dimension": 100, "sample_ratio": 0.3, "rank_ratio": rho, "regularisation": penalty,
        "noise": noise,
    }  # fmt: skip
    assert predict(SingleHeadParameters(**setting))["rank_fraction"] == pytest.approx(
        rank, abs=0.003
    )
    assert mean_of("rank_fraction", 1, **setting) == pytest.approx(rank, abs=0.03)


@pytest.mark.parametrize(
    ("rho", "published"),
    [(0.05, 0.0920), (0.1, 0.1576), (0.2, 0.2556), (0.3, 0.3272), (0.5, 0.4222), (0.7, 0.4746)],
)
def test_recovery_threshold_is_a_minimum(rho, published):
    """k alpha = min_tau R(tau) / 2 by quadrature on a grid of tau (attention 15)."""
    x, step = np.linspace(-2, 2, 40_001, retstep=True)
    semicircle = np.sqrt(np.maximum(4 - x**2, 0)) / (2 * np.pi) * step
    tau = np.linspace(0, 2, 401)
    rest = [semicircle @ np.maximum(x - t / np.sqrt(1 - rho), 0) ** 2 for t in tau]
    least = np.min(rho * (2 - rho) + rho * tau**2 + (1 - rho) ** 2 * np.array(rest)) / 2
    assert least == pytest.approx(published, abs=1e-4)
    assert perfect_recovery_threshold(rho) == pytest.approx(least, abs=1e-5)
