"""Samples of a real network: lazy numbers by second methods, rows, sentences."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from math import asin, pi

import numpy as np
import pytest

from solvable.cli import main
from solvable.scale import describe_layers, network_of_flags, numbers_of, scaling_of
from solvable.scale.answers import answer_of
from solvable.scale.exponents.linear_forms import about, about_all
from solvable.scale.networks_of_data.calculator_networks import describe_real
from solvable.scale.prefactors.enough_rows import lazy_samples, overview_of

FRACTION = re.compile(r"(?<![\w.])[0-9]+/([0-9]+)(?![\w])|\)/([0-9]+)")
MLP = "relu:512,relu:512,relu:512"


def answer(layers, inputs, tmp_path, **given):
    path = describe_layers(layers, inputs).save(tmp_path / "mlp.json")
    sizes = given.pop("sizes", None)
    network, real = describe_real(path, **given)
    return answer_of(network, real=real, sizes=sizes)


@pytest.mark.parametrize(
    ("layers", "target"),
    [("erf:1", "he3"), ("relu:1", "he2"), ("tanh:1", "he1")],
)
def test_lazy_samples_are_those_of_the_sums_where_there_are_sums(layers, target):
    network = network_of_flags(layers, target)
    rows = numbers_of(network, {"d": 100, "kappa": 0.3}).patterns
    (lazy,) = [row for row in rows if row.name == "GP"]
    assert lazy_samples(network, 100, 100, 0.3) == pytest.approx(lazy.samples, rel=1e-6)


def arc_cosine(cosine, variance):
    """Compute the kernel of a ReLU layer between two inputs of equal length."""
    angle = np.arccos(np.clip(cosine, -1, 1))
    return variance / (2 * pi) * (np.sin(angle) + (pi - angle) * np.cos(angle))


def test_lazy_samples_of_three_relu_layers_are_those_of_the_arc_cosine_kernel():
    # At large d inputs have equal length, and the eigenvalue of He1 is the kernel's slope over d.
    d, variance = 3000, 1.0
    cosine = np.array([-1e-3, 1e-3])
    for _ in range(3):
        kernel = arc_cosine(cosine, variance)
        variance = variance / 2
        cosine = kernel / variance
    slope = variance * (cosine[1] - cosine[0]) / 2e-3
    expected = d / slope / (1 + variance)
    network = network_of_flags("relu:1,relu:1,relu:1", "he1")
    # Fluctuations of length and curvature are neglected; both are of relative order 1/d.
    assert lazy_samples(network, d, d, 1.0) == pytest.approx(expected, rel=0.01)


def test_lazy_samples_of_two_erf_layers_are_those_of_the_arc_sine_kernel():
    # K = 2/pi asin(2 q c / (1 + 2 q)); at large d the eigenvalue of He1 is the slope in c over d.
    d = 3000
    first = 2 / pi * asin(2 / 3)
    slope = 2 / pi * (2 / 3) * 2 / pi * 2 / (1 + 2 * first)
    diagonal = 2 / pi * asin(2 * first / (1 + 2 * first))
    expected = d / slope / (1 + diagonal)
    network = network_of_flags("erf:1,erf:1", "he1")
    assert lazy_samples(network, d, d, 1.0) == pytest.approx(expected, rel=0.01)


def test_rows_are_the_answers_for_each_target():
    network = network_of_flags("relu:1,relu:1,relu:1", "he1")
    found = overview_of(network, 784, underived="3 hidden layers")
    for row in found.rows:
        own = scaling_of(replace(network, degree=row.degree))
        assert row.exponent == own.exponent
        assert row.power == pytest.approx(784 ** float(own.exponent))
        assert row.samples is None
    assert "none is derived for 3 hidden layers" in " ".join(found.sentences())


def test_samples_with_prefactors_are_those_of_the_sums(tmp_path):
    found = answer("relu:512", 784, tmp_path)
    rows = {row.degree: row for row in found.overview.rows}
    assert rows[3].exponent is None  # one layer of ReLU makes no cubic
    assert found.found.network.degree == 2
    for degree in (1, 2):
        sizes = {"d": 784, "N": 512}
        sums = numbers_of(network_of_flags("relu:1", f"he{degree}"), sizes)
        assert rows[degree].samples == pytest.approx(sums.winner.samples)
    assert "not represented" in found.overview.table().to_text()


def test_an_everyday_network_is_answered_without_a_target(tmp_path):
    found = answer(MLP, 784, tmp_path)
    assert found.found.network.degree == 3
    assert [row.degree for row in found.overview.rows] == [1, 2, 3]
    assert any("No target is given" in said for said in found.real.words(numbers=False))
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_kappa_counts_where_no_prefactors_are_derived(tmp_path):
    one = answer(MLP, 784, tmp_path, target="he3")
    less = answer(MLP, 784, tmp_path, target="he3", sizes={"kappa": 0.1, "d": 784})
    for name in ("power", "lazy_samples"):
        here, there = (getattr(found.overview.rows[0], name) for found in (one, less))
        assert there == pytest.approx(here / 10)


def test_exponents_of_rounded_widths_are_rounded_everywhere(tmp_path):
    # The exponents of 500 and 61 at d = 784 are not simple fractions.
    found = answer("erf:500,erf:61", 784, tmp_path, target="he3")
    assert found.found.is_rounded
    for text in (found.found.closed_form, json.dumps(found.to_dict())):
        for match in FRACTION.finditer(text):
            assert int(match[1] or match[2]) <= 32, match[0]
    assert "rounded" in " ".join(found.real.words(numbers=True))


def test_exact_exponents_are_not_rounded():
    found = scaling_of(network_of_flags("erf:293/408", "he3"))
    assert found.to_dict()["point"] == {"n": "293/408"}
    assert Fraction(found.to_dict()["exponent"]) == found.exponent


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("P ~ d^(293/408)", "P ~ d^0.72"),
        ("d^(-1/280).", "O(1)."),
        ("d^(1/2) and d^(-5/6)", "d^(1/2) and d^(-5/6)"),
        ("d^(-13/14)", "d^(-0.93)"),
        ("n = 13/14", "n = 0.93"),
        ("1/2 of 3/4", "1/2 of 3/4"),
        ("solvable-runs/17/report", "solvable-runs/17/report"),
    ],
)
def test_what_rounding_writes(text, written):
    assert about(text) == written
    assert about_all({"a": [text, 3, None]}) == {"a": [written, 3, None]}


@pytest.mark.parametrize(
    ("layers", "target", "least", "most"),
    [
        ("erf:3/4", "he1", 1.0, 2.0),
        ("erf:1", "he3", 6.6, 11.0),
        ("tanh:1", "he3", 7.8, 12.95),
        ("relu:5/4", "he1", 1.45, 2.25),
        ("relu:1", "he2", 4.05, 5.2),
    ],
)
def test_prefactors_are_as_the_page_has_them(layers, target, least, most):
    network = network_of_flags(layers, target)
    exponent = scaling_of(network).exponent
    for d in (64, 784):
        samples = numbers_of(network, {"d": d}).winner.samples
        assert least <= samples / d ** float(exponent) <= most


class TestEnough:
    """A number of rows against the lower bound, its measured distance and the lazy kernel."""

    @pytest.fixture
    def call(self, tmp_path, capsys):
        def answer(layers, *words):
            path = describe_layers(layers, 64).save(tmp_path / "model.json")
            assert main(["scale", str(path), "--target", "he3", *words, "--json"]) == 0
            return json.loads(capsys.readouterr().out)

        return answer

    @pytest.mark.parametrize(("share", "verdict"), [
        (0.9, "not enough: below the lower bound by a factor of 1.1"), (1.1, "undecided: 1.1 times"),
        (4.9, "undecided: 4.9 times"), (5.1, "enough, if the measured distance holds: 5.1"),
    ])  # fmt: skip
    def test_of_the_bound_with_its_prefactor(self, call, share, verdict):
        net, kappa = "tanh:64", ["--numbers", "kappa=0.1"]
        bound = call(net, *kappa)["numbers"]["patterns"][0]["samples"]
        assert call(net, *kappa, "--have", str(share * bound))["enough"].startswith(verdict)

    def test_without_a_prefactor_the_lazy_kernel_decides(self, call):
        net = "relu:64,relu:64,relu:64"
        (row,) = call(net, "--have", "100")["overview"]["targets"]
        assert row["samples"] is None
        assert "/ c times the lower bound" in row["enough"]
        (row,) = call(net, "--have", str(6 * row["lazy_samples"]))["overview"]["targets"]
        assert row["enough"].startswith("enough: 6 times the bound of the lazy kernel")

    @pytest.mark.parametrize("words", [
        ["--layers", "erf:1", "--target", "he3", "--have", "30"],
        ["--layers", "erf:1", "--target", "he3", "--numbers", "d=20", "--have", "-1"],
    ], ids=["exponents", "negative"])  # fmt: skip
    def test_bad_requests(self, capsys, words):
        assert main(["scale", *words]) != 0
        assert "--have" in capsys.readouterr().err
