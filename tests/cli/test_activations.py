"""``solvable activations`` as a process, and its words."""

from __future__ import annotations

import json
from math import pi

import numpy as np
import pytest

import solvable as package

KEYS = [
    "name", "information_exponent", "generative_exponent", "noise_sensitivity_exponent",
    "coefficient", "parity", "threshold_ratio", "information_threshold_ratio",
]  # fmt: skip


def test_a_process_tells_activations(solvable):
    mixed = "cos(z) - 1.12*cos(2*z)"
    answer = solvable("activations", "relu", "gelu", mixed, "he4", "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    told = json.loads(answer.stdout)
    assert [list(row) for row in told] == [KEYS] * 4
    assert [row["name"] for row in told] == ["relu", "gelu", mixed, "he4"]
    assert [row["parity"] for row in told] == ["none", "none", "even", "even"]
    assert [row["generative_exponent"] for row in told] == [1, 1, 2, 2]
    assert [row["threshold_ratio"] for row in told[:2]] == [0.0, 0.0]
    assert told[3]["coefficient"] == pytest.approx(8)
    assert told[3]["threshold_ratio"] > 0


def test_tables_and_words(solvable):
    answer = solvable("activations", "cosmix", "sign", "--noise", 100)
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    rows = {
        line.split()[0]: line.split() for line in lines if line.split()[1:2] in (["even"], ["odd"])
    }
    assert rows["cosmix"][1:6] == ["even", "4", "2", "2", "1.745"]
    assert rows["sign"][1:5] == ["odd", "1", "1", "infinite"]
    assert "Noise-sensitive" in answer.stdout
    assert "second moments never find a direction" in " ".join(answer.stdout.split())
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("bad(",), "does not parse"),
        (("__import__('os')",), "not understood"),
        (("relu", "qelu"), "'qelu' is unknown"),
        (("3",), "constant"),
        (("1/z",), "without poles"),
        (("sqrt(z)",), "not finite"),
        (("relu", "--noise", "-1"), "noise is -1"),
        (("relu", "--noise", "nan"), "noise is nan"),
        (("relu", "--directions", "0"), "directions is 0"),
        (("relu", "--directions", "5000"), "1 to 512"),
        (("he2", "--decay", "-1"), "decay is -1"),
        ((), "no activation is named"),
    ],
)
def test_bad_input_is_one_line(call, words, says):
    status, printed, error = call("activations", *words)
    assert (status, printed) == (2, "")
    assert error.startswith("solvable: ")
    assert error.count("\n") == 1
    assert says in error
    assert "allowed" in error


def test_what_cannot_be_told_is_a_row(call):
    band = "step(abs(z)-0.5)-step(abs(z)-1.6083105988156554)"
    status, printed, error = call("activations", "sign", band, "sin(30*z)", "--json")
    assert (status, error) == (0, "")
    sign, found, fast = json.loads(printed)
    assert (sign["noise_sensitivity_exponent"], sign["coefficient"]) == ("infinite", None)
    assert sign["threshold_ratio"] == 0
    assert (found["generative_exponent"], found["noise_sensitivity_exponent"]) == (4, "infinite")
    assert found["threshold_ratio"] is None
    assert fast["information_exponent"] is None
    assert fast["generative_exponent"] is None
    status, printed, _ = call("activations", band, "sin(30*z)")
    assert status == 0
    assert "order d^2" in printed
    assert "Not told" in printed


def test_several_directions_and_decay(call):
    status, printed, _ = call("activations", "he2", "cosmix", "tanh", "--directions", 12, "--json")
    assert status == 0
    he2, cosmix, tanh = (row["threshold_ratio"] for row in json.loads(printed))
    # (3.8) with p = 12 and noise 1, a few per cent above the exact ones
    assert 0.9 < he2 / (2 * 12 / 2) < 1
    assert 0.9 < cosmix / (2 * (2 * 12) ** 2 / 1.744938**2) < 1
    assert tanh > cosmix
    status, printed, _ = call(
        "activations", "he2", "--decay", 1, "--noise", 0.5, "--directions", 12, "--json"
    )
    assert status == 0
    (row,) = json.loads(printed)
    assert np.array(row["threshold_ratio"])[[0, 1, 3, 5, 7, 11]] == pytest.approx(
        [0.86, 3.91, 14.47, 30.89, 53.13, 114.99], rel=0.01
    )
    assert row["information_threshold_ratio"] is None
    status, printed, _ = call("activations", "he2", "--decay", 1)
    assert "feature" in printed
    assert any(line.split()[:1] == ["16"] for line in printed.splitlines())


def test_the_verb_shows_itself():
    found = package.activations_of("abs", "cosmix", noise=400.0)
    assert repr(found) == "<Activations: abs, cosmix at noise 400>"
    assert "<table" in found._repr_html_()
    # |z| at large noise: 1 / c_1² noise with c_1² = (2/pi) / (1 - 2/pi)
    assert found.rows[0].threshold_ratio == pytest.approx(400 * (pi / 2 - 1), rel=2e-3)
    assert found.figure_names == ["samples"]
    axes = found.figure("samples").axes[0]
    for line in axes.lines[:1]:
        x, y = line.get_data()
        assert np.all(np.diff(y) > 0)
        assert x[-1] == pytest.approx(1e4)
    assert package.activations_of("relu").figure_names == []


def test_a_law_that_has_not_set_in_is_not_told():
    (rare,) = package.activations_of("step(abs(z)-5)").rows
    words = " ".join(rare.words)
    # n/d is the same at noise 1 and 10,000: no power of the noise
    assert package.activations_of("step(abs(z)-5)", noise=1e4).rows[
        0
    ].threshold_ratio < 1.1 * float(rare.threshold_ratio)
    assert "no law of large noise has set in" in words
    assert "noise^2" not in words
