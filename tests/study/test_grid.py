from __future__ import annotations

import hashlib
import itertools
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, UnknownSystem
from solvable.study import Study
from solvable.study.grid import Task, task_stream
from solvable.study.parameters import validate_parameters
from solvable.systems.base import Parameters, Preset, System


class SmallParameters(Parameters):
    size: int = 1
    scale: float = 1.0
    kind: str = "mean"


class Small(System):
    name = "small"
    title = "Small"
    version = "1"
    parameters = SmallParameters
    presets: ClassVar = {"quick": Preset("two", {"size": (1, 2), "scale": (0.5,)}, replicates=3)}

    def measure(self, parameters, rng):
        return {}

    def predict(self, parameters):
        return {}


class Newer(Small):
    version = "2"


SMALL = Small()


def identities(*words, **options):
    return {task.identity for task in Study(*words, **options).tasks}


def test_identities_never_change():
    # Stores on disk are identified by these hashes: with others no study could be resumed.
    def digest(text):
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    study = Study(SMALL, {"size": 3, "scale": 0.1}, seed=7)
    point = '"small","1",{"kind":"mean","scale":0.1,"size":3}'
    assert study.tasks[0].identity == digest(f"[{point},0,7]")
    assert study.tasks[0].point == digest(f"[{point}]")
    assert study.fingerprint == digest(f'[["{study.tasks[0].identity}"]]')


def test_parameters_that_came_later_leave_earlier_tasks_as_they_were():
    class LaterParameters(SmallParameters):
        added = frozenset({"depth"})
        depth: int = 1

    later = Small()
    later.parameters = LaterParameters
    assert identities(later, {"size": [1, 2]}) == identities(SMALL, {"size": [1, 2]})
    assert identities(later, {"depth": 1}) == identities(SMALL)
    deeper = Study(later, {"depth": [1, 2]})
    assert len({task.identity for task in deeper.tasks}) == len(deeper.points) == 2
    assert deeper.tasks[1].parameters["depth"] == 2


def test_tasks_are_the_product():
    study = Study(SMALL, {"size": [1, 2], "scale": [0.5, 1.5, 2.5]}, 4)
    settings_and_replicates = {
        (task.parameters["size"], task.parameters["scale"], task.replicate) for task in study.tasks
    }
    expected = set(itertools.product([1, 2], [0.5, 1.5, 2.5], range(4)))
    assert settings_and_replicates == expected
    assert len({task.identity for task in study.tasks}) == len(study.tasks) == 24
    assert len({task.point for task in study.tasks}) == len(study.points) == 6
    assert all(task.parameters["kind"] == "mean" for task in study.tasks)
    # The first replicates of all points come before the second: an interrupted run covers the grid.
    assert [task.replicate for task in study.tasks] == sorted(list(range(4)) * 6)


@given(
    sizes=st.lists(st.integers(-5, 5), min_size=1, max_size=5),
    scales=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4),
    seed=st.randoms(use_true_random=False),
)
@settings(max_examples=50, deadline=None)
def test_order_and_repetition_of_values_do_not_matter(sizes, scales, seed):
    plain = Study(SMALL, {"size": sizes, "scale": scales})
    mixed = [*sizes, *sizes], [*scales, *scales]
    for values in mixed:
        seed.shuffle(values)
    other = Study(SMALL, {"scale": mixed[1], "size": mixed[0]})
    assert other.fingerprint == plain.fingerprint
    assert other.tasks == plain.tasks
    assert other.to_toml() == plain.to_toml()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"scale": 1}, {"scale": 1.0}),
        ({"scale": 0.0}, {"scale": -0.0}),
        ({"size": "10"}, {"size": 10}),
        ({"size": np.int64(10)}, {"size": 10}),
        ({"scale": np.array([0.5, 2.0])}, {"scale": ["2.0", "0.5"]}),
        ({"scale": np.float32(0.5)}, {"scale": 0.5}),
        ({"size": range(3)}, {"size": (2, 1, 0)}),
        ({"kind": "mean"}, {}),
    ],
)
def test_equal_settings_are_the_same_study(one, other):
    assert Study(SMALL, one).fingerprint == Study(SMALL, other).fingerprint


def test_what_an_identity_depends_on():
    (base,) = identities(SMALL, {"size": 3})
    others = [
        identities(SMALL, {"size": 4}),
        identities(SMALL, {"size": 3}, seed=1),
        identities(Newer(), {"size": 3}),
        identities(SMALL, {"size": 3}, 2) - {base},
    ]
    assert len(set.union({base}, *others)) == 5


def test_more_points_and_replicates_keep_the_old_tasks():
    few = identities(SMALL, {"size": [1, 2]}, 2)
    assert few < identities(SMALL, {"size": [1, 2, 3]}, 3)


def test_identity_counts_parameters_that_keep_their_default():
    """A changed default gives other identities, so that stored tasks are not mixed with new ones."""

    class Changed(Small):
        class Parameters(SmallParameters):
            scale: float = 2.0

        parameters = Parameters

    assert not identities(Changed(), {"size": 3}) & identities(SMALL, {"size": 3})


def test_streams_come_from_the_identity_alone():
    study = Study(SMALL, {"size": [1, 2, 3]}, 5)
    draws = {task.stream().integers(2**63) for task in study.tasks}
    assert len(draws) == 15
    task = study.tasks[7]
    alone = Task(task.identity, "", {}, 0)
    np.testing.assert_array_equal(alone.stream().random(9), task.stream().random(9))
    assert isinstance(task.stream().bit_generator, np.random.Philox)
    np.testing.assert_array_equal(
        task_stream(task.identity).random(3), random_stream("task", task.identity).random(3)
    )


def test_streams_of_tasks_are_uncorrelated():
    study = Study(SMALL, {"size": list(range(20))}, 10)
    draws = np.array([task.stream().standard_normal(500) for task in study.tasks])
    gram = draws @ draws.T / 500
    off = gram[np.triu_indices(200, 1)]
    # 19,900 correlations have a standard deviation of 1/sqrt(500) = 0.045; the largest is near 4.1 of it,
    # and above 6 with probability 4e-5. Their mean square is 1/500 within 1 % (3 standard errors).
    assert np.abs(off).max() < 6 / np.sqrt(500)
    assert np.mean(off**2) == pytest.approx(1 / 500, rel=3 * np.sqrt(2 / 19_900) + 0.01)


def test_preset_and_what_replaces_it():
    study = Study(SMALL, preset="quick")
    assert (study.preset, study.replicates) == ("quick", 3)
    assert study.grid == {"size": [1, 2], "scale": [0.5]}
    assert len(study.tasks) == 6
    study = Study(SMALL, {"size": 7, "kind": "median"}, 1, preset="quick")
    assert study.grid == {"size": [7], "scale": [0.5], "kind": ["median"]}
    assert len(study.tasks) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"sise": 1},), "a parameter of small is 'sise'.*size.*Did you mean 'size'"),
        (({"size": []},), "size has no values in the grid"),
        (({"size": 1.5},), "size is 1.5; allowed: whole numbers"),
        (({"size": [1, "many"]},), "size is 'many'"),
        (({"scale": float("nan")},), "scale is nan; allowed: numbers"),
        (({"scale": [1.0, np.inf]},), "scale is inf"),
        (({}, 0), "replicates is 0; allowed: whole numbers from 1"),
        (({}, 2.0), "replicates is 2.0"),
        (({}, True), "replicates is True"),
        (({"size": list(range(1000)), "scale": list(range(1000))}, 2), "2000000 tasks.*1000000"),
    ],
)
def test_bad_grids(arguments, message):
    with pytest.raises(InvalidParameter, match=message) as caught:
        Study(SMALL, *arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", [-1, 1.0, None, "0"])
def test_bad_seed(seed):
    with pytest.raises(InvalidParameter, match="seed is"):
        Study(SMALL, seed=seed)


def test_unknown_preset():
    with pytest.raises(InvalidParameter, match=r"preset of small is 'quik'.*Did you mean 'quick'"):
        Study(SMALL, preset="quik")


def test_validate_parameters_reads_text_and_fills_defaults(toy):
    model = validate_parameters(toy, {"size": "60", "scale": "0.5"})
    assert (model.size, model.scale, model.kind) == (60, 0.5, "mean")
    with pytest.raises(
        InvalidParameter, match=r"size is 0; allowed: whole numbers from 1.* Raise size"
    ):
        validate_parameters(toy, {"size": 0})
    with pytest.raises(InvalidParameter, match=r"allowed: mean, median. Did you mean .mean."):
        validate_parameters(toy, {"kind": "men"})


def test_a_missing_required_parameter_and_a_check_across_parameters():
    from pydantic import model_validator

    class Strict(Parameters):
        size: int
        features: int = 2

        @model_validator(mode="after")
        def _check(self):
            if self.features > self.size:
                raise ValueError(f"features is {self.features}, more than size")
            if self.size == 13:
                raise InvalidParameter("size is 13; allowed: other numbers")
            return self

    class Demanding(Small):
        parameters = Strict

    with pytest.raises(InvalidParameter, match=r"^size has no default; set it with size=VALUE\.$"):
        Study(Demanding())
    with pytest.raises(InvalidParameter, match=r"^features is 2, more than size\.$"):
        Study(Demanding(), {"size": 1})
    with pytest.raises(InvalidParameter, match=r"^size is 13; allowed: other numbers$"):
        Study(Demanding(), {"size": [12, 13]})


def test_toml_repeats_the_study(toy):
    grid = {
        "size": [5, 50],
        "scale": [-0.5, 1e-7, 3.0],
        "kind": ["median"],
        "widths": [[3], [4, 5]],
    }
    study = Study(toy, grid, 3, seed=12)
    again = Study.from_toml(study.to_toml(), toy)
    assert again.fingerprint == study.fingerprint
    assert again.tasks == study.tasks
    assert again.to_toml() == study.to_toml()
    preset = Study(toy, preset="quick")
    again = Study.from_toml(preset.to_toml(), toy)
    assert (again.preset, again.fingerprint) == ("quick", preset.fingerprint)


def test_toml_holds_the_values_of_the_preset(toy):
    """A file repeats its study even if the preset changes later."""
    old = Study(toy, preset="quick")

    class Changed(type(toy)):
        presets: ClassVar = {"quick": Preset("other", {"size": (99,)}, replicates=9)}

    assert Study.from_toml(old.to_toml(), Changed()).fingerprint == old.fingerprint


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('system = "other"', InvalidParameter, "is about other; the system given is small"),
        ('system = "small"\nversion = "9"', InvalidParameter, "version 9 of small; installed is 1"),
        ('system = "small"\npreset = "qick"', InvalidParameter, "Did you mean 'quick'"),
        ('system = "small"\n[grid]\nsice = [1]', InvalidParameter, "Did you mean 'size'"),
        ('system = "small"\nreplicates = 0', InvalidParameter, "replicates is 0"),
        ('system = "small"\nseed = -2', InvalidParameter, "seed is -2"),
    ],
)
def test_bad_study_files(text, error, message):
    with pytest.raises(error, match=message):
        Study.from_toml(text, SMALL)


def test_study_file_of_a_system_that_is_not_installed():
    with pytest.raises(UnknownSystem, match="system is 'sequential-recover'"):
        Study.from_toml('system = "sequential-recover"')


def test_study_file_of_an_installed_system():
    study = Study.from_toml('system = "sequential-recovery"\n[grid]\nsamples = [1000]')
    assert study.system.name == "sequential-recovery"
    assert study.points[0]["samples"] == 1000


POINTS = [{"size": 20, "scale": 0.5}, {"size": 10, "scale": 2.0}, {"size": 20, "scale": 0.5}]


def test_points_are_settings_that_are_no_product(toy):
    study = Study(toy, {"kind": ["mean", "median"]}, 2, points=POINTS)
    settings = {(p["size"], p["scale"], p["kind"]) for p in study.points}
    assert settings == {(s, x, k) for s, x in ((20, 0.5), (10, 2.0)) for k in ("mean", "median")}
    again = Study.from_toml(study.to_toml(), toy)
    assert again.fingerprint == study.fingerprint
    grid = Study(toy, {"kind": ["mean", "median"], "size": 10, "scale": 2.0}, 2)
    assert {task.identity for task in grid.tasks} < {task.identity for task in study.tasks}


def test_points_replace_the_preset(toy):
    study = Study(toy, preset="quick", points=[{"size": 7}])
    assert [(p["size"], p["scale"]) for p in study.points] == [(7, 2.0)]


@pytest.mark.parametrize(
    ("grid", "points", "words"),
    [
        ({"size": 3}, POINTS, "size is given in the points and in the grid"),
        ({}, [{"size": 3}, {"scale": 1.0}], "point 2 names scale, the first one size"),
        ({}, [{"sizes": 3}], "sizes"),
    ],
)
def test_points_that_are_no_settings_are_refused(toy, grid, points, words):
    with pytest.raises(InvalidParameter, match=words):
        Study(toy, grid, points=points)
