from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import solvable as package
from solvable.cli.help_text import flowing
from solvable.cli.settings import parse_settings
from solvable.study.parameters import format_settings

HEAVY = ("numpy", "scipy", "pydantic", "matplotlib", "plotly", "sklearn", "joblib", "jinja2")


def test_the_script_is_installed():
    (script,) = entry_points(group="console_scripts", name="solvable")
    assert script.value == "solvable.cli:main"


def test_version(solvable):
    answer = solvable("--version")
    assert (answer.returncode, answer.stdout) == (0, f"solvable {package.__version__}\n")


@pytest.mark.parametrize("words", [[], ["--help"], ["run", "--help"], ["list"], ["list", "--json"]])
def test_help_and_list_load_no_numpy(site, words):
    code = (
        f"import sys; from solvable.cli import main; status = main({words!r}); "
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr); sys.exit(status)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(site)},
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (0, "[]\n")


def test_paragraphs_of_help_break_at_the_width_of_the_terminal():
    assert flowing("One\ntwo:\n  an\n  example\nthree\n\nfour") == (
        "One two:\n  an\n  example\nthree\n\nfour"
    )
    assert flowing("name\n    one\n    two\nother", indent=4) == "name\n    one two\nother"


def test_help_teaches_by_example(call):
    status, printed, _ = call("--help")
    assert status == 0
    assert "solvable run sequential-recovery" in printed
    commands = re.findall(r"^│ (\w+) ", printed, flags=re.MULTILINE)
    assert commands == [
        *("list", "run", "theory", "report", "verify", "compare", "explore"),
        *(
            "probe",
            "learn",
            "predict",
            "forecast",
            "diagnose",
            "retrieve",
            "scale",
            "activations",
            "cite",
        ),
    ]
    for command in commands:
        status, printed, error = call(command, "--help")
        assert (status, error) == (0, "")
        assert f"solvable {command} " in printed
        assert all(len(line) <= 100 for line in printed.splitlines())


@pytest.mark.parametrize("words", [("run", "probe", "--help"), ("run", "-h", "--json", "probe")])
def test_help_of_a_system_shows_its_parameters(call, words):
    status, printed, _ = call(*words)
    assert status == 0
    shown = " ".join(printed.split())
    assert "samples 10 ≥ 2 and ≤ 100000 Number n of samples." in shown
    assert "kind mean mean | median Estimator." in shown
    assert "slow 10 points x 3 slow tasks" in shown
    assert "solvable run probe --set samples=10,160 --seeds 5" in shown


def test_help_of_theory_has_no_presets(call):
    status, printed, _ = call("theory", "probe", "--help")
    assert status == 0
    assert "Number n of samples." in printed
    assert "slow tasks" not in printed
    assert "solvable theory probe --set samples=10,160 --json" in printed


def test_list(solvable):
    answer = solvable("list")
    assert answer.returncode == 0, answer.stderr
    rows = dict(line.split(maxsplit=1) for line in answer.stdout.splitlines() if line[0] != " ")
    assert rows["probe"].startswith("Mean of Gaussian samples")
    assert {"system", "probe", "sequential-recovery", "compositional-target"} <= set(rows)
    listed = json.loads(solvable("list", "--json").stdout)["systems"]
    probe = next(one for one in listed if one["name"] == "probe")
    assert probe == {
        "name": "probe",
        "title": "Mean of Gaussian samples",
        "package": "probe-system 1.0",
    }


def test_list_of_a_system_describes_it(call):
    status, printed, _ = call("list", "probe")
    assert status == 0
    assert "error-is-variance" in printed
    assert "The squared error is s² / n." in printed
    status, printed, _ = call("list", "probe", "--json")
    (told,) = json.loads(printed)["systems"]
    assert told["parameters"]["samples"] == {
        "required": False,
        "default": 10,
        "allowed": "≥ 2 and ≤ 100000",
        "meaning": "Number n of samples.",
    }
    assert told["presets"]["quick"]["grid"] == {"samples": [10, 40, 160]}
    assert told["claims"]["error-is-variance"]["source"] == "derived"
    assert told["references"] == ["gauss1809"]


def test_theory_at_one_point(solvable):
    answer = solvable("theory", "probe", "--set", "samples=50", "noise=2", "--json")
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert set(told) == {"system", "parameters", "prediction"}
    assert told["system"] == "probe"
    assert told["parameters"]["samples"] == 50
    assert told["parameters"]["kind"] == "mean"
    assert told["prediction"]["error"] == pytest.approx(4 / 50)
    assert told["prediction"]["draws"] == [0.0, 0.0, 0.0]
    assert solvable.logged() == []


def test_theory_starts_from_the_defaults_and_not_from_a_preset(call):
    status, printed, _ = call("theory", "probe", "--json")
    assert status == 0
    assert json.loads(printed)["parameters"]["samples"] == 10


def test_theory_on_a_grid_is_a_list(call):
    status, printed, _ = call("theory", "probe", "--set", "samples=40,10", "noise=1,2", "--json")
    assert status == 0
    told = json.loads(printed)
    assert [one["parameters"]["samples"] for one in told] == [10, 10, 40, 40]
    assert [one["parameters"]["noise"] for one in told] == pytest.approx([1, 2, 1, 2])
    for one in told:
        assert one["prediction"]["error"] == pytest.approx(
            one["parameters"]["noise"] ** 2 / one["parameters"]["samples"]
        )


def test_theory_as_a_table(call):
    _, printed, _ = call("theory", "probe")
    rows = [line.split() for line in printed.splitlines()]
    assert ["error", "0.1"] in rows
    assert ["3", "0"] in rows  # the third entry of a list of three
    assert ["...", "6", "more"] in rows  # 30 entries, 24 shown
    _, printed, _ = call("theory", "probe", "--set", "samples=10,40")
    rows = [line.split() for line in printed.splitlines()]
    assert ["samples", "error"] in rows
    assert ["40", "0.025"] in rows
    assert "spectrum (first 8 of 30)" in printed


def test_cite_prints_each_entry_once(call):
    status, printed, _ = call("cite", "probe", "probe")
    assert status == 0
    assert printed.count("@book{gauss1809") == 1
    status, printed, _ = call("cite", "probe", "--json")
    assert [one["key"] for one in json.loads(printed)["references"]] == ["gauss1809"]


def test_verify(finished, call, monkeypatch):
    answer = finished("verify", "run")
    assert answer.returncode == 0, answer.stderr
    assert "error-is-variance" in answer.stdout
    monkeypatch.chdir(finished.cwd)
    _, printed, _ = call("verify", "run", "--json")
    told = json.loads(printed)
    assert told["verdicts"] == json.loads(finished.answer.stdout)["verdicts"]


def test_verify_prints_how_wrong_a_prediction_must_be(finished):
    answer = finished("verify", "run", "--power")
    assert answer.returncode == 0, answer.stderr
    before, _, after = answer.stdout.partition("How wrong must a prediction be")
    assert before.strip() == finished("verify", "run").stdout.strip()
    rows = [re.split(r"  +", line) for line in after.splitlines()]
    assert ["verdict", "claim", "fails at +x", "fails at −x", "chance learner"] in rows
    (words,) = [row for row in rows if "error-is-variance" in row]
    assert words[0] == "holds weakly"
    assert words[2] == "never"
    assert words[4] == "no chance learner"
    told = json.loads(finished("verify", "run", "--power", "--json").stdout)
    assert set(told) == {"verdicts", "errors", "power"}
    (row,) = told["power"]
    assert (row["claim"], row["status"]) == ("error-is-variance", "holds")
    assert row["fails_from_above"] is None
    # The claim fails once m / (1 - x) exceeds 1 + tolerance; the search is accurate to a twentieth.
    (verdict,) = told["verdicts"]
    edge = 1 - verdict["measured"] / (1 + verdict["tolerance"])
    assert edge <= row["fails_from_below"] <= 1.05 * edge
    assert float(words[3]) == pytest.approx(row["fails_from_below"], abs=0.005)
    assert row["chance"] == "no chance learner"


def _with_theory(finished, tmp_path, theory):
    """Return a terminal with a copy of a finished run, where the installed probe has another theory."""
    site, cwd = tmp_path / "site", tmp_path / "later"
    shutil.copytree(finished.site, site)
    shutil.copytree(finished.cwd, cwd)
    program = site / "probe_system.py"
    old = "parameters.noise**2 / parameters.samples"
    assert program.read_text().count(old) == 1
    program.write_text(program.read_text().replace(old, theory))
    return type(finished)(finished.forks, site, cwd)


def test_verify_judges_by_the_installed_theory_and_says_what_it_changed(finished, tmp_path):
    later = _with_theory(finished, tmp_path, "parameters.noise**2 / parameters.samples / 5")
    before = (later.cwd / "run" / "study.sqlite").read_bytes()
    answer = later("verify", "run", "--json")
    assert answer.returncode == 1
    assert json.loads(answer.stdout)["verdicts"][0]["status"] == "fails"
    assert "differ from the stored ones at 3 of 3 points (error)" in answer.stderr
    stored = later("verify", "run", "--stored", "--json")
    assert (stored.returncode, stored.stderr) == (0, "")
    verdicts = json.loads(finished.answer.stdout)["verdicts"]
    assert json.loads(stored.stdout)["verdicts"] == verdicts
    assert (later.cwd / "run" / "study.sqlite").read_bytes() == before
    # The report warns too, and its records have the installed predictions.
    told = later("report", "run")
    assert "differ from the stored ones" in told.stderr
    rows = list(csv.DictReader((later.cwd / "run" / "records.csv").read_text().splitlines()))
    products = [float(row["predicted.error"]) * int(row["samples"]) for row in rows]
    assert products == pytest.approx([0.2] * len(rows))


def test_verify_reports_a_theory_that_now_raises(finished, tmp_path):
    later = _with_theory(finished, tmp_path, "1 / (parameters.samples - 40)")
    answer = later("verify", "run")
    assert answer.returncode == 1
    assert "1 failed: ZeroDivisionError" in answer.stderr
    assert "the prediction at samples=40" in answer.stderr


def test_report_makes_the_files_again(finished, call, monkeypatch):
    monkeypatch.chdir(finished.cwd)
    directory = finished.cwd / "run"
    names = ("report.html", "records.csv", "figures/error.svg", "figures/error.pdf")
    before = {name: (directory / name).read_bytes() for name in names[1:]}
    for name in names:
        (directory / name).unlink()
    status, printed, error = call("report", "run", "--json")
    assert status == 0, error
    told = json.loads(printed)
    assert told["report"] == "run/report.html"
    assert sorted([told["report"], told["records"], *told["figures"]]) == sorted(
        f"run/{name}" for name in names
    )
    assert {name: (directory / name).read_bytes() for name in names[1:]} == before
    assert (directory / "report.html").stat().st_size > 1000
    _, printed, _ = call("report", "run")
    assert printed.splitlines()[0] == "run/report.html"


def test_a_closed_pipe_is_no_error(solvable):
    process = solvable.start("list")
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_closed_pipe_keeps_the_results(solvable):
    process = solvable.start("run", "probe", "--set", "samples=20", "--output", "run", "--workers", 1,
                             "--quiet", "--json")  # fmt: skip
    process.stdout.close()
    process.wait(timeout=60)
    process.stderr.close()
    assert process.returncode == 141
    assert (solvable.cwd / "run" / "report.html").exists()


def test_text_that_a_terminal_lacks_is_replaced(solvable):
    solvable.environment |= {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    answer = solvable("list", "probe")
    assert answer.returncode == 0, answer.stderr
    assert "? 2 and ? 100000" in answer.stdout


@pytest.mark.parametrize(
    "settings",
    [
        {"samples": ["10"]},
        {"samples": ["10", "20"], "kind": ["mean", "median"]},
        {"widths": [[1, 2], [3]], "noise": ["1e-3"]},
    ],
)
def test_settings_are_read_as_they_are_written(settings):
    assert parse_settings(format_settings(settings).split()) == settings


def test_commas_inside_of_parentheses_are_part_of_a_value():
    found = parse_settings(["link=max(z,0),min(z,1,abs(z))", "widths=[10,5],[20,5]"])
    assert found == {"link": ["max(z,0)", "min(z,1,abs(z))"], "widths": [[10, 5], [20, 5]]}
