"""One Python function per command on systems, which returns the object that the command prints.

Each function imports its modules when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

if TYPE_CHECKING:
    from solvable.frame.system import System
    from solvable.progress import Progress
    from solvable.study import Comparison, Study, StudyResult
    from solvable.study.predictions import Predictions


def run(
    system: str | System,
    /,
    *,
    preset: str | None = "quick",
    seeds: int | None = None,
    seed: int = 0,
    output: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    part: str | None = None,
    device: str | None = None,
    points: Sequence[Mapping[str, Any]] = (),
    progress: Progress | bool | None = None,
    **settings: Any,
) -> StudyResult:
    """Measure a system, compare with theory, and judge its claims: ``solvable run``.

    Parameters
    ----------
    system : str or System
        Name of an installed system, or a System object.
    preset : str or None
        Named grid; None starts from the defaults of the parameters.
    seeds : int, optional
        Replicates per point, at least 1; default the preset's.
    seed : int
        Not negative; another seed repeats the study with independent random numbers.
    output : path, optional
        Run directory, which also gets ``report.html``, ``figures/`` and ``records.csv``; a stopped study
        is resumed. Default: a temporary directory, removed with the result.
    workers : int, optional
        Local processes; default one per core. 1 runs in this process.
    scheduler : str, optional
        Address of a Dask scheduler whose workers run the tasks instead.
    part : str, optional
        "3/10" runs only the third of ten parts of the tasks, in the folder ``parts/3-of-10`` of
        ``output``. The same call without ``part`` joins the parts and runs what they lack.
    device : str, optional
        Device in torch's notation, such as "cuda", on which learners that take tensors compute. Results
        equal those of NumPy up to rounding.
    points : sequence of mapping, optional
        Settings that are no product, each a mapping of the same parameters, such as the rows of a
        table; combined with the grid of the others.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)``, called after each task. True shows a bar in a notebook
        or on a terminal, and a line a minute elsewhere.
    **settings
        Parameters of the system. A list makes a grid, ``samples=[1000, 2000]``, and replaces the
        values of the preset; a parameter that is a list itself takes a list of lists.

    Returns
    -------
    StudyResult
        Records, points and verdicts; with ``interrupted=True`` after Ctrl-C.

    Raises
    ------
    UnknownSystem, InvalidParameter
        If the system, the preset or a value is not one that is allowed.
    StudyConflict, StudyBusy, StudyTooNew, StorageFailed
        If the output directory cannot be used as asked.

    Examples
    --------
    >>> import solvable
    >>> found = solvable.run(
    ...     "quadratic-network", preset=None, dimension=10, samples=[40, 60], seeds=2, workers=1
    ... )
    >>> found.complete, len(found.records), found.verdicts[0].claim
    (True, 4, 'test-error')
    """
    from solvable.errors import InvalidParameter
    from solvable.paths import check_path
    from solvable.progress import reporter
    from solvable.study import run_study
    from solvable.study.dispatch import count_workers
    from solvable.study.outputs import check_directory, write_outputs

    if part is not None and output is None:
        raise InvalidParameter("part needs output: the run directory that all parts share.")
    study = study_of(_system(system), preset, settings, seeds, seed, points=points)
    if output is not None:
        check_directory(check_path(output, "output"))
    directory = mkdtemp(prefix="solvable-") if output is None else output
    options: dict[str, Any] = {"workers": workers, "scheduler": scheduler, "part": part}
    options["device"] = device
    try:
        with reporter(progress) as report:
            result = run_study(study, directory, progress=report, **options)
    except BaseException:
        if output is None:
            rmtree(directory, ignore_errors=True)
        raise
    if output is None:
        finalize(result, rmtree, directory, ignore_errors=True)
    elif result.points and part is None:
        write_outputs(result, 1 if scheduler else count_workers(workers))
    return result


def study_of(
    system: System,
    preset: str | None,
    grid: dict[str, Any],
    seeds: int | None,
    seed: int,
    *,
    points: Sequence[Mapping[str, Any]] = (),
    dashes: str = "",
) -> Study:
    """Build the requested study; messages write ``dashes`` before names of options."""
    from solvable.errors import InvalidParameter, unknown_choice
    from solvable.study import Study

    if preset not in (*system.presets, "none", None):
        allowed = [*system.presets, "none"]
        raise InvalidParameter(unknown_choice(f"{dashes}preset", preset, allowed))
    for name, value, least in (("seeds", seeds, 1), ("seed", seed, 0)):
        if value is not None and value < least:
            raise InvalidParameter(
                f"{dashes}{name} is {value}; allowed: whole numbers from {least}."
            )
    chosen = preset if preset in system.presets else None
    return Study(system, grid, seeds, preset=chosen, seed=seed, points=points)


def theory_of(system: str | System, /, **settings: Any) -> Predictions:
    """Predict a system without a measurement: ``solvable theory``.

    Parameters
    ----------
    system : str or System
        Name of an installed system, or a System object.
    **settings
        Parameters of the system, as in :func:`run`; those left out have their defaults, not the
        values of a preset.

    Returns
    -------
    Predictions
        One prediction per point of the grid. Points whose prediction raised an exception are in
        ``raised``, with its line under "no prediction".

    Raises
    ------
    UnknownSystem, InvalidParameter
        If the system or a value is not one that is allowed.

    Examples
    --------
    >>> import solvable
    >>> found = solvable.theory_of("quadratic-network", sample_ratio=[0.1, 0.2, 0.5], noise=0.5)
    >>> found
    <Predictions: quadratic-network: predicted at 3 points of sample_ratio>
    >>> found.values("test_error").round(2).shape
    (3,)
    """
    from solvable.study.predictions import predict_grid

    return predict_grid(_system(system), settings)


def compare(*runs: str | Path | StudyResult) -> Comparison:
    """Compare runs: ``solvable compare``.

    Parameters
    ----------
    *runs : path or StudyResult
        Two or more runs or their directories, finished or not. All are compared with the first.

    Returns
    -------
    Comparison
        Verdicts side by side, with the differences from the first run at shared settings.

    Raises
    ------
    InvalidParameter
        If fewer than two runs are given, or runs of two systems have no claim in common.
    StorageFailed, StudyTooNew
        If a directory holds no run, it is damaged, or a newer version wrote it.

    Examples
    --------
    >>> import solvable
    >>> settings = {"dimension": 10, "samples": 40, "preset": None, "workers": 1, "seeds": 2}
    >>> first = solvable.run("quadratic-network", **settings)
    >>> found = solvable.compare(first, solvable.run("quadratic-network", seed=1, **settings))
    >>> {row.pairing for row in found.differences}
    {'unpaired'}
    """
    from solvable.study.compare import compare_runs

    return compare_runs(runs)


def _system(system: str | System) -> System:
    from solvable.frame import registry

    return registry.load(system) if isinstance(system, str) else system
