"""Exactness of phase diagrams, against direct evaluation and against the linear programs."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.scale.exponents.energies import candidates, energy_forms
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.exponents.network_reader import network_of_flags
from solvable.scale.exponents.sample_exponent import scaling_of
from solvable.scale.exponents.tropical import minimise
from solvable.scale.phases.diagram import INFINITESIMAL, Cell, phase_diagram
from solvable.scale.phases.exponent_ranges import phases_of
from solvable.scale.phases.polygons import area, borders, clip, contains, joined, rectangle

F = Fraction
BOX = {"n1": (F(0), F(7)), "n2": (F(0), F(7))}


def forms(*texts: str) -> tuple[LinearForm, ...]:
    return tuple(LinearForm.parse(text) for text in texts)


def drawn_candidates(rng: random.Random) -> list[tuple[str, tuple[LinearForm, ...]]]:
    """Draw patterns with random rational forms in x and y; some names occur twice."""

    def number() -> Fraction:
        return F(rng.randint(-6, 6), rng.choice([1, 2, 3, 7]))

    def form() -> LinearForm:
        return LinearForm.of(number(), {"x": number(), "y": number()})

    return [(f"p{i % 6}", tuple(form() for _ in range(rng.randint(1, 4)))) for i in range(9)]


def directly(
    candidates: list[tuple[str, tuple[LinearForm, ...]]], point: dict[str, Fraction]
) -> tuple[Fraction, tuple[str, ...]]:
    """Compute the least maximum and the patterns that attain it, by evaluating all forms."""
    values: dict[str, Fraction] = {}
    for name, rows in candidates:
        value = max(form(point) for form in rows)
        values[name] = min(value, values.get(name, value))
    least = min(values.values())
    return least, tuple(sorted(name for name, value in values.items() if value == least))


def generic(rng: random.Random, low: int, high: int) -> Fraction:
    """Draw a number that is on no edge of small denominators."""
    return low + (high - low) * F(rng.randint(1, 10**6 - 1), 10**6 + 3)


@pytest.mark.parametrize("seed", range(12))
def test_random_envelopes_are_exact_and_cover_the_box(seed: int) -> None:
    rng = random.Random(seed)
    drawn = drawn_candidates(rng)
    diagram = phase_diagram(drawn, "x", "y", box={"x": (F(-2), F(3))})
    assert sum(cell.area for cell in diagram.cells) == diagram.area == 20
    for _ in range(60):
        x, y = generic(rng, -2, 3), generic(rng, 0, 4)
        assert diagram.at(x, y) == directly(drawn, {"x": x, "y": y})


@pytest.mark.parametrize("seed", range(6))
def test_random_lines_are_exact(seed: int) -> None:
    rng = random.Random(seed)
    drawn = drawn_candidates(rng)
    line = phase_diagram(drawn, "y", point={"x": F(1, 3)}, box={"y": (F(-3), F(2))})
    assert sum(cell.area for cell in line.cells) == 5
    for _ in range(40):
        y = generic(rng, -3, 2)
        assert line.at(y) == directly(drawn, {"x": F(1, 3), "y": y})


@pytest.mark.parametrize("seed", range(6))
def test_neighbours_differ_and_agree_on_their_edge(seed: int) -> None:
    drawn = drawn_candidates(random.Random(seed))
    diagram = phase_diagram(drawn, "x", "y")
    for edge in diagram.edges:
        first, second = (diagram.cells[number] for number in edge.cells)
        assert (first.form, first.names) != (second.form, second.names)
        for end in (edge.start, edge.end):
            point = dict(zip("xy", end, strict=True))
            assert first.form(point) == second.form(point)
            solved, text = edge.equation.split(" = ")
            assert point[solved] == LinearForm.parse(text)(point)
    # Every border inside the box is an edge of two cells, so that lengths along each direction agree.
    owned = [(i, piece) for i, cell in enumerate(diagram.cells) for piece in cell.pieces]
    assert len(borders(owned)) == len(diagram.edges)


@pytest.mark.parametrize(
    ("layers", "target"),
    [("erf:n1,erf:n2", "he3"), ("erf:n1,erf:n2", "he5"), ("relu:n1,erf:n2", "he3")],
)
def test_a_network_is_exact_against_the_linear_programs(layers: str, target: str) -> None:
    network = network_of_flags(layers, target)
    diagram = phases_of(network, "n1", "n2", box=BOX)
    rng = random.Random(5)
    for _ in range(6):
        x, y = generic(rng, 0, 7), generic(rng, 0, 7)
        found = scaling_of(network, {"n1": x, "n2": y})
        value, names = diagram.at(x, y)
        assert value == found.exponent
        assert set(names) == {winner.name for winner in found.winners}


def test_a_pattern_that_amplifies_nothing_is_another_one() -> None:
    # GFL with a gain of one has the cost of GP here, and is not listed as a tie.
    network = network_of_flags("tanh:n1,relu:n2", "he1", "mean-field")
    diagram = phases_of(network, "n1", "n2")
    rng = random.Random(8)
    for _ in range(12):
        x, y = generic(rng, 0, 4), generic(rng, 0, 4)
        winners = {winner.name for winner in scaling_of(network, {"n1": x, "n2": y}).winners}
        assert set(diagram.at(x, y)[1]) == winners


def test_an_infinitesimal_decides_between_equals_only() -> None:
    rows = [
        ("beyond", (LinearForm.of(1, {INFINITESIMAL: 1}),)),
        ("at", forms("1")),
        ("lower", (LinearForm.of(0, {"x": 1, INFINITESIMAL: 5}),)),
    ]
    for order in (rows, rows[::-1]):
        line = phase_diagram(order, "x", box={"x": (F(0), F(2))})
        assert [cell.names for cell in line.cells] == [("lower",), ("at",)]


def test_two_thousand_points_of_a_network_against_all_its_forms() -> None:
    network = network_of_flags("erf:n1,erf:n2", "he3", kappa="1/3")
    diagram = phases_of(network, "n1", "n2", box=BOX)
    patterns = [
        (name, tuple(f + network.kappa for f in rows)) for name, rows in energy_forms(network)
    ]
    rng = random.Random(11)
    for _ in range(2_000):
        point = {"n1": generic(rng, 0, 7), "n2": generic(rng, 0, 7)}
        assert diagram.at(point["n1"], point["n2"])[0] == directly(patterns, point)[0]


@pytest.mark.slow
def test_ten_thousand_points_against_the_linear_programs() -> None:
    network = network_of_flags("erf:n1,erf:n2", "he3")
    diagram = phases_of(network, "n1", "n2", box=BOX)
    programs = {program for candidate in candidates(network) for program in candidate.programs}
    rng = random.Random(3)
    for _ in range(10_000):
        point = {"n1": generic(rng, 0, 7), "n2": generic(rng, 0, 7)}
        least = min(minimise(program, point, faces=False).value for program in programs)
        assert diagram.at(point["n1"], point["n2"])[0] == least


def test_the_published_edges_of_three_layers() -> None:
    # (scale 12): the edges are n = 2m - 1 on both axes, and the diagonal.
    diagram = phases_of(
        network_of_flags("erf:n1,erf:n2", "he3"),
        "n1",
        "n2",
        box={"n1": (F(1), F(7)), "n2": (F(1), F(7))},
    )
    assert {edge.equation for edge in diagram.edges} >= {"n1 = 5", "n1 = n2", "n2 = 5"}
    assert {str(cell.form) for cell in diagram.cells} >= {"(n1+1)/2", "(n2+1)/2", "3"}


def test_a_magnetised_layer_hands_over_at_the_root_of_the_width() -> None:
    # The energies (N_1 N_2 d)^(1/3) of Sp-Mag and sqrt(N_2 d) of GP-Sp are equal at N_1 = sqrt(N_2 d).
    rows = [("Sp-Mag", forms("(n1+n2+1)/3")), ("GP-Sp", forms("(n2+1)/2"))]
    diagram = phase_diagram(rows, "n1", "n2")
    (edge,) = diagram.edges
    assert edge.equation == "n1 = (n2+1)/2"
    assert [diagram.cells[number].names for number in edge.cells] == [("Sp-Mag",), ("GP-Sp",)]


def test_ties_are_named_and_cells_that_differ_in_ties_are_apart() -> None:
    rows = [("a", forms("1", "n1")), ("b", forms("1", "n2"))]
    diagram = phase_diagram(rows, "n1", "n2")
    assert diagram.at(F(1, 2), F(1, 3)) == (1, ("a", "b"))
    ones = [cell.names for cell in diagram.cells if str(cell.form) == "1"]
    assert sorted(ones) == [("a",), ("a", "b"), ("b",)]


def test_a_limit_is_a_line_with_the_part_beyond_it() -> None:
    network = network_of_flags("erf:n1,erf:n2", "he3")
    diagram = phases_of(network, "n1", "n2")
    names = [limit.name for limit in diagram.limits]
    assert names == ["width of layer 1 below d", "width of layer 2 below d"]
    assert [limit.equation for limit in diagram.limits] == ["n1 = 1", "n2 = 1"]
    assert [area(limit.outside) for limit in diagram.limits] == [4, 4]
    wide = phases_of(network, "n1", "n2", box={"n1": (F(1), F(2)), "n2": (F(1), F(2))})
    assert wide.limits == ()


def test_numbers_of_a_description_stay_unless_they_are_an_axis() -> None:
    network = network_of_flags("erf:2,erf:3/2", "he3")
    line = phases_of(network, "n2")
    for place in (F(1, 2), F(5, 4), F(3)):
        there = network_of_flags(f"erf:2,erf:{place}", "he3")
        assert line.at(place)[0] == scaling_of(there).exponent


@pytest.mark.parametrize(
    ("x", "y", "more", "words"),
    [
        ("n1", "n1", {}, "both axes of the phase diagram are 'n1'"),
        ("n1", "n3", {}, "n3"),
        ("n1", "n2", {"box": {"n1": (F(2), F(2))}}, "range of n1 is 2 to 2, which is empty"),
        ("n1", "n2", {"box": {"n1": (F(-1), F(2))}}, r"width of layer 1 is d\^-1"),
        ("n1", "n2", {"box": {"n9": (F(0), F(2))}}, "n9"),
        ("n1", "n2", {"at": {"q": F(0)}}, "q"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_line(x: str, y: str, more: dict, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words) as caught:
        phases_of(network_of_flags("erf:n1,erf:n2", "he3"), x, y, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("layers", "axes", "top"),
    [("erf:n:s", ("n", "s"), F(1)), ("erf:2:s,erf:n:3/4", ("n", "s"), F(3, 4))],
)
def test_patches_reach_to_what_sees_them(layers: str, axes: tuple[str, str], top: Fraction) -> None:
    network = network_of_flags(layers, "he3")
    # The default range of patches ends at 1; no network exists beyond 1 or beyond a later patch.
    box = None if top == 1 else {"s": (F(0), top)}
    diagram = phases_of(network, *axes, box=box)
    assert diagram.box[1] == (0, top)
    rng = random.Random(1)
    for _ in range(6):
        point = {"n": generic(rng, 0, 4), "s": top * generic(rng, 0, 1)}
        assert diagram.at(point["n"], point["s"])[0] == scaling_of(network, point).exponent
    with pytest.raises(InvalidParameter, match="patch"):
        phases_of(network, *axes, box={"s": (F(0), top + F(1, 8))})


def test_a_third_symbol_needs_a_value() -> None:
    network = network_of_flags("erf:n1,erf:n2", "he3", kappa="k")
    with pytest.raises(InvalidParameter, match="without value: k"):
        phases_of(network, "n1", "n2")
    assert phases_of(network, "n1", "n2", at={"k": F(2)}).at(F(2), F(2))[0] == F(7, 2)


def test_outside_the_box_there_is_no_answer() -> None:
    diagram = phase_diagram([("a", forms("x+y"))], "x", "y")
    with pytest.raises(InvalidParameter, match=r"\(5, 0\) is outside"):
        diagram.at(F(5), F(0))
    assert diagram.to_dict()["cells"][0]["polygons"] == [
        [["0", "0"], ["4", "0"], ["4", "4"], ["0", "4"]]
    ]


numbers = st.fractions(min_value=-3, max_value=3, max_denominator=9)


@given(st.tuples(numbers, numbers, numbers), st.tuples(numbers, numbers, numbers))
@settings(max_examples=60, deadline=None)
def test_halves_of_a_polygon_make_the_whole_again(first: tuple, second: tuple) -> None:
    box = rectangle((F(-1), F(2)), (F(-2), F(1)))
    part = clip(box, first) or box
    halves = [half for half in (clip(part, second), clip(part, tuple(-c for c in second))) if half]
    if any(second):
        assert sum(area(half) for half in halves) in (area(part), 2 * area(part))
        assert [sorted(whole) for whole in joined(dict.fromkeys(halves))] == [sorted(part)]
    for half in halves:
        assert all(contains(part, corner) for corner in half)


def test_a_cell_may_be_no_convex_polygon() -> None:
    # max(1, min(x, y)) equals 1 in an L-shaped region.
    rows = [("x", forms("x")), ("y", forms("y")), ("one", forms("1"))]
    diagram = phase_diagram(rows, "x", "y", box={"x": (F(0), F(2)), "y": (F(0), F(2))})
    assert {cell.names for cell in diagram.cells} == {("x",), ("y",), ("one",)}
    flipped = phase_diagram(
        [("max", forms("x", "y")), ("one", forms("1"))],
        "x",
        "y",
        box={"x": (F(0), F(2)), "y": (F(0), F(2))},
    )
    (ell,) = [cell for cell in flipped.cells if cell.names == ("one",)]
    assert isinstance(ell, Cell)
    assert ell.area == 3
    assert len(ell.pieces) == 2
