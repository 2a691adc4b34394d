"""`solvable scale` with phases, comparisons and reports, run as separate processes."""

from __future__ import annotations

import json
import re
from fractions import Fraction

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
    for part in ("d^((n1+1)/2)", "n1 = n2", "N_1 = N_2", "n2 = 5", "N_2 = d^5", "out/report.html"):
        assert part in told
    assert "\x1b" not in told + drawn.answer.stderr


def test_the_directory_holds_page_numbers_and_figure(drawn):
    out = drawn.cwd / "out"
    assert {path.name for path in out.iterdir()} == {
        "report.html",
        "result.json",
        "phase-diagram.svg",
        "phase-diagram.pdf",
    }
    result = json.loads((out / "result.json").read_text())
    assert result["format"] == "solvable-scale-1"
    assert result["phases"]["box"] == [["1", "7"], ["1", "7"]]
    assert {cell["exponent"] for cell in result["phases"]["cells"]} == {"(n1+1)/2", "(n2+1)/2", "3"}


def test_the_page_says_all_and_asks_no_network(drawn):
    page = (drawn.cwd / "out" / "report.html").read_text()
    body = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    for part in ('<h2 id="phases">', "N_1 = N_2", "Layers in each cell", "Sp(1)-GP"):
        assert part in body
    assert "data:image/svg+xml;base64," in body
    assert not re.search(r"(src|href)=[\"']https?:", body)
    command = re.search(r"<pre class=\"command\"><code>(.*?)</code>", body)
    assert command is not None
    assert sorted(command[1].split()[2:]) == sorted(drawn.request)


def test_the_same_request_is_written_again_and_another_is_refused(drawn):
    page = (drawn.cwd / "out" / "report.html").read_bytes()
    again = drawn(*drawn.request, "--output", "out")
    assert again.returncode == 0
    assert (drawn.cwd / "out" / "report.html").read_bytes() == page
    other = drawn("--layers", "erf:n", "--target", "he3", "--phase", "n", "--output", "out")
    assert other.returncode == 2
    assert "of other network or another request, which would be overwritten" in other.stderr
    assert (drawn.cwd / "out" / "report.html").read_bytes() == page


def test_a_line_of_phases_has_breakpoints(drawn):
    answer = drawn(
        "--layers", "erf:1", "--target", "he3", "--phase", "n", "--range", "n=1:8", "--json"
    )
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert result["phases"]["breakpoints"] == ["5"]
    assert result["exponent"] == "1"
    assert {path.rpartition("/")[2] for path in result["files"]["figures"]} == {
        "phase-line.svg",
        "phase-line.pdf",
    }


def test_a_comparison_says_who_wins_where(drawn):
    answer = drawn("wide.toml", "--compare", "deep.toml", "--range", "n=1:8,k=0:2", "--json")
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert [row["name"] for row in result["networks"]] == ["wide", "deep"]
    borders = [row for row in result["sentences"] if row.startswith("Border")]
    # Beyond n = 3/2 the second layer of the deep network is the narrower layer.
    assert borders == ["Border: n = 3/2 (N = d^(3/2)) between deep and wide and deep."]
    told = drawn("--compare", "wide.toml", "deep.toml", "--at", "n=3,k=1/2")
    assert told.returncode == 0, told.stderr
    said = " ".join(told.stdout.split())
    assert (
        "deep wins with d^(7/4) samples, fewer than the next network by a factor d^(3/4)." in said
    )


def test_a_comparison_has_a_page_of_its_own(call, tmp_path):
    (tmp_path / "wide.toml").write_text(WIDE.replace('"wide"', '"<script>alert(1)</script>"'))
    (tmp_path / "deep.toml").write_text(DEEP)
    status, _, error = call("scale", "wide.toml", "--compare", "deep.toml", "--output", "compared")
    assert status == 0, error
    page = (tmp_path / "compared" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "Which network needs the fewest samples?" in page
    assert "Fewest samples over k and n" in page
    result = json.loads((tmp_path / "compared" / "result.json").read_text())
    corners = [
        Fraction(x)
        for cell in result["phases"]["cells"]
        for row in cell["polygons"]
        for point in row
        for x in point
    ]
    assert min(corners) == 0
    assert max(corners) == 4


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
        (("--phase", "n1", "n2", "--range", "n1=-1:3"), "a width below 1"),
        (("--phase", "n1", "n2", "--range", "n1=3"), "'n1=3' is not a range"),
        (("--range", "n1=0:3"), "is given without --phase"),
        (("--phase", "n1", "n2", "--compare", "wide.toml"), "one of them"),
        (("--compare", "missing.toml"), "missing.toml"),
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


def test_real_models_have_phases_and_compare(call, tmp_path):
    for name, width in (("small", 12), ("large", 300)):
        model = describe_layers([f"linear {width}", "erf", "linear 1"], 20)
        model.save(tmp_path / f"{name}.json")
    network = ("scale", "small.json", "--target", "he3")
    status, printed, error = call(*network, "--compare", "large.json", "--json")
    assert (status, error) == (0, "")
    compared = json.loads(printed)
    assert len(compared["winners"]) == 1
    status, printed, error = call(*network, "--phase", "n", "--range", "n=1:6", "--json")
    assert status == 0
    found = json.loads(printed)
    assert found["phases"]["breakpoints"] == ["5"]
    assert found["model"]["numbers"]["N"] == 12
