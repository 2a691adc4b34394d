"""``solvable activations`` as a process, and its output."""

from __future__ import annotations

import json
from math import pi

import numpy as np
import pytest
from few_draws import few_draws

import solvable as package

KEYS = [
    "name", "information_exponent", "generative_exponent", "noise_sensitivity_exponent",
    "coefficient", "parity", "threshold_ratio", "information_threshold_ratio",
]  # fmt: skip


def test_a_process_prints_json(solvable):
    mixed = "cos(z) - 1.12*cos(2*z)"
    answer = solvable("activations", "relu", "gelu", mixed, "he4", "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    rows = json.loads(answer.stdout)
    assert [list(row) for row in rows] == [KEYS] * 4
    assert [row["name"] for row in rows] == ["relu", "gelu", mixed, "he4"]
    assert [row["parity"] for row in rows] == ["none", "none", "even", "even"]
    assert [row["generative_exponent"] for row in rows] == [1, 1, 2, 2]
    assert [row["threshold_ratio"] for row in rows[:2]] == [0.0, 0.0]
    assert rows[3]["coefficient"] == pytest.approx(8)
    assert rows[3]["threshold_ratio"] > 0


@pytest.mark.parametrize("details", [False, True])
def test_tables_and_sentences(solvable, details):
    answer = solvable("activations", "cosmix", "sign", "--noise", 100, *["--details"] * details)
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    first = (
        "At noise 100 a first-order method finds the direction at n/d > 0 with sign and n/d > 6464"
    )
    assert lines[2].startswith(first)
    rows = {line.split()[0]: line.split()[1:] for line in lines if len(line.split()) > 2}
    more = ["even", "4", "2", "1.745"] if details else []
    assert rows["cosmix"] == ["6464", "244.7", "2", *more]
    more = ["odd", "1", "1", "–"] if details else []
    assert rows["sign"] == ["0", "0", "infinite", *more]
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
        ((), "no activation is given"),
    ],
)
def test_bad_input_is_one_line(call, words, says):
    status, printed, error = call("activations", *words)
    assert (status, printed) == (2, "")
    assert error.startswith("solvable: ")
    assert error.count("\n") == 1
    assert says in error
    assert "allowed" in error


def test_activations_without_a_threshold_are_rows(call):
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
    assert "order d²" in printed
    assert "Not determined" in printed
    words = " ".join(printed.split())
    assert "at no fixed n/d with step" in words
    assert "at an unknown n/d with sin(30*z)" in words


@few_draws()
def test_several_directions_and_decay(call):
    status, printed, _ = call("activations", "he2", "cosmix", "tanh", "--directions", 12, "--json")
    assert status == 0
    he2, cosmix, tanh = (row["threshold_ratio"] for row in json.loads(printed))
    # The leading order (multi-index 17) with p = 12 and noise 1 is a few percent above the exact values.
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
    # Exact for the first feature; any method finds the others, at large noise k² / 4, from fewer samples.
    bounds = np.array(row["information_threshold_ratio"])
    assert bounds[0] == pytest.approx(0.86, rel=0.02)
    assert (bounds[1:] < np.array(row["threshold_ratio"])[1:]).all()
    assert 0.25 * 12**2 < bounds[-1] < 0.4 * 12**2
    status, printed, _ = call("activations", "he2", "--decay", 1)
    assert "feature" in printed
    assert any(line.split()[:1] == ["16"] for line in printed.splitlines())


def test_the_result_of_the_function_has_tables_and_figures():
    found = package.activations_of("abs", "cosmix", noise=400.0)
    assert repr(found) == "<Activations: abs, cosmix at noise 400>"
    assert "<table" in found._repr_html_()
    # For |z| at large noise n/d = noise / c_1² with c_1² = (2/pi) / (1 - 2/pi)   (multi-index 14)
    assert found.rows[0].threshold_ratio == pytest.approx(400 * (pi / 2 - 1), rel=2e-3)
    assert found.figure_names == ["samples"]
    axes = found.figure("samples").axes[0]
    for line in axes.lines[:1]:
        x, y = line.get_data()
        assert np.all(np.diff(y) > 0)
        assert x[-1] == pytest.approx(1e4)
    assert package.activations_of("relu").figure_names == []


def test_no_large_noise_law_is_reported_where_none_holds():
    (rare,) = package.activations_of("step(abs(z)-5)").rows
    words = " ".join(rare.words)
    # n/d is nearly the same at noise 1 and 10,000, so it is no power of the noise.
    assert package.activations_of("step(abs(z)-5)", noise=1e4).rows[
        0
    ].threshold_ratio < 1.1 * float(rare.threshold_ratio)
    assert "follows no large-noise law yet" in words
    assert "noise²" not in words
