from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from solvable.errors import SolvableError, StorageFailed, StudyBusy, StudyConflict, StudyTooNew
from solvable.study import Study, load, run_study
from solvable.study.database import APPLICATION, FORMAT
from solvable.study.execute import Outcome
from solvable.study.store import Store


@pytest.fixture
def study(toy):
    return Study(toy, {"size": [10, 20]}, 2)


def result(task, value=1.0, **more):
    return Outcome("task", task.identity, {"mean": value}, **more)


def rows(directory, query):
    connection = sqlite3.connect(directory / "study.sqlite")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def change(directory, *statements):
    connection = sqlite3.connect(directory / "study.sqlite", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_new_store_holds_the_plan(study, tmp_path):
    with Store(tmp_path / "a" / "b", study) as store:
        assert store.finished() == set()
    meta = dict(rows(store.directory, "SELECT * FROM meta"))
    assert meta["fingerprint"] == study.fingerprint
    assert meta["study"] == study.to_toml()
    planned = rows(store.directory, "SELECT identity, point, replicate FROM tasks")
    assert sorted(planned) == sorted(
        (task.identity, task.point, task.replicate) for task in study.tasks
    )


def test_what_is_committed_is_there_for_others_at_once(study, tmp_path):
    with Store(tmp_path, study) as store:
        store.commit(result(study.tasks[0]))
        assert rows(tmp_path, "SELECT task FROM results") == [(study.tasks[0].identity,)]
        assert rows(tmp_path, "PRAGMA journal_mode") == [("wal",)]


def test_resume_finds_what_is_finished(study, tmp_path):
    with Store(tmp_path, study) as store:
        store.commit(result(study.tasks[2]))
        store.commit(Outcome("prediction", study.tasks[0].point, {"mean": 0.0}))
        store.commit(Outcome("task", study.tasks[1].identity, error="failed"))
    with Store(tmp_path, study) as store:
        assert store.finished() == {study.tasks[2].identity, study.tasks[0].point}


def test_one_file_remains_after_the_run(study, tmp_path):
    with Store(tmp_path, study) as store:
        store.commit(result(study.tasks[0]))
    assert sorted(p.name for p in tmp_path.iterdir()) == [".study.lock", "study.sqlite"]


def test_a_second_result_of_a_task_is_refused(study, tmp_path):
    with Store(tmp_path, study) as store:
        store.commit(result(study.tasks[0], 1.0))
        with pytest.raises(StorageFailed, match="UNIQUE"):
            store.commit(result(study.tasks[0], 2.0))
        store.commit(result(study.tasks[1], 3.0))
    assert sorted(rows(tmp_path, "SELECT metrics FROM results")) == [
        ('{"mean":1.0}',),
        ('{"mean":3.0}',),
    ]


def test_a_result_replaces_an_earlier_failure(study, tmp_path):
    task = study.tasks[0]
    with Store(tmp_path, study) as store:
        store.commit(Outcome("task", task.identity, error="first"))
        store.commit(Outcome("task", task.identity, error="second", trace="here"))
        assert rows(tmp_path, "SELECT error, trace FROM failures") == [("second", "here")]
        store.commit(result(task))
    assert rows(tmp_path, "SELECT * FROM failures") == []


def test_a_commit_is_whole_or_nothing(study, tmp_path):
    bad = {"good": b"1", "wrong": None}  # the column allows no NULL
    with Store(tmp_path, study) as store:
        with pytest.raises(StorageFailed):
            store.commit(result(study.tasks[0], arrays=bad))
        assert store.finished() == set()
    assert rows(tmp_path, "SELECT * FROM arrays") == []


def test_numbers_keep_every_bit(study, tmp_path):
    values = [0.1, 1 / 3, 5e-324, np.nextafter(1, 2), 1.7976931348623157e308, None, -0.0]
    with Store(tmp_path, study) as store:
        metrics = {"x": [v if v is None else float(v) for v in values]}
        store.commit(Outcome("task", study.tasks[0].identity, metrics))
    (record,) = load(tmp_path, study.system).records
    as_hex = [None if v is None else float(v).hex() for v in record["metrics"]["x"]]
    assert as_hex == [None if v is None else float(v).hex() for v in values]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (({"size": [10, 30]}, 2), r"size \[10, 20\] there, \[10, 30\] asked"),
        (({"size": [10, 20]}, 3), "replicates 2 there, 3 asked"),
        (({"size": [10, 20], "kind": "median"}, 2), r"kind default there, \['median'\] asked"),
    ],
)
def test_another_study_is_refused(study, tmp_path, other, message):
    with Store(tmp_path, study) as store:
        store.commit(result(study.tasks[0]))
    before = (tmp_path / "study.sqlite").read_bytes()
    with pytest.raises(StudyConflict, match=message) as caught:
        Store(tmp_path, Study(study.system, *other))
    assert "Use another directory" in str(caught.value)
    assert (tmp_path / "study.sqlite").read_bytes() == before


def test_another_seed_version_or_default_is_refused(study, tmp_path):
    Store(tmp_path, study).close()
    with pytest.raises(StudyConflict, match="seed 0 there, 5 asked"):
        Store(tmp_path, Study(study.system, study.grid, 2, seed=5))

    class Newer(type(study.system)):
        version = "2"

    with pytest.raises(StudyConflict, match="version 1 there, 2 asked"):
        Store(tmp_path, Study(Newer(), study.grid, 2))

    class Other(type(study.system)):
        class Changed(study.system.parameters):
            scale: float = 3.0

        parameters = Changed

    with pytest.raises(StudyConflict, match="other defaults"):
        Store(tmp_path, Study(Other(), study.grid, 2))


def test_the_same_study_through_a_preset_is_resumed(toy, tmp_path):
    Store(tmp_path, Study(toy, preset="quick")).close()
    Store(tmp_path, Study(toy, {"size": [20, 10], "scale": 2}, 2)).close()


def test_a_second_writer_is_refused(study, tmp_path):
    code = textwrap.dedent(
        """
        import sys
        from toy_system import Toy
        from solvable.errors import StudyBusy
        from solvable.study import Study
        from solvable.study.store import Store
        try:
            Store(sys.argv[1], Study(Toy(), {"size": [10, 20]}, 2))
        except StudyBusy as error:
            print(error)
        """
    )
    with Store(tmp_path, study):
        with pytest.raises(StudyBusy, match="another process is running a study there"):
            Store(tmp_path, study)
        command = [sys.executable, "-c", code, str(tmp_path)]
        other = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert "another process is running a study there" in other.stdout
    Store(tmp_path, study).close()


def test_a_refused_store_frees_the_directory(study, tmp_path):
    Store(tmp_path, study).close()
    for _ in range(2):
        with pytest.raises(StudyConflict):
            Store(tmp_path, Study(study.system))
    Store(tmp_path, study).close()


def test_a_store_of_a_newer_version_is_refused(study, tmp_path):
    Store(tmp_path, study).close()
    change(tmp_path, f"PRAGMA user_version = {FORMAT + 1}")
    for opened in (lambda: Store(tmp_path, study), lambda: load(tmp_path, study.system)):
        with pytest.raises(StudyTooNew, match=f"format {FORMAT + 1}.*reads up to {FORMAT}.*newer"):
            opened()


def test_a_database_of_another_program_is_refused(study, tmp_path):
    change(tmp_path, "CREATE TABLE diary (entry TEXT)", "INSERT INTO diary VALUES ('today')")
    for opened in (lambda: Store(tmp_path, study), lambda: load(tmp_path, study.system)):
        with pytest.raises(StudyConflict, match="not a study of solvable"):
            opened()
    assert rows(tmp_path, "SELECT * FROM diary") == [("today",)]


def test_the_file_says_what_it_is(study, tmp_path):
    Store(tmp_path, study).close()
    assert rows(tmp_path, "PRAGMA application_id") == [(APPLICATION,)]


def test_a_file_that_is_no_database(study, tmp_path):
    (tmp_path / "study.sqlite").write_text("nothing of the kind, but long enough to be looked at")
    for opened in (lambda: Store(tmp_path, study), lambda: load(tmp_path, study.system)):
        with pytest.raises(StorageFailed, match="file is not a database"):
            opened()


def test_a_damaged_store(toy, tmp_path):
    study = Study(toy, {"size": list(range(1, 200))}, 3)
    Store(tmp_path, study).close()
    path = tmp_path / "study.sqlite"
    content = bytearray(path.read_bytes())
    content[8192:-4096] = os.urandom(len(content) - 12288)
    path.write_bytes(content)
    with pytest.raises(StorageFailed, match=r"damaged|malformed") as caught:
        Store(tmp_path, study)
    assert "\n" not in str(caught.value)
    with pytest.raises(StorageFailed, match=r"damaged|malformed"):
        load(tmp_path, toy)


def test_a_damaged_entry(study, tmp_path):
    with Store(tmp_path, study) as store:
        store.commit(result(study.tasks[0]))
    change(tmp_path, """UPDATE results SET metrics = '{"mean": '""")
    with pytest.raises(StorageFailed, match="its digest does not match"):
        load(tmp_path, study.system)
    change(tmp_path, "DROP TABLE digests")
    with pytest.raises(StorageFailed, match="an entry cannot be read"):
        load(tmp_path, study.system)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE results SET metrics = replace(metrics, '2.5', '2.6')",
        "UPDATE predictions SET metrics = replace(metrics, '0.5', '0.7')",
        "UPDATE points SET parameters = replace(parameters, '20', '21')",
        "UPDATE tasks SET replicate = 7 WHERE replicate = 1",
        "UPDATE provenance SET seconds = 8.0",
        "UPDATE meta SET value = '2' WHERE key = 'version'",
        "DELETE FROM results WHERE task = (SELECT min(task) FROM results)",
        "DELETE FROM predictions",
        "UPDATE digests SET entry = replace(entry, 'a', 'b')",
    ],
)
def test_whatever_is_changed_is_seen_by_reader_and_writer(study, tmp_path, statement):
    with Store(tmp_path, study) as store:
        for task in study.tasks:
            store.commit(result(task, 2.5, provenance={"seconds": 1}))
        for task in study.tasks[: len(study.points)]:
            store.commit(Outcome("prediction", task.point, {"mean": 0.5}))
    assert len(load(tmp_path, study.system).records) == len(study.tasks)
    change(tmp_path, statement)
    with pytest.raises(StorageFailed, match="its digest does not match"):
        load(tmp_path, study.system)
    with pytest.raises(StorageFailed, match="its digest does not match"):
        Store(tmp_path, study)


def test_a_changed_array_is_seen(study, tmp_path):
    task = study.tasks[0].identity
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3.0))
    with Store(tmp_path, study) as store:
        store.commit(result(study.tasks[0], arrays={"w": buffer.getvalue()}))
    found = load(tmp_path, study.system)
    np.testing.assert_array_equal(found.teacher(task)["w"], np.arange(3.0))
    change(tmp_path, "UPDATE arrays SET content = zeroblob(length(content) - 1) || x'01'")
    with pytest.raises(StorageFailed, match="its digest does not match"):
        found.teacher(task)


def test_a_store_without_digests_is_read_and_resumed(study, tmp_path):
    first, second = study.tasks[:2]
    with Store(tmp_path, study) as store:
        store.commit(result(first, 1.25))
    change(tmp_path, "DROP TABLE digests")
    assert [row["metrics"]["mean"] for row in load(tmp_path, study.system).records] == [1.25]
    with Store(tmp_path, study) as store:
        store.commit(result(second, 2.25))
    assert len(load(tmp_path, study.system).records) == 2
    change(tmp_path, "UPDATE results SET metrics = replace(metrics, '2.25', '2.75')")
    with pytest.raises(StorageFailed, match=f"{second.identity} has changed since it was written"):
        load(tmp_path, study.system)


@pytest.mark.parametrize("statement", ["DELETE FROM meta", "DELETE FROM meta WHERE key = 'study'"])
def test_a_store_that_does_not_say_what_it_holds(study, tmp_path, statement):
    Store(tmp_path, study).close()
    change(tmp_path, statement)
    for opened in (lambda: load(tmp_path), lambda: Store(tmp_path, study)):
        with pytest.raises(StorageFailed, match="table meta lacks"):
            opened()


def test_no_flipped_bit_changes_a_number_in_silence(study, tmp_path):
    with Store(tmp_path, study) as store:
        for place, task in enumerate(study.tasks):
            metrics = {"mean": 1.0 / (place + 3), "list": [float(i) / 7 for i in range(200)]}
            store.commit(Outcome("task", task.identity, metrics, provenance={"seconds": 0.5}))
        for task in study.tasks[: len(study.points)]:
            store.commit(Outcome("prediction", task.point, {"mean": 0.5}))
    path = tmp_path / "study.sqlite"
    whole = path.read_bytes()
    before = load(tmp_path, study.system)
    rng = np.random.default_rng(11)
    refused = 0
    for place in rng.integers(8 * len(whole), size=300).tolist():
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        try:
            found = load(tmp_path, study.system)
        except SolvableError:
            refused += 1
            continue
        assert (found.records, found.points) == (before.records, before.points), place
    assert refused > 30


def test_a_directory_that_is_a_file(study, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(StorageFailed, match="file: File exists"):
        Store(path, study)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory(study, tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(StorageFailed, match=r"unable to open|permission"):
        Store(tmp_path, study)


def test_a_directory_that_cannot_be_made(study):
    # Nobody can create a directory in /proc, not even root.
    with pytest.raises(StorageFailed, match="/proc/nowhere"):
        Store("/proc/nowhere", study)


def test_leftovers_of_another_run_are_not_overwritten(study, tmp_path):
    (tmp_path / "study.toml").write_text('system = "toy"\nreplicates = 7\n')
    with pytest.raises(StudyConflict, match=r"holds the study\.toml of another study"):
        Store(tmp_path, study)
    (tmp_path / "study.toml").write_text(study.to_toml())
    (tmp_path / "records.csv").write_text("precious")
    with pytest.raises(StudyConflict, match=r"holds a records\.csv but no study\.sqlite"):
        Store(tmp_path, study)
    assert (tmp_path / "records.csv").read_text() == "precious"


def test_a_copied_study_toml_is_no_obstacle(study, tmp_path):
    (tmp_path / "study.toml").write_text(study.to_toml())
    Store(tmp_path, study).close()


def test_full_disk_keeps_what_is_finished(study, tmp_path):
    with Store(tmp_path, study) as store:
        store.commit(result(study.tasks[0]))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        large = {"array": bytes(1_000_000)}
        with pytest.raises(StorageFailed, match="database or disk is full") as caught:
            store.commit(result(study.tasks[1], arrays=large))
        assert "free space" in str(caught.value)
        assert "\n" not in str(caught.value)
        store.commit(result(study.tasks[2]))  # a task that fits is still stored
    with Store(tmp_path, study) as store:
        assert store.finished() == {study.tasks[0].identity, study.tasks[2].identity}
        store.commit(result(study.tasks[1], arrays=large))
    assert len(load(tmp_path, study.system).records) == 3


FULL = """
import resource, signal, sys
from toy_system import Toy
from solvable.errors import StorageFailed
from solvable.study import Study, run_study
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
study = Study(Toy(), {"size": list(range(1, 21))}, 2)
try:
    run_study(study, sys.argv[1], workers=int(sys.argv[3]))
except StorageFailed as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("limit", "workers"),
    [
        (3_000, 1),
        (40_000, 1),
        pytest.param(300_000, 1, marks=pytest.mark.slow),
        (300_000, 2),
    ],
    ids=["nothing fits", "half of the plan", "some tasks", "some tasks of two workers"],
)
def test_a_run_on_a_full_disk_ends_in_one_line_and_resumes(
    toy, tmp_path, rows_of_tables, limit, workers
):
    """Limit the size of files in a separate process: writes beyond it fail as on a full disk."""
    command = [sys.executable, "-c", FULL, str(tmp_path / "run"), str(limit), str(workers)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout.count("\n") == 1
    assert "Finished tasks are kept" in ended.stdout
    assert "run the same command again" in ended.stdout
    assert ended.stderr == ""
    study = Study(toy, {"size": list(range(1, 21))}, 2)
    if limit == 300_000:
        kept = rows(tmp_path / "run", "SELECT * FROM results")
        assert 0 < len(kept) < 40
    assert run_study(study, tmp_path / "run", workers=1).complete
    run_study(study, tmp_path / "other", workers=1)
    assert rows_of_tables(tmp_path / "run") == rows_of_tables(tmp_path / "other")
