"""`quadratic-network` in separate processes: time of an answer, bad input, a whole run."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

ASKED = (
    "theory", "quadratic-network", "--set", "target=marchenko-pastur", "width_ratio=0.2",
    "noise=0.5", "regularisation=0.02", "sample_ratio=0.1,0.2,0.5", "--json",
)  # fmt: skip

KEYS = {
    "matrix_error", "test_error", "train_error", "rank_fraction", "trace", "effective_noise",
    "threshold", "interpolation_ratio", "perfect_recovery_ratio", "bayes_matrix_error",
    "finite_size_matrix_error",
}  # fmt: skip


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_theory_answers_with_every_quantity_in_time(solvable):
    """The bound is a ratio of CPU times, which does not depend on the load of the machine.

    Starting Python with the required libraries takes a third of the CPU time of the whole answer.
    """
    start = children_seconds()
    needed = "import numpy, pydantic, scipy.optimize, scipy.linalg"
    subprocess.run([sys.executable, "-c", needed], check=True)
    base = children_seconds() - start
    ended, ratio, attempts = None, 5.0, 0
    # The first answer of an installation also compiles the imported modules.
    while ratio >= 5 and attempts < 2:
        start = children_seconds()
        ended, attempts = solvable(*ASKED), attempts + 1
        ratio = (children_seconds() - start) / base
    assert ratio < 5
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    answers = json.loads(ended.stdout)
    assert [one["parameters"]["sample_ratio"] for one in answers] == pytest.approx([0.1, 0.2, 0.5])
    for one, error in zip(answers, (0.8663, 0.6853, 0.3469), strict=True):
        found = one["prediction"]
        assert set(found) >= KEYS
        assert found["matrix_error"] == pytest.approx(error, abs=2e-4)
        assert found["spectral_phase"] in ("bulk+spikes", "bleeding-out")


def test_samples_in_place_of_their_ratio(call):
    words = ("theory", "quadratic-network", "--set", "dimension=50", "samples=500,1e3", "--json")
    answers = json.loads(call(*words)[1])
    assert [one["parameters"]["sample_ratio"] for one in answers] == pytest.approx([0.2, 0.4])


def test_tables_name_the_phase(call):
    status, printed, _ = call(
        "theory", "quadratic-network", "--set", "target=power-law", "dimension=40", "noise=0.1"
    )
    assert status == 0
    for words in ("matrix_error", "scaling_phase", "spectral_phase", "bulk", "bayes_matrix_error"):
        assert words in printed


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("width_ratio=0", "width_ratio is 0;"),
        ("width_ratio=-0.2", "width_ratio is -0.2;"),
        ("exponent=0.5", "exponent is 0.5;"),
        ("noise=-1", "noise is -1;"),
        ("regularisation=-0.1", "regularisation is -0.1;"),
        ("regularisation=0", "regularisation is 0;"),
        ("sample_ratio=0", "sample_ratio is 0;"),
        ("sample_ratio=-2", "sample_ratio is -2;"),
        ("sample_ratio=1e-9", "less than one sample"),
        ("samples=-3", "samples is -3;"),
        ("dimension=1", "dimension is 1;"),
        ("target=flat", "target is 'flat'"),
        ("sensing=rank", "sensing is 'rank'"),
        ("widths_ratio=1", "Did you mean 'width_ratio'"),
    ],
)
def test_bad_parameters_are_one_line(call, setting, said):
    for command in ("theory", "run"):
        status, printed, error = call(command, "quadratic-network", "--set", setting)
        assert status == 2
        assert printed == ""
        assert len(error.splitlines()) == 1
        assert said in error


def test_it_is_listed_and_cited(call):
    assert "quadratic-network" in call("list")[1]
    printed = call("list", "quadratic-network")[1]
    for words in ("test-error", "perfect-recovery", "sample_ratio", "recovery"):
        assert words in printed
    bibliography = call("cite", "quadratic-network")[1]
    for paper in ("2505.17958", "2509.24882", "2408.03733", "2606.28242", "2601.10483"):
        assert paper in bibliography


@pytest.mark.slow
def test_a_small_run_makes_a_report_with_every_figure(solvable):
    words = (
        "run", "quadratic-network", "--preset", "none", "--output", "small", "--workers", 1,
        "--seeds", 6, "--set", "target=power-law", "dimension=16", "regularisation=0.2",
        "sample_ratio=0.8,1.6", "sensing=network,goe", "network_samples=410",
    )  # fmt: skip
    ended = solvable(*words, "--json")
    assert ended.returncode in (0, 1), ended.stderr
    answer = json.loads(ended.stdout)
    assert len(answer["records"]) == 24
    verdicts = {one["claim"]: one["status"] for one in answer["verdicts"]}
    for claim in ("test-error", "train-error", "rank", "minimum", "network-is-convex"):
        assert verdicts[claim] == "holds", claim
    names = {path.stem for path in (solvable.cwd / "small" / "figures").glob("*.svg")}
    assert {"error", "train-error", "rank", "self-estimate", "features"} <= names
    assert any(name.startswith("spectrum-ratio-") for name in names)
    page = (solvable.cwd / "small" / "report.html").read_text()
    assert "Phases: " in page
    header = (solvable.cwd / "small" / "records.csv").read_text().splitlines()[0]
    assert "spectral_phase" in header
    again = solvable(*words, "--json")
    assert json.loads(again.stdout)["records"] == answer["records"]


@pytest.mark.slow
def test_the_quick_preset_judges_every_claim_of_the_abstract(solvable):
    words = ("run", "quadratic-network", "--output", "quick", "--workers", 1, "--seed", 1154)
    ended = solvable(*words, "--json")
    assert ended.returncode == 0, ended.stderr
    verdicts = {one["claim"]: one["status"] for one in json.loads(ended.stdout)["verdicts"]}
    claims = (
        "test-error", "train-error", "rank", "spectrum", "network-is-convex", "perfect-recovery",
        "peak-height",
    )  # fmt: skip
    assert {claim: verdicts[claim] for claim in claims} == dict.fromkeys(claims, "holds")
    assert (solvable.cwd / "quick" / "figures" / "noiseless-error.svg").exists()
