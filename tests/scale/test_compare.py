"""Comparison of architectures: exact cells against evaluation, values against sample exponents."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import pytest

from solvable.errors import InvalidParameter
from solvable.scale.comparison import compare
from solvable.scale.exponents.network_reader import network_of_flags, read_network
from solvable.scale.exponents.sample_exponent import scaling_of
from solvable.scale.phases.diagram import PhaseDiagram

F = Fraction


def test_numbers_name_the_winner_and_its_lead() -> None:
    two, three = network_of_flags("erf:3", "he3"), network_of_flags("erf:3,erf:3/2", "he3")
    found = compare([two, three])
    exponents = [scaling_of(network).exponent for network in (two, three)]
    assert found.phases is None
    assert exponents == [2, F(5, 4)]
    assert found.winners == ("network (2)",)
    assert found.sentences() == [
        "network (2) wins with d^(5/4) samples, fewer than the next network by a factor d^(3/4)."
    ]


def test_networks_that_need_the_same_tie() -> None:
    same = [network_of_flags("erf:1", "he3"), network_of_flags("erf:1,erf:1", "he3")]
    assert compare(same).winners == ("network (1)", "network (2)")
    assert compare(same).sentences() == ["All networks need d samples: they tie in exponents."]


def test_shared_symbols_are_the_axes_of_exact_cells() -> None:
    rows = {"layers": [{"width": "n", "act": "erf"}], "target": {"hermite": 3}, "kappa": "k"}
    plain = read_network(rows | {"title": "standard"})
    scaled = read_network(rows | {"title": "mean-field", "readout": "mean-field", "kappa": "0"})
    found = compare([plain, scaled], box={"n": (F(1), F(8))})
    assert isinstance(found.phases, PhaseDiagram)
    rng = random.Random(2)
    for _ in range(60):
        n, k = 1 + F(7 * rng.randint(1, 9999), 10007), F(4 * rng.randint(1, 9999), 10007)
        values = {
            "standard": scaling_of(plain, {"n": n, "k": k}).exponent,
            "mean-field": scaling_of(scaled, {"n": n}).exponent,
        }
        least = min(values.values())
        winners = tuple(sorted(name for name, value in values.items() if value == least))
        assert found.phases.at(k, n) == (least, winners)
    said = " ".join(found.sentences())
    assert "standard wins in" in said
    assert "Border: " in said
    assert json.loads(json.dumps(found.to_dict()))["phases"]["cells"]


def test_values_leave_a_line() -> None:
    networks = [
        network_of_flags("erf:n", "he3", kappa="k"),
        network_of_flags("poly3:n", "he3", kappa="k"),
    ]
    found = compare(networks, at={"k": F(1, 2)}, box={"n": (F(1), F(6))})
    assert found.phases is not None
    assert found.phases.to_dict()["x"] == "n"
    assert len(found.sentences()) == len(found.phases.cells)


def test_other_targets_are_a_warning() -> None:
    networks = [network_of_flags("erf:2", "he3"), network_of_flags("erf:2", "he5")]
    assert compare(networks).warnings == ("The networks learn different targets: He3, He5.",)


def test_blocks_of_attention_have_one_target_whatever_their_titles() -> None:
    blocks = [
        read_network({"title": title, "attention": {"heads": heads, "context": "l"}})
        for title, heads in (("one head", "0"), ("many", "1"))
    ]
    found = compare(blocks)
    assert found.warnings == ()
    # One head is enough; further heads cost more.
    assert found.sentences()[-1].startswith("For l from ")
    assert {name for cell in found.phases.cells for name in cell.names} == {"one head", "many"}


@pytest.mark.parametrize(
    ("layers", "at", "words"),
    [
        (["erf:n"], {}, "1 network is given"),
        (["erf:n1,erf:n2", "erf:n3"], {}, "sizes n1, n2, n3 have no values"),
        (["erf:n", "erf:2"], {"q": F(1)}, "q is not a symbol of the networks; allowed: n"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_line(layers: list[str], at: dict, words: str) -> None:
    networks = [network_of_flags(row, "he3") for row in layers]
    with pytest.raises(InvalidParameter, match=words) as caught:
        compare(networks, at=at)
    assert "\n" not in str(caught.value)
