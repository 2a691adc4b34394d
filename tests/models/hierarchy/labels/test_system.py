"""The system `label-hierarchy`: contract, claims that hold and can fail, limits."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.frame.checks import check_system
from solvable.frame.points import Point
from solvable.models.hierarchy.labels.claims import power_of_depth
from solvable.models.hierarchy.labels.parameters import LabelParameters
from solvable.models.hierarchy.labels.predict import predict
from solvable.models.hierarchy.labels.system import system
from solvable.study import Study, run_study


def test_contract_at_the_points_of_folds():
    check_system(system, preset="folds", setting={"samples": 100, "folds": 1})


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    study = Study(system, {"samples": (300, 400, 1150), "folds": (1, 2)}, replicates=6)
    return run_study(study, tmp_path_factory.mktemp("labels") / "run", workers=1)


def test_claims_hold(result):
    status = {verdict.claim: verdict.status for verdict in result.verdicts}
    # the grid has one depth, and ends below the samples that the last level needs
    for claim in ("last-level", "samples-against-depth"):
        assert status.pop(claim) == "not testable"
    assert set(status.values()) == {"holds"}


def test_claims_fail_for_wrong_predictions_and_at_chance(result):
    rows = [
        row
        for row in system.power(result.points)
        if row.claim not in ("last-level", "samples-against-depth")
    ]
    assert all(row.passes and row.noticed for row in rows)


def test_figures(result):
    names = [figure.name for figure in system.figures(result.points)]
    assert names == [
        "error-folds-1",
        "error-folds-2",
        "accepted-folds-1",
        "accepted-folds-2",
        "folds",
    ]


def test_power_of_the_depth_is_that_of_the_crossings():
    def points(power, shift=1.0):
        # errors that fall linearly in log n and are 1/4 at n = 100 depth^power
        for depth in (1, 2, 3):
            for n in (30, 100, 300, 1000, 3000):
                error = 0.25 - 0.05 * np.log(n / (100 * depth**power))
                yield Point(
                    {"depth": depth, "samples": n, "blocks": 4},
                    [{"last_error": error + noise} for noise in (-2e-4, 2e-4)],
                    {"last_error": 0.25 - 0.05 * np.log(n / (100 * shift * depth**2))},
                    LabelParameters(depth=depth, samples=n),
                )

    assert power_of_depth(list(points(1.5))) == pytest.approx((1.5, 2.0))
    claim = {claim.name: claim for claim in system.claims}["samples-against-depth"]
    assert claim.verdict(list(points(2.05, shift=1.3))).status == "holds"
    assert claim.verdict(list(points(1.5))).status == "fails"
    assert power_of_depth([p for p in points(2.0) if p.setting.depth < 3]) is None


@pytest.mark.slow
def test_last_level_holds(tmp_path):
    grid = {"samples": (300, 400, 2000, 2800)}
    points = run_study(Study(system, grid, replicates=4), tmp_path / "run", workers=1).points
    verdict = {v.claim: v for v in system.verdicts(points)}["last-level"]
    assert verdict.status == "holds"


@pytest.mark.parametrize(
    "setting",
    [
        {"dimension": 30, "labels": 6, "depth": 2, "blocks": 2, "samples": 500, "folds": 5},
        {"dimension": 14, "labels": 12, "depth": 5, "blocks": 5, "samples": 900, "ridge": 20.0},
        {"dimension": 60, "labels": 20, "depth": 2, "blocks": 2, "samples": 700, "threshold": 0.3},
        {"dimension": 16, "labels": 12, "samples": 250, "threshold": 0.05},
        {"dimension": 14, "labels": 9, "samples": 700, "folds": 1, "hierarchy_seed": 5},
    ],
)
def test_errors_at_other_settings(setting):
    parameters = LabelParameters(**setting)
    found = [system.measure(parameters, np.random.default_rng([seed, 1])) for seed in range(6)]
    expected = predict(parameters)
    for name in ("error", "out_of_fold_error"):
        values = np.array([metrics[name] for metrics in found])
        error = np.maximum(values.std(axis=0, ddof=1) / np.sqrt(6), 0.002)
        assert (np.abs(values.mean(axis=0) - expected[name]) <= 4.5 * error + 0.012).all(), name


def test_the_hierarchy_must_exist():
    with pytest.raises(InvalidParameter, match="8 inputs have 28 pairs"):
        LabelParameters(dimension=8, labels=29)
    predict(LabelParameters(dimension=8, labels=28))


def test_the_theory_goes_further_than_a_measurement():
    parameters = LabelParameters(dimension=60, labels=50, depth=6, blocks=6, samples=200_000)
    assert predict(parameters)["accepted"] == [1.0] * 6
    with pytest.raises(Exception, match="kernel matrices of 200000 samples take"):
        system.measure(parameters, np.random.default_rng(0))
