"""``solvable scale`` run as a process."""

from __future__ import annotations

import json
from time import monotonic

import pytest

NETWORK = """
kappa = "0"
readout = "standard"            # or "mean-field"
target = { hermite = 3 }
layers = [ { width = "7/3", act = "erf" }, { width = "2/3", act = "erf", patch = "3/4" } ]
"""
KEYS = {"exponent", "closed_form", "patterns", "ties", "warnings"}


def test_a_file_is_answered_in_json(solvable, tmp_path):
    file = tmp_path / "network.toml"
    file.write_text(NETWORK)
    answer = solvable("scale", file, "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    told = json.loads(answer.stdout)
    assert told.keys() >= KEYS
    # One neuron of layer 2 has a strength below one: mu² d = N W / mu^6   (scale 11).
    assert told["exponent"] == "47/48"
    (pattern,) = told["patterns"]
    assert pattern["name"] == "GP-Sp(1)"
    assert pattern["layers"][1]["neurons"] == ["0", "0"]
    assert pattern["layers"][1]["strength"] == ["-1/96", "-1/96"]


def test_flags_and_words(solvable):
    answer = solvable("scale", "--layers", "erf:1,erf:1", "--target", "he3")
    assert (answer.returncode, answer.stderr) == (0, "")
    text = " ".join(answer.stdout.split())
    assert text.startswith("A lower bound on the number of samples as d grows")
    assert "Learning He3 takes P ~ d^1 samples" in text
    assert "GP-Sp(1)" in text
    assert "neurons specialise on He1" in text
    assert max(map(len, answer.stdout.splitlines())) <= 120


def test_all_patterns_in_closed_form(solvable):
    answer = solvable("scale", "--layers", "erf:n", "--target", "he3", "--symbolic", "--json")
    told = json.loads(answer.stdout)
    assert told["exponent"] is None
    assert told["closed_form"] == "P ~ d^min(max((n+1)/2, (n+3)/4), 3)"
    rows = {row["name"]: row["energy_without_bounds"] for row in told["table"]}
    assert rows == {"GP": "3", "GFL(1)": "(3*n+3)/4", "Sp(1)": "(n+1)/2", "Mag(1)": "(3*n+3)/4"}


def test_patterns_without_a_minimum_of_their_own_are_listed_with_their_bounds(solvable):
    # With a polynomial, fewer and stronger neurons cost less; only the bound M >= 1 limits this.
    answer = solvable("scale", "--layers", "poly3:n", "--target", "he3", "--symbolic", "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    rows = {row["name"]: row for row in json.loads(answer.stdout)["table"]}
    assert rows["GP"]["energy_without_bounds"] == "3"
    assert rows["Sp(1)"]["energy"] != "none"


def test_ten_layers_are_answered_within_seconds(solvable):
    start = monotonic()
    answer = solvable("scale", "--layers", ",".join(["erf:5/4"] * 10), "--target", "he3", "--json")
    assert json.loads(answer.stdout)["exponent"] == "9/8"
    # There are 7^9 patterns, so that solving the program of each one would take years.
    assert monotonic() - start < 60


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("layers = [", "is not valid TOML"),
        ("[[layers]]", "has no"),
        (NETWORK.replace('"7/3"', '"-7/3"'), "width of layer 1"),
        (NETWORK.replace('"7/3"', '"n*m"'), "a sum of symbols"),
        (NETWORK.replace('act = "erf" }, {', 'act = "erv" }, {'), "Did you mean 'erf'"),
        (NETWORK.replace("hermite = 3", "hermite = 2"), "cannot be represented"),
        ("attention = 3", "a table with context, heads"),
    ],
)
def test_bad_files_are_refused_in_one_line(solvable, tmp_path, content, says):
    file = tmp_path / "network.toml"
    file.write_text(content)
    answer = solvable("scale", file)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert len(answer.stderr.strip().splitlines()) == 1
    assert says in answer.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "needs a file, or layers and target"),
        (("missing.toml",), "No such file"),
        (("--layers", "erf:1"), "needs a file, or layers and target"),
        (("--layers", "erf:1", "--target", "he3", "--at", "n=2"), "is not a symbol"),
        (("--layers", "erf:n", "--target", "he3", "--at", "n=-2"), "width of layer 1"),
        (("--layers", "erf:n", "--target", "he3", "--at", "n"), "as in n1=1,n2=3/2"),
        (("--layers", "erf:1", "--target", "he3", "--kappa", "oops()"), "kappa is 'oops()'"),
    ],
)
def test_bad_words_are_refused_in_one_line(solvable, words, says):
    answer = solvable("scale", *words)
    assert answer.returncode == 2
    assert len(answer.stderr.strip().splitlines()) == 1
    assert says in answer.stderr
