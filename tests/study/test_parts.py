"""Parts of a study: disjoint, resumed, and joined into the store that one run would have written."""

from __future__ import annotations

import sqlite3
from collections import Counter
from itertools import chain

import pytest

from solvable.errors import InvalidParameter, StorageFailed, StudyBusy, StudyConflict
from solvable.study import Study, load, run_study
from solvable.study.parts import Part
from solvable.study.store import Store

GRID = {"size": [1, 5, 20]}


@pytest.mark.parametrize(("replicates", "count"), [(4, 3), (3, 3), (1, 2), (2, 7), (5, 1)])
def test_parts_are_disjoint_and_complete(toy, replicates, count):
    study = Study(toy, GRID, replicates)
    parts = [Part(index, count) for index in range(1, count + 1)]
    shares = [[task.identity for task in part.tasks(study)] for part in parts]
    assert sorted(chain.from_iterable(shares)) == sorted(task.identity for task in study.tasks)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    points = chain.from_iterable(part.predictions(study) for part in parts)
    assert sorted(points) == sorted({task.point for task in study.tasks})


def test_a_part_for_each_replicate_has_every_point_once(toy):
    study = Study(toy, GRID, 4)
    for index in range(1, 5):
        points = Counter(task.point for task in Part(index, 4).tasks(study))
        assert set(points.values()) == {1}
        assert len(points) == 3


@pytest.mark.parametrize("text", ["", "3", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "a/b", "1.0/3"])
def test_a_wrong_part_is_refused(toy, tmp_path, text):
    with pytest.raises(InvalidParameter, match=r"allowed: K/N .* such as 3/10") as caught:
        run_study(Study(toy), tmp_path, part=text)
    assert "\n" not in str(caught.value)


def test_joined_parts_are_what_one_run_stores(toy, toys, logs, tmp_path, rows_of_tables):
    study = Study(toy, GRID | {"scale": [1.0, 2.0]}, 4)
    seen = []
    for index in (1, 2, 3):
        run_study(
            study,
            tmp_path / "run",
            workers=1,
            part=f"{index}/3",
            progress=lambda *words: seen.append(words),
        )
    # The progress of a part counts the tasks of the part.
    assert [(done, total) for done, total, _ in seen] == [(i, 8) for i in range(9)] * 3
    begun = toys.notes(logs, "begun")
    assert len(begun) == len(set(begun)) == 24
    joined = run_study(study, tmp_path / "run", workers=1)
    assert joined.complete
    assert toys.notes(logs, "begun") == begun
    run_study(study, tmp_path / "one", workers=1)
    assert rows_of_tables(tmp_path / "run") == rows_of_tables(tmp_path / "one")


def test_missing_tasks_of_parts_are_run_and_joined_tasks_are_not(toy, toys, logs, tmp_path):
    study = Study(toy, GRID, 4)
    run_study(study, tmp_path, workers=1, part="2/3")
    assert run_study(study, tmp_path, workers=1).complete
    assert len(toys.notes(logs, "begun")) == 12
    # A part that comes later finds its tasks in the whole study.
    run_study(study, tmp_path, workers=1, part="1/3")
    assert max(Counter(toys.notes(logs, "begun")).values()) == 1
    assert run_study(study, tmp_path, workers=1).complete


def test_parts_of_another_study_are_refused(toy, tmp_path):
    run_study(Study(toy, GRID, 4), tmp_path, workers=1, part="1/3")
    with pytest.raises(StudyConflict, match=r"1-of-3: holds another study \(replicates 4 there, 5"):
        run_study(Study(toy, GRID, 5), tmp_path, workers=1)
    other = tmp_path / "other"
    run_study(Study(toy, GRID, 4), other, workers=1)
    with pytest.raises(StudyConflict, match="holds another study"):
        run_study(Study(toy, GRID, 5), other, workers=1, part="1/3")


def test_a_part_that_still_runs_is_not_joined(toy, toys, logs, tmp_path):
    study = Study(toy, GRID, 4)
    with (
        Store(Part(1, 3).directory(tmp_path), study),
        pytest.raises(StudyBusy, match="1-of-3: another process is running a study there"),
    ):
        run_study(study, tmp_path, workers=1)
    assert toys.notes(logs, "begun") == []
    assert run_study(study, tmp_path, workers=1).complete


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE results SET metrics = '{}'",
        "DELETE FROM results WHERE task = (SELECT min(task) FROM results)",
        "UPDATE arrays SET content = x'00'",
    ],
)
def test_a_part_whose_entries_changed_is_refused_and_nothing_is_copied(toy, tmp_path, change):
    study = Study(toy, GRID, 4)
    directory = run_study(study, tmp_path, workers=1, part="1/3").directory
    connection = sqlite3.connect(directory / "study.sqlite")
    with connection:
        changed = connection.execute(change).rowcount
    connection.close()
    assert changed > 0
    with pytest.raises(StorageFailed, match="has changed since it was written"):
        run_study(study, tmp_path, workers=1)
    assert load(tmp_path, toy).records == []


def test_failures_of_a_part_run_again_in_the_whole(toy, toys, logs, tmp_path):
    study = Study(toy, {"action": ["none", "raise"]}, 2)
    part = run_study(study, tmp_path, workers=1, part="1/1")
    assert len(part.failures) == 2
    whole = run_study(study, tmp_path, workers=1)
    assert (len(whole.records), len(whole.failures)) == (2, 2)
    assert Counter(Counter(toys.notes(logs, "begun")).values()) == {1: 2, 2: 2}
