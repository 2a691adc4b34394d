from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import joblib
import pytest
from joblib.externals.loky import reusable_executor

from solvable.errors import InvalidParameter, StudyConflict, StudyError
from solvable.plots.figure import Figure
from solvable.plots.files import draw_all
from solvable.study import Study, load, run_study
from solvable.study.dispatch import count_workers

GRID = {"size": [1, 20, 300], "scale": [1.0, 2.0]}


@pytest.fixture
def study(toy):
    return Study(toy, GRID, 2)


@pytest.fixture
def alone(study, tmp_path):
    return run_study(study, tmp_path / "alone", workers=1)


def begun(toys, logs):
    return Counter(toys.notes(logs, "begun"))


def names(toys, study):
    return {toys.key_of(task.stream()) for task in study.tasks}


def processes_of(group):
    found = subprocess.run(
        ["ps", "-o", "pid=,stat=", "-s", str(group)], capture_output=True, text=True, check=False
    )
    return [line for line in found.stdout.splitlines() if " Z" not in line]


def test_a_run_leaves_store_description_and_records(study, alone):
    files = sorted(path.name for path in alone.directory.iterdir())
    assert files == [".study.lock", "records.csv", "study.sqlite", "study.toml"]
    text = (alone.directory / "study.toml").read_text()
    assert Study.from_toml(text, study.system).fingerprint == study.fingerprint
    assert alone.complete
    assert not alone.interrupted


def test_every_task_runs_once_and_each_point_is_predicted_once(study, alone, toys, logs):
    assert begun(toys, logs) == Counter(names(toys, study))
    assert len(toys.notes(logs, "predicted")) == len(study.points) == 6


def test_two_workers_give_the_same_bits(study, alone, tmp_path, rows_of_tables):
    both = run_study(study, tmp_path / "both", workers=2)
    assert rows_of_tables(both.directory) == rows_of_tables(alone.directory)
    assert both.verdicts == alone.verdicts
    assert {record["metrics"]["threads"] for record in both.records} == {1.0}


def test_processes_of_an_earlier_call_may_lack_the_path_of_the_system(study, tmp_path, monkeypatch):
    """A notebook extends its path, imports a system and runs it, after other work in processes."""
    if reusable_executor._executor is not None:
        reusable_executor._executor.shutdown()
    with monkeypatch.context() as before:
        before.delenv("PYTHONPATH")
        before.setattr(sys, "path", sys.path[1:])
        with joblib.parallel_config(backend="loky", n_jobs=2, inner_max_num_threads=1):
            joblib.Parallel(batch_size=1, max_nbytes=None)([joblib.delayed(os.getpid)()] * 2)
    assert run_study(study, tmp_path, workers=2).complete


def test_two_workers_both_work(toy, toys, logs, tmp_path):
    run_study(Study(toy, {"pause": 0.1}, 10), tmp_path, workers=2)
    pids = {pid for _, pid in toys.lines(logs, "begun")}
    assert len(pids) == min(2, count_workers(None))
    assert str(os.getpid()) not in pids or len(pids) == 1


@pytest.mark.skipif(count_workers(None) < 2, reason="one core: everything runs in this process")
def test_figures_are_drawn_by_the_processes_that_ran_the_study(study, tmp_path):
    """New processes would load all libraries again."""
    run_study(study, tmp_path, workers=2)
    before = set(reusable_executor._executor._processes)
    draw_all([Figure(name, "Title", "x", "y", []) for name in "ab"], 2)
    assert set(reusable_executor._executor._processes) == before


def test_the_order_of_the_grid_does_not_matter(study, alone, tmp_path, rows_of_tables, toy):
    turned = Study(toy, {name: values[::-1] for name, values in reversed(GRID.items())}, 2)
    again = run_study(turned, tmp_path / "turned", workers=1)
    assert rows_of_tables(again.directory) == rows_of_tables(alone.directory)


def test_a_larger_study_repeats_the_numbers_of_a_smaller(study, alone, tmp_path, toy):
    larger = run_study(Study(toy, {**GRID, "size": [1, 7, 20, 300]}, 3), tmp_path / "b", workers=1)
    metrics = {record["task"]: record["metrics"] for record in larger.records}
    assert len(metrics) == 24
    assert all(metrics[record["task"]] == record["metrics"] for record in alone.records)


def test_a_complete_study_is_not_run_again(study, alone, toys, logs):
    again = run_study(study, alone.directory, workers=2)
    assert again.records == alone.records
    assert begun(toys, logs).total() == 12
    assert len(toys.notes(logs, "predicted")) == 6


def test_a_deleted_study_toml_is_written_again(study, alone):
    path = alone.directory / "study.toml"
    text = path.read_text()
    path.unlink()
    run_study(study, alone.directory, workers=1)
    assert path.read_text() == text


def test_another_study_leaves_the_directory_as_it_was(alone, toy):
    before = {path: path.read_bytes() for path in alone.directory.iterdir()}
    with pytest.raises(StudyConflict):
        run_study(Study(toy, {"size": 3}), alone.directory, workers=1)
    assert {path: path.read_bytes() for path in alone.directory.iterdir()} == before


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_task_is_recorded_and_the_study_goes_on(toy, tmp_path, workers):
    study = Study(toy, {"action": ["none", "raise", "exit"]}, 2)
    result = run_study(study, tmp_path, workers=workers)
    assert {one["parameters"]["action"] for one in result.records} == {"none"}
    assert (len(result.records), result.missing, result.complete) == (2, 4, False)
    found = [(one.parameters["action"], one.replicate, one.error) for one in result.failures]
    told = "ArithmeticError: the toy was asked to fail"
    assert sorted(found) == [
        ("exit", 0, "SystemExit: enough"),
        ("exit", 1, "SystemExit: enough"),
        ("raise", 0, told),
        ("raise", 1, told),
    ]


def test_an_error_with_text_that_no_file_can_hold_costs_its_own_task_alone(toys, logs, tmp_path):
    class Odd(toys.Toy):
        def measure(self, parameters, rng):
            if parameters.size == 1:
                raise ValueError("\x1b[31mhalf a character: \ud800" + "x" * 1_000)
            return super().measure(parameters, rng)

    result = run_study(Study(Odd(logs), {"size": [1, 2]}, 2), tmp_path, workers=1)
    assert len(result.records) == 2
    (error,) = {failure.error for failure in result.failures}
    assert error.startswith("ValueError: half a character: xxx")
    assert len(error) == 200


def test_failed_tasks_run_again_on_resume_and_finished_ones_do_not(toys, logs, tmp_path):
    class Mended(toys.Toy):
        def measure(self, parameters, rng):
            return super().measure(parameters.model_copy(update={"action": "none"}), rng)

    grid = {"action": ["none", "raise"]}
    run_study(Study(toys.Toy(logs), grid, 2), tmp_path, workers=1)
    result = run_study(Study(Mended(logs), grid, 2), tmp_path, workers=1)
    assert result.complete
    assert result.failures == []
    assert sorted(begun(toys, logs).values()) == [1, 1, 2, 2]


def test_a_failing_prediction_does_not_stop_the_tasks(toy, tmp_path):
    result = run_study(Study(toy, {"action": ["none", "predict"]}, 2), tmp_path, workers=1)
    assert len(result.records) == 4
    assert [point.refusal for point in result.points] == [
        "",
        "error: ArithmeticError: no theory here",
    ]
    (failure,) = result.failures
    assert (failure.replicate, failure.error) == (None, "ArithmeticError: no theory here")


def test_a_killed_worker_is_replaced_and_its_task_run_again(
    toy, toys, logs, tmp_path, rows_of_tables
):
    study = Study(toy, {"action": ["none", "kill once"], "size": [5]}, 2)
    result = run_study(study, tmp_path / "run", workers=2)
    assert result.complete
    assert result.failures == []
    # The logs contain the kill, so the toy system does not kill itself again.
    undisturbed = run_study(study, tmp_path / "other", workers=1)
    assert rows_of_tables(result.directory) == rows_of_tables(undisturbed.directory)


@pytest.mark.parametrize("sizes", [[5], pytest.param([5, 6], marks=pytest.mark.slow)])
def test_a_task_that_always_kills_its_worker_fails_alone(toy, tmp_path, sizes):
    study = Study(toy, {"action": ["none", "kill always"], "size": sizes})
    result = run_study(study, tmp_path, workers=2)
    assert [one["parameters"]["action"] for one in result.records] == ["none"] * len(sizes)
    assert [one.parameters["action"] for one in result.failures] == ["kill always"] * len(sizes)
    assert {one.error for one in result.failures} == {
        "its worker process was killed each time, twice while it ran alone (out of memory, or a "
        "crash in compiled code?)"
    }


def test_a_worker_killed_from_outside(toy, toys, logs, tmp_path, rows_of_tables):
    """A worker killed by the operating system, as when memory runs out, is replaced."""
    study = Study(toy, {"size": [1, 20, 300], "pause": 0.05}, 6)

    def kill():
        deadline = time.monotonic() + 30
        while len(toys.lines(logs, "begun")) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        worker = toys.lines(logs, "begun")[-1][1]
        parent = subprocess.run(["ps", "-o", "ppid=", "-p", worker], capture_output=True, text=True)
        if parent.stdout.split() == [str(os.getpid())]:
            os.kill(int(worker), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    result = run_study(study, tmp_path / "run", workers=2)
    killer.join()
    assert result.complete
    counts = begun(toys, logs)
    assert set(counts) == names(toys, study)
    # Only running tasks and tasks already sent to workers run again.
    assert max(counts.values()) == 2
    assert 1 <= counts.total() - 18 <= 5
    run_study(study, tmp_path / "other", workers=1)
    assert rows_of_tables(tmp_path / "run") == rows_of_tables(tmp_path / "other")


def test_progress_counts_tasks_and_estimates_the_time_left(toy, tmp_path):
    seen = []
    study = Study(toy, {"pause": [0.02, 0.06]}, 5)
    run_study(study, tmp_path, workers=1, progress=lambda *words: seen.append(words))
    assert [(done, total) for done, total, _ in seen] == [(i, 10) for i in range(11)]
    assert seen[0][2] is None
    assert seen[-1][2] == 0.0
    # After one of five replicates of both points, four pauses of each remain, plus overhead.
    assert 4 * 0.08 <= seen[2][2] < 4 * 0.08 + 0.3


def test_progress_of_a_resumed_study_starts_where_it_was(toy, tmp_path):
    grid = {"action": ["none", "raise"]}
    run_study(Study(toy, grid, 3), tmp_path, workers=1)
    seen = []
    run_study(Study(toy, grid, 3), tmp_path, workers=1, progress=lambda *w: seen.append(w))
    assert [done for done, _, _ in seen] == [3, 4, 5, 6]
    assert seen[-1] == (6, 6, 0.0)


def test_time_left_counts_the_workers(toy, tmp_path):
    lanes = count_workers(2)
    seen = []
    study = Study(toy, {"pause": 0.1}, 8)
    run_study(study, tmp_path, workers=2, progress=lambda *words: seen.append(words))
    assert 7 * 0.1 / lanes <= seen[1][2] < 7 * 0.1 / lanes + 0.3


def test_an_error_in_progress_keeps_what_is_finished(toy, tmp_path):
    def fail(done, total, left):
        if done == 2:
            raise RuntimeError("mine")

    study = Study(toy, GRID, 2)
    with pytest.raises(RuntimeError, match="mine"):
        run_study(study, tmp_path, workers=1, progress=fail)
    assert len(load(tmp_path, toy).records) == 2
    assert run_study(study, tmp_path, workers=1).complete


def test_ctrl_c_in_this_process_keeps_finished_work(ctrl_c, toys, logs, tmp_path, rows_of_tables):
    class Stubborn(toys.Toy):
        def measure(self, parameters, rng):
            if len(toys.notes(logs, "begun")) == 4:
                os.kill(os.getpid(), signal.SIGINT)
            return super().measure(parameters, rng)

    study = Study(Stubborn(logs), GRID, 2)
    result = run_study(study, tmp_path / "run", workers=1)
    assert result.interrupted
    assert 0 < len(result.records) < 12
    assert (tmp_path / "run" / "records.csv").read_text().count("\n") == 1 + len(result.records)
    assert len(toys.notes(logs, "begun")) == 4
    (logs / "begun.log").unlink()
    study = Study(toys.Toy(logs), GRID, 2)
    result = run_study(study, tmp_path / "run", workers=1)
    assert result.complete
    assert not result.interrupted
    run_study(study, tmp_path / "other", workers=1)
    assert rows_of_tables(tmp_path / "run") == rows_of_tables(tmp_path / "other")


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits "ignore"
from toy_system import Toy
from solvable.study import Study, run_study
result = run_study(Study(Toy(), {"pause": 0.2}, 40), sys.argv[1], workers=2)
print(result.interrupted, len(result.records))
"""


def test_ctrl_c_with_workers_keeps_finished_work_and_ends_the_workers(toy, toys, logs, tmp_path):
    """Ctrl-C in a terminal reaches every process of the group, including workers."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", INTERRUPTED, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 30
    while len(toys.notes(logs, "ended")) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    printed, complained = process.communicate(timeout=30)
    assert process.returncode == 0
    assert complained == ""
    interrupted, records = printed.split()
    assert interrupted == "True"
    # Tasks that ended after the signal may be lost; tasks that ended well before it are stored.
    assert 3 <= int(records) == len(load(tmp_path, toy).records) < 40
    deadline = time.monotonic() + 10
    while processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(process.pid) == []


def test_a_system_defined_in_a_script_runs_on_workers(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "from toy_system import Toy\n"
        "from solvable.study import Study, run_study\n"
        "class Mine(Toy):\n"
        "    name = 'mine'\n"
        "    def measure(self, parameters, rng):\n"
        "        return {'mean': parameters.size + 0.5}\n"
        "if __name__ == '__main__':\n"
        "    result = run_study(Study(Mine(), {'size': [1, 2]}), 'run', workers=2)\n"
        "    print([one['metrics']['mean'] for one in result.records])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("[1.5, 2.5]\n", "")


@pytest.mark.skipif(count_workers(None) == 1, reason="needs two cores")
def test_a_system_that_cannot_be_sent_to_workers(toys, tmp_path):
    held = toys.Toy(tmp_path)
    held.lock = threading.Lock()
    message = r"system 'toy' cannot be loaded in worker processes \(.*lock"
    with pytest.raises(StudyError, match=message):
        run_study(Study(held), tmp_path, workers=2)
    assert run_study(Study(held), tmp_path, workers=1).complete


@pytest.mark.skipif(count_workers(None) == 1, reason="needs two cores")
def test_a_system_that_workers_cannot_import(toys, tmp_path, monkeypatch):
    import types

    module = types.ModuleType("ghost")
    monkeypatch.setitem(sys.modules, "ghost", module)
    module.Ghost = type("Ghost", (toys.Toy,), {"__module__": "ghost"})
    with pytest.raises(StudyError, match="No module named 'ghost'"):
        run_study(Study(module.Ghost()), tmp_path, workers=2)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
def test_bad_number_of_workers(study, tmp_path, workers):
    with pytest.raises(InvalidParameter, match="workers is"):
        run_study(study, tmp_path / "run", workers=workers)
    assert not (tmp_path / "run").exists()


def test_workers_never_exceed_the_cores():
    import joblib

    cores = joblib.cpu_count()
    assert count_workers(None) == cores
    assert count_workers(10_000) == cores
    assert count_workers(1) == 1
