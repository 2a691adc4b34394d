"""Acceptance checks 13 to 16 of the note on attention, at their own sizes."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.attention.single_head.measure import measure
from solvable.models.attention.single_head.parameters import SingleHeadParameters
from solvable.models.attention.single_head.predict import predict


def mean_of(name, seeds, **setting):
    parameters = SingleHeadParameters(**setting)
    return np.mean(
        [measure(parameters, random_stream("note", seed))[name] for seed in range(seeds)]
    )


@pytest.mark.slow
def test_errors_of_trained_heads_at_a_hundred_dimensions():
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
    setting = {
        "dimension": 40, "sample_ratio": ratio, "noise": 0.2, "rank_ratio": 0.3, "regularisation": 1e-5,
    }  # fmt: skip
    parameters = SingleHeadParameters.model_construct(
        **(SingleHeadParameters().model_dump() | setting)
    )
    error = measure(parameters, random_stream("check 14", 0))["train_error"]
    assert error < 1e-5 if fitted else error > 1e-4
    told = predict(SingleHeadParameters(**(setting | {"regularisation": 0.02})))
    assert told["interpolation_ratio"] == pytest.approx(0.1511, abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "found"), [(0.11, False), (0.15, True)])
def test_recovery(ratio, found):
    setting = {
        "dimension": 50, "sample_ratio": ratio, "noise": 0.0, "rank_ratio": 0.2, "regularisation": 1e-4,
    }  # fmt: skip
    error = mean_of("matrix_error", 1, **setting)
    assert error < 0.005 if found else error > 0.03
    told = predict(SingleHeadParameters(**(setting | {"regularisation": 0.02})))
    assert told["recovery_ratio"] == pytest.approx(0.1278, abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rho", "penalty", "noise", "rank"), [(0.3, 0.02, 0.4, 0.510), (1.0, 0.05, 1.0, 0.537)]
)
def test_learned_rank(rho, penalty, noise, rank):
    setting = {
        "dimension": 100, "sample_ratio": 0.3, "rank_ratio": rho, "regularisation": penalty,
        "noise": noise,
    }  # fmt: skip
    assert predict(SingleHeadParameters(**setting))["rank_fraction"] == pytest.approx(
        rank, abs=0.003
    )
    assert mean_of("rank_fraction", 1, **setting) == pytest.approx(rank, abs=0.03)
