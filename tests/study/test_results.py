from __future__ import annotations

import csv
import sqlite3
from itertools import pairwise

import numpy as np
import pytest

from solvable.errors import InvalidData, StorageFailed, UnknownSystem
from solvable.study import Study, load, run_study
from solvable.study.execute import Outcome
from solvable.study.store import Store
from solvable.study.tables import metric_tables
from solvable.systems.base import Agreement, Claim, Finding, NotTestable, Point


@pytest.fixture
def study(toy):
    return Study(toy, {"size": [20, 3, 100], "scale": [1.0, 0.5]}, 2)


@pytest.fixture
def done(study, tmp_path):
    return run_study(study, tmp_path / "run", workers=1)


def test_records_are_ordered_by_point_then_replicate(done, study):
    order = [
        (one["parameters"]["size"], one["parameters"]["scale"], one["replicate"])
        for one in done.records
    ]
    assert order == sorted(order)
    assert len(order) == 12
    by_identity = {task.identity: task for task in study.tasks}
    for record in done.records:
        task = by_identity.pop(record["task"])
        assert record["parameters"] == task.parameters
        assert record["replicate"] == task.replicate
        assert (record["system"], record["version"]) == ("toy", "1")
        assert record["prediction"]["spectrum"] == [float(task.parameters["size"])] * 3
        assert record["seconds"] > 0
        assert record["peak_memory"] > 2**20
    assert not by_identity


def test_records_hold_what_a_task_computes(done, study):
    record = done.records[0]
    (task,) = [task for task in study.tasks if task.identity == record["task"]]
    size, scale = task.parameters["size"], task.parameters["scale"]
    draws = scale * task.stream().standard_normal((size, 30))
    assert record["metrics"]["mean"] == draws.mean()


def test_points_group_replicates(done):
    assert [p.parameters["size"] for p in done.points] == [3, 3, 20, 20, 100, 100]
    for point in done.points:
        assert point.replicates == 2
        values = [
            one["metrics"]["mean"] for one in done.records if one["parameters"] == point.parameters
        ]
        np.testing.assert_array_equal(point.values("mean"), values)
        assert point.predicted("width") == 1.0
        assert np.isnan(point.values("absent").astype(float)).all()


def test_loading_again_gives_the_same(done, toy):
    again = load(done.directory, toy)
    assert again.records == done.records
    assert again.verdicts == done.verdicts
    assert again.snapshot == done.snapshot
    assert again.complete
    assert (again.planned, again.missing, again.failures) == (12, 0, [])


def test_verdicts_are_those_of_the_claims_on_the_points(done):
    (verdict,) = done.verdicts
    assert (verdict.claim, verdict.status, verdict.replicates) == ("mean", "holds", 12)
    mean = np.mean([p.mean("mean") for p in done.points])
    assert verdict.measured == pytest.approx(1_000 + mean)


def test_load_evaluates_the_claims_of_the_system_that_it_is_given(done, toy):
    class Doubtful(type(toy)):
        claims = (Claim("no", "Never.", "derived", "", lambda points: NotTestable("so it is")),)

    (verdict,) = load(done.directory, Doubtful()).verdicts
    assert (verdict.status, verdict.reason) == ("not testable", "so it is")


def test_a_study_that_has_not_begun(study, tmp_path, toy):
    Store(tmp_path, study).close()
    result = load(tmp_path, toy)
    assert (result.planned, result.missing, result.complete) == (12, 12, False)
    assert result.records == []
    assert result.points == []
    (verdict,) = result.verdicts
    assert verdict.status == "not testable"
    assert "no task of this study has finished" in verdict.reason
    assert result.write_records().read_text().strip() == ""


def test_half_a_study(study, tmp_path, toy):
    first, second = study.tasks[:2]
    with Store(tmp_path, study) as store:
        store.commit(Outcome("task", first.identity, {"mean": 1.0}))
        store.commit(Outcome("task", second.identity, {"mean": 2.0}))
        store.commit(Outcome("prediction", second.point, {"mean": 0.0}))
        store.commit(Outcome("prediction", first.point, error="OverflowError: too far"))
        store.commit(Outcome("task", study.tasks[-1].identity, error="ValueError: no"))
        result = load(tmp_path, toy)  # while the store is open for writing
    assert [one["metrics"]["mean"] for one in result.records] == [1.0, 2.0]
    raised = {"no prediction": "error: OverflowError: too far"}
    assert [one["prediction"] for one in result.records] == [raised, {"mean": 0.0}]
    # A point whose prediction raised an error is drawn but not compared.
    assert [(point.parameters, point.refused) for point in result.points] == [
        (first.parameters, True),
        (second.parameters, False),
    ]
    assert (result.missing, result.complete) == (10, False)
    found = [(one.parameters, one.replicate, one.error) for one in result.failures]
    assert found == [
        (first.parameters, None, "OverflowError: too far"),
        (study.tasks[-1].parameters, 1, "ValueError: no"),
    ]


def test_a_result_is_a_snapshot(study, tmp_path, toy):
    with Store(tmp_path, study) as store:
        before = load(tmp_path, toy)
        store.commit(Outcome("task", study.tasks[0].identity, {"mean": 1.0}))
        assert before.records == []
        assert len(load(tmp_path, toy).records) == 1


def test_reading_does_not_write(done, toy):
    files = {path: path.read_bytes() for path in done.directory.iterdir() if path.is_file()}
    result = load(done.directory, toy)
    assert result.records
    assert result.verdicts
    result.teacher(result.records[0]["task"])
    assert {path: path.read_bytes() for path in done.directory.iterdir()} == files


def test_a_store_that_was_not_closed_is_read_with_its_log(study, tmp_path, toy):
    """Read a copy of a running study, whose last commits are only in the log, as after kill -9."""
    with Store(tmp_path / "run", study) as store:
        store.commit(Outcome("task", study.tasks[0].identity, {"mean": 1.0}))
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("study.sqlite", "study.sqlite-wal"):
            (copy / name).write_bytes((tmp_path / "run" / name).read_bytes())
    assert len(load(copy, toy).records) == 1


def test_the_csv_holds_every_number(done):
    with (done.directory / "records.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    for row, record in zip(rows, done.records, strict=True):
        assert row["task"] == record["task"]
        assert int(row["replicate"]) == record["replicate"]
        assert int(row["size"]) == record["parameters"]["size"]
        assert float(row["mean"]) == record["metrics"]["mean"]
        spectrum = [float(row[f"spectrum[{i}]"]) for i in range(3)]
        assert spectrum == record["metrics"]["spectrum"]
        assert float(row["predicted.width"]) == 1.0
        assert row["absent"] == ""
        assert [row["widths[0]"], row["widths[1]"]] == ["1", "2"]
        assert float(row["seconds"]) == record["seconds"]
    header = list(rows[0])
    order = ["task", "size", "mean", "spectrum[0]", "spectrum[2]", "predicted.mean", "library"]
    assert all(header.index(a) < header.index(b) for a, b in pairwise(order))


def test_the_csv_of_lists_of_different_lengths_and_names_that_collide(toy, tmp_path):
    class Ragged(type(toy)):
        def measure(self, parameters, rng):
            return {"size": 5.5, "list": list(range(parameters.size))}

    run_study(Study(Ragged(), {"size": [1, 3]}), tmp_path, workers=1)
    with (tmp_path / "records.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["size"] for row in rows] == ["1", "3"]
    assert [row["measured.size"] for row in rows] == ["5.5", "5.5"]
    assert [[row[f"list[{i}]"] for i in range(3)] for row in rows] == [
        ["0.0", "", ""],
        ["0.0", "1.0", "2.0"],
    ]


def test_text_with_commas_and_lines_survives_the_csv(toy, tmp_path):
    class Text(type(toy)):
        class Worded(toy.parameters):
            word: str = 'a,"b"\nc'

        parameters = Worded

    run_study(Study(Text()), tmp_path, workers=1)
    with (tmp_path / "records.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["word"] == 'a,"b"\nc'


def test_words_are_kept_in_records_and_csv_and_have_no_mean(toy, tmp_path):
    class Named(type(toy)):
        def measure(self, parameters, rng):
            return {"mean": 0.0, "phase": "large, so it is" if parameters.size > 5 else "1"}

        def predict(self, parameters):
            return {"mean": 0.0, "phase": "nan"}

    system = Named()
    found = run_study(Study(system, {"size": [3, 7]}, 2), tmp_path, workers=1)
    words = ["1", "1", "large, so it is", "large, so it is"]
    for result in (found, load(tmp_path, system)):
        assert [one["metrics"]["phase"] for one in result.records] == words
        assert {one["prediction"]["phase"] for one in result.records} == {"nan"}
        assert result.verdicts[0].status == "holds"
    with found.write_records().open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["phase"] for row in rows] == words
    assert {row["predicted.phase"] for row in rows} == {"nan"}
    # Words such as "nan", which NumPy can parse as numbers, have no value either.
    for number in (Point.values, Point.mean, Point.standard_error, Point.predicted):
        with pytest.raises(InvalidData, match="metric 'phase' is the word"):
            number(found.points[0], "phase")


def test_a_study_of_numbers_is_resumed_by_a_system_that_has_words(toy, tmp_path):
    class Named(type(toy)):
        def predict(self, parameters):
            return super().predict(parameters) | {"phase": "bulk"}

    run_study(Study(toy, {"size": [3]}), tmp_path, workers=1)
    before = load(tmp_path, toy).records
    again = run_study(Study(Named(toy.directory), {"size": [3]}), tmp_path, workers=1)
    assert again.records == before
    assert metric_tables(again.points)[0].columns == ("mean", "threads", "absent", "width")


def test_teacher_arrays(done, study):
    for task in study.tasks:
        arrays = done.teacher(task.identity)
        np.testing.assert_array_equal(arrays["first"], task.stream().standard_normal(4))
        assert arrays["labels"].tolist() == ["a", "b"]
    assert done.teacher("unknown") == {}


def test_no_array_is_unpickled(done, tmp_path, toys):
    """Reading an array of objects in NumPy's format with pickle would run code."""
    import io

    buffer = io.BytesIO()
    np.save(buffer, np.array([toys.Toy()], dtype=object), allow_pickle=True)
    connection = sqlite3.connect(done.directory / "study.sqlite")
    with connection:
        connection.execute("UPDATE arrays SET content = ?", (buffer.getvalue(),))
    connection.close()
    with pytest.raises(StorageFailed, match="damaged"):
        done.teacher(done.records[0]["task"])


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"nothing"])
def test_damaged_arrays(done, content):
    connection = sqlite3.connect(done.directory / "study.sqlite")
    with connection:
        connection.execute("UPDATE arrays SET content = ?", (content,))
    connection.close()
    with pytest.raises(StorageFailed):
        done.teacher(done.records[0]["task"])


def test_no_such_directory_or_an_empty_one(tmp_path, toy):
    for directory in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(StorageFailed, match=r"study\.sqlite: no such file"):
            load(directory, toy)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "study.sqlite").touch()  # the state after a kill before the plan is committed
    with pytest.raises(StorageFailed, match="contains no study"):
        load(tmp_path, toy)


def test_a_system_that_is_not_installed(done):
    with pytest.raises(UnknownSystem, match="system is 'toy'"):
        load(done.directory)


NEWER = Agreement(
    "size", "A metric that was added later.", "size", "derived", within=0.1, because="None.",
    expected=1.0,
)  # fmt: skip


def test_a_claim_on_a_newer_metric_is_not_testable_on_a_stored_run(toy, tmp_path):
    run_study(Study(toy, {"size": [3]}, 2), tmp_path, workers=1)
    nan = Claim("nan", "A function of the metric.", "derived", "any",
                lambda points: Finding(float(points[0].mean("size")), 1.0, 0.1))  # fmt: skip
    toy.claims = (*toy.claims, NEWER, nan)
    verdicts = {verdict.claim: verdict for verdict in load(tmp_path, toy).verdicts}
    for name in ("size", "nan"):
        assert verdicts[name].status == "not testable"
        assert "measured before this metric existed; run again" in verdicts[name].reason


def test_a_claim_that_names_a_wrong_metric_is_an_error_of_a_fresh_run(toy, tmp_path):
    toy.claims = (NEWER,)
    (verdict,) = run_study(Study(toy, {"size": [3]}, 2), tmp_path, workers=1).verdicts
    assert verdict.status == "error"
    assert "Correct the claim's row" in verdict.reason
