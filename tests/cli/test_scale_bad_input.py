"""``solvable scale`` on bad input: one line, exit status 2, no traceback, no gigabytes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import warnings

import pytest

from solvable.cli import main
from solvable.scale import describe_layers

ONE = ["--layers", "erf:1", "--target", "he3"]
DIGITS = 5_000 * "9"


def refused(words, capsys):
    """Return the single line of an error message."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status = main(["scale", *words])
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, "")
    (line,) = captured.err.splitlines()
    assert len(line) < 700
    return line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*ONE, "--readout", "1e3"], "chi of the readout is d^"),
        ([*ONE, "--readout=-1e3", "--numbers", "d=100"], "chi of the readout is d^"),
        ([*ONE, "--readout=100", "--numbers", "d=1e12"], "beyond 1e+12"),
        ([*ONE, "--readout=50", "--numbers", "d=1e12"], "beyond 1e+12"),
        ([*ONE[:2], "--target", f"he{DIGITS}"], "the target is 'he999"),
        ([*ONE[:2], "--target", "he\u00b3"], "the target is"),
        ([*ONE, "--kappa=-100"], "less than one sample"),
        ([*ONE, "--kappa=-1.5"], "less than one sample"),
        ([*ONE, "--kappa=1e300"], "kappa is"),
        ([*ONE, "--kappa", DIGITS], "kappa is"),
        ([*ONE, "--numbers", "d=100", "sigma_a=1e-300"], "from 1e-12"),
        ([*ONE, "--numbers", "d=100", f"kappa={DIGITS}"], "kappa is"),
        ([*ONE, "--numbers", "d=nan"], "d is nan"),
        (["--layers", "erf:100", "--target", "he3", "--numbers", "d=1e6"], "beyond 1e+12"),
        (["--layers", f"{DIGITS}:1", "--target", "he3"], "activation is '999"),
        (["--layers", "erf:1if 2", "--target", "he3"], "width of layer 1 is '1if 2'"),
        (["--layers", "erf:1e6*1e6*1e6", "--target", "he3"], "width of layer 1"),
        (["--layers", "erf:1", "--target", "he2"], "Take relu in all layers or poly2"),
        (["--layers", "relu:1", "--target", "he3"], "Take one more layer"),
    ],
)
def test_words_beyond_their_range_are_refused_in_one_line(words, said, capsys):
    assert said in refused(words, capsys)


LAYERS = '[{ width = "1", act = "erf" }]'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (".".join(["a"] * 45_000) + " = 1", "allowed: 64,000"),
        (".".join(["a"] * 1_000) + " = 1", "more than 32 parts"),
        ("a = '" + 5_000 * "x" + "'", "allowed: 4,000"),
        (f'target = "he3"\nlayers = {LAYERS}\ninputs = {{ "\u00b3" = "-1" }}', "inputs is"),
        (f'target = "he3"\nlayers = {LAYERS}\ninputs = {{ 0 = "-1" }}', "inputs is"),
        (f'target = "he3"\ntitle = "{500 * "t"}"\nlayers = {LAYERS}', "title is"),
    ],
)
def test_files_beyond_their_range_are_refused_in_one_line(content, said, tmp_path, capsys):
    (tmp_path / "net.toml").write_text(content)
    line = refused([str(tmp_path / "net.toml")], capsys)
    assert said in line
    assert "\x1b" not in line


GOOD = ["1", "1/2", "2", "0", "n"]
NUMBERS = ["0", "1", "-1", "1/2", "1e3", "-1e3", "1e308", "nan", "inf", "1/0", DIGITS, "\u00b3",
           "\u0663", "n", "n*n", "()", "[]", "lambda: 0", 150 * "(", "\x1b[31m", "1j", "\0",
           "1if 2", "99/100", "1e-9", "5e-324", "", "=", ","]  # fmt: skip


def test_mutated_calls_end_in_an_answer_or_one_line(tmp_path, capsys):
    rng = random.Random(11)
    base = [
        {"target": {"hermite": 3}, "layers": [{"width": "1", "act": "erf"}], "kappa": "0"},
        {"attention": {"heads": "0", "context": "1/2"}},
        {"inputs": 64, "layers": ["relu:64"]},
    ]
    answers = 0
    for _ in range(180):
        if rng.random() < 0.5:
            content = json.loads(json.dumps(rng.choice(base)))
            node = content
            while isinstance(node, (dict, list)) and node:
                key = rng.choice([*node, "kappa"]) if isinstance(node, dict) else 0
                inner = node.get(key) if isinstance(node, dict) else node[0]
                if not isinstance(inner, (dict, list)) or rng.random() < 0.3:
                    node[key] = rng.choice([*4 * GOOD, *NUMBERS, None, True, -1, 10**30, [], {}])
                    break
                node = inner
            (tmp_path / "net.json").write_text(json.dumps(content))
            words = [str(tmp_path / "net.json")]
        else:
            words = ["--layers", f"erf:{rng.choice([*4 * GOOD, *NUMBERS])}", "--target", "he3"]
        option = rng.choice(["kappa", "readout", "at", "range", "target", "numbers", "phase"])
        if rng.random() < 0.6:
            name = rng.choice(["d=", "N=", "kappa=", ""]) if option in ("at", "numbers") else ""
            words += [f"--{option}={name}{rng.choice(NUMBERS)}"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            status = main(["scale", *words])
        captured = capsys.readouterr()
        assert status in (0, 2), words
        if status == 2:
            assert captured.out == ""
            assert len(captured.err.splitlines()) == 1
        else:
            answers += 1
        assert "\x1b" not in captured.out + captured.err
    assert answers > 12


KILLED = """
import os, signal, sys
from solvable.cli import main
from solvable.scale import files
def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
files.write_figures = killed
main(sys.argv[1:])
"""


def test_a_killed_phase_diagram_leaves_no_directory_without_its_figures(tmp_path, capsys):
    target = tmp_path / "runs" / "phases"
    words = [
        "scale",
        "--layers",
        "erf:n",
        "--target",
        "he3",
        "--phase",
        "n",
        "--output",
        str(target),
    ]
    run = subprocess.run([sys.executable, "-c", KILLED, *words], check=False, capture_output=True)
    assert run.returncode == -9
    assert not target.exists()
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert f"file     {target / 'result.json'}" in printed
    assert ".part" not in printed
    names = {path.name for path in target.iterdir()}
    assert names == {"result.json", "phase-line.svg", "phase-line.pdf"}
    # The same request replaces the files; another request is refused.
    assert main(words) == 0
    capsys.readouterr()
    assert main([*words[:2], "erf:2*n", *words[3:]]) == 2
    assert "would be overwritten" in capsys.readouterr().err


def test_a_result_of_someone_else_that_is_nested_deeply_is_refused(tmp_path, capsys):
    (tmp_path / "result.json").write_text(100_000 * "[")
    words = [*ONE, "--output", str(tmp_path)]
    assert "would be overwritten" in refused(words, capsys)


def test_values_for_models_are_refused(tmp_path, capsys):
    describe_layers("relu:9", 8).save(tmp_path / "m.json")
    assert "is not a symbol" in refused([str(tmp_path / "m.json"), "--at", "n=1"], capsys)
