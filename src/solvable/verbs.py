"""One Python function per command, which returns the object that the command prints.

Each function imports its modules when it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Literal
from weakref import finalize

if TYPE_CHECKING:
    from solvable.data.dataset import Dataset
    from solvable.diagnose.diagnosis import Diagnosed
    from solvable.forecast import Forecast, LearningCurve
    from solvable.frame.system import System
    from solvable.learn.results import Learned
    from solvable.models.multi_index.activations import Activations
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
    study = study_of(_system(system), preset, settings, seeds, seed)
    if output is not None:
        check_directory(check_path(output, "output"))
    directory = mkdtemp(prefix="solvable-") if output is None else output
    options: dict[str, Any] = {"workers": workers, "scheduler": scheduler, "part": part}
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
    return Study(system, grid, seeds, preset=chosen, seed=seed)


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
    """Compare the verdicts and metrics of several runs with the first: ``solvable compare``.

    Parameters
    ----------
    *runs : path or StudyResult
        Two or more runs, or their directories, finished or not.

    Returns
    -------
    Comparison
        Verdicts side by side, and differences from the first run at shared settings.

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


def learn_features(
    data: str | Path | Dataset,
    /,
    *,
    target: str | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    keep: Sequence[str] = (),
    folds: int = 5,
    layers: int = 1,
    rows: int = 20_000,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | bool | None = None,
) -> Learned:
    """Learn features layer by layer, and measure their error on unseen rows: ``solvable learn``.

    Parameters
    ----------
    data : path, str or Dataset
        CSV, NPZ or Parquet file, folder, or name of a data set.
    target : str, optional
        Column to predict.
    task : {"auto", "classification", "regression"}
        Kind of target; "auto" decides by its values.
    keep : sequence of str
        Columns to use even if they look like row numbers.
    folds : int
        Parts of the data, 2 to 20; each is predicted from the others.
    layers : int
        Filters, 1 to 5, each with a layer below it.
    rows : int
        Largest number of rows; from more rows a random subset is taken.
    seed : int
        Seed of the folds and random layers.
    workers : int, optional
        Local processes; default one per core.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)``, called after each fit. True shows a bar in a notebook
        or on a terminal, and a line a minute elsewhere.

    Returns
    -------
    Learned
        Scores, directions, forecast, and the model fitted to all rows.

    Raises
    ------
    InvalidData, InvalidParameter
        If the data cannot be learned from, or an argument is out of range.
    MemoryLimitExceeded
        If a fit does not fit into memory.

    Examples
    --------
    >>> import solvable
    >>> solvable.learn_features("iris", folds=2, workers=1).learned.error < 0.2
    True
    """
    from solvable.data import load as load_data
    from solvable.data.dataset import Dataset
    from solvable.learn import Request, learn
    from solvable.progress import reporter
    from solvable.study.dispatch import count_workers

    request = Request(folds=folds, layers=layers, rows=rows, seed=seed)
    if not isinstance(data, Dataset):
        data = load_data(str(data), target=target, task=task, keep=tuple(keep))
    with reporter(progress, "fits") as report:
        return learn(data, request, workers=count_workers(workers), progress=report)


def diagnose_weights(
    path: str | Path,
    /,
    *,
    initial: str | Path | None = None,
    heads: int | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    inputs_first: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | bool | None = None,
) -> Diagnosed:
    """Separate noise from learned features in weight matrices: ``solvable diagnose``.

    Parameters
    ----------
    path : path
        ``.safetensors``, ``.npz`` or ``.npy``; nothing in it is ever executed.
    initial : path, optional
        The weights before training, under the same names.
    heads : int, optional
        Attention heads in each pair of query and key; default from the metadata of the file or the
        ``config.json`` next to it.
    pairs : sequence of (str, str)
        Names of query and key matrices; by default recognised from the names in the file.
    inputs_first : bool
        Whether the arrays of ``pairs`` are (inputs, outputs).
    seed : int
        Seed of the bootstraps.
    workers : int, optional
        Local processes; default one per core, fewer for small matrices.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)``, called after each array. True shows a bar in a notebook
        or on a terminal, and a line a minute elsewhere.

    Returns
    -------
    Diagnosed
        One row per array and per attention head; after Ctrl-C the finished ones.

    Raises
    ------
    InvalidData
        If a file cannot be read or contains no array, or a pair is missing or has unequal inner sizes.

    Examples
    --------
    >>> import tempfile, numpy, solvable
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = f"{directory}/noise.npy"
    ...     numpy.save(path, numpy.random.default_rng(0).standard_normal((60, 200)))
    ...     solvable.diagnose_weights(path, workers=1).matrices[0].phase
    'random-like'
    """
    from solvable.diagnose.attention.heads_of_file import AttentionRequest
    from solvable.diagnose.matrices_of_file import diagnose_whole
    from solvable.progress import reporter
    from solvable.study.dispatch import count_workers

    lanes = count_workers(workers)
    request = AttentionRequest(heads, tuple((str(q), str(k)) for q, k in pairs), inputs_first)
    where, options = Path(path), {"seed": seed, "workers": lanes}
    with reporter(progress, "arrays") as report:
        return diagnose_whole(where, initial=initial, request=request, progress=report, **options)


def forecast_curve(
    curve: str | Path | LearningCurve,
    /,
    *,
    at: Sequence[float] = (),
    factors: Sequence[float] | None = None,
    confidence: float = 0.9,
    of: Literal["mean", "measurement"] = "mean",
    seed: int = 0,
) -> Forecast:
    """Extrapolate a measured learning curve, with intervals: ``solvable forecast``.

    Parameters
    ----------
    curve : path or LearningCurve
        CSV file with columns n and error (and replicate), or the curve itself.
    at : sequence of float
        Sample sizes to predict.
    factors : sequence of float, optional
        Multiples of the largest measured size; (2, 4) unless ``at`` is given.
    confidence : float
        Level of the intervals, 0.5 to 0.99.
    of : {"mean", "measurement"}
        Interval of the mean error, or of one new measurement.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    Forecast
        With ``refusal`` set if the curve must not be extrapolated.

    Raises
    ------
    InvalidData, InvalidParameter
        If the file is not a curve, or an argument is out of range.

    Examples
    --------
    >>> import numpy, solvable
    >>> n = numpy.repeat([100, 200, 400, 800, 1600], 3)
    >>> errors = (0.05 + 2 * n**-0.6) * numpy.tile([0.99, 1.0, 1.01], 5)
    >>> curve = solvable.forecast.LearningCurve(n, errors)
    >>> [point.samples for point in solvable.forecast_curve(curve, at=[3200]).predictions]
    [3200.0]
    """
    from threadpoolctl import threadpool_limits

    from solvable.forecast import LearningCurve, forecast

    if not isinstance(curve, LearningCurve):
        curve = LearningCurve.from_csv(curve)
    with threadpool_limits(limits=1):
        return forecast(
            curve, at=tuple(at), factors=factors, confidence=confidence, of=of, seed=seed
        )


def activations_of(
    *names: str,
    noise: float = 1.0,
    directions: int | None = None,
    decay: float | None = None,
) -> Activations:
    """Noise sensitivity of activations and the samples they need: ``solvable activations``.

    Parameters
    ----------
    *names : str
        Names or formulas of activations, as of :func:`solvable.links.make_link`.
    noise : float
        Variance of the label noise, at least 0; activations are standardised.
    directions : int, optional
        Number of directions of equal amplitude, 1 to 512; default 1.
    decay : float, optional
        Exponent of amplitudes that fall with a power of the feature, 0 to 10; 16 directions unless
        ``directions`` is given.

    Returns
    -------
    Activations
        One row per activation: exponents, thresholds, and their description.

    Raises
    ------
    InvalidParameter
        If a formula is not understood, or a number is out of range.

    Examples
    --------
    >>> import solvable
    >>> relu, cosmix = solvable.activations_of("relu", "cosmix", noise=100.0).rows
    >>> relu.noise_sensitivity_exponent, relu.threshold_ratio
    (1, 0.0)
    >>> cosmix.noise_sensitivity_exponent, round(cosmix.threshold_ratio)
    (2, 6464)
    """
    from solvable.models.multi_index.activations import compare_activations

    return compare_activations(names, noise=noise, directions=directions, decay=decay)
