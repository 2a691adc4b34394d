"""Energies of patterns with prefactors, against constants, grids and exact energies."""

from __future__ import annotations

import json
from fractions import Fraction
from math import pi, sqrt

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.large_deviation import large_deviation
from solvable.scale import network_of_flags
from solvable.scale.exponents.energies import energy_forms
from solvable.scale.exponents.network_reader import read_network
from solvable.scale.exponents.numerical_sizes import read_sizes_words
from solvable.scale.prefactors.samples_at_sizes import numbers_of
from solvable.scale.prefactors.words import number_sentence, number_table


@pytest.mark.parametrize(("act", "degree"), [("erf", 5), ("tanh", 3)])
def test_first_layer_tends_to_the_constants_of_the_limit(act, degree):
    found = numbers_of(
        network_of_flags(f"{act}:1", f"he{degree}"), {"d": 1e6, "N": 4e6, "sigma_a": 2}
    )
    limit = specialisation(act, degree)
    assert found.winner.energy == pytest.approx(limit.R * 1e6, rel=1e-4)
    assert found.winner.layer.neurons == pytest.approx(limit.neurons, rel=1e-3)
    lazy = next(row for row in found.patterns if row.name == "GP")
    assert lazy.energy == pytest.approx(1e6**degree / (8 * limit.gaussian), rel=1e-4)


@pytest.mark.parametrize(
    ("flags", "sizes", "options"),
    [
        (("erf:1", "he3"), {"d": 70, "N": 350, "alpha": 0.8}, {}),
        (("erf:1", "he5"), {"d": 40, "N": 900}, {}),
        (("tanh:1", "he3"), {"d": 50, "N": 200, "sigma_a": 1.5}, {}),
        (("erf:1", "he3", "mean-field"), {"d": 60, "N": 60}, {"readout": "mean-field"}),
        (("erf:1:1/2", "he1"), {"S": 20, "W": 30, "N": 25}, {"dimension": 20, "patches": 30}),
        (("erf:1:1/2", "he3"), {"S": 30, "W": 4, "N": 90}, {"dimension": 30, "patches": 4}),
    ],
)
def test_sums_bound_the_exact_energy(flags, sizes, options):
    found = numbers_of(network_of_flags(*flags), sizes)
    degree = int(flags[1][2:])
    exact = large_deviation(
        dimension=options.get("dimension", int(found.sizes["d"])),
        width=sizes["N"],
        degree=degree,
        activation=flags[0].partition(":")[0],
        alignment=sizes.get("alpha", 1.0),
        readout_variance=sizes.get("sigma_a", 1.0) ** 2 / options.get("patches", 1),
        readout=options.get("readout", "standard"),
    ).energy
    assert found.exact.energy == pytest.approx(exact, rel=1e-9)
    # (scale 3): every law of neurons bounds the exact energy, up to the entropy of choosing neurons.
    assert exact <= found.winner.energy <= 1.13 * exact
    assert found.winner.samples == pytest.approx(2 * found.winner.energy / found.k)


def test_samples_follow_kappa_and_the_kernel():
    net = network_of_flags("tanh:1", "he3", kappa="1/2")
    one = numbers_of(net, {"d": 100})
    other = numbers_of(net, {"d": 100, "kappa": 0.3, "sigma_a": 2})
    assert one.sizes["kappa"] == pytest.approx(10)
    g = np.random.default_rng(1).normal(size=400_000)
    power = (np.tanh(g) ** 2).mean()
    assert one.k == pytest.approx(1 + power, abs=0.002)
    assert other.k == pytest.approx(1 + 4 * power, abs=0.008)
    assert one.winner.samples == pytest.approx(20 * one.winner.energy / one.k)
    assert other.winner.samples == pytest.approx(0.6 * other.winner.energy / other.k)
    lazy = [next(row for row in found.patterns if row.name == "GP") for found in (one, other)]
    assert lazy[1].energy == pytest.approx(lazy[0].energy / 4)


def test_relu_condenses_on_one_neuron():
    d, width = 60, 700
    found = numbers_of(network_of_flags("relu:1", "he2"), {"d": d, "N": width})
    assert found.winner.name == "Sp(1)"
    assert found.winner.layer.neurons == 1
    # u / c decreases to 2 sqrt(pi), so that the energy at finite u is larger.
    assert 1 < found.winner.energy / (2 * sqrt(pi) * sqrt(width * d)) < 1.1
    bits = numbers_of(network_of_flags("relu:1", "parity2"), {"d": 1e4, "N": 1e8})
    assert bits.winner.energy / sqrt(1e12) == pytest.approx(2 * sqrt(2), rel=0.03)
    lazy = next(row for row in bits.patterns if row.name == "GP")
    # at small weights c = w_1 w_2 / (s sqrt(2 pi))
    assert lazy.energy == pytest.approx(pi * 1e8, rel=0.01)


def test_words_and_json():
    found = numbers_of(network_of_flags("erf:1", "he3"), {"d": 30, "N": 20})
    held = json.loads(json.dumps(found.to_dict()))
    assert held["winner"] == held["patterns"][0]["name"]
    assert held["exact"]["energy"] == found.exact.energy
    text = number_table(found).to_text()
    assert [line.split()[0] for line in text.splitlines()[2:]] == [
        *(row.name for row in found.patterns),
        "exact",
    ]
    assert any("N = 20 is below 30" in said for said in found.warnings)
    assert f"k = {found.k:.4g}" in number_sentence(found)


@pytest.mark.parametrize(
    ("flags", "sizes", "says"),
    [
        (("erf:1,erf:1,erf:1", "he3"), {"d": 50}, "3 hidden layers"),
        (("relu:1,relu:1", "he2"), {"d": 50}, "2 hidden layers"),
        (("poly3:1", "he3"), {"d": 50}, "activation poly3"),
        (("erf:n", "he3"), {"d": 50}, "N is d^(n), which has no value"),
        (("erf:1", "he3"), {"N": 50}, "no d"),
        (("erf:1", "he3"), {"d": 50, "N1": 50}, "N1"),
        (("erf:1", "he3"), {"d": 1}, "from 2 to"),
        (("erf:1", "he3"), {"d": 50, "kappa": 0}, "from 1e-12"),
        (("erf:1", "he3"), {"d": 50, "N": float("nan")}, "from 1 to"),
        (("erf:1:1/2", "he1"), {"d": 50, "S": 5, "W": 5}, "d = S W"),
        (("relu:1", "parity4"), {"d": 50}, "parities other than"),
    ],
)
def test_what_has_no_numbers_is_said_in_one_line(flags, sizes, says):
    with pytest.raises(InvalidParameter) as caught:
        numbers_of(network_of_flags(*flags), sizes)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_attention_has_no_prefactors():
    block = read_network({"attention": {"heads": "0", "context": "1/2"}})
    with pytest.raises(InvalidParameter, match="no prefactors are derived for attention"):
        numbers_of(block, {"d": 10})


def test_sizes_are_read_from_words():
    assert read_sizes_words(["d=100", "N=5e2,kappa=.5"]) == {"d": 100, "N": 500, "kappa": 0.5}
    for wrong in (["d"], ["d=1", "d=2"], ["d=x"], []):
        with pytest.raises(InvalidParameter):
            read_sizes_words(wrong)


def test_a_gain_of_one_never_costs_more_than_the_prior():
    net = network_of_flags("erf:1", "he3")
    held = {row.name: row.energy for row in numbers_of(net, {"d": 29, "N": 2.6e8}).patterns}
    assert held["GFL(1)"] <= held["GP"] * (1 + 1e-6)


def test_sums_grow_with_the_exponents_of_the_calculator():
    net = network_of_flags("erf:n", "he3")
    found = {}
    for name, forms in energy_forms(net):
        value = max(form({"n": Fraction(1)}) for form in forms)
        found[name] = min(value, found.get(name, value))
    small, large = (
        {row.name: row.energy for row in numbers_of(net, {"d": d, "N": d}).patterns}
        for d in (1e7, 1e9)
    )
    for name, exponent in found.items():
        slope = np.log(large[name] / small[name]) / np.log(100)
        assert slope == pytest.approx(float(exponent), abs=0.02), name
