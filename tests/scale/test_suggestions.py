"""Suggested changes: each listed saving equals the exponent of the changed network."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from solvable.scale.exponents.network_reader import network_of_flags, read_network
from solvable.scale.exponents.sample_exponent import scaling_of
from solvable.scale.sample_savings import suggestions

F = Fraction


def promised(sentence: str) -> tuple[Fraction, Fraction]:
    """Return the exponents after and before the change."""
    match = re.search(r"exponent (\S+) instead of (\S+)\.$", sentence)
    assert match is not None
    return F(match[1]), F(match[2])


def test_a_layer_of_proportional_width_has_nothing_to_save() -> None:
    assert suggestions(network_of_flags("erf:1", "he3")) == ()
    assert suggestions(network_of_flags("erf:n", "he3")) == ()


def test_a_wide_layer_is_narrowed_at_its_slope() -> None:
    network = network_of_flags("erf:7/3", "he3")
    (said,) = [row for row in suggestions(network) if row.startswith("Narrow")]
    assert "Narrow layer 1: d^x fewer neurons save d^(x/2) samples, down to d neurons" in said
    # The slope is computed at a slightly smaller size.
    here, below = (
        scaling_of(network_of_flags(f"erf:{n}", "he3")).exponent for n in ("7/3", "11/6")
    )
    assert here is not None
    assert below is not None
    assert here - below == F(1, 4)
    assert promised(said) == (1, here)


def test_a_flat_start_is_named_with_its_end() -> None:
    # The network is lazy beyond d⁵, where narrowing saves nothing.
    (said,) = [
        row for row in suggestions(network_of_flags("erf:6", "he3")) if row.startswith("Narrow")
    ]
    assert said == (
        "Narrow layer 1 down to d neurons, which begins to save at d^5: exponent 1 instead of 3."
    )


@pytest.mark.parametrize(
    ("layers", "target", "readout", "changed", "words"),
    [
        ("erf:2", "he3", "mean-field", ("erf:2", "he3"), "Use the standard readout"),
        ("erf:5/2", "he3", "standard", ("erf:5/2,erf:1", "he3"), "Add a layer of d erf neurons"),
        ("erf:5/2", "he3", "standard", ("poly3:5/2", "he3"), "Use poly3"),
        ("relu:3/2,erf:6", "he3", "standard", ("erf:3/2,erf:6", "he3"), "Use erf"),
        (
            "erf:7",
            "he3",
            "standard",
            ("erf:7:1/2", "he3"),
            "If the target is a sum of He3 over patches",
        ),
    ],
)
def test_every_change_is_computed(
    layers: str, target: str, readout: str, changed: tuple[str, str], words: str
) -> None:
    (said,) = [
        row
        for row in suggestions(network_of_flags(layers, target, readout))
        if row.startswith(words)
    ]
    before = scaling_of(network_of_flags(layers, target, readout)).exponent
    after = scaling_of(network_of_flags(*changed)).exponent
    assert promised(said) == (after, before)


def test_a_ridge_above_order_one_is_lowered() -> None:
    said = suggestions(network_of_flags("erf:1", "he3", kappa="3/4"))
    assert said == (
        "Lower the ridge: a ridge smaller by d^x saves d^x samples, down to order one: d^(3/4) fewer.",
    )


def test_the_largest_saving_stands_first() -> None:
    said = suggestions(network_of_flags("erf:7/2", "he3", "mean-field"))
    savings = [before - after for after, before in map(promised, said)]
    assert len(savings) > 3
    assert savings == sorted(savings, reverse=True)
    assert min(savings) > 0


def test_patches_are_a_size_too() -> None:
    network = network_of_flags("erf:2:3/4", "he3")
    said = [row for row in suggestions(network) if "patches" in row]
    smaller = scaling_of(network_of_flags("erf:2:0", "he3")).exponent
    now = scaling_of(network).exponent
    assert said == [
        "If the target is a sum over smaller patches, use these down to O(1) inputs, which begins to "
        f"save at d^(1/4): exponent {smaller} instead of {now}."
    ]
    edge = scaling_of(network_of_flags("erf:2:1/4", "he3")).exponent
    beyond = scaling_of(network_of_flags("erf:2:1/8", "he3")).exponent
    assert edge == now
    assert beyond == F(5, 4)


def test_an_attention_block_has_heads_and_a_context() -> None:
    block = read_network({"attention": {"heads": "2", "context": "1/2"}})
    said = suggestions(block)
    assert [row.partition(":")[0] for row in said] == ["Take fewer heads", "Shorten the context"]
    now = scaling_of(block).exponent
    after = scaling_of(read_network({"attention": {"heads": "0", "context": "1/2"}})).exponent
    assert promised(said[0]) == (after, now)


def test_own_terms_are_sizes_by_name() -> None:
    own = read_network(
        {
            "sizes": {"Rank": "2"},
            "patterns": {"Sp": {"energy": ["M*d", "Rank/M"], "at_most_one": ["1/M"]}},
        }
    )
    assert suggestions(own)[0].startswith("Make Rank smaller: d^x less save")
