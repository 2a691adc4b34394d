"""A study on a real Dask cluster of two worker processes, one of which is killed."""

import os
import signal
import time

import pytest

from solvable.errors import InvalidParameter
from solvable.study import Study, run_study

distributed = pytest.importorskip("distributed")

pytestmark = [
    # What Dask's own threads say while a worker dies is not ours.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture
def cluster(toys_on_the_path):
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def test_a_killed_worker_costs_no_result(cluster, toy, tmp_path, content):
    study = Study(toy, {"samples": [10, 20], "pause": [0.1]}, 10)
    victims = [worker.process.process.pid for worker in cluster.workers.values()]
    killed = []

    def progress(done, total, left):
        if done >= 3 and not killed:
            os.kill(victims[0], signal.SIGKILL)
            killed.append(time.monotonic())

    result = run_study(
        study, tmp_path / "cluster", scheduler=cluster.scheduler_address, progress=progress
    )
    assert killed
    assert result.complete
    run_study(study, tmp_path / "local", workers=1)
    assert content(tmp_path / "cluster") == content(tmp_path / "local")


def test_an_address_without_a_scheduler(toy, tmp_path):
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(InvalidParameter, match="no Dask scheduler answers"),
    ):
        run_study(Study(toy), tmp_path, scheduler="tcp://127.0.0.1:9")
