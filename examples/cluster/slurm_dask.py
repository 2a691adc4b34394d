"""Run a study on the workers of SLURM jobs, which dask-jobqueue submits.

    pip install "solvable[cluster]" dask-jobqueue
    python slurm_dask.py quadratic-network --preset paper --output quadratic-paper

The words are those of `solvable run`. Start it where it may run as long as the study, in a job of its own
or in tmux on a login node. If it ends early, the same command resumes.
"""

import os
import sys

from dask_jobqueue import SLURMCluster

from solvable.cli import main

JOBS = int(os.environ.get("JOBS", "10"))

if __name__ == "__main__":
    with SLURMCluster(
        cores=4,
        processes=4,  # one thread each
        memory="8GB",
        walltime="02:00:00",
        # queue="...", account="...",
        # A worker ends before SLURM ends its job. Its unfinished task runs again elsewhere.
        worker_extra_args=["--lifetime", "110m", "--lifetime-stagger", "5m"],
        job_script_prologue=["export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1"],
    ) as cluster:
        # `scale` would not replace jobs that have ended.
        cluster.adapt(minimum_jobs=JOBS, maximum_jobs=JOBS)
        status = main(
            ["run", *sys.argv[1:], "--scheduler", cluster.scheduler_address, "--progress"]
        )
    sys.exit(status)
