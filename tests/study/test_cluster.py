"""Studies on a real Dask cluster: a scheduler and two workers, each in its own process."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from solvable.errors import InvalidParameter, StudyError
from solvable.study import Study, load, run_study
from solvable.study.dispatch import _check_workers

pytest.importorskip("distributed")


class Cluster:
    def __init__(self, directory):
        self.file = directory / "scheduler.json"
        self.directory = directory
        self.processes = []
        self.scheduler = self.start("scheduler", "--port", "0", "--no-show")
        # The file is created before its text is written.
        self.wait(lambda: self.file.exists() and self.file.read_text().rstrip().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"]

    def start(self, what, *words):
        # The documentation sets an address, as the default dashboard listens on all interfaces.
        loopback = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        file = ["--scheduler-file", str(self.file)]
        command = [sys.executable, "-m", "dask", what, *file, *loopback, *words]
        with (self.directory / f"{what}-{len(self.processes)}.log").open("w") as log:
            process = subprocess.Popen(
                command, cwd=self.directory, stdout=log, stderr=log, start_new_session=True
            )
        self.processes.append(process)
        return process

    def start_worker(self):
        words = ("--no-nanny", "--nthreads", "1", "--death-timeout", "60")
        return self.start("worker", *words)

    def wait(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            for path in self.directory.glob("*.log"):
                assert time.monotonic() < deadline, path.read_text()
            time.sleep(0.02)

    def close(self):
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    directory = tmp_path / "cluster"
    directory.mkdir()
    cluster = Cluster(directory)
    yield cluster
    cluster.close()


@pytest.fixture
def no_pauses_here(toys, monkeypatch):
    """Let tasks in this process, unlike those of the cluster, not sleep."""
    unpaused = SimpleNamespace(sleep=id, process_time=time.process_time)
    monkeypatch.setattr(toys, "time", unpaused)


def in_background(action):
    thread = threading.Thread(target=action)
    thread.start()
    return thread


@pytest.mark.usefixtures("no_pauses_here")
def test_a_study_outlives_one_of_two_workers(cluster, toy, toys, logs, tmp_path, rows_of_tables):
    workers = [cluster.start_worker(), cluster.start_worker()]
    study = Study(toy, {"size": [1, 20], "pause": 0.1, "action": ["none", "raise"]}, 10)
    pids = {str(worker.pid) for worker in workers}

    def kill_one():
        """Kill one worker after both have begun, so that its task is unfinished."""
        cluster.wait(lambda: {pid for _, pid in toys.lines(logs, "begun")} == pids)
        workers[0].send_signal(signal.SIGKILL)

    seen = []
    killer = in_background(kill_one)
    result = run_study(
        study,
        tmp_path / "run",
        scheduler=cluster.address,
        progress=lambda *words: seen.append(words),
    )
    killer.join()
    assert workers[0].wait(10) == -signal.SIGKILL
    assert len(result.records) == len(result.failures) == 20
    assert {one.error.split(":")[0] for one in result.failures} == {"ArithmeticError"}
    assert {one["metrics"]["threads"] for one in result.records} == {1.0}
    # Every task ran on the cluster; tasks of the lost worker ran at most twice.
    assert {pid for _, pid in toys.lines(logs, "begun")} == pids
    counts = Counter(toys.notes(logs, "begun"))
    assert set(counts) == {toys.key_of(task.stream()) for task in study.tasks}
    assert [done for done, _, _ in seen] == list(range(41))
    assert seen[-1] == (40, 40, 0.0)
    run_study(study, tmp_path / "local", workers=1)
    assert rows_of_tables(tmp_path / "run") == rows_of_tables(tmp_path / "local")


@pytest.mark.usefixtures("no_pauses_here")
def test_a_lost_scheduler_ends_the_run_and_the_study_resumes(cluster, toy, toys, logs, tmp_path):
    study = Study(toy, {"pause": 0.1}, 30)

    def lose():
        cluster.wait(lambda: len(toys.notes(logs, "ended")) >= 3)
        cluster.scheduler.send_signal(signal.SIGKILL)

    worker = cluster.start_worker()
    loser = in_background(lose)
    logged = []
    handler = logging.Handler()
    handler.emit = logged.append
    logging.getLogger("distributed.client").addHandler(handler)
    with pytest.raises(StudyError, match=r"was lost\. Finished tasks are kept") as caught:
        run_study(study, tmp_path / "run", scheduler=cluster.address)
    logging.getLogger("distributed.client").removeHandler(handler)
    # The client of Dask logs no tracebacks in addition to this error.
    assert [record.getMessage() for record in logged if record.exc_info] == []
    loser.join()
    assert "\n" not in str(caught.value)
    worker.kill()
    worker.wait()
    kept = {record["task"] for record in load(tmp_path / "run", toy).records}
    assert 1 <= len(kept) < 30
    (logs / "begun.log").unlink()
    assert run_study(study, tmp_path / "run", workers=1).complete
    again = set(toys.notes(logs, "begun"))
    keys = {toys.key_of(task.stream()) for task in study.tasks if task.identity not in kept}
    assert again == keys


def test_a_worker_that_comes_late_and_lacks_the_system(cluster, toy, tmp_path, monkeypatch, caplog):
    def come():
        cluster.wait(lambda: "no Dask worker has joined" in caplog.text)
        with monkeypatch.context() as patch:
            patch.setenv("PYTHONPATH", "")
            cluster.start_worker()

    comer = in_background(come)
    with (
        caplog.at_level(logging.WARNING, logger="solvable.study"),
        pytest.raises(StudyError, match="cannot be loaded in worker processes") as caught,
    ):
        run_study(Study(toy), tmp_path / "run", scheduler=cluster.address)
    comer.join()
    assert "No module named 'toy_system'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_workers_without_solvable_are_refused_before_a_job_ends_them():
    class Client:
        def run(self, function, *words, on_error):
            assert (function(*words).__name__, on_error) == ("solvable", "return")
            return {"tcp://a:1": function(*words), "tcp://b:2": ModuleNotFoundError("No module")}

    with pytest.raises(StudyError, match=r"tcp://b:2 has no solvable \(No module\)"):
        _check_workers(Client())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x", ""])
def test_no_scheduler_at_the_address(toy, tmp_path, address):
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "300ms"}),
        pytest.raises(InvalidParameter, match="no Dask scheduler answers there") as caught,
    ):
        run_study(Study(toy), tmp_path, scheduler=address)
    assert "\n" not in str(caught.value)


def test_dask_is_not_installed(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidParameter, match=r"pip install 'solvable\[cluster\]'"):
        run_study(Study(toy), tmp_path, scheduler="tcp://127.0.0.1:8786")


def listening(pid):
    """Return the addresses on which a process and its children listen, as written in `/proc/net`."""
    pids, inodes = [pid], set()
    for one in pids:
        with suppress(OSError):  # a child may end meanwhile
            for task in Path(f"/proc/{one}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
            for descriptor in Path(f"/proc/{one}/fd").iterdir():
                with suppress(OSError):  # and so may a connection
                    inodes.add(os.readlink(descriptor).removeprefix("socket:[").rstrip("]"))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and cells[9] in inodes:
                found.append(cells[1].split(":")[0])
    return found


LOOPBACK = ("0100007F", "00000000000000000000000001000000")
"""127.0.0.1 and ::1 in the byte order of `/proc/net`."""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux lists sockets in /proc")
def test_the_cluster_of_the_documentation_listens_on_loopback_alone(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "runs.md").read_text("utf-8")
    scheduler, worker = re.findall(r"^dask ((?:scheduler|worker) .*)$", page, flags=re.MULTILINE)
    file = tmp_path / "scheduler.json"
    # Free ports replace the ports of the page.
    own = [*scheduler.replace("--port 8786", "--port 0").split(), "--scheduler-file", str(file)]
    processes = []
    try:
        for words in (own, worker.split()):
            if file.exists():
                words[1] = json.loads(file.read_text())["address"]
            with (tmp_path / f"{words[0]}.log").open("w") as log:
                command = [sys.executable, "-m", "dask", *words]
                processes.append(
                    subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
                )
            deadline = time.monotonic() + 60
            # A scheduler listens on two ports, its own and the dashboard's; a nanny on three.
            while not file.exists() or len(listening(processes[-1].pid)) < len(processes) + 1:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        sockets = [address for process in processes for address in listening(process.pid)]
        assert len(sockets) >= 5
        assert set(sockets) <= set(LOOPBACK)
    finally:
        for process in reversed(processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
