from __future__ import annotations

import pytest

TABLE = [
    (["run", "quadratic-network", "--dimension=50"], ["Did you mean --set dimension=50?"]),
    (["theory", "quadratic-network", "--noise", "1"], ["Did you mean --set noise=1?"]),
    # Words of the command, and texts that the error line must contain.
    (["rnu", "probe"], ["'rnu'", "Did you mean 'run'", "list, run, theory", "cite."]),
    (["systems"], ["'systems'", "Did you mean `solvable list`"]),
    (["Describe", "probe"], ["'Describe'", "Did you mean `solvable list`"]),
    (["plot"], ["'plot'", "Did you mean `solvable report`"]),
    (["fit", "file.txt"], ["'fit'", "Did you mean `solvable learn`"]),
    (["probe", "--seeds", "2"], ["no learner is given", "mlp"]),
    (["help", "nothing"], ["'nothing'", "allowed: list, run"]),
    (
        ["run", "probe", "--set", "samples=1", "kind=mode"],
        ["Raise samples. kind is 'mode'; allowed"],
    ),
    (["run"], ["needs the name of a system", "probe"]),
    (["run", "--set", "samples=10", "probe"], ["needs the name of a system", "before --set"]),
    (["run", "prob"], ["'prob'", "Did you mean 'probe'"]),
    (["theory", "prob"], ["'prob'", "Did you mean 'probe'"]),
    (["cite", "prob"], ["'prob'", "Did you mean 'probe'"]),
    (["list", "prob"], ["'prob'", "Did you mean 'probe'"]),
    (["run", "prob", "--help"], ["'prob'", "Did you mean 'probe'"]),
    (["run", "probe", "extra"], ["'extra'", "Did you mean --preset extra"]),
    (["run", "probe", "samples=10"], ["'samples=10'", "Did you mean --set samples=10"]),
    (["forecast", "file.txt", "--factor", "two"], ["--factor is 'two'; allowed: numbers."]),
    (["run", "probe", "--outptu", "x"], ["--outptu", "Did you mean --output"]),
    (["run", "probe", "--no-json"], ["--no-json"]),
    (["run", "probe", "--seeds"], ["--seeds needs a value"]),
    (["run", "probe", "--preset", "qick"], ["'qick'", "quick, slow, none", "'quick'"]),
    (["run", "probe", "--seeds", "0"], ["--seeds is 0", "from 1"]),
    (["run", "probe", "--seeds", "-3"], ["--seeds is -3", "from 1"]),
    (["run", "probe", "--seeds", "many"], ["--seeds", "many"]),
    (["run", "probe", "--seed", "-1"], ["--seed is -1", "from 0"]),
    (["run", "probe", "--workers", "0"], ["workers is 0", "from 1"]),
    (["run", "probe", "--device", "cuda"], ["device is 'cuda'", "quadratic-network"]),
    (["run", "probe", "--set"], ["--set is empty"]),
    (["run", "probe", "--set", "samples"], ["'samples'", "name=value"]),
    (["run", "probe", "--set", "=3"], ["'=3'", "name=value"]),
    (["run", "probe", "--set", "samples="], ["samples", "lacks a value"]),
    (["run", "probe", "--set", "samples=10,,20"], ["samples", "lacks a value"]),
    (["run", "probe", "--set", "samples=10", "samples=20"], ["twice", "samples=A,B"]),
    (["run", "probe", "--set", "widths=[1"], ["widths=[1", "JSON"]),
    (["run", "probe", "--set", "sampels=3"], ["'sampels'", "Did you mean 'samples'"]),
    (
        ["run", "probe", "--set", "samples=1"],
        ["samples is 1;", "from 2 up to 100000. Raise samples."],
    ),
    (["run", "probe", "--set", "samples=10.5"], ["samples is 10.5;", "whole numbers from 2"]),
    (["run", "probe", "--set", "samples=1e-3"], ["samples is 1e-3;", "whole numbers from 2"]),
    (["run", "probe", "--set", "samples=10,1e9"], ["1000000000;", "up to 100000. Lower samples."]),
    (["run", "probe", "--set", "noise=nan"], ["noise is nan;", "numbers from 0"]),
    (["run", "probe", "--set", "noise=inf"], ["noise is inf;", "numbers from 0"]),
    (["run", "probe", "--set", "noise=-1"], ["noise is -1;", "Raise noise."]),
    (["run", "probe", "--set", "kind=mode"], ["kind is 'mode'; allowed: mean, median"]),
    (["theory", "probe", "--set", "sampels=3"], ["'sampels'", "Did you mean 'samples'"]),
    (["theory", "probe", "--set", "samples=0"], ["samples is 0;", "from 2"]),
    (["theory", "probe", "--seeds", "3"], ["--seeds"]),
    (["cite"], ["needs the name of a system"]),
    (["verify"], ["verify needs DIRECTORY"]),
    (["verify", "nowhere"], ["nowhere", "no such file", "directory of a run"]),
    (["report", "nowhere"], ["nowhere", "no such file", "directory of a run"]),
    (["run", "probe", "--output", "file.txt"], ["'file.txt'", "directory"]),
    (["run", "probe", "--seeds", "3.25"], ["--seeds is '3.25'", "whole numbers"]),
    (["run", "probe", "--seed", "1e-1"], ["--seed is '1e-1'", "whole numbers"]),
    (["run", "probe", "--workers", "inf"], ["--workers is 'inf'", "whole numbers"]),
    (["learn", "iris", "--rows", "99.5"], ["--rows is '99.5'", "whole numbers"]),
    (["diagnose", "file.txt", "--seed", "-7"], ["--seed is -7", "at least 0"]),
    (["forecast", "file.txt", "--seed", "-7"], ["--seed is -7", "at least 0"]),
    (["run", "probe", "--output", ""], ["--output is empty"]),
    (["learn", "iris", "--output="], ["--output is empty"]),
    (["diagnose", "file.txt", "--output", ""], ["--output is empty"]),
    (["learn", ""], ["the path is empty"]),
    *(
        ([*words, 86 * "äb"], ["258 bytes", "up to 255"])
        for words in (["verify"], ["report"], ["diagnose"], ["forecast"], ["learn"])
    ),
    (["run", "probe", "--output", 30 * f"{200 * 'd'}/"], ["6030 bytes", "up to 4096"]),
    (["predict", 300 * "m", "file.txt"], ["300 bytes", "up to 255"]),
    (["predict", "file.txt", "iris", "--output", 300 * "p"], ["--output", "300 bytes"]),
    (["learn", "a\0b.csv"], ["zero byte"]),
]


@pytest.mark.parametrize(("words", "said"), TABLE, ids=[" ".join(words) for words, _ in TABLE])
def test_bad_input_is_one_line_and_exits_with_2(call, tmp_path, words, said):
    (tmp_path / "file.txt").write_text("mine")
    status, printed, error = call(*words)
    assert status == 2
    assert printed == ""
    assert error.startswith("solvable: ")
    assert len(error.splitlines()) == 1
    for part in said:
        assert part in error
    # No run directory was created.
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_bad_input_in_a_process_of_its_own(solvable):
    answer = solvable("run", "probe", "--set", "samples=1")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == (
        "solvable: samples is 1; allowed: whole numbers from 2 up to 100000. Raise samples.\n"
    )


def test_a_directory_that_is_no_study(call, tmp_path):
    (tmp_path / "study.sqlite").write_text("not a database, but long enough to look at" * 10)
    status, printed, error = call("verify", ".")
    assert (status, printed) == (2, "")
    assert len(error.splitlines()) == 1
    assert "study.sqlite" in error


def test_a_system_that_cannot_be_imported(call, site, tmp_path, monkeypatch):
    info = tmp_path / "site" / "broken-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[solvable.systems]\nbroken = broken_module:system\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    status, printed, _ = call("list")
    assert status == 0
    assert "broken" in printed
    assert "probe" in printed
    status, printed, error = call("theory", "broken")
    assert (status, printed) == (2, "")
    assert "broken 2.0" in error
    assert len(error.splitlines()) == 1
