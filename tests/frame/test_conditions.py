"""Conditions of claims as data: which points they cover, and the sentences made from them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from solvable.errors import InvalidParameter
from solvable.frame.agreement import Agreement
from solvable.frame.conditions import (
    above,
    at_least,
    at_most,
    below,
    between,
    covers,
    inside,
    not_,
    one_of,
)
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point


@pytest.mark.parametrize(
    ("condition", "inside", "outside", "words"),
    [
        (at_least(2), [2, 3], [1.9, float("nan")], "of at least 2"),
        (at_most(2), [2, 1], [2.1, float("nan")], "of at most 2"),
        (above(0.2), [0.21], [0.2, float("nan")], "above 0.2"),
        (below(0.2), [0.19], [0.2, float("nan")], "below 0.2"),
        (between(1, 2), [1, 1.5, 2], [0.9, 2.1, float("nan")], "from 1 to 2"),
        (inside(1, 2), [1.5], [1, 2, float("nan")], "between 1 and 2"),
        (at_least(2, "depth"), [2], [1.9], "of at least 2 times depth"),
        (one_of("cnn", "mlp"), ["cnn", "mlp"], ["kernel"], "cnn or mlp"),
        (not_("none"), ["relu"], ["none"], "other than none"),
    ],
)
def test_each_condition_holds_inside_its_range_and_has_words(condition, inside, outside, words):
    assert [condition.holds(value) for value in inside] == [True] * len(inside)
    assert [condition.holds(value) for value in outside] == [False] * len(outside)
    assert condition.words == words


def point(overlap=0.5, **parameters):
    """A point with two replicates of an overlap that is measured as predicted."""
    metrics = [{"overlap": overlap}, {"overlap": overlap}]
    prediction = {"overlap": overlap, "threshold": 3.0, "phase": "IV", "gap": None}
    return Point(parameters, metrics, prediction, SimpleNamespace(**parameters))


@pytest.mark.parametrize(
    ("where", "covered"),
    [
        (None, True),
        ({"dimension": 40, "threshold": at_most(3)}, True),
        ({"dimension": 40, "threshold": below(3)}, False),
        ({"dimension": at_least(10, "threshold")}, True),
        ({"dimension": above(40 / 3, "threshold")}, False),
        ({"threshold": below(0.1, "dimension")}, True),
        ({"dimension": above(1, "gap")}, False),  # not predicted at this point
        ({"phase": "IV"}, True),
        ({"phase": "V"}, False),
        ({"unknown": "V"}, False),
        ({"gap": above(0)}, False),  # not predicted at this point
        (lambda place: place.setting.dimension < 40, False),
        (({"dimension": above(9)}, lambda place: place.setting.lift == "none"), True),
        (({"dimension": above(99)}, lambda place: place.setting.absent), False),
        ((), True),
        (
            {"dimension": 40, "an even dimension": lambda place: place.setting.dimension % 2 == 0},
            True,
        ),
        ({"an odd dimension": lambda place: place.setting.dimension % 2 == 1}, False),
    ],
)
def test_names_are_attributes_of_the_setting_or_predictions(where, covered):
    assert covers(where, point(dimension=40, lift="none")) is covered


def test_a_name_that_is_neither_is_refused():
    with pytest.raises(InvalidParameter, match="'depht' is used"):
        covers({"depht": above(1)}, point(depth=2))


def row(**changes):
    settings = {"source": "derived", "within": 0.1, "because": "Order 1/n."} | changes
    return Agreement("overlap", "The overlap is predicted.", metric="overlap", **settings)


DEEP = {"task": "boolean", "depth": at_least(3), "expected": above(0.2)}


def test_cells_are_chosen_by_their_expected_number():
    points = [point(overlap, task="boolean", depth=3) for overlap in (0.1, 0.5)]
    assert row(where=DEEP).verdict(points[1:]).status == "holds"
    assert row(where=DEEP).verdict(points[:1]).status == "not testable"


@pytest.mark.parametrize(
    ("where", "missing", "reason"),
    [
        (
            DEEP,
            "run with --preset boolean",
            "no point has task=boolean, depth of at least 3 and a predicted overlap above 0.2; run "
            "with --preset boolean",
        ),
        ({"threshold": above(5)}, "", "no point has a predicted threshold above 5"),
        ({"bayes": True}, "", "no point has bayes=true"),
        (
            {"depth": 2, "an odd depth": lambda cell: False},
            "",
            "no point has depth=2 and an odd depth",
        ),
        (lambda cell: False, "raise samples", "raise samples"),
        (({"depth": 5}, lambda cell: True), "raise depth", "raise depth"),
        (lambda cell: False, "", "the claim covers no point of this study"),
    ],
)
def test_the_reason_is_made_from_conditions_that_are_data(where, missing, reason):
    claim = row(where=where, missing=missing)
    assert claim.verdict([point(task="boolean", depth=2, bayes=False)]).reason == reason


def test_the_reason_names_the_metric_where_it_is_not_measured_everywhere():
    unmeasured = Point({}, [{"overlap": None}], {"overlap": None}, SimpleNamespace(depth=3))
    reason = row(where={"depth": 3}).verdict([unmeasured, point(depth=2)]).reason
    assert reason == "no point has a measured and expected overlap and depth=3"


def test_a_function_as_metric_has_an_expected_value():
    claim = Agreement(
        "double", "Twice the overlap.", lambda point: 2 * point.values("overlap"), "derived", 0.1,
        "Order 1/n.", expected=1.0, where={"expected": above(2)},
    )  # fmt: skip
    assert claim.verdict([point()]).reason == "no point has an expected value above 2"


@pytest.mark.parametrize(
    ("missing", "depth", "reason"),
    [
        ("", 2, "no point has depth of at least 3"),
        ("", 3, "the claim covers no group of points of this study"),
        ("no three depths; run with --preset depth", 2, "no three depths; run with --preset depth"),
    ],
)
def test_an_estimate_states_its_conditions_only_where_no_point_fulfils_them(missing, depth, reason):
    claim = Estimate(
        "slope", "The slope.", "derived", estimate=lambda points: None, within=0.1,
        because="Order 1/n.", where={"depth": at_least(3)}, missing=missing,
    )  # fmt: skip
    assert claim.check([point(depth=depth)]).reason == reason
