"""`solvable scale` with phases, comparisons and reports, run as separate processes."""

from __future__ import annotations

import json

import pytest

from solvable.scale import describe_layers

WIDE = """
title = "wide"
kappa = "k"
target = { hermite = 3 }
layers = [ { width = "n", act = "erf" } ]
"""

DEEP = """
title = "deep"
kappa = "k"
target = { hermite = 3 }
layers = [ { width = "n", act = "erf" }, { width = "3/2", act = "erf" } ]
"""


@pytest.fixture(scope="module")
def drawn(terminal_in, tmp_path_factory):
    """Run `solvable scale` in a directory with the phases of a network with two layers."""
    program = terminal_in(tmp_path_factory.mktemp("drawn"), "scale", columns=None)
    program.request = (
        "--layers", "erf:n1,erf:n2", "--target", "he3", "--phase", "n1", "n2", "--range", "n1=1:7,n2=1:7"
    )  # fmt: skip
    program.answer = program(*program.request, "--output", "out")
    assert program.answer.returncode == 0, program.answer.stderr
    (program.cwd / "wide.toml").write_text(WIDE)
    (program.cwd / "deep.toml").write_text(DEEP)
    return program


def test_cells_and_edges_are_told_in_closed_form(drawn):
    told = drawn.answer.stdout
    for part in ("d^((n1+1)/2)", "n1 = n2", "n2 = 5", "out/result.json"):
        assert part in told
    assert "\x1b" not in told + drawn.answer.stderr


def test_the_directory_holds_page_numbers_and_figure(drawn):
    out = drawn.cwd / "out"
    assert {path.name for path in out.iterdir()} == {
        "result.json",
        "phase-diagram.svg",
        "phase-diagram.pdf",
    }
    result = json.loads((out / "result.json").read_text())
    assert result["format"] == "solvable-scale-2"
    assert result["phases"]["box"] == [["1", "7"], ["1", "7"]]
    assert {cell["exponent"] for cell in result["phases"]["cells"]} == {"(n1+1)/2", "(n2+1)/2", "3"}


def test_the_same_request_is_written_again_and_another_is_refused(drawn):
    page = (drawn.cwd / "out" / "result.json").read_bytes()
    again = drawn(*drawn.request, "--output", "out")
    assert again.returncode == 0
    assert (drawn.cwd / "out" / "result.json").read_bytes() == page
    other = drawn("--layers", "erf:n", "--target", "he3", "--phase", "n", "--output", "out")
    assert other.returncode == 2
    assert "of other network or another request, which would be overwritten" in other.stderr
    assert (drawn.cwd / "out" / "result.json").read_bytes() == page


def test_a_line_of_phases_has_breakpoints(drawn):
    answer = drawn(
        "--layers", "erf:1", "--target", "he3", "--phase", "n", "--range", "n=1:8", "--json"
    )
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert result["phases"]["breakpoints"] == ["5"]
    assert result["exponent"] == "1"
    assert {path.rpartition("/")[2] for path in result["files"]} == {
        "result.json",
        "phase-line.svg",
        "phase-line.pdf",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--phase", "n1", "n1"), "both axes of the phase diagram are 'n1'"),
        (("--phase", "n1", "q"), "symbol"),
        (("--phase", "n1"), "without value: n2"),
        (
            ("--phase", "n1", "n2", "x"),
            "--phase has 3 words (n1, n2, x); allowed: one or two symbols",
        ),
        (("--phase", "n1", "n2", "--range", "n1=3:3"), "the range of n1 is 3 to 3, which is empty"),
        (("--phase", "n1", "n2", "--range", "n1=-1:3"), "width of layer 1 is d^-1"),
        (("--phase", "n1", "n2", "--range", "n1=3"), "'n1=3' is not a range"),
        (("--range", "n1=0:3"), "is given without --phase"),
        (("--at", "n1=1,n2=1", "--phase", "n1", "n2", "--output", "wide.toml"), "wide.toml"),
    ],
)
def test_bad_requests_are_one_clear_line(call, tmp_path, words, said):
    (tmp_path / "wide.toml").write_text(WIDE)
    network = ("--layers", "erf:n1,erf:n2", "--target", "he3")
    status, printed, error = call("scale", *network, *words)
    assert (status, printed) == (2, "")
    assert said in " ".join(error.split())
    assert not (tmp_path / "solvable-runs").exists()


def test_real_models_have_phases(call, tmp_path):
    describe_layers("erf:12", 20).save(tmp_path / "small.json")
    words = ("--target", "he3", "--phase", "n", "--range", "n=1:6", "--json")
    status, printed, error = call("scale", "small.json", *words)
    assert status == 0, error
    found = json.loads(printed)
    assert found["phases"]["breakpoints"] == ["5"]
    assert found["model"]["numbers"]["N"] == 12
