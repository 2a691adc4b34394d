"""Files of examples/cluster, run here: a job array, SLURM through dask-jobqueue, and Kubernetes."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

FILES = Path(__file__).parents[2] / "examples" / "cluster"

PROGRAM = f"""\
#!/bin/bash
exec {sys.executable} -m solvable "$@"
"""

SBATCH = """\
#!/bin/bash
# dask-jobqueue removes its file when this command ends
cp "$1" "$QUEUE/last.sh" && cp "$1" "$QUEUE/job-$$.sh"
setsid bash "$QUEUE/job-$$.sh" >> "$QUEUE/jobs.log" 2>&1 &
echo $! >> "$QUEUE/pids.log"
echo "Submitted batch job $!"
"""

SCANCEL = """\
#!/bin/bash
for job in "$@"; do kill -TERM -- "-$job" || true; done
"""


@pytest.fixture
def cluster(solvable, tmp_path):
    """Return a terminal whose PATH has `solvable`, and commands of SLURM that run jobs here."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("solvable", PROGRAM), ("sbatch", SBATCH), ("scancel", SCANCEL)):
        path = folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    solvable.environment |= {
        "PATH": os.pathsep.join([str(folder), os.environ["PATH"]]),
        "QUEUE": str(tmp_path),
        "JOBS": "2",
        "PYTHONWARNINGS": "default",
        "DASK_DISTRIBUTED__SCHEDULER__DASHBOARD__ENABLED": "False",
    }
    return solvable


def results(directory):
    """Return the tasks of a run directory with their metrics, in order."""
    from solvable.study.snapshot import read

    return [(task["identity"], task["metrics"]) for task in read(directory).tasks]


STUDY = ("probe", "--set", "samples=10,20", "pause=0.2", "--seeds", "6")


def test_a_job_array_of_which_a_job_is_killed(cluster, tmp_path):
    def start(index):
        more = {"SLURM_ARRAY_TASK_ID": str(index), "PARTS": "2"} if index else {"PARTS": "2"}
        command = ["bash", str(FILES / "slurm_array.sh"), *STUDY, "--output", "run"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(
            command, cwd=tmp_path, env=cluster.environment | more, start_new_session=True, **pipes
        )

    first, second = start(1), start(2)
    deadline = time.monotonic() + 60
    while len(cluster.logged()) < 6:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    printed, log = second.communicate(timeout=60)
    assert second.returncode == 0, log
    assert "part 2 of 2: 6 of 6 tasks finished" in printed
    assert "progress: 0 of 6 tasks" in log
    assert "progress: 6 of 6 tasks after" in log
    # The whole study joins both parts, and runs what the killed part lacks.
    joined = start(0)
    printed, log = joined.communicate(timeout=60)
    assert joined.returncode == 0, log
    assert "claim holds" in printed or "claims hold" in printed
    counts = Counter(cluster.logged())
    assert len(counts) == 12
    # Only the task that was running in the killed job ran twice.
    assert sorted(counts.values())[-2:] in ([1, 1], [1, 2])
    alone = cluster(*("run", *STUDY, "--output", "alone", "--workers", 1, "--quiet"))
    assert alone.returncode == 0, alone.stderr
    assert results(tmp_path / "run") == results(tmp_path / "alone")


@pytest.mark.slow
def test_slurm_jobs_of_dask_of_which_one_is_killed(cluster, tmp_path):
    pytest.importorskip("dask_jobqueue")
    # The real file and the real SLURMCluster; only `sbatch` runs its scripts here, on small workers.
    cluster.environment |= {"DASK_JOBQUEUE__SLURM__INTERFACE": "lo"}
    process = subprocess.Popen(
        [sys.executable, str(FILES / "slurm_dask.py"), *STUDY, "--output", "run"],
        cwd=tmp_path, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while len(cluster.logged()) < 4:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        job = int((tmp_path / "pids.log").read_text().split()[0])
        os.killpg(job, signal.SIGKILL)
        printed, log = process.communicate(timeout=240)
    finally:
        process.kill()
        process.communicate()
        for job in (tmp_path / "pids.log").read_text().split():
            try:
                os.killpg(int(job), signal.SIGKILL)
            except ProcessLookupError:
                continue
    script = (tmp_path / "last.sh").read_text()
    for line in (
        "#SBATCH --cpus-per-task=4",
        "#SBATCH -t 02:00:00",
        "export OPENBLAS_NUM_THREADS=1",
    ):
        assert line in script
    assert process.returncode == 0, log
    assert "progress: 12 of 12 tasks after" in log
    assert "claim holds" in printed or "claims hold" in printed
    assert len(set(cluster.logged())) == 12
    alone = cluster(*("run", *STUDY, "--output", "alone", "--workers", 1, "--quiet"))
    assert alone.returncode == 0, alone.stderr
    assert results(tmp_path / "run") == results(tmp_path / "alone")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def kubernetes():
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((FILES / "kubernetes.yaml").read_text("utf-8")))


def test_the_documents_of_kubernetes_fit_together():
    cluster, job, volume = kubernetes()
    assert (cluster["apiVersion"], cluster["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    assert (job["kind"], volume["kind"]) == ("Job", "PersistentVolumeClaim")
    name = cluster["metadata"]["name"]
    service = cluster["spec"]["scheduler"]["service"]
    assert service["selector"] == {"dask.org/cluster-name": name, "dask.org/component": "scheduler"}
    (scheduler,) = cluster["spec"]["scheduler"]["spec"]["containers"]
    named = {port["name"]: port["containerPort"] for port in scheduler["ports"]}
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == named
    pod = job["spec"]["template"]["spec"]
    (run,) = pod["containers"]
    # The operator names the service after the cluster.
    assert f"--scheduler=tcp://{name}-scheduler:{named['tcp-comm']}" in run["args"]
    (mounted,) = run["volumeMounts"]
    (claimed,) = pod["volumes"]
    assert mounted["name"] == claimed["name"]
    assert claimed["persistentVolumeClaim"]["claimName"] == volume["metadata"]["name"]
    assert any(word.startswith(f"--output={mounted['mountPath']}/") for word in run["args"])
    (worker,) = cluster["spec"]["worker"]["spec"]["containers"]
    assert len({scheduler["image"], worker["image"], run["image"]}) == 1


@pytest.mark.slow
def test_the_commands_of_kubernetes_run_here_and_a_worker_is_killed(cluster, tmp_path):
    document, job, _ = kubernetes()
    (scheduler,) = document["spec"]["scheduler"]["spec"]["containers"]
    (worker,) = document["spec"]["worker"]["spec"]["containers"]
    (run,) = job["spec"]["template"]["spec"]["containers"]
    comm, dashboard = free_port(), free_port()
    address = f"tcp://127.0.0.1:{comm}"
    processes = []

    def start(words, **environment):
        # Ports and names of Kubernetes are replaced by those of this machine.
        found = {"8786": str(comm), ":8787": f"127.0.0.1:{dashboard}", ":8788": "127.0.0.1:0"}
        found |= {"$(DASK_WORKER_NAME)": f"worker-{len(processes)}"}
        words = [found.get(word, word) for word in words]
        words = [sys.executable, "-m", "dask", *words[1:], "--host", "127.0.0.1"]
        process = subprocess.Popen(
            words, cwd=tmp_path, env=cluster.environment | environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        processes.append(process)
        return process

    try:
        start(scheduler["args"])
        # The operator gives workers the address of the scheduler in this variable.
        workers = [start(worker["args"], DASK_SCHEDULER_ADDRESS=address) for _ in range(2)]
        assert run["args"][0] == "solvable"
        words = [
            word for word in run["args"][1:] if not word.startswith(("--preset", "--scheduler"))
        ]
        words[words.index("quadratic-network") : words.index("quadratic-network") + 1] = STUDY
        words = [word.replace("/results/", f"{tmp_path}/") for word in words]
        running = cluster.start(*words, f"--scheduler={address}")
        deadline = time.monotonic() + 60
        while len(cluster.logged()) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(workers[0].pid, signal.SIGKILL)
        _, log = running.communicate(timeout=120)
    finally:
        for process in processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()
    assert running.returncode == 0, log
    assert "progress: 12 of 12 tasks after" in log
    assert len(set(cluster.logged())) == 12
    alone = cluster(*("run", *STUDY, "--output", "alone", "--workers", 1, "--quiet"))
    assert alone.returncode == 0, alone.stderr
    assert results(tmp_path / "quadratic-paper") == results(tmp_path / "alone")


def test_a_part_in_json_and_wrong_parts(call, tmp_path):
    study = ("run", "probe", "--output", "run", "--workers", 1)
    status, printed, error = call(*study, "--part", "2/5", "--json", "--quiet")
    assert (status, error) == (0, "")
    assert json.loads(printed) == {"part": 2, "parts": 5, "tasks": 3, "finished": 3, "failed": 0}
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"parts"}
    for words, message in (
        (("--part", "6/5"), "--part is '6/5'; allowed: K/N"),
        (("--part", "1/5", "--dry-run"), "--dry-run describes the whole study; leave out --part"),
    ):
        status, printed, error = call(*study, *words)
        assert (status, printed) == (2, "")
        assert message in error
        assert len(error.splitlines()) == 1
