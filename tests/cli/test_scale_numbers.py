"""Prefactors on the command line: ``--numbers`` and ``--classes``."""

from __future__ import annotations

import json
from math import log

import pytest

from solvable.scale import network_of_flags, numbers_of

ONE = ("scale", "--layers", "erf:1", "--target", "he3")


def test_numbers_in_addition_to_exponents(call):
    status, out, _ = call(*ONE, "--numbers", "d=60", "N=120", "kappa=0.5", "--json")
    assert status == 0
    held = json.loads(out)
    expected = numbers_of(network_of_flags("erf:1", "he3"), {"d": 60, "N": 120, "kappa": 0.5})
    assert held["exponent"] == "1"
    assert held["numbers"] == json.loads(json.dumps(expected.to_dict()))


def test_the_table_holds_every_pattern_and_the_exact_energy(call):
    status, out, _ = call(*ONE, "--numbers", "d=60,N=120")
    assert status == 0
    rows = out[out.index("Patterns at these sizes") :].splitlines()[2:7]
    assert [row.split()[0] for row in rows] == ["Sp(1)", "GFL(1)", "Mag(1)", "GP", "exact"]


def test_parities_have_their_own_coefficients(call):
    flags = ("scale", "--layers", "relu:2", "--numbers", "d=1e4", "--json", "--target")
    bits, cubic = (json.loads(call(*flags, target)[1])["numbers"] for target in ("parity2", "he2"))
    assert bits["winner"] == cubic["winner"] == "Sp(1)"
    ratio = bits["patterns"][0]["energy"] / cubic["patterns"][0]["energy"]
    # the constants are 2 sqrt(2) and 2 sqrt(pi)
    assert 0.78 < ratio < 0.82


def test_wrong_sizes_are_one_line(call):
    for words in (["d"], ["d=0"], ["d=10", "M=3"], ["d=10", "N=nan"], ["N=10"], []):
        status, out, error = call(*ONE, "--numbers", *words)
        assert (status, out) == (2, "")
        assert len(error.splitlines()) <= 2
        assert "allowed" in error or "write" in error


def test_classes_divide_the_samples_by_their_logarithm(call):
    # arXiv:2512.04165, Appendix A.2: at a small kernel K = 0.4646 / N of the mean-field readout, P* is
    # kappa E / log C, and 2 kappa E in regression.
    flags = (*ONE, "--readout", "mean-field", "--numbers", "d=60,N=120,kappa=0.5", "--json")
    plain, ten = (
        json.loads(call(*flags, *more)[1])["numbers"] for more in ((), ("--classes", "10"))
    )
    ratio = ten["patterns"][0]["samples"] / plain["patterns"][0]["samples"]
    assert ten["classes"] == 10
    assert ratio == pytest.approx(1 / (2 * log(10)), rel=5e-3)
    assert ten["patterns"][0]["energy"] == pytest.approx(plain["patterns"][0]["energy"])


def test_classes_keep_the_exponent(call):
    status, out, _ = call(*ONE, "--classes", "10")
    assert status == 0
    assert "kappa E / log 10 = 0.434 kappa E" in " ".join(out.split())
    assert json.loads(call(*ONE, "--classes", "10", "--json")[1])["exponent"] == "1"
    status, _, error = call(*ONE, "--classes", "1")
    assert status == 2
    assert "--classes is 1; allowed: an integer of at least 2" in error
