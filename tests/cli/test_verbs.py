"""Python functions return the results that the commands print, and notebooks show them."""

from __future__ import annotations

import gc
import importlib
import json
from xml.etree import ElementTree

import numpy as np
import pytest

import solvable as verbs
from solvable.errors import InvalidParameter, StudyConflict
from solvable.forecast import LearningCurve


@pytest.fixture
def probe(site, monkeypatch):
    monkeypatch.syspath_prepend(str(site))
    return "probe"


def texts(result):
    """Return the words of the tables that a notebook shows."""
    root = ElementTree.fromstring(f"<div>{result._repr_html_()}</div>")
    return ["".join(node.itertext()) for node in root.iter() if node.tag in ("td", "th", "b")]


def plain(records):
    kept = ("task", "parameters", "replicate", "metrics", "prediction")
    return [{name: record[name] for name in kept} for record in records]


def test_run_measures_what_the_command_measures(finished, probe):
    told = json.loads(finished.answer.stdout)
    found = verbs.run(probe, workers=1)
    # Records of the command were written to JSON and read again.
    assert json.loads(json.dumps(plain(found.records))) == plain(told["records"])
    assert [verdict.status for verdict in found.verdicts] == ["holds"]
    assert repr(found) == "<StudyResult: probe: 12 of 12 tasks; claims: 1 hold weakly>"


def test_a_run_without_output_goes_with_its_result(probe):
    found = verbs.run(probe, preset=None, samples=20, seeds=2, workers=1)
    directory = found.directory
    assert (directory / "study.sqlite").exists()
    assert found.teacher(found.records[0]["task"]) == {}
    del found
    gc.collect()
    assert not directory.exists()


def test_a_run_that_cannot_begin_leaves_nothing(probe, tmp_path, monkeypatch):
    monkeypatch.setattr("solvable.verbs.mkdtemp", lambda prefix: str(tmp_path / "made"))
    with pytest.raises(InvalidParameter, match="workers is 0"):
        verbs.run(probe, workers=0)
    assert not (tmp_path / "made").exists()


def test_a_run_with_output_writes_the_files_of_the_command(probe, tmp_path):
    found = verbs.run(probe, samples=[20, 40], seeds=2, workers=1, output=tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"study.sqlite", "study.toml", "report.html", "figures", "records.csv"} <= names
    assert verbs.load(tmp_path / "run").records == found.records
    # The same study again computes nothing; another study is refused.
    again = verbs.run(probe, samples=[20, 40], seeds=2, workers=1, output=tmp_path / "run")
    assert again.records == found.records
    with pytest.raises(StudyConflict, match="holds another study"):
        verbs.run(probe, samples=[20, 40], seeds=3, workers=1, output=tmp_path / "run")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"preset": "quik"}, "preset is 'quik'; allowed: quick, slow, none. Did you mean 'quick'"),
        ({"seeds": 0}, "seeds is 0; allowed: whole numbers from 1"),
        ({"seed": -1}, "seed is -1; allowed: whole numbers from 0"),
        ({"sample": 20}, "a parameter of probe is 'sample'.*Did you mean 'samples'"),
        ({"samples": 1}, "samples is 1; allowed: whole numbers from 2"),
    ],
)
def test_bad_settings_are_named_as_they_are_written_in_python(probe, options, said):
    with pytest.raises(InvalidParameter, match=said):
        verbs.run(probe, workers=1, **options)


def test_a_study_in_a_notebook_is_its_verdicts(finished, probe):
    found = verbs.load(finished.cwd / "run")
    words = texts(found)
    assert words[0] == "probe: 12 of 12 tasks; claims: 1 hold weakly"
    assert "error-is-variance" in words
    assert "holds weakly" in words
    assert found.figure_names == ["error"]
    assert found.drawn is found.drawn  # theory lines are computed once
    drawn = found.figure("error")
    assert drawn.axes[0].get_xlabel() == "samples n"
    with pytest.raises(InvalidParameter, match=r"figure is 'errors'; allowed: error\. Did you"):
        found.figure("errors")


def test_theory_of_predicts_what_the_command_prints(call, probe):
    _, printed, _ = call("theory", "probe", "--set", "samples=40,10", "noise=1,2", "--json")
    found = verbs.theory_of(probe, samples=[40, 10], noise=[1, 2])
    told = [{"system": "probe", **point._asdict()} for point in found.points]
    assert json.loads(json.dumps(told)) == json.loads(printed)
    assert found.varied == ("samples", "noise")
    assert found.values("samples").tolist() == [10, 10, 40, 40]
    np.testing.assert_allclose(found.values("error"), [0.1, 0.4, 0.025, 0.1])
    assert found.values("draws").shape == (4, 3)
    with pytest.raises(InvalidParameter, match=r"quantity is 'eror'.*Did you mean 'error'"):
        found.values("eror")
    assert repr(found) == "<Predictions: probe: predicted at 4 points of samples, noise>"
    assert {"samples", "noise", "error", "0.025"} <= set(texts(found))


def test_theory_at_one_point_lists_its_quantities(probe):
    found = verbs.theory_of(probe)
    assert found.varied == ()
    assert {"quantity", "error", "0.1", "spectrum", "6 more"} <= set(texts(found))
    assert found.figure_names == []


def test_an_own_system_needs_no_entry_point(probe):
    system = importlib.import_module("probe_system").Probe()
    assert verbs.theory_of(system, samples=50).values("error").tolist() == pytest.approx([0.02])
    found = verbs.run(system, preset=None, samples=50, workers=1)
    assert found.complete


def curve():
    n = np.repeat([100, 200, 400, 800, 1600], 3)
    return n, (0.05 + 2 * n**-0.6) * np.tile([0.99, 1.0, 1.01], 5)


def test_a_forecast_is_that_of_the_command(call, tmp_path):
    n, errors = curve()
    path = tmp_path / "curve.csv"
    lines = [f"{size},{error!r}" for size, error in zip(n, errors.tolist(), strict=True)]
    path.write_text("\n".join(["n,error", *lines]))
    _, printed, _ = call("forecast", path, "--at", 3200, "--json")
    found = verbs.forecast_curve(path, at=[3200])
    told = json.loads(printed)
    assert told.pop("files") == []
    assert json.loads(json.dumps(found.to_dict())) == told
    assert (
        verbs.forecast_curve(LearningCurve(n, errors), at=[3200]).predictions == found.predictions
    )
    words = texts(found)
    assert words[0].endswith("at n = 3200")
    assert {"forecast", "3200", "power law", "exponent"} <= set(words)
    assert found.figure("forecast").axes[0].get_xscale() == "log"
    assert repr(found).startswith("<Forecast: error 0.06")


def test_a_curve_that_must_not_be_extrapolated_says_why(tmp_path):
    found = verbs.forecast_curve(LearningCurve([10, 20, 40], [1.0, 0.9, 0.8]))
    assert found.refusal is not None
    assert found.refusal in texts(found)[0]
    assert found.figure_names == []


def test_weights_are_diagnosed_and_shown(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "weights.npz"
    spike = 3 * np.outer(rng.standard_normal(60), rng.standard_normal(200)) / np.sqrt(60 * 200)
    weights = rng.standard_normal((60, 200)) / np.sqrt(200)
    np.savez(path, plain=weights, learned=weights + 2 * spike, bias=np.zeros(7))
    steps = []
    found = verbs.diagnose_weights(path, workers=1, progress=lambda *step: steps.append(step))
    assert [row.phase for row in found.matrices] == ["random-like", "bulk+spikes"]
    assert [step[:2] for step in steps][-1] == (2, 2)
    assert steps[-1][2] == 0.0
    words = texts(found)
    assert words[0] == (
        "weights.npz: At least 1 direction above random signs, in 1 of 2 matrices. None found in plain. "
        "1 of 2 matrices holds learned features above a bulk of noise: 1 in learned. "
        "Read: 2 matrices and 1 vector."
    )
    assert {"learned", "plain", "random-like"} <= set(words)
    assert found.figure_names == ["plain", "learned"]
    assert "learned: bulk+spikes" in [
        text.get_text() for text in found.figure("learned").axes[0].texts
    ]


def test_features_are_learned_and_shown(few):
    steps = []
    found = verbs.learn_features(
        "wine", folds=2, rows=150, workers=1, progress=lambda *step: steps.append(step)
    )
    assert len(steps) > 2
    assert found.learned.error < 0.3
    words = texts(found)
    assert words[0].startswith(f"Use {found.chosen.phrase}: ")
    assert "wine: 150 rows, 13 columns" in words[0]
    assert {score.title for score in found.methods} <= set(words)
    assert "learn-curve" in found.figure_names
    assert found.figure("learn-curve").axes[0].get_ylabel()
    assert repr(found).startswith("<Learned: Use ")
    pytest.importorskip("pandas")
    assert found.to_dataframe()["error"][0] == found.learned.error
    again = verbs.predict_rows(found, "wine")
    assert again.error is not None
    assert again.error["wrong"] < 0.1


def test_data_frames_hold_the_numbers(finished, probe):
    pandas = pytest.importorskip("pandas")
    found = verbs.load(finished.cwd / "run")
    study = found.to_dataframe(arrays=True)
    csv = pandas.read_csv(finished.cwd / "run" / "records.csv")
    assert list(study.columns) == list(csv.columns)
    assert len(study) == 12
    np.testing.assert_array_equal(study["error"], csv["error"])
    assert list(found.to_dataframe().columns) == [c for c in csv.columns if "[" not in c]
    theory = verbs.theory_of(probe, samples=[10, 40]).to_dataframe(arrays=True)
    assert theory["error"].tolist() == pytest.approx([0.1, 0.025])
    assert theory["draws[2]"].tolist() == [0.0, 0.0]
    n, errors = curve()
    forecast = verbs.forecast_curve(LearningCurve(n, errors)).to_dataframe()
    assert forecast["kind"].tolist() == ["measured"] * 5 + ["forecast"] * 2
    assert forecast["n"].tolist() == [100, 200, 400, 800, 1600, 3200, 6400]
    assert (forecast["upper"] > forecast["error"]).sum() == 2


def test_without_pandas_the_message_says_what_to_install(probe, monkeypatch):
    found = verbs.theory_of(probe)
    real = importlib.import_module

    def missing(name, *more):
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'")
        return real(name, *more)

    monkeypatch.setattr("solvable.plots.frames.import_module", missing)
    with pytest.raises(InvalidParameter, match=r"needs pandas.*pip install pandas"):
        found.to_dataframe()
