from __future__ import annotations

import json

import numpy as np
import pytest

import solvable
from solvable.cli import main
from solvable.errors import InvalidParameter
from solvable.frame.registry import load
from solvable.study import Study, run_study
from solvable.study import load as load_run
from solvable.study.compare import compare_runs, tables
from solvable.study.differences import holm, paired_interval, welch_interval


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    # Figures, which a run with an output directory draws, are not compared.
    home, system = tmp_path_factory.mktemp("runs"), load("quadratic-network")
    return [
        run_study(
            Study(system, {"dimension": 10, "samples": 40}, replicates=3, seed=seed),
            home / name,
            workers=1,
        ).directory
        for name, seed in (("first", 0), ("[red]<b>\x1b[2J", 1))
    ]


def test_runs_of_other_seeds_are_unpaired_and_repeated_ones_are_the_same(runs, capsys):
    found = solvable.compare(*runs)
    assert found.labels == ("seed=0", "seed=1")
    assert {row.pairing for row in found.differences} == {"unpaired"}
    assert not found.broken
    same = solvable.compare(runs[0], runs[0])
    assert {row.pairing for row in same.differences} == {"same records"}
    assert not any(row.differs or row.difference for row in same.differences)
    assert len(found.to_dataframe()) == len(found.differences)
    assert main(["compare", *map(str, runs)]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "[red]<b>" in "".join(printed.split())  # the last column may be broken anywhere
    assert "<b>[2J" not in found._repr_html_()
    assert main(["compare", *map(str, runs), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["runs"]) == len(answer["verdicts"]) == 2


def test_runs_at_two_noise_levels_are_compared_at_each_number_of_samples(runs, capsys):
    settings = {"samples": [20, 40], "dimension": 8, "preset": None, "seeds": 3, "workers": 1}
    low, high = (solvable.run("quadratic-network", noise=noise, **settings) for noise in (0.1, 5.0))
    found = solvable.compare(low, high)
    errors = {
        row.parameters["samples"]: row for row in found.differences if row.metric == "train_error"
    }
    assert sorted(errors) == [20, 40]
    for samples, row in errors.items():
        assert "noise" not in row.parameters
        assert row.pairing == "unpaired"
        for run, mean in ((low, row.first), (high, row.other)):
            measured = [
                record["metrics"]["train_error"]
                for record in run.records
                if record["parameters"]["samples"] == samples
            ]
            assert mean == pytest.approx(np.mean(measured))
    wide = solvable.run("quadratic-network", noise=[0.1, 5.0], **settings)
    assert {row.parameters["noise"] for row in solvable.compare(wide, low).differences} == {0.1}
    with_both = {row.parameters["samples"] for row in solvable.compare(wide, high).differences}
    assert with_both == {20, 40}
    assert main(["compare", str(low.directory), str(high.directory)]) == 0
    printed = capsys.readouterr().out
    assert "Paired" not in printed
    assert "corrected for all" in printed


def test_thirty_runs_have_distinct_labels(runs):
    assert len(set(solvable.compare(*(runs * 15)).labels)) == 30


def test_bad_input_is_refused(runs):
    with pytest.raises(InvalidParameter, match="two or more"):
        compare_runs(runs[:1])
    other = solvable.run("sequential-recovery", preset=None, dimension=10, samples=200, workers=1)
    with pytest.raises(InvalidParameter, match="no claim in common"):
        solvable.compare(runs[0], other)


def test_holm_stops_at_the_first_that_is_not_rejected():
    assert holm([0.04, float("nan"), 0.001, 0.02]) == [True, False, True, True]
    assert holm([0.03, 0.04, 0.001]) == [False, False, True]
    assert holm([]) == []


@pytest.mark.parametrize("pairs", [True, False])
def test_intervals_cover_95_percent(pairs):
    rng = np.random.default_rng(5)
    count, covered = 2000, 0
    for _ in range(count):
        common = rng.standard_normal(5)
        first = common + 0.5 * rng.standard_normal(5)
        if pairs:
            other = common + 0.3 + 0.5 * rng.standard_normal(5)
            low, high, _ = paired_interval(other - first)
        else:
            low, high, _ = welch_interval(first, 0.3 + 3 * rng.standard_normal(8))
        covered += low <= 0.3 <= high
    # four standard errors of a share of 95 %
    assert abs(covered / count - 0.95) < 4 * (0.95 * 0.05 / count) ** 0.5


def test_a_metric_that_one_run_alone_has_is_named(tmp_path, toy):
    for name in ("a", "b"):
        run_study(Study(toy, {"size": [5]}, 2), tmp_path / name, workers=1)
    first, other = load_run(tmp_path / "a", toy), load_run(tmp_path / "b", toy)
    for row in other.snapshot.tasks:
        row["metrics"]["newer"] = 1.0
    runs = tables(compare_runs([first, other]))[0].to_text()
    assert "no setting" in runs
    assert "also measures newer" in runs
