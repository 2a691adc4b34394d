"""Studies and models stored by an earlier version are read, with the same verdicts and predictions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from solvable.frame.registry import load
from solvable.learners import load_model
from solvable.study import load as load_study

STORED = Path(__file__).parent / "stored"
VERDICTS = json.loads((STORED / "verdicts-0.1.0.json").read_text("utf-8"))


OTHERWISE = {
    "pruning-helps": ("not testable", "holds"),  # allowance from the scatter of the noisiest cell
    "error-exponent": ("not testable", "holds"),  # asked for n/D >= 30, now for n/D >= 7.5
}
"""Claims that judged fewer records than they could."""


@pytest.fixture(scope="module", params=sorted(VERDICTS))
def study(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("stored")
    packed = (STORED / f"{request.param}.sqlite.gz").read_bytes()
    (directory / "study.sqlite").write_bytes(gzip.decompress(packed))
    return load_study(directory)


def test_the_records_are_all_there(study):
    assert study.complete
    assert study.system is load(study.system.name)
    assert len(study.records) == sum(point.replicates for point in study.points)


def test_verdicts_are_those_of_then(study):
    then = VERDICTS[study.system.name]
    now = {verdict.claim: verdict for verdict in study.verdicts}
    assert then.keys() <= now.keys()
    changed = {
        name: (old[0], now[name].status) for name, old in then.items() if now[name].status != old[0]
    }
    assert changed == {name: change for name, change in OTHERWISE.items() if name in then}


def test_claims_that_need_newer_metrics_raise_nothing(study):
    assert all(verdict.status != "error" for verdict in study.verdicts)


@pytest.mark.slow
def test_figures_are_drawn(study):
    figures = study.system.figures(study.points)
    assert figures
    for figure in figures:
        kinds = {series.kind for series in figure.series}
        assert kinds & {"line", "dashed"}
        assert len({series.label for series in figure.series}) > 1


def test_every_claim_that_holds_would_fail_at_its_power_and_by_chance(study):
    rows = {row.claim: row for row in study.power}
    assert list(rows) == [verdict.claim for verdict in study.verdicts]
    held = [verdict.claim for verdict in study.verdicts if verdict.status == "holds"]
    assert held == [claim for claim, row in rows.items() if row.status == "holds" and row.passes]


def test_a_model_of_an_earlier_version_predicts_as_it_did():
    X, _ = load_digits(return_X_y=True)
    predicted = load_model(STORED / "digits-0.1.0.safetensors").predict(X[150:190] / 16)
    expected = [0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1,
                0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1]  # fmt: skip
    np.testing.assert_array_equal(predicted, expected)
