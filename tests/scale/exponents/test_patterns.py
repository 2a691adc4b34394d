"""Sample exponents against the published results (arXiv:2512.04165), and against a grid."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.scale import network_of_flags, scaling_of
from solvable.scale.exponents.energies import candidates, energy_forms
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.exponents.network_reader import read_network
from solvable.scale.exponents.tropical import minimise


def rows(network, *, boxes=False):
    """Return the energies without bounds: by pattern, the forms of each route."""
    found: dict[str, list[tuple[LinearForm, ...]]] = {}
    for name, forms in energy_forms(network, boxes=boxes):
        found.setdefault(name, []).append(forms)
    return found


def form(text):
    return (LinearForm.parse(text),)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_two_layers(degree):
    # (scale 10): GP d^m; GFL (N d)^(m/(m+1)); Sp sqrt(N d).
    found = rows(network_of_flags("erf:n", f"he{degree}"))
    assert found["GP"] == [form(str(degree))]
    assert found["GFL(1)"] == [form(f"{degree}*(n+1)/{degree + 1}")]
    assert found["Sp(1)"] == [form("(n+1)/2")]


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_two_layers_with_a_mean_field_readout(degree):
    # (scale 10), mean-field: GP N d^m; GFL N d^(m/(m+1)); Sp N sqrt(d).
    found = rows(network_of_flags("erf:n", f"he{degree}", "mean-field"))
    assert found["GP"] == [form(f"n+{degree}")]
    assert found["GFL(1)"] == [form(f"n+{degree}/{degree + 1}")]
    assert found["Sp(1)"] == [form("n+1/2")]


def test_convolutional_network_with_a_linear_target():
    # (scale 10), patches: GP d; GFL and Sp sqrt(N d) for every patch.
    found = rows(network_of_flags("erf:n:s", "he1"))
    assert found["GP"] == [form("1")]
    assert found["GFL(1)"] == found["Sp(1)"] == [form("(n+1)/2")]
    narrow = scaling_of(network_of_flags("erf:1/2:1/2", "he1"))
    assert narrow.exponent == Fraction(3, 4)
    # One optimum has M = sqrt(N W/S) filters of strength one.
    (neurons,) = [winner.free["M1"] for winner in narrow.winners if winner.name == "Sp(1)"]
    assert neurons[0] == Fraction(1, 4)


def test_parity_with_relu():
    found = rows(network_of_flags("relu:n", "parity2"))
    assert found["GP"] == [form("2")]
    assert found["GFL(1)"] == [form("2*(n+1)/3")]
    assert found["Sp(1)"] == [form("(n+1)/2")]


def test_three_layers():
    found = rows(network_of_flags("erf:n1,erf:n2", "he3"))
    assert found["GP-GP"] == [form("3")]
    assert found["GP-Sp(1)"] == [form("(n2+1)/2")]
    assert form("(n1+1)/2") in found["Sp(1)-GP"]
    assert found["Sp(1)-Mag(3)"] == [form("(n1+n2+1)/3")]
    assert form("(n1+n2+1)/3") in found["Sp(1)-Sp(3)"]
    assert form("3*(n1+n2+1)/7") in found["GFL(1)-GFL(1)"]
    # With bounds, amplifying layer 1 costs at least N_1   (scale 4).
    assert found["GFL(1)-Sp(1)"] == [form("(n1+n2+1)/3")]
    assert LinearForm.symbol("n1") in rows(network_of_flags("erf:n1,erf:n2", "he3"), boxes=True)[
        "GFL(1)-Sp(1)"
    ][0]  # fmt: skip


def test_attention():
    found = rows(read_network({"attention": {"heads": "h", "context": "l"}}))
    assert found["GP"] == [form("l+3")]
    assert found["Sp"] == [form("(h+l+3)/2")]
    alone = scaling_of(read_network({"attention": {"heads": 0, "context": "1/2"}}))
    assert alone.exponent == Fraction(7, 4)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_thresholds(degree):
    # (scale 10): one hidden layer is lazy for N above d^(2m-1).
    at = Fraction(2 * degree - 1)
    below = scaling_of(network_of_flags(f"erf:{at - Fraction(1, 7)}", f"he{degree}"))
    above = scaling_of(network_of_flags(f"erf:{at + Fraction(1, 7)}", f"he{degree}"))
    assert "GP" not in [winner.name for winner in below.winners]
    assert [winner.name for winner in above.winners] == ["GP"]
    assert {"GP", "Sp(1)"} <= set(scaling_of(network_of_flags(f"erf:{at}", f"he{degree}")).ties)


def test_magnetisation_hands_over_to_the_second_layer():
    # The energies (N1 N2 d)^(1/3) and sqrt(N2 d) are equal at n1 = (1+n2)/2.
    found = rows(network_of_flags("erf:n1,erf:n2", "he3"))
    difference = found["Sp(1)-Mag(3)"][0][0] - found["GP-Sp(1)"][0][0]
    assert difference * 3 == LinearForm.parse("n1 - (1+n2)/2")


def test_strong_neurons_of_relu_tie_with_many():
    (winner,) = scaling_of(network_of_flags("relu:2", "parity2")).winners
    # M mu² = sqrt(N/d). Strengths below one are not optimal, because their response falls as mu².
    assert winner.free == {"M1": (0, Fraction(1, 2)), "mu1": (0, Fraction(1, 4))}


def test_a_constant_part_biases_the_next_layer():
    # For b != 0, relu(h + b) has the component -b phi(b)/sqrt(6) along He3 of h, at unit variance.
    points, weights = np.polynomial.hermite_e.hermegauss(300)
    weights = weights / weights.sum()
    for bias in (0.0, 0.5, 1.0):
        part = weights @ (np.maximum(points + bias, 0) * (points**3 - 3 * points)) / 6**0.5
        # E[relu'' He1] with relu'' a point mass at -b: -b phi(b)/sqrt(6).
        expected = -bias * np.exp(-(bias**2) / 2) / np.sqrt(2 * np.pi) / 6**0.5
        assert part == pytest.approx(expected, abs=2e-3)
    assert scaling_of(network_of_flags("relu:1,relu:1", "he3")).exponent == 1
    assert scaling_of(network_of_flags("sigmoid:1,sigmoid:1", "he2")).exponent == 1
    assert scaling_of(network_of_flags("relu:1,erf:1", "he2")).exponent == 1
    # erf has no constant part: ReLU after it makes only its own powers, so that layer 1 must make He3.
    names = scaling_of(network_of_flags("erf:2,relu:1", "he3")).winners
    assert all(winner.layers[0].kind != "lazy" for winner in names)
    with pytest.raises(InvalidParameter, match="cannot be represented"):
        scaling_of(network_of_flags("relu:1", "he3"))


ENERGIES = {(1, 1): 1, (2, 1): 1, (1, 2): 1, (3, 2): "3/2", (2, 3): "3/2", (6, 6): 3}


@pytest.mark.parametrize("widths", ENERGIES)
def test_three_layers_at_points(widths):
    found = scaling_of(network_of_flags(f"erf:{widths[0]},erf:{widths[1]}", "he3"))
    assert found.exponent == Fraction(ENERGIES[widths])
    names = [winner.name for winner in found.winners]
    if widths == (2, 1):
        assert "GP-Sp(1)" in names
        assert "Sp(1)-Mag(3)" not in names
    if widths == (1, 2):
        assert "Sp(1)-GP" in names
    if widths == (1, 1):
        assert {"GP-Sp(1)", "Sp(1)-GP", "Sp(1)-Mag(3)", "Sp(1)-Sp(3)"} <= set(found.ties)


def test_three_layers_everywhere_above_width_d():
    energies = energy_forms(network_of_flags("erf:n1,erf:n2", "he3"))
    quarters = [Fraction(k, 4) for k in range(4, 29)]
    for n1, n2 in product(quarters, quarters):
        point = {"n1": n1, "n2": n2}
        least = min(max(held(point) for held in forms) for _, forms in energies)
        assert least == max(1, min((1 + n1) / 2, (1 + n2) / 2, 3))


@pytest.mark.parametrize(
    ("width", "degree", "energy"), [("1/3", 3, "5/6"), ("1/2", 3, "7/8"), ("1/3", 5, "8/9")]
)
def test_below_width_d_one_neuron_of_less_than_full_strength(width, degree, energy):
    # (scale 11): M = 1 and mu² d = N mu^(-2m) give d^((m+n)/(m+1)). Exact tails are compared in
    # tests/models/two_layer_posterior/test_tail.py.
    found = scaling_of(network_of_flags(f"erf:{width}", f"he{degree}"))
    assert found.exponent == Fraction(energy) == (degree + Fraction(width)) / (degree + 1)
    assert any("kernel fluctuates" in said for said in found.warnings)


def test_kappa_and_power_law_inputs_shift_the_exponent():
    plain = network_of_flags("erf:2", "he3")
    assert scaling_of(network_of_flags("erf:2", "he3", kappa="1/4")).exponent == (
        scaling_of(plain).exponent + Fraction(1, 4)
    )
    strong = read_network(
        {
            "layers": [{"width": 2, "act": "erf"}],
            "target": {"hermite": 3},
            "inputs": {"linear": "-1/2"},
        }
    )
    # The direction has a share d^(-1/2) of the variance, so that d is replaced by d^(1/2).
    assert scaling_of(strong).exponent == Fraction(5, 4)


def test_pooling_spares_the_readout_of_each_patch():
    def exponent(pool):
        layer = {"width": "1", "act": "erf", "patch": "1/2", "pool": pool}
        return scaling_of(read_network({"layers": [layer], "target": {"hermite": 3}})).exponent

    # The sum of Sp is M S + N W/M without pooling, and M S + N/M with pooling.
    assert (exponent(False), exponent(True)) == (1, Fraction(3, 4))


def test_answers_do_not_depend_on_how_the_network_is_written():
    by_symbols = scaling_of(
        network_of_flags("erf:a,erf:b", "he3"), {"a": Fraction(3, 2), "b": Fraction(2)}
    )
    by_numbers = scaling_of(network_of_flags("erf:3/2,erf:2", "he3"))
    assert by_symbols.exponent == by_numbers.exponent
    assert by_symbols.ties == by_numbers.ties


@pytest.mark.parametrize(
    ("layers", "target", "says"),
    [
        ("relu:1", "he3", "cannot be represented"),
        ("erf:1", "he2", "cannot be represented"),
        ("linear:1", "he3", "cannot be represented"),
        ("erf:-1", "he3", "exponents from 0"),
        ("erf:1:3/2", "he1", "exponents from 0 to 1"),
        ("erv:1", "he3", "Did you mean 'erf'"),
        ("erf", "he3", "ACTIVATION:WIDTH"),
        ("erf:1", "he0", "integers from 1 to 9"),
        ("erf:1", "he99", "integers from 1 to 9"),
        ("erf:1", "cubic", "heK or parityK"),
        (",".join(["erf:1"] * 13), "he3", "13 hidden layers"),
    ],
)
def test_bad_networks_are_refused_in_one_line(layers, target, says):
    with pytest.raises(InvalidParameter, match=says) as error:
        scaling_of(network_of_flags(layers, target))
    assert "\n" not in str(error.value)


ERF = {"layers": [{"width": 1, "act": "erf"}], "target": {"hermite": 3}}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "layers is None"),
        ({"layers": [], "target": {"hermite": 3}}, "layers is"),
        ({"layers": [{"width": 1}], "target": {"hermite": 3}}, "has no act"),
        ({"layers": [{"width": 1, "act": "erf"}]}, "target is None"),
        ({"layers": [{"width": 1, "act": "erf", "hight": 2}], "target": {"hermite": 3}}, "hight"),
        ({"layers": [{"width": 1, "act": "erf"}], "target": {"hermite": "3"}}, "target degree"),
        (ERF | {"readout": "meanfield"}, "mean-field"),
        (ERF | {"inputs": {"linear": 1}}, "up to 0"),
        ({"attention": {"heads": "-1", "context": "1"}}, "exponents from 0"),
    ],
)  # fmt: skip
def test_bad_descriptions_are_refused_in_one_line(content, says):
    with pytest.raises(InvalidParameter, match=says) as error:
        scaling_of(read_network(content))
    assert "\n" not in str(error.value)


def test_nothing_of_the_size_of_d_is_allocated():
    # Exponents of 100 take as long as exponents of 1.
    assert scaling_of(network_of_flags("erf:100", "he9", kappa="50")).exponent == 59


def brute_force():
    path = Path(__file__).parents[3] / "benchmarks" / "scale_grid.py"
    spec = importlib.util.spec_from_file_location("scale_grid", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("layers", "degree", "chi"),
    [
        ([("erf", 1 / 3, 1.0)], 3, 0.0),
        ([("relu", 2.0, 0.5)], 4, 2.0),
        ([("poly3", 1.5, 1.0)], 3, 0.0),
        ([("erf", 0.75, 1.0), ("erf", 0.5, 1.0)], 3, 0.0),
        ([("tanh", 1.25, 0.5), ("relu", 1.5, 1.0)], 2, 1.5),
    ],
)
def test_a_grid_over_the_patterns_finds_nothing_better(layers, degree, chi):
    words = ",".join(f"{act}:{width}:{reach}" for act, width, reach in layers)
    words = words.replace("0.3333333333333333", "1/3")
    found = scaling_of(network_of_flags(words, f"he{degree}", str(chi)))
    grid = brute_force().brute_force(layers, chi, degree)
    # A grid is never below the minimum; its final spacing is 0.8^21 of a range of about four.
    assert -1e-9 < grid - float(found.exponent) < 0.02


@pytest.mark.slow
def test_twenty_networks_drawn_at_random():
    module = brute_force()
    rng = np.random.default_rng(7)
    for _ in range(20):
        *_, kappa, found, layers, chi = module.draw(rng)
        _, degree = layers, found.network.degree
        assert (
            -1e-9
            < module.brute_force(layers, chi, degree) + float(kappa) - float(found.exponent)
            < 0.02
        )


def test_deep_networks_by_one_pass_are_those_of_all_programs():
    # (scale 9): the pass through the layers and the programs of all patterns are both exact.
    rng = np.random.default_rng(3)
    module = brute_force()
    for _ in range(12):
        *_, kappa, found, _, _ = module.draw(rng, most_layers=2)
        least = min(
            minimum.value
            for candidate in candidates(found.network)
            for program in candidate.programs
            if (minimum := minimise(program, {}, faces=False)) is not None
        )
        assert least + kappa == found.exponent


@pytest.mark.parametrize("act", ["erf", "relu"])
def test_ten_layers_are_answered(act):
    # If only the last layer learns, the energy is sqrt(N d).
    found = scaling_of(
        network_of_flags(",".join([f"{act}:5/4"] * 10), "he3" if act == "erf" else "he4")
    )
    assert found.exponent == Fraction(9, 8)
    assert "-".join(["GP"] * 9 + ["Sp(1)"]) in found.ties
    # The terms M d and N/M are equal at M = d^(1/8).
    (winner,) = [held for held in found.winners if held.name.endswith("GP-Sp(1)")]
    assert winner.free == {"M10": (Fraction(1, 8),) * 2, "mu10": (0, 0)}


def test_closed_forms_of_too_many_patterns_are_refused():
    with pytest.raises(InvalidParameter, match="two hidden layers"):
        scaling_of(network_of_flags("relu:a,relu:b,relu:c", "he4"))


def test_optimal_sizes_attain_the_energy():
    for candidate in candidates(network_of_flags("erf:n1,erf:n2", "he3")):
        for program in candidate.programs:
            found = minimise(program, {"n1": Fraction(5, 4), "n2": Fraction(2)})
            free = {name: ends[0] for name, ends in found.intervals.items()}
            if None not in free.values() and all(
                low == high for low, high in found.intervals.values()
            ):
                point = {"n1": Fraction(5, 4), "n2": Fraction(2)}
                values = [
                    term.constant(point) + sum(power * free[name] for name, power in term.powers)
                    for term in program.terms
                ]
                assert max(values) == found.value
