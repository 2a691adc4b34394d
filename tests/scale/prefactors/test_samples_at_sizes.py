"""Energies of patterns with prefactors, against constants, grids and exact energies."""

from __future__ import annotations

import json
from fractions import Fraction
from math import factorial, pi, sqrt

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.large_deviation import large_deviation
from solvable.scale import network_of_flags, scaling_of
from solvable.scale.exponents.energies import energy_forms
from solvable.scale.exponents.network_reader import read_network
from solvable.scale.exponents.numerical_sizes import read_sizes_words
from solvable.scale.prefactors.samples_at_sizes import break_tie, numbers_of, tie_of
from solvable.scale.prefactors.words import number_sentences, number_table, tie_sentence

DEEP = network_of_flags("erf:1,erf:1", "he3")


def energy(name, first, second, **options):
    """Compute the energy over d of one pattern at large d, for widths given over d."""
    sizes = {"d": 1e6, "N1": first * 1e6, "N2": second * 1e6}
    return numbers_of(DEEP, sizes, only=[name], **options).winner.energy / 1e6


@pytest.mark.parametrize(("first", "second"), [(1, 1), (3, 1), (10, 1), (1, 10), (2, 5)])
def test_constants_of_three_layers(first, second):
    root = (first * second) ** (1 / 3)
    assert energy("GP-Sp(1)", first, second) == pytest.approx(10.707 * sqrt(second), rel=1e-4)
    assert energy("Sp(1)-GP", first, second) == pytest.approx(9.880 * sqrt(first), rel=1e-4)
    alone = energy("Sp(1)-Mag(3)", first, second, one_route=True)
    assert alone == pytest.approx(6.907 * root, rel=1e-4)


def test_constants_with_frozen_weights():
    assert energy("GP-Sp(1)", 1, 2, frozen=True) == pytest.approx(12.024 * sqrt(2), rel=1e-4)
    assert energy("Sp(1)-GP", 3, 1, frozen=True) == pytest.approx(12.024 * sqrt(3), rel=1e-4)
    alone = energy("Sp(1)-Mag(3)", 3, 2, frozen=True, one_route=True)
    assert alone == pytest.approx(7.873 * 6 ** (1 / 3), rel=1e-4)


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(1, 1, 6.41), (3, 1, 9.46), (10, 1, 14.38), (1, 10, 9.88)]
)
def test_both_routes_of_a_spike(first, second, expected):
    assert energy("Sp(1)-Mag(3)", first, second) == pytest.approx(expected, abs=0.006)


def test_crossover_of_magnetisation_and_the_second_layer():
    second = 7.0
    first = 3.73 * sqrt(second)
    ratio = energy("Sp(1)-Mag(3)", first, second, one_route=True) / energy(
        "GP-Sp(1)", first, second
    )
    # E grows like N_1^(1/3), and the constant 3.73 has three digits.
    assert ratio == pytest.approx(1.0, abs=0.001)


def test_amplified_fluctuations_beat_a_mean_by_the_entropy_that_the_paper_drops():
    # (scale 15): a mean B costs B / (2 lambda); a variance costs N_2 log(D) / 2 less.
    spike, gain = energy("Sp(1)-GFL(3)", 1, 1), energy("Sp(1)-Mag(3)", 1, 1)
    assert spike == pytest.approx(5.608, abs=0.002)
    sums = numbers_of(DEEP, {"d": 1e6}, only=["Sp(1)-GFL(3)"]).winner
    assert sums.layers[1].gain == pytest.approx(5.294, abs=0.002)
    assert spike < gain


def overlap(u, r, degree):
    """Compute the overlap of an erf neuron with He_m by its closed form."""
    half = (degree - 1) // 2
    size = 2 / sqrt(pi) * factorial(degree - 1) / (factorial(half) * sqrt(factorial(degree)))
    return size * (u / np.sqrt(1 + 2 * (u * u + r))) ** degree


@pytest.mark.parametrize(
    ("degree", "alpha", "ratio"), [(3, 0.7, 4.0), (5, 1.0, 0.5), (7, 1.3, 2.0)]
)
def test_second_layer_by_a_grid(degree, alpha, ratio):
    # (scale 16): mean mu on noise of variance q_1 - lambda (1 - r), at the cost d (mu² / lambda + r - 1
    # - ln r) / 2
    diagonal, linear = 2 / pi * np.arcsin(2 / 3), 4 / (3 * pi)
    mu = np.geomspace(0.05, 8, 1500)[:, None]
    r = np.geomspace(0.02, 1.5, 700)
    price = np.sqrt(mu**2 / linear + r - 1 - np.log(r))
    best = (price / overlap(mu, diagonal - linear * (1 - r), degree)).min()
    net = network_of_flags("erf:1,erf:1", f"he{degree}")
    sizes = {"d": 1e6, "N2": ratio * 1e6, "alpha": alpha}
    found = numbers_of(net, sizes, only=["GP-Sp(1)"]).winner
    assert found.energy / 1e6 == pytest.approx(alpha * best * sqrt(ratio), rel=1e-4)


@pytest.mark.parametrize(("act", "degree"), [("erf", 5), ("tanh", 3)])
def test_first_layer_tends_to_the_constants_of_the_limit(act, degree):
    found = numbers_of(
        network_of_flags(f"{act}:1", f"he{degree}"), {"d": 1e6, "N": 4e6, "sigma_a": 2}
    )
    limit = specialisation(act, degree)
    assert found.winner.energy == pytest.approx(limit.R * 1e6, rel=1e-4)
    assert found.winner.layers[0].neurons == pytest.approx(limit.neurons, rel=1e-3)
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
    net = network_of_flags("erf:1,tanh:1", "he3", kappa="1/2")
    one = numbers_of(net, {"d": 100}, only=["GP-GP"])
    other = numbers_of(net, {"d": 100, "kappa": 0.3, "sigma_a": 2}, only=["GP-GP"])
    assert one.sizes["kappa"] == pytest.approx(10)
    diagonal = 2 / pi * np.arcsin(2 / 3)
    g = np.random.default_rng(1).normal(size=400_000)
    power = (np.tanh(sqrt(diagonal) * g) ** 2).mean()
    assert one.k == pytest.approx(1 + power, abs=0.002)
    assert other.k == pytest.approx(1 + 4 * power, abs=0.008)
    assert one.winner.samples == pytest.approx(20 * one.winner.energy / one.k)
    assert other.winner.samples == pytest.approx(0.6 * other.winner.energy / other.k)
    assert other.winner.energy == pytest.approx(one.winner.energy / 4)


def test_relu_condenses_on_one_neuron():
    d, width = 60, 700
    found = numbers_of(network_of_flags("relu:1", "he2"), {"d": d, "N": width})
    assert found.winner.name == "Sp(1)"
    assert found.winner.layers[0].neurons == 1
    # u / c decreases to 2 sqrt(pi), so that the energy at finite u is larger.
    assert 1 < found.winner.energy / (2 * sqrt(pi) * sqrt(width * d)) < 1.1
    bits = numbers_of(network_of_flags("relu:1", "parity2"), {"d": 1e4, "N": 1e8})
    assert bits.winner.energy / sqrt(1e12) == pytest.approx(2 * sqrt(2), rel=0.03)
    lazy = next(row for row in bits.patterns if row.name == "GP")
    # at small weights c = w_1 w_2 / (s sqrt(2 pi))
    assert lazy.energy == pytest.approx(pi * 1e8, rel=0.01)


def test_a_tie_is_broken_at_proportional_widths():
    tie = break_tie(DEEP, ["GP-Sp(1)", "Sp(1)-GP", "Sp(1)-Mag(3)"])
    assert list(tie.coefficients) == ["Sp(1)-Mag(3)", "Sp(1)-GP", "GP-Sp(1)"]
    assert list(tie.coefficients.values()) == pytest.approx([6.4066, 9.8802, 10.7070], abs=2e-3)
    whole = tie_of(scaling_of(DEEP))
    assert whole.patterns[0].name == "Sp(1)-GFL(3)"
    assert "Sp(1)-GFL(3) has the least energy, 5.608 d" in tie_sentence(whole)
    assert {"Sp(1)-Mag(3)", "Sp(1)-GP", "GP-Sp(1)"} < {row.name for row in whole.patterns}
    assert tie_of(scaling_of(network_of_flags("erf:1", "he3"))) is None


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
    assert f"k = {found.k:.4g}" in number_sentences(found)[0]
    assert "The next pattern is GFL(1)" in number_sentences(found)[1]
    shared = network_of_flags("erf:1:1/2", "he1", "1/2")
    said = number_sentences(numbers_of(shared, {"S": 16, "W": 16, "N": 20}))
    assert said[1] == "Equal within 0.1 % of the energy at these sizes: Mag(1)."
    assert "The next pattern is GFL(1)" in said[2]


@pytest.mark.parametrize(
    ("flags", "sizes", "says"),
    [
        (("erf:1,erf:1,erf:1", "he3"), {"d": 50}, "3 hidden layers"),
        (("relu:1,relu:1", "he2"), {"d": 50}, "activation relu in 2 hidden layers"),
        (("poly3:1", "he3"), {"d": 50}, "activation poly3"),
        (("erf:1:1/2,erf:1", "he3"), {"d": 50}, "patches in a network with two"),
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


def test_own_terms_have_no_coefficients():
    own = read_network({"patterns": {"GP": {"energy": ["d^3"]}}})
    with pytest.raises(InvalidParameter, match="own terms"):
        numbers_of(own, {"d": 10})


def test_sizes_are_read_from_words():
    assert read_sizes_words(["d=100", "N=5e2,kappa=.5"]) == {"d": 100, "N": 500, "kappa": 0.5}
    for wrong in (["d"], ["d=1", "d=2"], ["d=x"], []):
        with pytest.raises(InvalidParameter):
            read_sizes_words(wrong)


def test_a_gain_of_one_is_allowed_where_neurons_are_many():
    net = network_of_flags("erf:1,tanh:1", "he5")
    sizes = {"d": 29, "N1": 330, "N2": 2.6e8, "alpha": 0.003, "sigma_a": 0.125}
    names = ["Sp(1)-GP", "Sp(1)-GFL(3)", "Sp(1)-GFL(5)", "Mag(1)-GP", "Mag(1)-GFL(5)"]
    held = {row.name: row.energy for row in numbers_of(net, sizes, only=names).patterns}
    for amplified in ("Sp(1)-GFL(3)", "Sp(1)-GFL(5)"):
        assert held[amplified] <= held["Sp(1)-GP"] * (1 + 1e-6)
    assert held["Mag(1)-GFL(5)"] <= held["Mag(1)-GP"] * (1 + 1e-6)


def test_sums_grow_with_the_exponents_of_the_calculator():
    names = ["GP-GP", "GP-Sp(3)", "GP-GFL(3)", "GP-Mag(1)", "GP-Mag(3)", "GFL(1)-GP", "Sp(1)-GP"]
    net = network_of_flags("erf:n1,erf:n2", "he3")
    found = {}
    for name, forms in energy_forms(net):
        value = max(form({"n1": Fraction(1), "n2": Fraction(1)}) for form in forms)
        found[name] = min(value, found.get(name, value))
    small, large = (
        {
            row.name: row.energy
            for row in numbers_of(net, {"d": d, "N1": d, "N2": d}, only=names).patterns
        }
        for d in (1e7, 1e9)
    )
    for name in names:
        slope = np.log(large[name] / small[name]) / np.log(100)
        assert slope == pytest.approx(float(found[name]), abs=0.02), name


def test_a_pattern_that_contains_another_never_costs_more():
    # a specialised neuron of small weight, or a gain of one, reduces to the pattern without it
    net = network_of_flags("tanh:1,tanh:1", "he3")
    sizes = {"d": 126, "N1": 12_404, "N2": 68, "alpha": 0.87, "sigma_a": 1.31}
    names = ["GP-Sp(1)", "Sp(1)-Sp(1)", "GFL(1)-Sp(1)", "GP-GFL(1)", "Sp(1)-GFL(1)", "Sp(1)-GFL(3)"]
    held = {row.name: row.energy for row in numbers_of(net, sizes, only=names).patterns}
    assert held["Sp(1)-Sp(1)"] <= held["GP-Sp(1)"] * 1.0001
    assert held["GFL(1)-Sp(1)"] <= held["GP-Sp(1)"] * 1.0001
    assert held["Sp(1)-GFL(1)"] <= held["GP-GFL(1)"] * 1.0001
    # second minimiser: differential evolution in four dimensions
    assert held["Sp(1)-GFL(3)"] == pytest.approx(2238.4, rel=1e-3)
