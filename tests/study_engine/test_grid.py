"""Studies as grids: identities, streams, canonical order, TOML and bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.study import Study
from solvable.study.grid import task_stream
from solvable.study.parameters import canonical_json


def test_identities_depend_on_what_is_asked_and_on_nothing_else(toy):
    one = Study(toy, {"samples": [20, 10], "shift": [0.5]}, 2)
    same = Study(toy, {"shift": [0.5, 0.5], "samples": [10, 20, 10]}, 2)
    assert one.fingerprint == same.fingerprint
    assert [task.identity for task in one.tasks] == [task.identity for task in same.tasks]
    more = Study(toy, {"samples": [10, 20, 30], "shift": [0.5]}, 3)
    assert {t.identity for t in one.tasks} < {t.identity for t in more.tasks}
    assert not {t.identity for t in one.tasks} & {
        t.identity for t in Study(toy, {"samples": [10, 20], "shift": [0.5]}, 2, seed=1).tasks
    }


def test_a_new_version_of_the_system_is_another_study(toy, monkeypatch):
    old = Study(toy).fingerprint
    monkeypatch.setattr(type(toy), "version", "2")
    assert Study(toy).fingerprint != old


def test_streams_are_independent_and_repeatable(toy):
    tasks = Study(toy, {"samples": list(range(2, 40))}, 3).tasks
    first = [task.stream().random() for task in tasks]
    assert len(set(first)) == len(tasks)
    assert first == [task_stream(task.identity).random() for task in tasks]


@given(st.dictionaries(st.sampled_from("abc"), st.floats(allow_nan=False, allow_infinity=False)))
@settings(max_examples=50, deadline=None)
def test_canonical_json_forgets_order_and_the_sign_of_zero(values):
    flipped = {key: (-0.0 if value == 0 else value) for key, value in reversed(values.items())}
    assert canonical_json(values) == canonical_json(flipped)


def test_toml_round_trip(toy):
    study = Study(toy, {"shift": [0.1, 1e-300], "samples": (5,)}, 4, seed=7)
    again = Study.from_toml(study.to_toml(), toy)
    assert again.fingerprint == study.fingerprint
    preset = Study(toy, preset="quick")
    assert Study.from_toml(preset.to_toml(), toy).preset == "quick"
    assert len(preset.tasks) == 6


@pytest.mark.parametrize(
    ("grid", "rest", "words"),
    [
        ({"sample": 5}, {}, "samples"),
        ({"samples": 1}, {}, "samples"),
        ({"samples": []}, {}, "samples"),
        ({"shift": float("nan")}, {}, "shift"),
        ({"shift": "big"}, {}, "shift"),
        ({}, {"replicates": 0}, "replicates is 0"),
        ({}, {"replicates": True}, "replicates is True"),
        ({}, {"seed": -1}, "seed is -1"),
        ({}, {"preset": "quik"}, "quick"),
        ({"samples": list(range(2, 9000)), "shift": list(np.arange(200.0))}, {}, "Split"),
    ],
)
def test_bad_studies(toy, grid, rest, words):
    with pytest.raises(InvalidParameter, match=words) as error:
        Study(toy, grid, **rest)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "system = 3", "][", 'system = "toy"\nversion = "9"\n'])
def test_bad_toml(toy, text):
    with pytest.raises(InvalidParameter):
        Study.from_toml(text, toy)
