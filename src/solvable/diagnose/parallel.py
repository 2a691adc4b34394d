"""Results of many tasks, in this process or in others, within a limit of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")

# Bytes of a process that waits, with NumPy and SciPy imported and the buffers of BLAS.
PROCESS = 130e6


def each_result(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], workers: int
) -> Iterator[Result]:
    """Yield `function(*task)` for each task; at most two tasks a worker are prepared ahead."""
    if workers == 1:
        for task in tasks:
            yield function(*task)
        return
    from joblib import Parallel, delayed

    run = Parallel(n_jobs=workers, return_as="generator", pre_dispatch=2 * workers)
    yield from run(delayed(function)(*task) for task in tasks)


@dataclass(frozen=True)
class Job:
    """Call of a function, and what it takes."""

    key: str  # name that no other job has
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    cost: float  # expected seconds
    size: float  # largest number of bytes that it holds at once


def each_finished(jobs: Sequence[Job], workers: int, memory: float) -> Iterator[tuple[Job, Any]]:
    """Yield each job with its result, in the order in which they finish.

    Together the jobs that run hold at most ``memory`` bytes, processes included. A job that needs more
    runs alone. Jobs start in their order, but a smaller one goes first where the next does not fit.
    """
    lanes = lanes_for(jobs, workers, memory)
    for job in jobs:
        if lanes == 1 or not job.cost:
            yield job, job.function(*job.arguments)
    if lanes > 1:
        yield from _in_processes([job for job in jobs if job.cost], lanes, memory)


def _in_processes(jobs: list[Job], lanes: int, memory: float) -> Iterator[tuple[Job, Any]]:
    from concurrent.futures import FIRST_COMPLETED, wait

    from joblib.externals.loky import ProcessPoolExecutor

    # Several threads of BLAS are slower than one at these sizes, and each has buffers of its own.
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    # Not the executor that joblib shares with others: joblib fails on one that it has not made.
    executor = ProcessPoolExecutor(max_workers=lanes, env=dict.fromkeys(threads, "1"))
    free = memory - (1 + lanes) * PROCESS
    waiting = jobs
    running: dict[Any, Job] = {}
    try:
        while waiting or running:
            while waiting and len(running) < lanes:
                left = free - sum(job.size for job in running.values())
                fitting = (k for k, job in enumerate(waiting) if job.size <= left or not running)
                place = next(fitting, None)
                if place is None:
                    break
                job = waiting.pop(place)
                running[executor.submit(job.function, *job.arguments)] = job
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    finally:  # also after Ctrl-C or an error, nothing goes on in the background
        executor.shutdown(wait=True, kill_workers=True)


def each_in_order(jobs: Sequence[Job], workers: int, memory: float) -> Iterator[Any]:
    """Yield the results of the jobs in their order."""
    results: dict[str, Any] = {}
    place = 0
    for job, result in each_finished(jobs, workers, memory):
        results[job.key] = result
        while place < len(jobs) and jobs[place].key in results:
            yield results.pop(jobs[place].key)
            place += 1


def lanes_for(jobs: Sequence[Job], workers: int, memory: float) -> int:
    """Number of processes that fit into memory, and whose work takes longer than starting them."""
    cost = sum(job.cost for job in jobs)
    if not cost:
        return 1
    # The mean size over time: large matrices run while small ones fill the rest of the memory.
    size = sum(job.size * job.cost for job in jobs) / cost
    fitting = int((memory - PROCESS) / (PROCESS + size))
    return max(1, min(workers, len(jobs), int(cost / 4.0), fitting))
