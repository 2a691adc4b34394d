"""Dispatch of jobs to this process, local worker processes or a Dask cluster.

Each function yields outcomes as they finish, in any order, and drops unfinished jobs when it is
closed.
"""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pickle import PicklingError
from typing import Any

from solvable.errors import InvalidParameter, StudyError, quoted
from solvable.study.execute import Job, Outcome, execute, execute_in_worker, execute_pickled

log = logging.getLogger("solvable.study")


class _Stop(BaseException):
    """Ends joblib's generator without a warning about unread results."""


def count_workers(workers: int | None) -> int:
    """Return the number of local workers: the requested one, at most one per core (the default).

    Each worker runs one BLAS thread, so that threads never exceed the cores.
    """
    import joblib

    cores = joblib.cpu_count()
    if workers is None:
        return cores
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InvalidParameter(f"workers is {workers!r}; allowed: whole numbers from 1.")
    if workers > cores:
        log.info("%d workers requested, %d cores: running %d workers", workers, cores, cores)
    return min(workers, cores)


def outcomes(
    jobs: Sequence[Job], workers: int | None, scheduler: str | None
) -> Generator[Outcome, None, None]:
    """Run jobs on a Dask scheduler, in this process (one worker), or in local processes."""
    if scheduler is not None:
        yield from on_cluster(jobs, scheduler)
    elif count_workers(workers) == 1:
        yield from map(execute, jobs)
    else:
        yield from in_processes(jobs, count_workers(workers))


def in_processes(jobs: Sequence[Job], workers: int) -> Generator[Outcome, None, None]:
    """Run jobs in two or more local worker processes; jobs of a killed worker run again.

    A job that was running at two breakdowns of the pool runs alone afterwards. If its worker is then
    killed twice, the job is reported as failed, so that one job cannot block the others.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError

    suspect_after = 2  # breakdowns of the pool after which a job runs alone
    given_up_after = 4  # breakdowns after which a job fails: it ran alone in the last two
    pending = {job.identity: job for job in jobs}
    breakdowns: Counter[str] = Counter()
    renewed = False
    while pending:
        suspects = [job for job in pending if breakdowns[job] >= suspect_after]
        batch = [pending[suspects[0]]] if suspects else list(pending.values())
        started: list[str] = []
        try:
            with closing(_pool(batch, workers, started)) as results:
                for outcome in results:
                    del pending[outcome.identity]
                    yield outcome
        except PicklingError as error:
            raise _unsendable(jobs[0], error.__cause__ or error) from error
        except TerminatedWorkerError:
            lost = [job for job in started if job in pending]
            log.warning("a worker process was killed; tasks that were sent to it run again")
            breakdowns.update(lost)
            given_up = [job for job in lost if suspects and breakdowns[job] >= given_up_after]
            for failed in [pending.pop(job) for job in given_up]:
                yield Outcome(
                    failed.kind,
                    failed.identity,
                    error="its worker process was killed each time, twice while it ran alone (out "
                    "of memory, or a crash in compiled code?)",
                )
        except BrokenProcessPool as error:  # a worker could not load the job
            if renewed:
                raise _unsendable(jobs[0], error.__cause__ or error) from error
            renewed = True  # processes of an earlier call may lack a path that was added since


def _unsendable(job: Job, error: BaseException) -> StudyError:
    name = job.system.name
    cause = (str(error).strip('"\n ').splitlines() or [type(error).__name__])[-1]
    return StudyError(
        f"the system {name!r} cannot be loaded in worker processes ({cause}). Define it in a "
        "module that they can import and keep plain data on it, or run with one local worker."
    )


def _pool(jobs: Sequence[Job], workers: int, started: list[str]) -> Generator[Outcome, None, None]:
    import joblib

    def feed() -> Iterator[Any]:
        for job in jobs:
            started.append(job.identity)
            yield joblib.delayed(execute_in_worker)(job, os.getpid())

    with (
        joblib.parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1),
        _interrupts_blocked(),
    ):
        # One job per batch, because each result is committed separately.
        results = joblib.Parallel(return_as="generator_unordered", batch_size=1, max_nbytes=None)(
            feed()
        )
    try:
        for outcome in results:  # noqa: UP028 (`yield from` closes joblib's generator: it warns)
            yield outcome
    except GeneratorExit:
        with suppress(_Stop):
            results.throw(_Stop())
        raise


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start processes with Ctrl-C blocked, so that only the parent handles it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def on_cluster(jobs: Sequence[Job], scheduler: str) -> Generator[Outcome, None, None]:
    """Run jobs on a Dask cluster; Dask repeats the jobs of a killed worker."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise InvalidParameter(
            f"scheduler is {quoted(scheduler)}, but Dask cannot be imported ({error}). Install it: "
            "pip install 'solvable[cluster]'."
        ) from error
    try:
        client = Client(scheduler, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InvalidParameter(
            f"scheduler is {quoted(scheduler)}: no Dask scheduler answers there ({error}). Start one "
            "with `dask scheduler --host 127.0.0.1 --dashboard-address 127.0.0.1:0`, and workers with "
            "`dask worker ADDRESS` and the same options: anybody who can connect to a Dask port "
            "can run code as you."
        ) from error
    with _connection_errors_raised_alone(), client:
        if not client.nthreads():
            log.warning("no Dask worker has joined %s yet; waiting", scheduler)
        _check_workers(client)
        dumps = import_module(
            "cloudpickle"
        ).dumps  # Dask's pickler handles functions that a script defines
        futures = {client.submit(execute_pickled, dumps(job), pure=False): job for job in jobs}
        try:
            for future in as_completed(list(futures), loop=client.loop):
                outcome = _fetch(future, futures.pop(future), scheduler)
                future.release()
                yield outcome
        finally:
            client.cancel(list(futures))


@contextmanager
def _connection_errors_raised_alone() -> Iterator[None]:
    """Suppress Dask's logged tracebacks of a lost scheduler, which is raised here instead."""

    def is_other(record: logging.LogRecord) -> bool:
        return record.exc_info is None

    logger = logging.getLogger("distributed.client")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def _fetch(future: Any, job: Job, scheduler: str) -> Outcome:
    from distributed import CancelledError
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        return Outcome(job.kind, job.identity, error=f"its workers were killed: {error}")
    except (CancelledError, OSError) as error:
        raise StudyError(
            f"the Dask scheduler at {scheduler} was lost. Finished tasks are kept; run the same "
            "command again to resume."
        ) from error
    except Exception as error:  # an exception of a job is in its outcome: this one is Dask's
        raise _unsendable(job, error.__cause__ or error) from error


def _check_workers(client: Any) -> None:
    """Refuse workers without solvable, which would end at the first job."""
    for address, found in client.run(import_module, "solvable", on_error="return").items():
        if isinstance(found, ImportError):
            raise StudyError(
                f"the Dask worker at {address} has no solvable ({found}). Install the same version "
                "of solvable on every worker and on the scheduler."
            )
